"""One example: the records, the window they are measured against, and what happens to them.

A scenario is data. It is drawn by a strategy or made from a corpus, and every law reads the same kind of it, so that a
law holds on generated text and on real text alike. It never touches a subject.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from overflow.contract.oracle import RuleTooSmallError, RuleUnknownError, divide_by_the_rule
from overflow.contract.subject import Kind, Scope
from overflow.tokens.report import TokenReport, TokenWindow

#: The store's length limit, kept by Overflow Tree, section 7.
LENGTH_LIMIT = 16_000


@dataclass(frozen=True, slots=True)
class Record:
    """A text to store as a memory or an episode, under one scope."""

    text: str
    kind: Kind = "mem"
    scope: Scope = field(default_factory=Scope)


@dataclass(frozen=True)
class Scenario:
    """What one example is made of.

    `texts` are further texts for edits, drawn as the records' are; `seed` picks among what a law may do, so that a law
    needs no strategy of its own. `identity` names the model whose vectors the server gives, None when it does not say.
    """

    window: TokenWindow
    records: tuple[Record, ...]
    queries: tuple[str, ...]
    texts: tuple[str, ...]
    seed: int = 0
    identity: str | None = "model-1"

    def report(self, text: str) -> TokenReport:
        """The window's report on `text`, measured here and not by the subject."""
        report = self.window.measure([text])[0]
        if report is None:
            raise RuleUnknownError(f"{self.window.name} does not report tokens")
        return report

    def runs_past(self, text: str) -> bool:
        return self.report(text).truncated

    def spans(self, text: str) -> list[tuple[int, int, int]] | None:
        """The oracle's spans (start, end, token count); [] when the text fits, None when it cannot be divided."""
        if text not in self._spans:
            try:
                self._spans[text] = divide_by_the_rule(text, self.report)
            except RuleTooSmallError:
                self._spans[text] = None
        return self._spans[text]

    def divides(self, text: str) -> bool:
        return bool(self.spans(text))

    @cached_property
    def _spans(self) -> dict[str, list[tuple[int, int, int]] | None]:
        return {}

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 - the protocol of pretty printers
        """Without the texts: Hypothesis warns of values that it has to write out at length."""
        printer.text(f"<scenario of {len(self.records)} records, window {self.window.name}, seed {self.seed}>")

    def __str__(self) -> str:
        lines = [f"window {self.window.name}, seed {self.seed}, model {self.identity or 'without a name'}"]
        lines += [f"{record.kind} in {record.scope}: {record.text!r}" for record in self.records]
        return "\n".join(lines)
