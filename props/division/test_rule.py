"""The division against the oracle in generated texts and tokenizers, and its laws where the oracle is not needed."""

from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from overflow.contract.oracle import RuleTooSmallError, RuleUnknownError, divide_by_the_rule
from overflow.contract.strategies import FRAGMENTS, long_texts, windows
from overflow.division import (
    Cost,
    Density,
    Division,
    Span,
    TokensUnknownError,
    WindowTooSmallError,
    divide,
    division,
)
from overflow.errors import InputError, UnavailableError
from overflow.tokens.report import TokenReport, TokenWindow
from overflow.tokens.synthetic import SyntheticWindow, UnknownWindow

Nodes = list[tuple[int, int, int]]

densities = st.one_of(
    st.none(),
    st.builds(Density, st.integers(1, 600), *[st.sampled_from((1e-6, 0.1, 0.3, 1.0, 5.0))] * 3),
)


def varied_texts() -> st.SearchStrategy[str]:
    """Texts that never repeat themselves as a whole."""
    return st.lists(st.sampled_from(FRAGMENTS["mixed"]), min_size=1, max_size=80).map("".join)


def by_the_rule(text: str, window: TokenWindow) -> Nodes | str:
    try:
        return divide_by_the_rule(text, lambda rest: window.measure([rest])[0])
    except RuleTooSmallError:
        return "too small"


def divided(text: str, window: TokenWindow, density: Density | None = None) -> Nodes | str:
    try:
        outcome = divide(text, window, density=density)
    except WindowTooSmallError:
        return "too small"
    assert outcome.fits == (not outcome.spans)
    return [(span.start, span.end, span.token_count) for span in outcome.spans]


def check_many(law: Callable[[st.DataObject], str], examples: int, least: float) -> None:
    """Run `law`, which says how its record ended, and fail when too few of the examples were divided."""
    endings: Counter[str] = Counter()

    @settings(max_examples=examples, deadline=None)
    @given(st.data())
    def example(data: st.DataObject) -> None:
        ending = law(data)
        event(ending)
        endings[ending] += 1

    example()
    assert endings["divided"] >= least * endings.total(), endings


def ending_of(nodes: Nodes | str) -> str:
    return nodes if isinstance(nodes, str) else "divided" if nodes else "fits"


def test_division_equals_the_rule() -> None:
    """For every tokenizer, window and kind of text, the nodes are those of the rule measured on the whole rest."""

    def law(data: st.DataObject) -> str:
        window = data.draw(windows())
        text = data.draw(st.one_of(long_texts(window), varied_texts()))
        nodes = by_the_rule(text, window)
        assert divided(text, window, data.draw(densities)) == nodes
        return ending_of(nodes)

    check_many(law, examples=400, least=0.5)


def test_a_density_changes_no_cut() -> None:
    """Two divisions of one text agree in everything but their cost, whatever was expected of the text."""

    def law(data: st.DataObject) -> str:
        window = data.draw(windows())
        text = data.draw(st.one_of(long_texts(window), varied_texts()))
        nodes = divided(text, window, data.draw(densities))
        assert divided(text, window, data.draw(densities)) == nodes
        return ending_of(nodes)

    check_many(law, examples=100, least=0.5)


def test_nodes_partition_the_record_and_fit() -> None:
    """Nodes cover the text without gap or overlap, and each was measured alone and fits: invariants 3 and 4."""

    def law(data: st.DataObject) -> str:
        window = data.draw(windows())
        text = data.draw(long_texts(window))
        try:
            spans = divide(text, window).spans
        except WindowTooSmallError:
            return "too small"
        starts = [span.start for span in spans]
        ends = [span.end for span in spans]
        if spans:
            assert starts == [0, *ends[:-1]]
            assert ends[-1] == len(text)
        for span in spans:
            (alone,) = window.measure([text[span.start : span.end]])
            assert alone is not None
            assert span.start < span.end
            assert (span.token_count, span.window) == (alone.count, alone.window)
            assert span.token_count <= span.window
        return "divided" if spans else "fits"

    check_many(law, examples=100, least=0.5)


class Table:
    """A TokenWindow by hand: how many of a text's characters are inside, for the texts that do not fit."""

    name = "table"

    def __init__(self, inside: dict[str, int], prefix_safe: bool = False) -> None:
        self.prefix_safe = prefix_safe
        self.inside = inside
        self.asked: list[str] = []

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        self.asked += texts
        return [
            TokenReport(9, 8, True, self.inside[text])
            if text in self.inside
            else TokenReport(min(len(text), 8), 8, False, len(text))
            for text in texts
        ]


# Worked out by hand: (what happens, what does not fit and where it closes, the text, the ends of the nodes).
SEARCHED_AGAIN = [
    ("the span fits", {"aaaa bbbb": 7}, "aaaa bbbb", [5, 9]),
    # "aaaa " runs over at 3: the limit is min(3, 5 - 1) = 3, and no boundary lies in 2 to 3.
    ("its own report is the limit", {"aaaa bbbb": 7, "aaaa ": 3}, "aaaa bbbb", [3, 9]),
    # "aa aa " runs over, they say, at its end: the limit is min(6, 6 - 1) = 5, where the space at 3 is late enough.
    ("the limit shrinks all the same", {"aa aa bbbb": 8, "aa aa ": 6}, "aa aa bbbb", [3, 10]),
    # "aa aa " closes at 5, and 2 * 3 >= 5; "aa " closes at 2; then "aa" fits.
    ("again and again", {"aa aa bbbb": 8, "aa aa ": 5, "aa ": 2}, "aa aa bbbb", [2, 10]),
]


