"""A counter alone is enough: the close is found by counting, and what is promised of it holds for every counter."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overflow.errors import InputError
from overflow.tokens.counted import CountedWindow
from overflow.tokens.report import TokenReport
from overflow.tokens.synthetic import KINDS, SyntheticWindow

TEXTS = st.text(st.sampled_from("aab 日é."), max_size=120)
WINDOWS = st.integers(1, 15)


def counter_of(kind: str, special_tokens: int) -> Callable[[str], int]:
    window = SyntheticWindow(kind, 1, special_tokens=special_tokens)

    def count(text: str) -> int:
        (report,) = window.measure([text])
        assert report is not None
        return report.count

    return count


def measured(count: Callable[[str], int], window: int, text: str) -> TokenReport:
    (report,) = CountedWindow(count, window, name="counted").measure([text])
    assert report is not None
    return report


@given(TEXTS, WINDOWS, st.dictionaries(st.sampled_from("ab 日é."), st.integers(0, 3)), st.integers(0, 2))
def test_a_monotone_counter_closes_after_the_last_prefix_that_fits(
    text: str, window: int, weights: dict[str, int], special_tokens: int
) -> None:
    """Where a longer text never counts less, the close is the largest that fits, by trying every one."""

    def count(part: str) -> int:
        return special_tokens + sum(weights.get(c, 1) for c in part)

    report = measured(count, window, text)
    assert (report.count, report.window) == (count(text), window)
    assert report.truncated == (count(text) > window)
    fitting = [end for end in range(len(text) + 1) if count(text[:end]) <= window]
    assert report.window_end_char == (max(fitting) if fitting else 0)


@pytest.mark.parametrize("kind", KINDS)
@given(text=TEXTS, window=WINDOWS, special_tokens=st.integers(0, 2))
def test_the_close_fits_and_one_character_more_does_not(kind: str, text: str, window: int, special_tokens: int) -> None:
    """For every counter, monotone or not: the prefix at the close fits (or is empty), the next does not."""
    count = counter_of(kind, special_tokens)
    report = measured(count, window, text)
    end = report.window_end_char
    if report.truncated:
        assert end == 0 or count(text[:end]) <= window
        assert count(text[: end + 1]) > window
    else:
        assert end == len(text)


def test_a_long_text_costs_a_few_dozen_counts() -> None:
    """The number of counts grows with the logarithm of where the window closes, and no counted prefix is long."""
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text) // 4

    text = "x" * 1_000_000
    assert measured(count, 512, text).window_end_char == 512 * 4 + 3
    assert len(counted) < 20
    assert sorted(counted)[-2] <= 4 * 1024


@given(st.integers(1, 40), st.integers(1, 8), st.integers(0, 600))
def test_no_count_is_asked_for_twice_nor_for_much_more_than_fits(window: int, letters: int, length: int) -> None:
    """A count costs as its text is long: beside the whole, no prefix of over twice what fits, or twice the window."""
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text) // letters

    report = measured(count, window, "x" * length)
    assert len(counted) == len(set(counted))
    assert counted[0] == length
    assert all(end <= 2 * max(window, report.window_end_char) for end in counted[1:])


@pytest.mark.parametrize("prefix_safe", [False, True])
def test_a_counter_is_what_its_caller_knows_of_it(prefix_safe: bool) -> None:
    """Its name, its window, and whether a prefix tells where the window closes, which is not believed unless said."""
    window = CountedWindow(len, 5, name="counted", prefix_safe=prefix_safe)
    assert (window.name, window.window, window.prefix_safe) == ("counted", 5, prefix_safe)
    assert CountedWindow(len, 5, name="counted").prefix_safe is False


def test_a_window_below_one_and_a_lone_surrogate_are_refused() -> None:
    """As every window does."""
    with pytest.raises(InputError, match="1 or more"):
        CountedWindow(len, 0, name="counted")
    with pytest.raises(InputError, match="surrogate"):
        CountedWindow(len, 5, name="counted").measure(["\ud800"])
