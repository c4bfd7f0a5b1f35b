"""Where a node may end: the four classes of boundary, and the last good one before the window closes.

It works on positions in the whole record and looks only at the half window in which a cut is allowed, so that a cut
costs the same in a short record and in a long one. Overflow Tree, section 2, rules 2 to 4; DESIGN.md, "The division
rule".
"""

import re
from collections.abc import Callable

_LINE_BREAKS = "\n\r\x85\u2028\u2029"
_PARAGRAPH_SEPARATOR = "\u2029"
_WIDE_STOPS = "。．！？"

# A search bounded by `endpos` cannot look past it, so each pattern only finds the last character of a possible boundary
# and the predicate beside it looks around freely.
_LINE_BREAK = re.compile(f"[{_LINE_BREAKS}]")
_STOP = re.compile(f"[{_WIDE_STOPS}.!?]")
_WHITE_SPACE = re.compile(r"\s")


def choose_cut(text: str, start: int, close: int) -> int:
    """Where the node from `start` ends when its window closes at `close`; all three in code points of the whole record.

    `close` is greater than `start`, and the cut lies between the middle of the two and `close`.
    """
    lowest = start + (close - start + 1) // 2
    for pattern, is_boundary in _CLASSES:
        ends = [match.end() for match in pattern.finditer(text, lowest - 1, close)]
        for position in reversed(ends):
            if is_boundary(text, start, position):
                return position
    return close


def _ends_blank_line(text: str, start: int, position: int) -> bool:
    if _inside_crlf(text, position):
        return False
    if text[position - 1] == _PARAGRAPH_SEPARATOR:
        return True
    before = position - 1
    if _inside_crlf(text, before):
        before -= 1
    # All white space but line breaks is horizontal here, \v and \f too: the design names the line breaks and no others.
    while before > start and text[before - 1].isspace() and text[before - 1] not in _LINE_BREAKS:
        before -= 1
    return before > start and text[before - 1] in _LINE_BREAKS


def _ends_sentence(text: str, _start: int, position: int) -> bool:
    return text[position - 1] in _WIDE_STOPS or position == len(text) or text[position].isspace()


def _outside_crlf(text: str, _start: int, position: int) -> bool:
    return not _inside_crlf(text, position)


def _inside_crlf(text: str, position: int) -> bool:
    return text.startswith("\r\n", position - 1)


_CLASSES: tuple[tuple[re.Pattern[str], Callable[[str, int, int], bool]], ...] = (
    (_LINE_BREAK, _ends_blank_line),
    (_LINE_BREAK, _outside_crlf),
    (_STOP, _ends_sentence),
    (_WHITE_SPACE, _outside_crlf),
)
