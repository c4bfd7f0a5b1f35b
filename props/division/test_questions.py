"""What a division asks for, answer by answer, and what it hands on: worked out by hand from the rule's words."""

from collections.abc import Sequence

import pytest

from overflow.division import Ask, Density, Division, Span, division
from overflow.tokens.report import TokenReport

WINDOW = 8


def over(close: int) -> TokenReport:
    """A text that runs past the window, which closes at `close`."""
    return TokenReport(WINDOW + 1, WINDOW, True, close)


def fits(text: str) -> TokenReport:
    return TokenReport(len(text), WINDOW, False, len(text))


def asked(text: str, answers: Sequence[Sequence[TokenReport]]) -> tuple[list[tuple[str, ...]], Division]:
    """The texts of each ask when the asks are answered so, and the division at the end."""
    steps = division(text, prefix_safe=False)
    asks = [next(steps).texts]
    for answer in answers[:-1]:
        asks.append(steps.send(answer).texts)
    with pytest.raises(StopIteration) as stopped:
        steps.send(answers[-1])
    return asks, stopped.value.value


def test_a_rest_that_closes_at_its_end_is_asked_as_a_span_alone() -> None:
    """Nothing follows a cut at the end of the record, so nothing but the span itself is asked for."""
    asks, divided = asked("aaaa bbbb", [[over(5)], [fits("aaaa "), over(4)], [fits("bbbb")]])
    assert asks == [("aaaa bbbb",), ("aaaa ", "bbbb"), ("bbbb",)]
    assert divided.spans == (Span(0, 5, 5, WINDOW), Span(5, 9, 4, WINDOW))
    assert not divided.fits
    assert divided.window == WINDOW


def test_a_span_that_ran_over_and_ends_the_record_is_cut_before_its_end() -> None:
    """Its own report says where, and what follows is asked for alone."""
    asks, divided = asked("aaaabbbb", [[over(8)], [over(5)], [fits("aaaab")], [fits("bbb")]])
    assert asks == [("aaaabbbb",), ("aaaabbbb",), ("aaaab",), ("bbb",)]
    assert divided.spans == (Span(0, 5, 5, WINDOW), Span(5, 8, 3, WINDOW))


def test_what_every_probe_taught_is_handed_on() -> None:
    """The density at the end has learnt from the probes whose answer was used, in their order, and from no span."""
    text = "aaaa bbbb cc"
    _, divided = asked(
        text,
        [[over(5)], [fits("aaaa "), over(5)], [over(2), over(2)], [fits("bb")], [over(4)], [fits("bb "), fits("cc")]],
    )
    density = Density.of(text, over(5)).after("bbbb cc", over(5)).after("bb cc", over(4)).after("cc", fits("cc"))
    assert divided.density == density
    assert [span.end for span in divided.spans] == [5, 7, 10, 12]


def test_an_ask_has_a_span_before_a_probe() -> None:
    """Its texts are those there are, so that reports can be given in their order."""
    assert Ask("a", "b").texts == ("a", "b")
    assert Ask(None, "b").texts == ("b",)
    assert Ask("a", None).texts == ("a",)


def test_a_probe_in_which_no_window_closes_is_doubled_the_second_time() -> None:
    """A prefix is looked at, then what is missing by the density, then twice as much; each teaches the next."""
    text, before = "a" * 580, Density(100, 0.5, 0.5, 0.5)
    first, second, third = (TokenReport(count, 1000, False, end) for count, end in ((950, 240), (960, 290), (990, 580)))
    steps = division(text, prefix_safe=True, density=before)
    # 1.2 windows of 100 tokens, two letters each.
    assert next(steps).texts == (text[:240],)
    # The rate rises half the way to 950 / 240: 0.5 * (1 + 830 / 240) = 2.23. 1.2 * 50 + 50 tokens are 49.3 letters.
    assert steps.send([first]).texts == (text[:290],)
    assert steps.send([second]).texts == (text[:580],)
    with pytest.raises(StopIteration) as stopped:
        steps.send([third])
    assert stopped.value.value.fits
    assert stopped.value.value.window == 1000
    learnt = before.after(text[:240], first).after(text[:290], second).after(text, third)
    assert stopped.value.value.density == learnt


def closes(close: int) -> TokenReport:
    """A text of two letters a token, in a window of 100 tokens that closes at `close`."""
    return TokenReport(120, 100, True, close)


#: Of a window of 100 tokens, two letters each, 240 letters are 1.2 windows.
LETTERS_IN_PAIRS = Density(100, 0.5, 0.5, 0.5)


def test_a_span_and_a_prefix_of_what_follows_are_asked_for_at_once() -> None:
    """Of a prefix-safe tokenizer no more is asked for than holds the next window."""
    text = "aaaaaaaaa " * 58
    steps = division(text, prefix_safe=True, density=LETTERS_IN_PAIRS)
    assert next(steps).texts == (text[:240],)
    assert steps.send([closes(100)]).texts == (text[:100], text[100:340])


def test_along_a_repetition_no_probe_is_asked_for() -> None:
    """Once six stretches closed alike, the windows behind are known, and only their spans are measured."""
    text = "ab" * 5000
    steps = division(text, prefix_safe=True, density=LETTERS_IN_PAIRS)
    assert next(steps).texts == (text[:240],)
    # Half of 1,024 behind the close, then 1, 2, 3, 5 and 8 periods more.
    for end in (612, 614, 616, 618, 622, 628):
        assert steps.send([closes(100)]).texts == (text[:end],)
    assert steps.send([closes(100)]).texts == (text[:100],)
    span = TokenReport(50, 100, False, 100)
    assert steps.send([span]).texts == (text[100:200],)
    assert steps.send([span]).texts == (text[200:300],)


def test_an_empty_text_hands_on_what_was_known() -> None:
    """Nothing was learnt from it, and nothing is forgotten."""
    with pytest.raises(StopIteration) as stopped:
        next(division("", prefix_safe=True, density=LETTERS_IN_PAIRS))
    assert stopped.value.value.density == LETTERS_IN_PAIRS


def test_more_reports_than_texts_are_a_mistake() -> None:
    """No report is dropped in silence: it would be that of another text."""
    steps = division("aaaa bbbb", prefix_safe=False)
    next(steps)
    with pytest.raises(ValueError, match="longer"):
        steps.send([over(5), over(5)])
