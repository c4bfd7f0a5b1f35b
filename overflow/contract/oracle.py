"""The rule of division as the design states it, word by word: slow, and meant to be seen right by reading.

It measures the whole remaining text at every step and tests every position against each class of boundary. It shares
nothing with `overflow.division`, whose results must equal it. Overflow Tree, section 2; DESIGN.md, "The division rule,
where the text leaves room".
"""

from collections.abc import Callable, Iterator

from overflow.tokens.report import TokenReport

Measure = Callable[[str], TokenReport | None]

#: "line break: `\\r\\n`, `\\n`, `\\r`, U+0085, U+2028, U+2029", the two-character one apart.
_SINGLE_LINE_BREAKS = {"\n", "\r", "\u0085", "\u2028", "\u2029"}


class RuleUnknownError(Exception):
    """The tokens are unknown: "no nodes are built"."""


class RuleTooSmallError(Exception):
    """The limit reached 0: "the record cannot be divided"."""


def divide_by_the_rule(text: str, measure: Measure) -> list[tuple[int, int, int]]:
    """The nodes of `text` as (start, end, token count), code points, end exclusive; [] for a record that fits.

    An empty text fits: "until nothing remains" holds at once. Raises RuleUnknownError and RuleTooSmallError.
    """
    nodes: list[tuple[int, int, int]] = []
    start = 0
    while start < len(text):
        rest = text[start:]
        report = _known(measure(rest))
        if not report.truncated:
            if not nodes:
                return []
            nodes.append((start, len(text), report.count))
            break
        cut, count = _node(rest, report.window_end_char, measure)
        nodes.append((start, start + cut, count))
        start += cut
    return nodes


def _node(rest: str, window_end_char: int, measure: Measure) -> tuple[int, int]:
    """The length and the count of the first node of `rest`, which runs past the window."""
    while window_end_char > 0:
        cut = cut_by_the_rule(rest, window_end_char)
        own = _known(measure(rest[:cut]))
        if not own.truncated:
            return cut, own.count
        window_end_char = min(own.window_end_char, cut - 1)
    raise RuleTooSmallError


def _known(report: TokenReport | None) -> TokenReport:
    if report is None:
        raise RuleUnknownError
    return report


def cut_by_the_rule(rest: str, window_end_char: int) -> int:
    """Rules 2 to 4: the last boundary at or before `window_end_char` of the first class that has one late enough."""
    for ends_here in (ends_blank_line, ends_line, ends_sentence, ends_white_space):
        for position in range(window_end_char, 0, -1):
            if 2 * position >= window_end_char and ends_here(rest, position):
                return position
    return window_end_char


def ends_line(rest: str, position: int) -> bool:
    """A line break ends at `position`."""
    return rest[position - 1] in _SINGLE_LINE_BREAKS and not _between_cr_and_lf(rest, position)


def ends_blank_line(rest: str, position: int) -> bool:
    """A line break, optional horizontal white space and a line break end at `position`; or U+2029 alone does."""
    if not ends_line(rest, position):
        return False
    backwards = _units_backwards(rest[:position])
    last = next(backwards)
    if last == "\u2029":
        return True
    for unit in backwards:
        if _is_line_break(unit):
            return True
        if not unit.isspace():
            return False
    return False


def ends_sentence(rest: str, position: int) -> bool:
    """A full-width mark ends at `position`, or a half-width one with white space or the end of the record after it."""
    mark, after = rest[position - 1], rest[position:]
    return mark in "。．！？" or (mark in ".!?" and (after == "" or after[0].isspace()))


def ends_white_space(rest: str, position: int) -> bool:
    """A white space character ends at `position`, "not between `\\r` and `\\n`"."""
    return rest[position - 1].isspace() and not _between_cr_and_lf(rest, position)


def _between_cr_and_lf(rest: str, position: int) -> bool:
    return rest[position - 1 : position + 1] == "\r\n"


def _is_line_break(unit: str) -> bool:
    return unit == "\r\n" or unit in _SINGLE_LINE_BREAKS


def _units_backwards(text: str) -> Iterator[str]:
    """The characters of `text` from its end, `\\r\\n` as one."""
    while text:
        size = 2 if text.endswith("\r\n") else 1
        yield text[-size:]
        text = text[:-size]
