"""How much of the rest is measured to learn where its window closes, and when that answer stands for the whole rest.

Lengths chosen here change what a division costs, never where it cuts: a report is believed only where no tokenizer that
calls itself prefix-safe could close its window elsewhere on the whole rest. DESIGN.md, "The division rule": measuring a
bounded prefix.
"""

import math
import re
from dataclasses import dataclass

from overflow.division.density import Density
from overflow.tokens.report import TokenReport

#: A probe is expected to hold this many windows: one that does not close must be measured again.
_MARGIN = 1.2
#: Room for a clean break behind the close, in windows.
_ROOM = 0.05

# Where no token reaches across, whatever follows. Between words: white space that every tokenizer in use takes for it
# (some drop the rarer kinds), and the next word begun, because `.\n` and `.\n\n` can be one token each. In writing
# without spaces: a punctuation mark with a letter after it, twice, because some tokenizers join a mark to the letters
# that follow (`。今天`), and none goes on past the next mark.
_MARK_AND_LETTER = r"[!-/:-@\[-^`{-~、。，．！？；：「」『』（）【】《》・…][^\W\d_]"
_CLEAN_BREAK = re.compile(rf"\S[ \t\r\n\u3000]+\S|{_MARK_AND_LETTER}(?s:.)*?{_MARK_AND_LETTER}")

#: A run without any break that is longer than each limit tokenizers set themselves on a word (WordPiece gives up at 100
#: code points) or a token. Past it, more text can matter only through the run's length, as in `====`, where a tokenizer
#: may put the shorter token first.
_UNBROKEN = 1024


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


def first_end(text: str, density: Density | None) -> int:
    """Where the first probe ends: without a density, a small sample, which grows slower than the text does."""
    if density is not None:
        return next_end(text, 0, density)
    return min(len(text) // 16, 8 * math.isqrt(len(text))) or len(text)


def next_end(text: str, start: int, density: Density) -> int:
    """Where the probe from `start` ends."""
    return density.advance(text, start, density.window * _MARGIN)


def wider_end(text: str, reading: Reading, earlier: Reading | None) -> int | None:
    """Where a probe must end that says more than `reading`; None when `reading` stands for the whole rest.

    `earlier` is the probe before it from the same start, if any.
    """
    report = reading.report
    if reading.end == len(text):
        return None
    if not report.truncated:
        missing = report.window - report.count
        return reading.density.advance(text, reading.end, missing * _MARGIN + report.window * _ROOM)
    clean = _CLEAN_BREAK.search(text, reading.close, reading.close + _UNBROKEN)
    if clean:
        return clean.end() if clean.end() > reading.end else None
    if reading.end <= reading.close + _UNBROKEN:
        return min(len(text), reading.close + _UNBROKEN + 1)
    if earlier is None or earlier.end + 1 != reading.end:
        # Two lengths with no common divisor: agreement cannot come from the length of a repeated run.
        return reading.end + 1
    if earlier.report.truncated and earlier.close == reading.close:
        return None
    return min(len(text), 2 * reading.end - reading.start)
