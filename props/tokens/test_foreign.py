"""A report from outside is believed only when it agrees with itself and with its text."""

import pytest

from overflow.errors import UnavailableError
from overflow.tokens.foreign import checked_report, checked_reports
from overflow.tokens.report import TokenReport

SOUND = {"count": 9, "window": 8, "truncated": True, "window_end_char": 3}


def test_sound_reports_are_taken_as_they_are() -> None:
    """Truncated, or fitting up to the text's end; a window that closes at the very end of a truncated text is sound."""
    assert checked_report(SOUND, "abcde", "there") == TokenReport(9, 8, True, 3)
    assert checked_report({**SOUND, "window_end_char": 5}, "abcde", "there").window_end_char == 5
    fitting = {"count": 8, "window": 8, "truncated": False, "window_end_char": 5}
    assert checked_reports([fitting], ["abcde"], "there") == [TokenReport(8, 8, False, 5)]


def test_null_is_unknown_for_every_text() -> None:
    """`token_info: null` makes each report None."""
    assert checked_reports(None, ["a", "b"], "there") == [None, None]


@pytest.mark.parametrize(
    "change",
    [
        {"count": -1},
        {"count": 9.0},
        {"count": "9"},
        {"count": None},
        {"count": True},
        {"count": 8},
        {"window": 0, "count": 1},
        {"window": None},
        {"truncated": False},
        {"truncated": 1},
        {"truncated": None},
        {"window_end_char": 6},
        {"window_end_char": -1},
        {"window_end_char": 2.5},
        {"count": 8, "truncated": False},
    ],
)
def test_an_unsound_report_names_its_source(change: dict[str, object]) -> None:
    """A wrong type, a value out of range, a contradiction: one line that says where it came from."""
    with pytest.raises(UnavailableError, match=r"^there answered ") as caught:
        checked_report({**SOUND, **change}, "abcde", "there")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [[], [SOUND], [SOUND, SOUND, SOUND], {}, "x", 3, [SOUND, None], [SOUND, []]])
def test_token_info_is_one_report_a_text(value: object) -> None:
    """Anything but a list of one report a text is an error, also a null among reports."""
    with pytest.raises(UnavailableError, match=r"^there answered "):
        checked_reports(value, ["abcde", "abcde"], "there")
