"""How much of the rest is measured to learn where its window closes, and when that answer stands for the whole rest.

Lengths chosen here change what a division costs and never where it cuts: a report is believed only behind a break that
no token reaches across, or so far from the probe's end that none looks there. That is a property of tokenizers: it is
tested, not proved. DESIGN.md, "The division rule": measuring a bounded prefix.
"""

import math
import re

from overflow.division.density import Density
from overflow.division.reading import Reading
from overflow.division.repetitions import UNBROKEN, Repetitions

#: A probe is expected to hold this many windows: one that does not close must be measured again.
_MARGIN = 1.2
#: Room for a clean break behind the close, in windows.
_ROOM = 0.05

# Where no token reaches across, whatever follows. Between words: white space that every tokenizer in use takes for it
# (some drop the rarer kinds), and the next word begun, because `.\n` and `.\n\n` can be one token each. In writing
# without spaces: a punctuation mark with a letter after it, twice, because some tokenizers join a mark to the letters
# that follow (`。今天`), and none goes on past the next mark.
_BETWEEN_WORDS = r"\S[ \t\r\n\u3000]+\S"
_MARK_AND_LETTER = r"[!-/:-@\[-^`{-~、。，．！？；：「」『』（）【】《》・…][^\W\d_]"
#: White space comes first where writing has it, that is within a word with all its marks (code points).
_SPACED = re.compile(_BETWEEN_WORDS)
_WORD = 128
_MARKED = re.compile(rf"{_BETWEEN_WORDS}|{_MARK_AND_LETTER}(?s:.)*?{_MARK_AND_LETTER}")


def first_end(text: str, density: Density | None) -> int:
    """Where the first probe ends: without a density, a small sample, which grows slower than the text does."""
    if density is not None:
        return next_end(text, 0, density)
    return min(len(text) // 32, 8 * math.isqrt(len(text))) or len(text)


def next_end(text: str, start: int, density: Density) -> int:
    """Where the probe from `start` ends."""
    return density.advance(text, start, density.window * _MARGIN)


def wider_end(text: str, reading: Reading, repetitions: Repetitions, *, again: bool) -> int | None:
    """Where a probe must end that says more than `reading`; None when `reading` stands for the whole rest.

    `again` tells that `reading` is of a probe widened before, in vain.
    """
    if reading.end == len(text):
        return None
    if not reading.report.truncated:
        missing = reading.report.window - reading.report.count
        end = reading.density.advance(text, reading.end, missing * _MARGIN + reading.report.window * _ROOM)
        # Where the text makes hardly a token, such as one word without end, the estimate alone would creep.
        return min(len(text), max(end, 2 * reading.end - reading.start)) if again else end
    enough = _enough(text, reading, repetitions)
    return enough if enough > reading.end else None


def _enough(text: str, reading: Reading, repetitions: Repetitions) -> int:
    """Where a probe must end for its report of where this window closes to be believed."""
    position = reading.close
    while True:
        if clean := _SPACED.search(text, position, position + _WORD):
            return clean.end()
        if (end := repetitions.end_at(position, reading.start)) is None:
            clean = _MARKED.search(text, position, position + UNBROKEN)
            return clean.end() if clean else min(len(text), position + UNBROKEN)
        if (tried := repetitions.enough(reading)) is not None:
            return tried
        position = end
