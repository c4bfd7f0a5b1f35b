"""What a person reads when a record is not divided: one line each, that says what is wrong and what to do."""

import pytest

from overflow.division import Cost, TokensUnknownError, WindowTooSmallError, divide_many, registry
from overflow.errors import InputError

COST = Cost(1, 2, 3)


def test_unknown_tokens_are_told() -> None:
    """A server without token reports is named as the cause."""
    error = TokensUnknownError(COST)
    assert str(error) == "the embedding server reports no tokens, so the record is not divided"
    assert error.cost == COST


def test_a_window_too_small_is_told() -> None:
    """The window, the place and the way out."""
    error = WindowTooSmallError(7, 2, COST)
    assert str(error) == "a window of 2 tokens holds no text at character 7; use a larger window"
    assert (error.position, error.window, error.cost) == (7, 2, COST)


def test_an_unknown_divider_is_told_with_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, and one that is known is found."""
    monkeypatch.setattr(registry, "DIVIDERS", {"one": divide_many, "other": divide_many})
    assert registry.divider("other") is divide_many
    with pytest.raises(InputError) as raised:
        registry.divider("none")
    assert str(raised.value) == "no divider is called 'none'; there are one, other"
