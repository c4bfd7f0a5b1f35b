"""One implementation under four drivers: nothing a driver does moves a cut, and one record never stops another."""

import asyncio
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overflow.contract.strategies import long_texts, short_texts, windows
from overflow.division import (
    Density,
    Division,
    Lockstep,
    Outcome,
    TokensUnknownError,
    WindowTooSmallError,
    adivide,
    adivide_many,
    divide,
    divide_many,
)
from overflow.errors import HarnessError, InputError, UnavailableError
from overflow.tokens.report import TokenReport, TokenWindow
from overflow.tokens.synthetic import SyntheticWindow, UnknownWindow


class Watched:
    """A TokenWindow that keeps the rounds it was asked, and refuses those in which a text holds `poison`."""

    def __init__(self, inner: TokenWindow, poison: str | None = None) -> None:
        self.name = inner.name
        self.prefix_safe = inner.prefix_safe
        self.rounds: list[list[str]] = []
        self._inner = inner
        self._poison = poison

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        self.rounds.append(list(texts))
        if self._poison is not None and any(self._poison in text for text in texts):
            raise InputError("a text no request can carry")
        return self._inner.measure(texts)


class Awaited:
    """The same window, awaited."""

    def __init__(self, inner: TokenWindow) -> None:
        self.name = inner.name
        self.prefix_safe = inner.prefix_safe
        self._inner = inner

    async def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        await asyncio.sleep(0)
        return self._inner.measure(texts)


def told(outcome: Outcome) -> object:
    """What two outcomes must share: spans or error, and not the cost, which a neighbour's density may change."""
    return outcome.spans if isinstance(outcome, Division) else str(outcome)


def alone(text: str, window: TokenWindow) -> object:
    try:
        return told(divide(text, window))
    except (InputError, UnavailableError) as error:
        return str(error)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_many_texts_end_as_each_alone(data: st.DataObject) -> None:
    """Divided side by side, blocking or awaited, every text ends once, as it ends alone."""
    window = data.draw(windows())
    some = st.one_of(long_texts(window, 6), short_texts(), st.sampled_from(("", "a\ud800b")))
    texts = data.draw(st.lists(some, max_size=8))
    expected = {place: alone(text, window) for place, text in enumerate(texts)}

    async def awaited() -> list[tuple[int, object]]:
        return [(place, told(outcome)) async for place, outcome in adivide_many(texts, Awaited(window))]

    blocking = [(place, told(outcome)) for place, outcome in divide_many(texts, window)]
    assert sorted(place for place, _ in blocking) == list(range(len(texts)))
    assert dict(blocking) == expected
    assert sorted(asyncio.run(awaited()), key=lambda ended: ended[0]) == sorted(expected.items())


def test_one_text_awaited() -> None:
    """`adivide` gives what `divide` gives, and raises what it raises."""
    window = SyntheticWindow("words", 3)
    text = "one two three four. Five six seven"
    assert asyncio.run(adivide(text, Awaited(window))) == divide(text, window)
    with pytest.raises(TokensUnknownError):
        asyncio.run(adivide(text, Awaited(UnknownWindow())))


def test_a_round_carries_texts_of_many_records() -> None:
    """50 records take no more rounds than the slowest of them, with at most 100 texts in each."""
    window = Watched(SyntheticWindow("words", 30))
    text = "Some words of a sentence that goes on. " * 60
    outcomes = list(divide_many([text] * 50, window))
    slowest = max(outcome.cost.requests for _, outcome in outcomes if isinstance(outcome, Division))
    assert len(outcomes) == 50
    assert len(window.rounds) == slowest
    assert max(len(texts) for texts in window.rounds) == 100


def test_texts_are_drawn_as_others_end() -> None:
    """An iterator of texts is never more than the records in flight ahead of the outcomes."""
    drawn = ended = ahead = 0

    def texts() -> Iterator[str]:
        nonlocal drawn, ahead
        for _ in range(500):
            drawn += 1
            ahead = max(ahead, drawn - ended)
            yield "one two three four five six seven"

    for _ in divide_many(texts(), SyntheticWindow("words", 2)):
        ended += 1
    assert ended == 500
    assert ahead <= 100


