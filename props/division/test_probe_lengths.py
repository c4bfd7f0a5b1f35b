"""How much of a rest is looked at, worked out by hand; the lengths are a matter of cost, and no cut depends on them."""

import pytest

from overflow.division.density import Density
from overflow.division.probes import first_end, next_end, wider_end
from overflow.division.reading import Reading
from overflow.division.repetitions import Repetitions
from overflow.tokens.report import TokenReport

#: A token a character, in a window of 100 tokens.
DENSITY = Density(100, 1.0, 1.0, 1.0)
#: Letters without a break that repeat nothing: the numbers in a row, their digits as letters.
LETTERS = "".join(map(str, range(3000))).translate({ord("0") + digit: "abcdefghij"[digit] for digit in range(10)})


@pytest.mark.parametrize(
    ("length", "end"), [(1, 1), (31, 31), (32, 1), (3_200, 100), (65_536, 2_048), (90_000, 2_400), (1_000_000, 8_000)]
)
def test_a_sample_grows_slower_than_its_text(length: int, end: int) -> None:
    """Of an unknown text a 32nd part is looked at, 8 times its root at most, all of it where that is nothing."""
    assert first_end("a" * length, None) == end


def test_a_probe_holds_a_window_and_a_fifth() -> None:
    """From the start, or from any other place; and never past the end of the text."""
    assert first_end("a" * 1000, DENSITY) == 120
    assert next_end("a" * 1000, 300, DENSITY) == 420
    assert next_end("a" * 1000, 950, DENSITY) == 1000


def wider(text: str, start: int, end: int, report: TokenReport, *, again: bool = False) -> int | None:
    return wider_end(text, Reading(start, end, report, DENSITY), Repetitions(text), again=again)


def open_at(end: int, count: int) -> TokenReport:
    """The window did not close within the probe."""
    return TokenReport(count, 100, False, end)


@pytest.mark.parametrize(
    ("what", "length", "count", "again", "end"),
    [
        ("1.2 times the 50 tokens that are missing, and 5", 1000, 50, False, 215),
        ("the text ends first", 200, 50, False, 200),
        ("the first time, no more than is missing", 1000, 90, False, 167),
        ("the second time, at least twice the probe", 1000, 90, True, 200),
        ("the second time, more where more is missing", 1000, 40, True, 227),
        ("the second time, the text ends first", 190, 90, True, 190),
        ("all was looked at", 150, 50, False, None),
    ],
)
def test_a_probe_that_does_not_close_is_widened(
    what: str, length: int, count: int, again: bool, end: int | None
) -> None:
    """By what is missing of the window, with a margin; doubled when that was in vain."""
    assert wider("a" * length, 100, 150, open_at(50, count), again=again) == end, what


def closed_at(close: int) -> TokenReport:
    return TokenReport(101, 100, True, close)


@pytest.mark.parametrize(
    ("what", "text", "end", "wanted"),
    [
        ("a word begun behind white space within the probe", "a" * 30 + " bcd" + LETTERS, 50, None),
        ("the same, right at its end", "a" * 30 + " b" + LETTERS, 32, None),
        ("the same, one further", "a" * 30 + "\r\n \t\u3000b" + LETTERS, 35, 36),
        ("white space before the close is none", "a" * 19 + " " + LETTERS, 50, 20 + 1024),
        ("rarer white space is none", "a" * 30 + "\u2003b" + LETTERS, 50, 20 + 1024),
        ("white space 126 characters on is seen", "ab" * 10 + LETTERS[:126] + " b", 50, 148),
        ("a mark with a letter, twice", LETTERS[:30] + "。x" + LETTERS[:20] + "、y" + LETTERS, 40, 54),
        ("white space near comes before marks", LETTERS[:30] + "。x、y" + LETTERS[:20] + " b" + LETTERS, 40, 56),
        ("white space far does not", LETTERS[:30] + "。x、y" + LETTERS[:130] + " b" + LETTERS, 33, 34),
        ("marks too far are none", LETTERS[:1100] + "。x、y" + LETTERS, 50, 20 + 1024),
        ("a repetition is first tried at half of that", "ab" * 5000, 50, 20 + 512),
        ("one that begins behind the window's opening is looked at whole", "..." + "ab" * 5000, 50, 10_003),
        ("once is none", LETTERS[:30] + "。x" + LETTERS, 40, 20 + 1024),
        ("no break anywhere", LETTERS, 50, 20 + 1024),
        ("no break, and so much is looked at already", LETTERS, 20 + 1024, None),
        ("no break, and the text ends first", LETTERS[:500], 50, 500),
    ],
)
def test_a_report_is_believed_behind_a_break(what: str, text: str, end: int, wanted: int | None) -> None:
    """The window closes at 20: what must be looked at reaches behind the first break no token reaches across, or so far
    that no tokenizer looks back."""
    assert wider(text, 0, end, closed_at(20)) == wanted, what
