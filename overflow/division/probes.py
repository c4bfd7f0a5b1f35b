"""How much of the rest is measured to learn where its window closes, and when that answer stands for the whole rest.

Lengths chosen here change what a division costs and never where it cuts: a report is believed only behind a break that
no token reaches across, or so far from the probe's end that none looks there. That is a property of tokenizers: it is
tested, not proved. DESIGN.md, "The division rule": measuring a bounded prefix.
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
#: A run without any break says enough when it is longer than each limit that tokenizers set themselves on a word
#: (WordPiece gives up at 100 code points) or a token.
_UNBROKEN = 1024

# Where no token reaches across, whatever follows. Between words: white space that every tokenizer in use takes for it
# (some drop the rarer kinds), and the next word begun, because `.\n` and `.\n\n` can be one token each. In writing
# without spaces: a punctuation mark with a letter after it, twice, because some tokenizers join a mark to the letters
# that follow (`。今天`), and none goes on past the next mark.
_BETWEEN_WORDS = r"\S[ \t\r\n\u3000]+\S"
_MARK_AND_LETTER = r"[!-/:-@\[-^`{-~、。，．！？；：「」『』（）【】《》・…][^\W\d_]"
#: Each kind of clean break, and how far behind the close it is looked for (code points). White space comes first where
#: writing has it, that is within a word with all its marks.
_CLEAN_BREAKS = (
    (re.compile(_BETWEEN_WORDS), 128),
    (re.compile(rf"{_BETWEEN_WORDS}|{_MARK_AND_LETTER}(?s:.)*?{_MARK_AND_LETTER}"), _UNBROKEN),
)
#: In a repetition without any break the first token may depend on how long all of it is: some tokenizers put the
#: shorter token of `=====` first. No token in use covers two repetitions of more code points than this.
_PERIOD = 64


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
    return min(len(text) // 32, 8 * math.isqrt(len(text))) or len(text)


def next_end(text: str, start: int, density: Density) -> int:
    """Where the probe from `start` ends."""
    return density.advance(text, start, density.window * _MARGIN)


def wider_end(text: str, reading: Reading) -> int | None:
    """Where a probe must end that says more than `reading`; None when `reading` stands for the whole rest."""
    report, close = reading.report, reading.close
    if reading.end == len(text):
        return None
    if not report.truncated:
        missing = report.window - report.count
        return reading.density.advance(text, reading.end, missing * _MARGIN + report.window * _ROOM)
    for pattern, distance in _CLEAN_BREAKS:
        if clean := pattern.search(text, close, close + distance):
            enough = clean.end()
            break
    else:
        repeats = _repeats(text[close + _UNBROKEN // 2 : close + _UNBROKEN])
        enough = len(text) if repeats else min(len(text), close + _UNBROKEN)
    return enough if enough > reading.end else None


def _repeats(text: str) -> bool:
    return any(text[period:] == text[:-period] for period in range(1, _PERIOD + 1))
