"""What became of a law, as data. It decides nothing. DESIGN.md, "Command line" (`overflow check --json`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from overflow.contract import readable
from overflow.contract.violation import Violation

Status = Literal["holds", "violated", "skipped"]


@dataclass(frozen=True)
class CorpusResult:
    """A law on a real corpus: `records` in it, of which `divided`; times are seconds."""

    status: Status
    reason: str | None
    records: int
    divided: int
    seconds: float
    counterexample: dict[str, Any] | None = None
    error: bool = False


@dataclass(frozen=True)
class Result:
    """What became of one law. `error`, here and on the corpus, tells a crash of the subject from a violation."""

    invariant: str
    name: str
    source: str
    status: Status
    reason: str | None
    examples: int
    divided: int
    seconds: float
    counterexample: dict[str, Any] | None = None
    error: bool = False
    corpus: CorpusResult | None = None


def described(violation: Violation) -> dict[str, str]:
    """A counterexample as data: every value as a person would read it."""
    expected, got = readable.read_both(violation.expected, violation.got)
    return as_text({"title": violation.title, "expected": expected, "got": got, **violation.context})


def as_text(context: Mapping[str, Any]) -> dict[str, str]:
    """Every value as a person would read it."""
    return {label: readable.read(value) for label, value in context.items()}
