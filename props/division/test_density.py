"""What reports teach about how densely tokens lie, worked out by hand; no cut depends on any of it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overflow.division.density import Density
from overflow.tokens.report import TokenReport

WINDOW = 512


def report(count: int, window: int = WINDOW) -> TokenReport:
    return TokenReport(count, window, False, 0)


def rates(density: Density) -> tuple[float, float, float]:
    return density.latin, density.ascii, density.other


#: 40 letters and spaces, 20 other signs of ASCII, 10 of none: at 0.25, 0.5 and 0.5 tokens each, 10 + 10 + 5 tokens.
MIXED = "ab C" * 10 + "1.\n~" * 5 + "é日" * 5


def test_the_first_report_shares_the_rates_out() -> None:
    """What the rates miss is shared among the kinds in proportion to their part in the text."""
    density = Density.of(MIXED, report(25 + 45))
    assert density.window == WINDOW
    # 45 more than expected, over the squares of the parts, 225, is 0.2: the factors are 1 + 2, 1 + 2 and 1 + 1.
    assert rates(density) == pytest.approx((0.75, 1.5, 1.0))


def test_a_later_report_moves_the_rates_half_the_way() -> None:
    """The next stretch resembles the last and those before it alike; the window is that of the last report."""
    density = Density(8, 0.25, 0.5, 0.5).after(MIXED, report(25 + 45))
    assert density.window == WINDOW
    assert rates(density) == pytest.approx((0.5, 1.0, 0.75))


def test_a_kind_that_is_not_in_the_text_is_not_judged() -> None:
    """A text of one kind moves the rate of that kind alone."""
    before = Density(8, 0.25, 0.5, 0.5)
    assert rates(before.after("a b " * 10, report(30))) == pytest.approx((0.5, 0.5, 0.5))
    assert rates(before.after("12-\t" * 10, report(60))) == pytest.approx((0.25, 1.0, 0.5))
    assert rates(before.after("日本語é" * 10, report(60))) == pytest.approx((0.25, 0.5, 1.0))


def test_a_rate_falls_to_a_fifth_at_most_and_never_to_nothing() -> None:
    """A text that makes no token lowers the rates it is about, and each can rise again."""
    assert rates(Density.of("a" * 40, report(0))) == pytest.approx((0.05, 0.5, 0.5))
    lowest = Density(8, 2e-6, 2e-6, 2e-6)
    for text, place in (("aaaa", 0), ("1111", 1), ("éééé", 2)):
        for _ in range(20):
            lowest = lowest.after(text, report(0))
        assert rates(lowest)[place] == 1e-6


@settings(deadline=None)
@given(st.text("ab1.é日", min_size=1), st.integers(0, 1000))
def test_the_first_report_is_explained(text: str, count: int) -> None:
    """After it the rates give the count it reported; or more, where less was reported than rates fall for."""
    latin, other = sum(text.count(letter) for letter in "ab"), sum(text.count(letter) for letter in "é日")
    ascii_ = len(text) - latin - other
    density = Density.of(text, report(count))
    explained = latin * density.latin + ascii_ * density.ascii + other * density.other
    assert explained >= count * (1 - 1e-9)
    if count >= 0.25 * latin + 0.5 * ascii_ + 0.5 * other:
        assert explained == pytest.approx(count)


#: (what happens, the rates, the text, where from, how many tokens, where they end).
ADVANCES = [
    ("two letters a token", (0.5, 9.0, 9.0), "a" * 1000, 100, 10.0, 120),
    ("two tokens a letter", (2.0, 9.0, 9.0), "a" * 1000, 100, 10.0, 105),
    ("a part of a token needs a whole character", (1.0, 9.0, 9.0), "a" * 1000, 100, 2.5, 103),
    ("the text ends first", (0.5, 9.0, 9.0), "a" * 110, 100, 10.0, 110),
    ("fourfold at most, three times", (1e-6, 9.0, 9.0), "a" * 1000, 100, 1.0, 164),
    # 10 characters hold a token, 40 hold 31, 13 hold 4, and 4 go into 10 two and a half times.
    ("the kind changes on the way", (0.1, 9.0, 1.0), "a" * 10 + "é" * 90, 0, 10.0, 33),
    ("what lies before does not count", (0.1, 9.0, 1.0), "é" * 50 + "a" * 200, 50, 10.0, 150),
]


@pytest.mark.parametrize(("what", "of", "text", "start", "tokens", "end"), ADVANCES)
def test_an_advance(what: str, of: tuple[float, float, float], text: str, start: int, tokens: float, end: int) -> None:
    """Where so many tokens are expected to end, in three looks at the text."""
    assert Density(WINDOW, *of).advance(text, start, tokens) == end, what
