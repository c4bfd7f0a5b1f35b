"""From the tokens of a text to its report, on tokens written down by hand."""

import pytest

from overflow.tokens.report import TokenReport
from overflow.tokens.spans import Spans, report_of_spans

#: `ab` `c` ` ` nothing, then one character of three tokens, then `d`.
TEXT = "abc 日d"
SPANS: Spans = [(0, 2), (2, 3), (4, 5), (4, 5), (4, 5), (5, 6)]


@pytest.mark.parametrize(
    ("window", "special_tokens", "count", "end"),
    [
        (7, 0, 6, 6),
        (6, 0, 6, 6),
        (5, 0, 6, 5),
        (4, 0, 6, 4),
        (3, 0, 6, 4),
        (2, 0, 6, 3),
        (1, 0, 6, 2),
        (8, 2, 8, 6),
        (7, 2, 8, 5),
        (4, 2, 8, 3),
        (3, 2, 8, 2),
        (2, 2, 8, 0),
        (1, 2, 8, 0),
    ],
)
def test_a_window_closes_after_its_last_token_and_never_inside_a_character(
    window: int, special_tokens: int, count: int, end: int
) -> None:
    """Special tokens take room; one that closes inside a character closes before it; with no room left, at 0."""
    expected = TokenReport(count, window, count > window, end)
    assert report_of_spans(TEXT, SPANS, window, special_tokens) == expected


def test_a_text_without_tokens_fits() -> None:
    """White space alone may be one: its report closes at its end."""
    assert report_of_spans("  ", [], 2, 2) == TokenReport(2, 2, False, 2)
    assert report_of_spans("  ", [], 1, 2) == TokenReport(2, 1, True, 0)