@pytest.mark.parametrize(("what", "inside", "text", "ends"), SEARCHED_AGAIN)
def test_a_span_that_runs_over_is_cut_again(what: str, inside: dict[str, int], text: str, ends: list[int]) -> None:
    """The search is repeated with the lesser of the span's own close and its length less one."""
    window = Table(inside)
    assert [span.end for span in divide(text, window).spans] == ends, what
    assert [end for _, end, _ in divide_by_the_rule(text, lambda rest: window.measure([rest])[0])] == ends, what


@pytest.mark.parametrize("inside", [{"aaaa": 0}, {"aaaa": 2, "aa": 1, "a": 0}, {"aaaa": 1, "a": 1}])
def test_a_limit_of_0_is_a_named_error(inside: dict[str, int]) -> None:
    """A record whose first character cannot fit alone is not divided, and the error says where and for which window."""
    with pytest.raises(WindowTooSmallError, match=r"a window of 8 tokens .* at character 0") as raised:
        divide("aaaa", Table(inside))
    assert raised.value.window == 8
    assert raised.value.cost.requests > 0
    with pytest.raises(RuleTooSmallError):
        divide_by_the_rule("aaaa", lambda rest: Table(inside).measure([rest])[0])


def test_too_small_is_found_where_it_happens() -> None:
    """A character too large for the window is found behind text that fits."""
    with pytest.raises(WindowTooSmallError) as raised:
        divide("ab日", SyntheticWindow("bytes", 2))
    assert raised.value.position == 2


def test_a_record_that_fits_has_no_nodes() -> None:
    """A text of exactly the window fits; one token more divides it."""
    window = SyntheticWindow("words", 3)
    assert divide("a b c", window).spans == ()
    assert divide("a b c", window).fits
    assert [span.end for span in divide("a b c d", window).spans] == [4, 7]
    assert not divide("a b c d", window).fits


def test_an_empty_text_fits_and_is_not_measured() -> None:
    """Nothing remains of an empty text, so there is nothing to ask, even where the tokens are unknown."""
    nothing = Division((), fits=True, window=None, density=None, cost=Cost(0, 0, 0))
    assert divide("", UnknownWindow()) == nothing
    assert divide_by_the_rule("", lambda _rest: None) == []


def test_unknown_is_not_fits() -> None:
    """An absent report ends the division in an error of its own, at the first text and at any later one."""
    with pytest.raises(TokensUnknownError):
        divide("some words", UnknownWindow())
    with pytest.raises(RuleUnknownError):
        divide_by_the_rule("some words", lambda _rest: None)
    steps = division("aaaa bbbb", prefix_safe=False)
    next(steps)
    steps.send([TokenReport(9, 8, True, 7)])
    with pytest.raises(TokensUnknownError) as raised:
        steps.send([TokenReport(5, 8, False, 5), None])
    assert raised.value.cost == Cost(requests=2, texts=3, characters=9 + 5 + 4)
    assert raised.value.exit_code == 3


def test_a_lone_surrogate_is_refused_before_anything_is_asked() -> None:
    """Text that is not Unicode is never measured."""
    window = Table({})
    with pytest.raises(InputError, match="lone surrogate U\\+D800 at character 2"):
        divide("ab\ud800", window)
    assert window.asked == []


def test_a_window_that_changes_is_an_error() -> None:
    """Nodes of one record are never cut against two windows."""
    steps = division("aaaa bbbb", prefix_safe=False)
    next(steps)
    steps.send([TokenReport(9, 8, True, 7)])
    with pytest.raises(UnavailableError, match="changed from 8 to 6 tokens"):
        steps.send([TokenReport(5, 6, False, 5), TokenReport(4, 6, False, 4)])


@pytest.mark.parametrize("close", [-1, 10])
def test_a_close_outside_the_text_is_an_error(close: int) -> None:
    """A report that closes the window outside the text it measured cuts nothing."""
    steps = division("aaaa bbbb", prefix_safe=False)
    next(steps)
    with pytest.raises(UnavailableError, match="of a text of 9 characters"):
        steps.send([TokenReport(9, 8, True, close)])


def test_a_server_that_changes_its_mind_ends_in_one_node() -> None:
    """A text that ran past the window, and alone does not, is a node; nothing is asked of what is not there."""
    steps = division("aaaabbbb", prefix_safe=False)
    next(steps)
    assert steps.send([TokenReport(9, 8, True, 8)]).texts == ("aaaabbbb",)
    with pytest.raises(StopIteration) as stopped:
        steps.send([TokenReport(8, 8, False, 8)])
    assert stopped.value.value.spans == (Span(0, 8, 8, 8),)


def test_the_cost_is_what_was_asked() -> None:
    """Requests, texts and characters add up to what the window was given."""
    window = Table({"aaaa bbbb": 7, "aaaa ": 3})
    cost = divide("aaaa bbbb", window).cost
    assert window.asked == ["aaaa bbbb", "aaaa ", "bbbb", "aaa", "a bbbb"]
    assert cost == Cost(requests=4, texts=5, characters=9 + 5 + 4 + 3 + 6)
