"""What the store asks of its embedder, with every failure kept to the text that caused it.

One bad text in a batch fails alone, and a server that is away fails all of them after two requests. It never retries
and never reads the store. Overflow Tree, section 2: unknown is not "fits"; issue 2: one bad row stops nothing else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from overflow.embedding.embedder import Embedder, Vectors
from overflow.errors import HarnessError, UnavailableError
from overflow.tokens.report import TokenReport

#: Asked when a batch failed, to tell a server that is away from a text it cannot take.
_PROBE = "Does the embedding server answer?"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Embedding:
    """One text's vector, shape (dimensions,), and its report, None where tokens are unknown."""

    vector: Vectors
    report: TokenReport | None


class Model:
    """An embedder whose identity is kept until `refresh`; '' is the name of a model that states none."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._name: str | None = None

    def refresh(self) -> None:
        """Ask for the identity now: the server may run another model than before, or none that answers."""
        try:
            self._name = self._embedder.identity() or ""
        except UnavailableError:
            self._name = None

    def name(self) -> str:
        """The identity vectors are stored under; raises UnavailableError when it cannot be learnt now."""
        if self._name is None:
            self._name = self._embedder.identity() or ""
        return self._name

    def known_name(self) -> str | None:
        """`name`, or None when it cannot be learnt now."""
        try:
            return self.name()
        except UnavailableError:
            return None

    def is_still(self, name: str) -> bool:
        """Whether `name` is the identity as last learnt; asks nobody."""
        return self._name == name

    def window(self) -> int | None:
        """The window in tokens; None when the server is away or reports no tokens."""
        (report,) = self.measure_each([_PROBE])
        return report.window if isinstance(report, TokenReport) else None

    def embed_each(self, texts: Sequence[str]) -> list[Embedding | HarnessError]:
        """Vector and report of each text, or why it has none."""
        return _each(self._embed, texts)

    def measure_each(self, texts: Sequence[str]) -> list[TokenReport | HarnessError | None]:
        """The report of each text, None where tokens are unknown, or why it has none."""
        return _each(self._embedder.measure, texts)

    def _embed(self, texts: Sequence[str]) -> list[Embedding]:
        embedded = self._embedder.embed(texts)
        return [Embedding(row, report) for row, report in zip(embedded.vectors, embedded.reports, strict=True)]


def _each(ask: Callable[[Sequence[str]], list[T]], texts: Sequence[str]) -> list[T | HarnessError]:
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
