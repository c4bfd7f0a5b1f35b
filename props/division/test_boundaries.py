"""Where a node may end, worked out by hand from the design's words, for the rule and for the oracle alike."""

import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overflow.contract.oracle import cut_by_the_rule
from overflow.contract.strategies import FRAGMENTS
from overflow.division.boundaries import choose_cut

# (what the design says, the text, where the window closes, where to cut). In each the middle of the window matters.
READINGS = [
    ("a blank line before a later line break", "aaaaa\n\nbb\ncc dd", 14, 7),
    ("not before the middle: 2 * 7 < 15", "aaaaa\n\nbb\ncc dd", 15, 10),
    ("of several blank lines the last", "aaaa\n\n\n\nbb cc", 12, 8),
    ("horizontal white space inside a blank line", "aaaa\n \t\nbb\ncc", 13, 8),
    ("a blank line of other white space that is no line break", "aaaa\n\v\f\nbb\ncc", 12, 8),
    ("white space after a line break makes no blank line", "aaaa\n bb\ncc", 10, 9),
    ("U+2029 alone is a blank line", "aaaa\u2029bb\ncc", 9, 5),
    ("U+2028 alone is none", "aaaa\u2028bb\ncc", 9, 8),
    ("U+0085 is a line break", "aaaa\u0085bb cc", 9, 5),
    ("a lone \\r is a line break", "aaaa\rbb cc", 9, 5),
    ("\\r\\n is one line break and no blank line", "aaaa\r\nbb\ncc", 10, 9),
    ("\\r\\n twice is a blank line", "aaaa\r\n\r\nbb\ncc", 12, 8),
    ("\\r and \\r\\n are a blank line", "aaaa\r\r\nbb\ncc", 11, 7),
    ("\\n and \\r are two line breaks", "aaaa\n\rbb\ncc", 10, 6),
    ("never between \\r and \\n: the white space before", "aaaa bb\r\ncc", 8, 5),
    ("never between \\r and \\n: not as a blank line either", "aaaa\n\r\nbb", 6, 5),
    ("a window that closes there is cut there for want of any boundary", "aaaaaa\r\nbb", 7, 7),
    ("a sentence before a later white space, which opens the next node", "aaa. bb cc", 8, 4),
    ("a decimal point ends no sentence", "aaaa 3.14bb", 9, 5),
    ("a file extension ends no sentence", "aaaa main.py", 10, 5),
    ("a half-width mark at the close looks past it: white space", "aa aa! bb", 6, 6),
    ("a half-width mark at the close looks past it: a letter", "aa aa!bb", 6, 3),
    ("the end of the record ends a sentence", "aa aa?", 6, 6),
    ("a full-width mark ends a sentence wherever it stands", "ああ。いいうう", 5, 3),
    ("each full-width mark", "ああ．い", 4, 3),
    ("each full-width mark", "ああ！い", 4, 3),
    ("each full-width mark", "ああ？い", 4, 3),
    ("a comma is none", "ああ、いい", 4, 4),
    ("a closing quote is left to the next node", "あああ。」いい", 6, 4),
    ("an abbreviation is taken for a sentence", "Mr. Smi th", 6, 3),
    ("a half-width mark before a closing quote ends no sentence", '"aa bb." cc', 9, 9),
    ("white space of any kind", "aaa\u3000bbbb", 6, 4),
    ("the last white space", "aa a a bbb", 9, 7),
    ("no boundary: where the window closes", "aaaaaaaa", 5, 5),
    ("exactly the middle is taken: 2 * 3 >= 6", "aa bbbbb", 6, 3),
    ("just before the middle is not: 2 * 3 < 7", "aa bbbbb", 7, 7),
    ("one character", "ab", 1, 1),
]


@pytest.mark.parametrize(("reading", "text", "close", "cut"), READINGS)
def test_a_reading_of_the_rule(reading: str, text: str, close: int, cut: int) -> None:
    """Each binding reading gives the cut that follows from its words."""
    assert choose_cut(text, 0, close) == cut, reading
    assert cut_by_the_rule(text, close) == cut, reading


def test_a_blank_line_lies_within_the_remaining_text() -> None:
    """A line break of the node before and one of this node make no blank line."""
    text = "x\n \na\nb"
    # What remains is " \na\nb": the line break at 4 is the last one, and neither ends a blank line.
    assert choose_cut(text, 2, 6) == 6
    # In the whole text "\n \n" is a blank line, and 4 is past the middle of 6.
    assert choose_cut(text, 0, 6) == 4


def test_white_space_of_the_pattern_is_isspace() -> None:
    """The pattern that finds white space finds the characters for which `str.isspace()` holds, and no others."""
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    assert set(re.findall(r"\s", every)) == {c for c in every if c.isspace()}


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_cuts_equal_the_oracle(data: st.DataObject) -> None:
    """From any start and for any close, the cut is the one that testing every position gives on the rest alone."""
    few = st.sampled_from(list("\n\r \u2029.。a"))
    some = st.one_of(st.sampled_from(FRAGMENTS["mixed"]), few)
    text = "".join(
        data.draw(st.one_of(st.lists(few, min_size=1, max_size=12), st.lists(some, min_size=1, max_size=30)))
    )
    start = data.draw(st.integers(0, len(text) - 1))
    close = data.draw(st.integers(start + 1, len(text)))
    assert choose_cut(text, start, close) - start == cut_by_the_rule(text[start:], close - start)
