"""How one divided record is told: a row of JSON, a row of a table, an exit code.

An unknown token report stays apart from every other end: its spans are null, and it is no error of the record.
DESIGN.md, "Command line" (`overflow divide`).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from overflow.cli.output import shown
from overflow.measure.records import Record
from overflow.division.lockstep import Outcome
from overflow.division.spans import Division, TokensUnknownError, WindowTooSmallError
from overflow.errors import UnavailableError

#: So many rows are shown; a table of thousands is read by nobody, and takes longer to draw than the texts to divide.
ROWS = 50


def exit_code(outcome: Outcome) -> int:
    """0 for a division, 3 where the server is to blame, 1 for a record that cannot be divided."""
    if isinstance(outcome, Division):
        return 0
    return UnavailableError.exit_code if isinstance(outcome, UnavailableError) else 1


def row(record: Record, outcome: Outcome) -> dict[str, Any]:
    """The JSON object of one record; `error` is there only for a record that could not be divided."""
    told: dict[str, Any] = {"id": record.id, "length": len(record.text), "window": None, "spans": None}
    if isinstance(outcome, Division):
        told["window"] = outcome.window
        told["fits"] = outcome.fits
        told["spans"] = [
            {"index": index, "start": span.start, "end": span.end, "token_count": span.token_count}
            for index, span in enumerate(outcome.spans)
        ]
    elif not isinstance(outcome, TokensUnknownError):
        told["error"] = str(outcome)
    if isinstance(outcome, WindowTooSmallError):
        told["window"] = outcome.window
    if isinstance(outcome, Division | TokensUnknownError | WindowTooSmallError):
        told["cost"] = asdict(outcome.cost)
    return told


class Told:
    """What people are told of a run: its first rows in a table, and a line that sums up all of them.

    Rows come one by one; no more than `ROWS` are held.
    """

    def __init__(self) -> None:
        self._first: list[dict[str, Any]] = []
        self._endings: Counter[str] = Counter()
        self._length = 0
        self._measured = 0
        self._nodes = 0

    def add(self, told: dict[str, Any]) -> None:
        """One more row, as `row` makes it."""
        if len(self._first) < ROWS:
            self._first.append(told)
        self._endings["divided" if told["spans"] else _ending(told)] += 1
        self._length += told["length"]
        self._measured += told["cost"]["characters"] if "cost" in told else 0
        self._nodes += len(told["spans"] or ())

    def table(self, title: str) -> Group | None:
        """The table and the lines below it; None when there were no rows."""
        if not self._first:
            return None
        shape = Table(title=title, title_justify="left", title_style="bold")
        shape.add_column("record", overflow="fold")
        for heading in ("characters", "nodes", "tokens a node", "characters a node"):
            shape.add_column(heading, justify="right", no_wrap=True)
        for told in self._first:
            spans = told["spans"] or ()
            shape.add_row(
                Text(shown(str(told["id"]))),
                f"{told['length']:,}",
                _ending(told) if not spans else str(len(spans)),
                _range([span["token_count"] for span in spans]),
                _range([span["end"] - span["start"] for span in spans]),
            )
        more = self._endings.total() - len(self._first)
        left_out = [Text(f"… and {more:,} more records; --json PATH writes every one")] if more else []
        return Group(shape, *left_out, Text(self._summary()))

    def _summary(self) -> str:
        parts = [f"{count:,} {ending}" for ending, count in sorted(self._endings.items())]
        cost = f"; {self._measured / self._length:.2f} characters measured per character" if self._length else ""
        return f"{self._endings.total():,} records: {', '.join(parts)}; {self._nodes:,} nodes{cost}"


def _ending(told: dict[str, Any]) -> str:
    if told["spans"] is None:
        return "error" if "error" in told else "unknown"
    return "fits"


def _range(numbers: Sequence[int]) -> str:
    if not numbers:
        return ""
    least, most = min(numbers), max(numbers)
    return f"{least:,}" if least == most else f"{least:,}–{most:,}"
