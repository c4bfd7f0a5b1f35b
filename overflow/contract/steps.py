"""What a law did to its subjects, in order, as a person would read it: one line a call, long texts shortened.

Reads that look past a subject change nothing and are left out. It records and never judges.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from overflow.contract.subject import Ref, Scope, Stored

#: Lines shown, half of them from the start and half from the end; characters of a text shown from each of its ends.
LINES = 40
_ENDS = 20

_LOOKING_PAST = frozenset({"nodes", "text", "refs", "record_bytes"})


class Steps:
    """The steps of one example. `running` is how many calls are being made now: a call inside one is made meanwhile."""

    def __init__(self) -> None:
        self._steps: list[tuple[str | None, str]] = []
        self._running = 0

    def note(self, text: str) -> None:
        """What happened to no subject."""
        self._steps.append((None, self._indented(text)))

    def begin(self, place: str, method: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> int | None:
        """A call of the subject in the directory `place` begins; returns what `end` takes."""
        if method in _LOOKING_PAST:
            return None
        if method == "open":
            arguments = ()  # The directory is `place`, and the address tells nobody anything.
        shown = [_shown(each) for each in arguments] + [f"{name}={_shown(each)}" for name, each in named.items()]
        self._steps.append((place, self._indented(" ".join([method.rstrip("_"), *shown]))))
        self._running += 1
        return len(self._steps) - 1

    def end(self, step: int | None, outcome: Any) -> None:
        """The call ended: `outcome` is what it returned or raised."""
        if step is None:
            return
        self._running -= 1
        place, line = self._steps[step]
        self._steps[step] = place, line + _outcome(outcome)

    def __str__(self) -> str:
        """A line a step, each on a line of its own; with several directories each says on which it was."""
        places = {place for place, _ in self._steps} - {None}
        several = len(places) > 1
        lines = [f"{place}: {line}" if several and place is not None else line for place, line in self._steps]
        left_out = len(lines) - LINES
        if left_out > 0:
            half = LINES // 2
            lines = [*lines[:half], f"… ({left_out} steps left out) …", *lines[-half:]]
        return "".join(f"\n  {line}" for line in lines)

    def _indented(self, text: str) -> str:
        return "  meanwhile " * (self._running > 0) + text


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
