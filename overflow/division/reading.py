"""The report of a probe, with where in the record it was taken; it decides nothing. DESIGN.md, "The division rule"."""

from dataclasses import dataclass

from overflow.division.density import Density
from overflow.tokens.report import TokenReport


@dataclass(frozen=True, slots=True)
class Reading:
    """The report of the text from `start` to `end`, positions in the whole record (code points), and what it taught."""

    start: int
    end: int
    report: TokenReport
    density: Density

    @property
    def close(self) -> int:
        """Where the window closes, as a position in the whole record."""
        return self.start + self.report.window_end_char
