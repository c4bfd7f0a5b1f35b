"""What a law did to its subjects, in order, as a person would read it: one line a call, long texts shortened.

Reads that look past a subject change nothing and are left out. It records and never judges.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from overflow.contract.subject import Ref, Scope, Stored, Subject

#: Lines shown, half of them from the start and half from the end; characters of a text shown from each of its ends.
LINES = 40
_ENDS = 20

_LOOKING_PAST = frozenset({"nodes", "text", "refs", "record_bytes"})


@dataclass(frozen=True, slots=True)
class Step:
    """A line, and what it is about: the record, the text written to it, and what the call raised."""

    place: str | None
    line: str
    ref: Ref | None = None
    text: str | None = None
    raised: BaseException | None = None

    def is_of_another(self, ref: Ref | None, text: str | None) -> bool:
        """Whether it is about a record that is neither `ref` nor has the text."""
        if self.ref is None and self.text is None:
            return False
        return (self.ref is None or self.ref != ref) and (self.text is None or self.text != text)


class Steps:
    """The steps of one example. `running` is how many calls are being made now: a call inside one is made meanwhile."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._running = 0

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    def note(self, text: str) -> None:
        """What happened to no subject."""
        self._steps.append(Step(None, self._indented(text)))

    def begin(self, place: str, method: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> int | None:
        """A call of the subject in the directory `place` begins; returns what `end` takes."""
        if method in _LOOKING_PAST:
            return None
        bound = inspect.signature(getattr(Subject, method)).bind_partial(None, *arguments, **named).arguments
        del bound["self"]
        if method == "open":
            bound = {}  # The directory is `place`, and the address tells nobody anything.
        shown = [_argument(name, value, by_name=name in named) for name, value in bound.items() if value is not None]
        line = self._indented(" ".join([method.rstrip("_"), *shown]))
        self._steps.append(Step(place, line, bound.get("ref"), bound.get("text")))
        self._running += 1
        return len(self._steps) - 1

    def end(self, step: int | None, outcome: Any) -> None:
        """The call ended: `outcome` is what it returned or raised."""
        if step is None:
            return
        self._running -= 1
        begun = self._steps[step]
        self._steps[step] = replace(
            begun,
            line=begun.line + _outcome(outcome),
            ref=outcome.ref if isinstance(outcome, Stored) else begun.ref,
            raised=outcome if isinstance(outcome, BaseException) else None,
        )

    def __str__(self) -> str:
        """A line a step, each on a line of its own; with several directories each says on which it was."""
        return self._told(self._steps)

    def about(self, ref: Ref | None, text: str | None) -> str:
        """The same of one record, by its id or what was written to it: of the others only how many steps there were."""
        told: list[Step] = []
        which = "single" if ref is None and text is None else "other"
        for is_of_another, run in groupby(self._steps, lambda step: step.is_of_another(ref, text)):
            steps = list(run)
            count = "1 step" if len(steps) == 1 else f"{len(steps)} steps"
            told += [Step(None, f"… ({count} about {which} records) …")] if is_of_another else steps
        return self._told(told)

    def _told(self, steps: Sequence[Step]) -> str:
        several = len({step.place for step in self._steps} - {None}) > 1
        lines = [f"{step.place}: {step.line}" if several and step.place is not None else step.line for step in steps]
        left_out = len(lines) - LINES
        if left_out > 0:
            half = LINES // 2
            lines = [*lines[:half], f"… ({left_out} steps left out) …", *lines[-half:]]
        return "".join(f"\n  {line}" for line in lines)

    def _indented(self, text: str) -> str:
        return "  meanwhile " * (self._running > 0) + text


def _argument(name: str, value: Any, *, by_name: bool) -> str:
    """A number says what it is the number of; a record, a scope and a text say it themselves."""
    return f"{name} {_shown(value)}" if by_name or not isinstance(value, Ref | Scope | str) else _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, Ref):
        return f"{value.kind} {value.id}"
    if isinstance(value, Scope):
        return f"in {value}"
    if isinstance(value, str) and len(value) > 3 * _ENDS:
        return f"{value[:_ENDS]!r}…{value[-_ENDS:]!r} ({len(value)} characters)"
    return repr(value)


def _outcome(outcome: Any) -> str:
    if isinstance(outcome, Stored):
        return f" → {_shown(outcome.ref)}" + (f", {outcome.nodes}" if outcome.nodes else "")
    if isinstance(outcome, BaseException):
        cause = outcome if outcome.__cause__ is None else outcome.__cause__
        return f" → {type(cause).__name__}"
    return ""
