"""Where a long repetition ends, against a search that goes on sign by sign; and how one is tried out, step by step."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from overflow.division.density import Density
from overflow.division.reading import Reading
from overflow.division.repetitions import UNBROKEN, Repetitions
from overflow.tokens.report import TokenReport

HALF = UNBROKEN // 2


def end_by_hand(text: str, close: int) -> int | None:
    """The end of what repeats itself half an unbroken stretch behind `close`, for as long as another half."""
    stretch = text[close + HALF : close + UNBROKEN]
    periods = [p for p in range(1, 65) if all(stretch[i] == stretch[i + p] for i in range(len(stretch) - p))]
    if len(stretch) < HALF or not periods:
        return None
    end = close + HALF + periods[0]
    while end < len(text) and text[end] == text[end - periods[0]]:
        end += 1
    return end


@settings(deadline=None)
@given(
    st.text("ab ", max_size=40),
    st.text("ab=", min_size=1, max_size=70),
    st.integers(1024, 2200),
    st.text("ab=", max_size=90),
    st.integers(0, 60),
)
def test_a_repetition_ends_where_it_is_broken(before: str, unit: str, length: int, after: str, close: int) -> None:
    """Whatever comes before and behind, and however long its unit is, up to 64 code points."""
    text = before + (unit * length)[:length] + after
    assert Repetitions(text).end_at(close, 0) == end_by_hand(text, close)


def reading(start: int, end: int, close: int) -> Reading:
    """A probe from `start` to `end`, whose window closes at `close`."""
    return Reading(start, end, TokenReport(101, 100, True, close - start), Density(100, 1.0, 1.0, 1.0))


def trying(text: str, close: int, start: int = 0) -> Repetitions:
    """The repetition in which the window that opens at `start` closes has been found."""
    repetitions = Repetitions(text)
    assert repetitions.end_at(close, start) == len(text)
    return repetitions


def test_stretches_of_six_lengths_settle_a_place_in_the_period() -> None:
    """Half an unbroken stretch behind the close, then 1, 2, 3, 5 and 8 periods more; where all close alike, that holds
    for every window that opens at the same place in the period and closes far from the end."""
    text = "ab" * 5000
    repetitions = trying(text, 50)
    assert repetitions.known(50) is None
    ends = [100]
    for _ in range(6):
        end = repetitions.enough(reading(0, ends[-1], 50))
        ends.append(len(text[:end]))
    assert ends == [100, 562, 564, 566, 568, 572, 578]
    assert repetitions.known(50) is None
    last = reading(0, 578, 50)
    assert repetitions.enough(last) == 578
    assert repetitions.known(50) == replace(last, start=50, end=628)
    assert repetitions.known(51) is None
    # It closes at 7952, and two unbroken stretches more are 10000.
    assert repetitions.known(7902) == replace(last, start=7902, end=8480)
    assert repetitions.known(7904) is None
    assert repetitions.enough(reading(2, 564, 52)) == 564
    assert repetitions.enough(reading(2, 563, 52)) == 564


def test_windows_that_close_differently_need_the_whole() -> None:
    """Once, and ever after: the tokenizer looks at how long all of it is."""
    repetitions = trying("ab" * 5000, 50)
    assert repetitions.enough(reading(0, 562, 50)) == 564
    assert repetitions.enough(reading(0, 564, 49)) is None
    assert repetitions.enough(reading(0, 564, 50)) is None
    # A window that closes where the repetition begins is in it, and finds nothing new.
    assert repetitions.end_at(0, 0) == 10_000
    assert repetitions.enough(reading(0, 564, 50)) is None


def test_nothing_is_known_before_a_repetition_was_found() -> None:
    """A window that closes elsewhere is measured."""
    assert Repetitions("ab" * 5000).known(50) is None


def test_a_window_from_another_place_is_tried_anew() -> None:
    """What stretches from one start said is no evidence for those from another."""
    repetitions = trying("ab" * 5000, 50)
    assert repetitions.enough(reading(0, 562, 50)) == 564
    assert repetitions.enough(reading(1, 563, 51)) == 565
    assert repetitions.enough(reading(1, 565, 51)) == 567


def test_a_window_that_opens_before_the_repetition_or_closes_near_its_end_needs_the_whole() -> None:
    """It sees more of the text than how far the repetition goes on."""
    opens_before = trying("." * 3 + "ab" * 5000, 50)
    assert opens_before.enough(reading(2, 562, 50)) is None
    assert opens_before.enough(reading(3, 562, 50)) == 564
    assert trying("ab" * 1049, 50).enough(reading(0, 562, 50)) == 564
    assert trying("ab" * 1049, 51).enough(reading(0, 562, 51)) is None
    # The next stretch would end at 1586, and half an unbroken one more is 2098.
    assert trying("ab" * 1049, 50).enough(reading(0, 1584, 50)) == 1586
    assert trying("ab" * 1049, 50).enough(reading(0, 1585, 50)) is None


def test_a_repetition_is_looked_for_back_to_where_the_window_opens() -> None:
    """Further back is another window's; and it is found once, for all windows that close in it."""
    repetitions = Repetitions("ab" * 2000 + "-" * 2000)
    assert repetitions.end_at(100, 40) == 4000
    assert repetitions.enough(reading(39, 700, 100)) is None
    assert repetitions.enough(reading(40, 700, 100)) == 702
    # In its last signs too, where no stretch behind the close would show it.
    assert repetitions.end_at(3999, 3900) == 4000
    assert repetitions.end_at(4000, 3900) == 6000
    assert Repetitions("ab" * 2000).end_at(3999, 3900) is None


def test_what_is_known_is_moved_by_how_far_the_window_opens_from_where_it_was_tried() -> None:
    """To a window further on, and to one before."""
    repetitions = trying("ab" * 5000, 54)
    for end, following in ((566, 568), (568, 570), (570, 572), (572, 576), (576, 582), (582, 582)):
        assert repetitions.enough(reading(4, end, 54)) == following
    last = reading(4, 582, 54)
    assert repetitions.known(54) == replace(last, start=54, end=632)
    assert repetitions.known(2) == replace(last, start=2, end=580)


def test_the_shortest_unit_is_the_period() -> None:
    """One sign repeats itself every sign, so that the stretches that are tried are a sign apart."""
    repetitions = trying("a" * 10_000, 50)
    ends = [562]
    for _ in range(5):
        ends.append(repetitions.enough(reading(0, ends[-1], 50)) or 0)
    assert ends == [562, 563, 564, 565, 567, 570]


def test_a_repetition_goes_back_to_its_start() -> None:
    """A window that opens far before the place where it was noticed opens in it."""
    assert trying("abc" * 4000, 50).enough(reading(0, 562, 50)) == 565


def test_a_unit_has_64_code_points_at_most() -> None:
    """No token in use covers two longer ones, so text of longer ones is text like any other."""
    signs = "".join(map(chr, range(0x4E00, 0x4E00 + 65)))
    assert Repetitions(signs[:64] * 40).end_at(20, 0) == 64 * 40
    assert Repetitions(signs * 40).end_at(20, 0) is None


def test_a_repetition_may_begin_half_an_unbroken_stretch_behind_the_close() -> None:
    """What comes before it is not of it, and does not end it."""
    before = "".join(map(chr, range(0x4E00, 0x4E00 + 532)))
    assert Repetitions(before + "ab" * 1000).end_at(20, 0) == 532 + 2000