def test_a_record_teaches_the_next() -> None:
    """After the first records, no other needs a sample to begin with."""
    text = "Some words of a sentence that goes on. " * 60
    window = SyntheticWindow("words", 30)
    costs = [outcome.cost for _, outcome in divide_many([text] * 120, window) if isinstance(outcome, Division)]
    assert costs[-1].requests < costs[0].requests


def test_failing_records_stop_no_other() -> None:
    """A character too large, a lone surrogate and a text no request can carry each end their own record alone."""
    window = Watched(SyntheticWindow("bytes", 2), poison="poison")
    texts = ["abcd", "ab日", "a\ud800", "poison" * 3, "", "efgh"]
    outcomes = dict(divide_many(texts, window))
    assert {place for place, outcome in outcomes.items() if isinstance(outcome, Division)} == {0, 4, 5}
    assert isinstance(outcomes[1], WindowTooSmallError)
    assert "lone surrogate" in str(outcomes[2])
    assert str(outcomes[3]) == "a text no request can carry"
    assert told(outcomes[5]) == alone("efgh", SyntheticWindow("bytes", 2))


def test_unknown_tokens_end_each_record() -> None:
    """Behind a server without token reports every record ends as unknown, and none as fitting."""
    outcomes = [outcome for _, outcome in divide_many(["a b", "c d"], UnknownWindow())]
    assert [type(outcome) for outcome in outcomes] == [TokensUnknownError, TokensUnknownError]


def test_a_server_that_fails_ends_the_division() -> None:
    """What ended before the server failed is kept, and the failure is raised."""

    class Failing(SyntheticWindow):
        def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
            if any("five" in text for text in texts):
                raise UnavailableError("gone")
            return super().measure(texts)

    ended = divide_many(["", "one two three four five six"], Failing("words", 3))
    assert next(ended)[0] == 0
    with pytest.raises(UnavailableError, match="gone"):
        next(ended)


def test_a_report_that_cannot_be_true_ends_its_record_alone() -> None:
    """Within a round, an impossible report concerns the record it was sent for."""
    lockstep = Lockstep(["aaaa", "bbbb"], prefix_safe=False)
    assert [ask.texts for ask in lockstep.round()] == [("aaaa",), ("bbbb",)]
    lockstep.receive([TokenReport(9, 8, True, 99), TokenReport(4, 8, False, 4)])
    ended = dict(lockstep.finished())
    assert isinstance(ended[0], UnavailableError)
    assert isinstance(ended[1], Division)
    assert lockstep.round() == []


def test_a_caller_may_answer_spans_and_probes_from_two_places() -> None:
    """Asks tell spans from probes, so that a span's report can come with its embedding."""
    window = SyntheticWindow("words", 3)
    texts = ["one two three four. Five six seven", "eight nine ten eleven"]
    lockstep = Lockstep(texts, prefix_safe=True)
    spans: list[str] = []
    while asks := lockstep.round():
        spans += [ask.span for ask in asks if ask.span is not None]
        lockstep.receive([window.measure([text])[0] for ask in asks for text in ask.texts])
    for place, outcome in lockstep.finished():
        assert isinstance(outcome, Division)
        assert told(outcome) == alone(texts[place], window)
        # The last node is what remained: it was measured as a probe, and is a span of its own all the same.
        assert {texts[place][span.start : span.end] for span in outcome.spans[:-1]} <= set(spans)


def test_expected_errors_carry_the_exit_codes() -> None:
    """Unknown tokens are the server's (3), a window too small is the input's (2)."""
    window: HarnessError = WindowTooSmallError(0, 1, divide("", UnknownWindow()).cost)
    assert (TokensUnknownError.exit_code, window.exit_code) == (3, 2)


def test_a_density_of_texts_without_tokens_stays_usable() -> None:
    """A thousand texts that make no token do not bring a rate to 0, from where it could not rise."""
    density = Density(2, 0.3, 0.3, 0.3)
    for _ in range(1000):
        density = density.after("aaaa", TokenReport(0, 2, False, 4))
    assert density.latin > 0
    assert density.after("aaaa", TokenReport(4, 2, True, 2)).latin > density.latin
    assert density.advance("a" * 99, 0, 1.0) == 64
