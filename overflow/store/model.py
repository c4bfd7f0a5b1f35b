"""What the store asks of its embedder, with every failure kept to the text that caused it.

One bad text in a batch fails alone, and a server that is away fails all of them after two requests. It never retries
and never reads the store. Overflow Tree, section 2: unknown is not "fits"; DESIGN.md, "The reference store": one bad
row stops nothing else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar

import numpy as np

from overflow.embedding.embedder import Embedder, Vectors
from overflow.errors import HarnessError, UnavailableError
from overflow.tokens.report import TokenReport

#: Asked when a batch failed, to tell a server that is away from a text it cannot take.
_PROBE = "Does the embedding server answer?"

#: The largest whole number SQLite stores.
_LARGEST = 2**63 - 1

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Embedding:
    """One text's vector, shape (dimensions,), and its report, None where tokens are unknown."""

    vector: Vectors
    report: TokenReport | None


@dataclass(frozen=True, slots=True)
class Shape:
    """What can be seen of a model without its name: its vectors' dimensions and its window, None where unknown."""

    dimensions: int | None
    window: int | None


class Model:
    """An embedder whose identity is kept until `refresh`; '' is the name of a model that states none.

    Several threads may use it. What a call learnt before it asked stays true of that call, whatever another learns.
    An answer to /embed does not carry the identity. `embed_named` asks for it again when an answer's shape is another
    than the last one's; reads, repair, drain and every build ask in any case. What a write cannot see is a model that
    took the place of one with equal dimensions and window since the name was last learnt: until it is learnt again, the
    records' vectors get the older name, and are found as another model's then, unless the older one is back by then.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        # Guards the next two, and is never held while the embedder is asked.
        self._lock = Lock()
        self._name: str | None = None
        self._seen: Shape | None = None

    @property
    def prefix_safe(self) -> bool:
        """That of the embedder."""
        return self._embedder.prefix_safe

    def refresh(self) -> str | None:
        """The identity as it is stated now, and kept; None when it cannot be learnt: no server that answers."""
        try:
            name = self._embedder.identity() or ""
        except UnavailableError:
            name = None
        with self._lock:
            self._name = name
        return name

    def name(self) -> str:
        """The identity vectors are stored under; raises UnavailableError when it cannot be learnt now."""
        name = self.last_name()
        if name is None:
            name = self._embedder.identity() or ""
            with self._lock:
                self._name = name
        return name

    def known_name(self) -> str | None:
        """`name`, or None when it cannot be learnt now."""
        try:
            return self.name()
        except UnavailableError:
            return None

    def last_name(self) -> str | None:
        """The identity as last learnt, None when it was not; asks nobody."""
        with self._lock:
            return self._name

    def is_still(self, name: str) -> bool:
        """Whether `name` is the identity as last learnt; asks nobody."""
        return self.last_name() == name

    def shape(self) -> Shape:
        """The shape as it is now, asked with one text; None of it is known when the server is away."""
        (answer,) = self.embed_each([_PROBE])
        if not isinstance(answer, Embedding):
            return Shape(None, self._window())
        dimensions = len(answer.vector)
        return Shape(dimensions, self._window() if answer.report is None else answer.report.window)

    def embed_named(self, texts: Sequence[str]) -> tuple[str | None, list[Embedding | HarnessError]]:
        """The name to store vectors under, and what `embed_each` gives; without a name nothing is asked.

        The name is None, too, when it had to be learnt again and could not be.
        """
        name = self.known_name()
        if name is None:
            return None, [UnavailableError("the model's identity cannot be learnt now")] * len(texts)
        with self._lock:
            seen = self._seen
        answers = self.embed_each(texts)
        if seen is not None and any(isinstance(each, Embedding) and _shape_of(each) != seen for each in answers):
            return self.refresh(), answers
        return name, answers

    def embed_now(self, text: str) -> tuple[str, Embedding] | None:
        """The text's vector with the name of the model that made it; None when either cannot be had now.

        The identity is asked anew: who compares with stored vectors must not take another model's for this one's.
        """
        for _ in range(2):
            name = self.known_name()
            if name is None:
                return None
            (answer,) = self.embed_each([text])
            if not isinstance(answer, Embedding):
                return None
            now = self.refresh()
            if now == name:
                return name, answer
            if now is None:
                return None
        return None

    def embed_each(self, texts: Sequence[str]) -> list[Embedding | HarnessError]:
        """Vector and report of each text, or why it has none."""
        return _each(self._embed, texts)

    def measure_each(self, texts: Sequence[str]) -> list[TokenReport | HarnessError | None]:
        """The report of each text, None where tokens are unknown, or why it has none."""
        return _each(self._measure, texts)

    def _window(self) -> int | None:
        (report,) = self.measure_each([_PROBE])
        return report.window if isinstance(report, TokenReport) else None

    def _embed(self, texts: Sequence[str]) -> list[Embedding | HarnessError]:
        embedded = self._embedder.embed(texts)
        answers = [_checked(row, report) for row, report in zip(embedded.vectors, embedded.reports, strict=True)]
        for answer in answers:
            if isinstance(answer, Embedding):
                with self._lock:
                    self._seen = _shape_of(answer)
        return answers

    def _measure(self, texts: Sequence[str]) -> list[TokenReport | HarnessError | None]:
        return [_checked_report(report) for report in self._embedder.measure(texts)]


def _shape_of(answer: Embedding) -> Shape:
    return Shape(len(answer.vector), None if answer.report is None else answer.report.window)


def _checked(vector: Vectors, report: TokenReport | None) -> Embedding | HarnessError:
    checked = _checked_report(report)
    if isinstance(checked, HarnessError):
        return checked
    if not len(vector) or not np.isfinite(vector).all():
        return UnavailableError("the embedder answered a vector that is empty or not finite")
    return Embedding(vector, checked)


def _checked_report(report: TokenReport | None) -> TokenReport | HarnessError | None:
    if report is not None and max(report.count, report.window, report.window_end_char) > _LARGEST:
        return UnavailableError(f"the embedder reported {report.count} tokens, more than can be stored")
    return report


def _each(ask: Callable[[Sequence[str]], list[T | HarnessError]], texts: Sequence[str]) -> list[T | HarnessError]:
    if not texts:
        return []
    try:
        return [*ask(texts)]
    except HarnessError as error:
        if len(texts) == 1:
            return [error]
    try:
        ask([_PROBE])
    except HarnessError as away:
        return [away] * len(texts)
    return [answer for text in texts for answer in _each(ask, [text])]
