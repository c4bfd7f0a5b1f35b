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


def test_the_least_and_the_largest_are_sound() -> None:
    """No token in no text, a window of 1, and numbers up to what 64 bits with a sign hold."""
    least = {"count": 0, "window": 1, "truncated": False, "window_end_char": 0}
    assert checked_report(least, "", "there") == TokenReport(0, 1, False, 0)
    largest = {"count": 2**63 - 1, "window": 2**63 - 2, "truncated": True, "window_end_char": 0}
    assert checked_report(largest, "abcde", "there") == TokenReport(2**63 - 1, 2**63 - 2, True, 0)


def test_null_is_unknown_for_every_text() -> None:
    """`token_info: null` makes each report None."""
    assert checked_reports(None, ["a", "b"], "there") == [None, None]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"count": -1}, "a token report whose count is -1"),
        ({"count": 9.0}, "a token report whose count is 9.0"),
        ({"count": "9"}, "a token report whose count is '9'"),
        ({"count": None}, "a token report whose count is None"),
        ({"count": True}, "a token report whose count is True"),
        ({"count": 2**63}, "a token report whose count is 9223372036854775808"),
        ({"window": 0, "count": 1}, "a window of 0 tokens"),
        ({"window": None}, "a token report whose window is None"),
        ({"truncated": 1}, "a token report whose truncated is 1"),
        ({"truncated": None}, "a token report whose truncated is None"),
        ({"window_end_char": 6}, "window_end_char 6 (truncated: True) for a text of 5 characters"),
        ({"window_end_char": -1}, "a token report whose window_end_char is -1"),
        ({"window_end_char": 2.5}, "a token report whose window_end_char is 2.5"),
        (
            {"count": 8, "truncated": False},
            "window_end_char 3 (truncated: False) for a text of 5 characters",
        ),
    ],
)
def test_an_unsound_report_is_told_with_its_source_and_fault(change: dict[str, object], fault: str) -> None:
    """A wrong type, a value out of range, a close outside the text: one line that says where it came from."""
    with pytest.raises(UnavailableError) as caught:
        checked_report({**SOUND, **change}, "abcde", "there")
    assert str(caught.value) == f"there answered {fault}"


@pytest.mark.parametrize("change", [{"count": 8}, {"truncated": False}])
def test_a_report_that_contradicts_itself_is_told_whole(change: dict[str, object]) -> None:
    """Truncated says that more tokens were counted than the window holds, and nothing else."""
    report = {**SOUND, **change}
    with pytest.raises(UnavailableError) as caught:
        checked_report(report, "abcde", "there")
    assert str(caught.value) == f"there answered a token report that contradicts itself: {report}"


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ([], "0 token reports for 2 texts"),
        ([SOUND], "1 token reports for 2 texts"),
        ([SOUND, SOUND, SOUND], "3 token reports for 2 texts"),
        ({}, "token_info that is not a list but {}"),
        ("x", "token_info that is not a list but 'x'"),
        (3, "token_info that is not a list but 3"),
        ([SOUND, None], "a token report that is not an object but None"),
        ([SOUND, []], "a token report that is not an object but []"),
    ],
)
def test_token_info_is_one_report_a_text(value: object, fault: str) -> None:
    """Anything but a list of one report a text is an error, also a null among reports."""
    with pytest.raises(UnavailableError) as caught:
        checked_reports(value, ["abcde", "abcde"], "there")
    assert str(caught.value) == f"there answered {fault}"


@pytest.mark.parametrize("length", [79, 80, 81, 5000])
def test_at_most_80_characters_of_a_wrong_value_are_repeated(length: int) -> None:
    """As Python writes it; a longer one ends in dots, which count."""
    written = "'" + ("0123456789" * 500)[: length - 2] + "'"
    said = written if length <= 80 else f"{written[:77]}..."
    with pytest.raises(UnavailableError) as caught:
        checked_reports(written[1:-1], ["a"], "there")
    assert str(caught.value) == f"there answered token_info that is not a list but {said}"
