"""How one divided record is told: a row of JSON, a row of a table, an exit code.

An unknown token report stays apart from every other end: its spans are null, and it is no error of the record.
DESIGN.md, "Command line" (`overflow divide`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from rich.cells import cell_len
from rich.console import Group
from rich.table import Table
from rich.text import Text

from overflow.cli.output import counted
from overflow.division.lockstep import Outcome
from overflow.division.spans import Division, TokensUnknownError, WindowTooSmallError
from overflow.errors import UnavailableError
from overflow.measure.records import Record
from overflow.shown import shown

#: So many rows are shown; a table of thousands is read by nobody, and takes longer to draw than the texts to divide.
ROWS = 50

#: So many columns show either end of a node: both fit a terminal of 80.
_GLIMPSE = 16


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
    """What people are told of a run: the spans of an only record, else a row a record, and a line that sums up all.

    Records come one by one; no more than `ROWS` rows and one text are held.
    """

    def __init__(self) -> None:
        self._first: list[dict[str, Any]] = []
        self._text = ""
        self._endings: Counter[str] = Counter()
        self._length = 0
        self._measured = 0
        self._nodes = 0

    def add(self, told: dict[str, Any], text: str) -> None:
        """One more record: its row, as `row` makes it, and its text."""
        if not self._first:
            self._text = text
        if len(self._first) < ROWS:
            self._first.append(told)
        self._endings["divided" if told["spans"] else _ending(told)] += 1
        self._length += told["length"]
        self._measured += told["cost"]["characters"] if "cost" in told else 0
        self._nodes += len(told["spans"] or ())

    def table(self, title: str) -> Group | None:
        """The table and the lines below it; None when there were no records."""
        if not self._first:
            return None
        records = self._endings.total()
        if records == 1 and self._nodes:
            (only,) = self._first
            shape, more = _spans(only, self._text, title), _more(self._nodes - ROWS, "node")
        else:
            shape, more = _records(self._first, title), _more(records - ROWS, "record")
        return Group(shape, *more, Text(self._summary()))

    def _summary(self) -> str:
        parts = [f"{count:,} {ending}" for ending, count in sorted(self._endings.items())]
        cost = f"; {self._measured / self._length:.2f} characters measured per character" if self._length else ""
        records, nodes = counted(self._endings.total(), "record"), counted(self._nodes, "node")
        return f"{records}: {', '.join(parts)}; {nodes}{cost}"


def _records(rows: Sequence[dict[str, Any]], title: str) -> Table:
    shape = _table(title)
    shape.add_column("record", overflow="fold")
    for heading in ("characters", "nodes", "tokens a node", "characters a node"):
        shape.add_column(heading, justify="right", no_wrap=True)
    for told in rows:
        spans = told["spans"] or ()
        shape.add_row(
            Text(shown(str(told["id"]))),
            f"{told['length']:,}",
            _ending(told) if not spans else f"{len(spans):,}",
            _range([span["token_count"] for span in spans]),
            _range([span["end"] - span["start"] for span in spans]),
        )
    return shape


def _spans(told: dict[str, Any], text: str, title: str) -> Table:
    shape = _table(f"{shown(str(told['id']))}, {counted(told['length'], 'character')}; {title}")
    for heading in ("node", "start", "end", "tokens"):
        shape.add_column(heading, justify="right", no_wrap=True)
    for heading in ("begins", "ends"):
        shape.add_column(heading, overflow="fold")
    for span in told["spans"][:ROWS]:
        node = text[span["start"] : span["end"]]
        numbers = (f"{span[name]:,}" for name in ("index", "start", "end", "token_count"))
        shape.add_row(*numbers, Text("".join(_glimpse(node))), Text("".join(_glimpse(node[::-1])[::-1])))
    return shape


def _table(title: str) -> Table:
    return Table(title=Text(title), title_justify="left", title_style="bold")


def _more(left_out: int, what: str) -> list[Text]:
    if left_out <= 0:
        return []
    return [Text(f"… and {counted(left_out, f'more {what}')}; --json PATH writes every one")]


def _glimpse(characters: Iterable[str]) -> list[str]:
    """The first of the characters, as shown, that take no more than `_GLIMPSE` columns."""
    pieces: list[str] = []
    room = _GLIMPSE
    for character in characters:
        piece = shown(character)
        room -= cell_len(piece)
        if room < 0:
            break
        pieces.append(piece)
    return pieces


def _ending(told: dict[str, Any]) -> str:
    if told["spans"] is None:
        return "error" if "error" in told else "unknown"
    return "fits"


def _range(numbers: Sequence[int]) -> str:
    if not numbers:
        return ""
    least, most = min(numbers), max(numbers)
    return f"{least:,}" if least == most else f"{least:,}–{most:,}"
