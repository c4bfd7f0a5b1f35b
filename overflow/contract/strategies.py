"""Texts and scenarios that really run past the window, for Hypothesis.

A law about long records proves nothing on short ones, so a long text is built from drawn fragments until the drawn
window counts a drawn factor of its size (up to 20), and each kind of writing that breaks a divider has a strategy of
its own. DESIGN.md, "Subject protocol".
"""

import functools
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

from overflow.contract.scenario import LENGTH_LIMIT, Record, Scenario
from overflow.contract.subject import Kind, Scope
from overflow.tokens.report import TokenReport, TokenWindow
from overflow.tokens.synthetic import KINDS, SyntheticWindow

T = TypeVar("T")

#: Longest text drawn, in code points, and the longest run of tokens past the window: bounds on one example's cost.
MAX_TEXT = 1_200
MAX_FACTOR = 20

_ENGLISH = (
    "The billing database is PostgreSQL 15. ",
    "Ada moved to Kyoto in 2019! ",
    "See v1.2.3, e.g. main.py? ",
    "no stop ",
)
_JAPANESE = (
    "請求データベースは更新された。",
    "彼は京都に住んでいる！",
    "本当？",
    "「はい。」と言った。",
    "版は３．１４です",
)
_CHINESE = ("账单数据库已经升级。", "她搬到了上海！", "真的吗？", "版本是１．２。")
_EMOJI = ("👩‍👩‍👧‍👦", "🇯🇵", "👍🏽", "❤️", "🏳️‍🌈 ", "🙂")
_COMBINING = ("e\u0301", "n\u0303o ", "Z\u0351\u036b\u0343", "ก\u0e33 ", "\u1100\u1161\u11a8")
_BREAKS = ("\n", "\r\n", "\r", "\n\n", "\n \t\n", "\r\n\r\n", "\u2028", "\u2029", "\u0085", "\n\n\n\n")
_INVISIBLE = ("\0", "\u200b", "\u200d", "\ufeff", "\u00ad", "a\0b ")
_SPACES = (" ", "  ", "\t", "\u00a0", "\u3000", "\n", "\r\n", "\v", "\f")
#: A boundary of each class a few characters after another, so that a small window has several to choose from.
_BOUNDARIES = ("a\n\n", "b\n", "cd. ", "e ", "fgh", "i。", "j\r\n", "kl\u2029", "mno! p")
_MARKDOWN = ("# Title\n", "- item one\n", "| a | b |\n", "```\ncode()\n```\n", "https://example.org/a.b?c=d ")

#: Each kind of writing by its fragments. Every kind reaches every boundary class together with the others.
FRAGMENTS: dict[str, tuple[str, ...]] = {
    "english": _ENGLISH,
    "japanese": _JAPANESE,
    "chinese": _CHINESE,
    "emoji": _EMOJI,
    "combining": _COMBINING,
    "breaks": _BREAKS + _ENGLISH,
    "invisible": _INVISIBLE + _ENGLISH,
    "white space": _SPACES,
    "markdown": _MARKDOWN,
    "mixed": _ENGLISH + _JAPANESE + _CHINESE + _EMOJI + _COMBINING + _BREAKS + _INVISIBLE + _SPACES + _MARKDOWN,
}


def _weighed(*strategies: st.SearchStrategy[T]) -> st.SearchStrategy[T]:
    """One of `strategies`, each as often as it is given; `one_of` would take equal ones for one."""
    return st.integers(0, len(strategies) - 1).flatmap(lambda chosen: strategies[chosen])


# Hypothesis takes longer to make a strategy than to draw from it, so those that no draw changes are made once.
@functools.cache
def _fragments() -> st.SearchStrategy[list[str]]:
    kinds = [st.lists(st.sampled_from(fragments), min_size=1, max_size=8) for fragments in FRAGMENTS.values()]
    long_word = st.builds(lambda letter, n: [letter * n], st.sampled_from("aßé漢あ"), st.integers(1, 200))
    anything = st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12), min_size=1, max_size=6
    )
    # Often before the others: where boundaries of two classes lie near each other, their order decides the cut.
    none: st.SearchStrategy[list[str]] = st.just([])
    boundaries = st.one_of(none, st.lists(st.sampled_from(_BOUNDARIES), min_size=6, max_size=12))
    return st.builds(lambda first, then: first + then, boundaries, st.one_of(*kinds, long_word, anything))


@st.composite
def long_texts(draw: st.DrawFn, window: TokenWindow, max_factor: int = MAX_FACTOR, usual: int = 3) -> str:
    """A text whose tokens fill the window up to `usual` times, sometimes up to `max_factor`; nearly always past it."""
    fragments = draw(_fragments())
    # Mostly a few nodes, which is where most faults show and each costs two requests; sometimes many.
    few = st.integers(1, min(usual, max_factor))
    factor = draw(_weighed(few, few, few, few, st.integers(1, max_factor)))
    piece = "".join(fragments)
    whole = (piece * (MAX_TEXT // len(piece) + 1))[:MAX_TEXT]
    length = 1
    while length < MAX_TEXT:
        report = window.measure([whole[:length]])[0]
        if report is not None and report.count > factor * report.window:
            break
        length = min(MAX_TEXT, length + length // 3 + 1)
    return whole[:length]


@st.composite
def edge_texts(draw: st.DrawFn, window: TokenWindow) -> str:
    """A text that fills the window exactly, or is one token short of that or too long, as far as it can be cut so."""
    whole = draw(long_texts(window, max_factor=1))
    edge = draw(st.sampled_from(("full", "over", "under")))
    (report,) = window.measure([whole])
    if report is None or not report.truncated:
        return whole
    length = report.window_end_char
    if edge == "over":
        length += 1
        while not _measured(window, whole[:length]).truncated:
            length += 1
    while edge == "under" and length > 1 and _measured(window, whole[:length]).count >= report.window:
        length -= 1
    return whole[: max(1, length)]


def _measured(window: TokenWindow, text: str) -> TokenReport:
    (report,) = window.measure([text])
    assert report is not None
    return report


@functools.cache
def short_texts() -> st.SearchStrategy[str]:
    """A few words, for records that may fit and for queries."""
    return st.one_of(
        st.sampled_from(_ENGLISH + _JAPANESE + _CHINESE),
        st.lists(st.sampled_from(FRAGMENTS["mixed"]), min_size=1, max_size=3).map("".join),
    )


@functools.cache
def windows(max_window: int = 40, kinds: tuple[str, ...] = tuple(KINDS)) -> st.SearchStrategy[TokenWindow]:
    """A synthetic tokenizer, honest or contrary, with a window from 1 up and sometimes special tokens inside it."""

    def window(kind: str, room: int, special_tokens: int) -> TokenWindow:
        return SyntheticWindow(kind, room + special_tokens, special_tokens=special_tokens)

    room = st.one_of(st.integers(1, 8), st.integers(9, max_window))
    return st.builds(window, st.sampled_from(kinds), room, st.sampled_from((0, 0, 2)))


def local_windows() -> st.SearchStrategy[TokenWindow]:
    """Tokenizers of which a prefix tells where the window closes, as of every real one; often it tells late."""
    local = windows(kinds=tuple(name for name, kind in KINDS.items() if kind.prefix_safe))
    return _weighed(local, local, windows(kinds=("run_pairs",)))


def contrary_windows() -> st.SearchStrategy[TokenWindow]:
    """Any tokenizer, and often one by which a span counts more alone than it did in its record: a cut may run over."""
    return st.one_of(windows(), windows(kinds=("word_ends", "pairs_from_end", "even_words", "halves")))


#: Mostly one, in which records meet; the others differ from it in one axis alone.
_SCOPES = (
    *(Scope(),) * 5,
    Scope("agent", "project-b", ""),
    Scope("agent", "", "channel-b"),
    Scope("agent-b", "", ""),
)


@st.composite
def scenarios(
    draw: st.DrawFn,
    *,
    max_records: int = 3,
    max_factor: int = MAX_FACTOR,
    usual: int = 3,
    window: st.SearchStrategy[TokenWindow] | None = None,
    kinds: Sequence[Kind] = ("mem", "ep"),
    min_records: int = 1,
) -> Scenario:
    """`min_records` to `max_records` records, the first drawn to run past the window, with queries from their parts."""
    chosen = draw(window if window is not None else windows())
    long, edge = long_texts(chosen, max_factor, usual), edge_texts(chosen)
    first = Record(draw(long), draw(st.sampled_from(kinds)))
    more = draw(
        st.lists(
            st.builds(
                Record,
                _weighed(long, edge, edge, edge, short_texts()),
                st.sampled_from(kinds),
                st.sampled_from(_SCOPES),
            ),
            min_size=min_records - 1,
            max_size=max_records - 1,
        )
    )
    records = (first, *more)
    edits = draw(st.lists(st.one_of(long, edge, short_texts()), min_size=2, max_size=2))
    seed = draw(st.integers(0, 2**16 - 1))
    identity = draw(st.sampled_from(("model-1", "model-1", "model-1", None)))
    return Scenario(chosen, records, queries_of([r.text for r in records], seed), tuple(edits), seed, identity)


def queries_of(texts: Sequence[str], seed: int = 0) -> tuple[str, ...]:
    """Queries from a tail, a head, another language, and nothing."""
    tail, head = texts[seed % len(texts)], texts[(seed // 7) % len(texts)]
    other = _JAPANESE[seed % len(_JAPANESE)] if tail.isascii() else _ENGLISH[seed % len(_ENGLISH)]
    return (tail[-60:], head[:60], other, "")


def limit_texts() -> st.SearchStrategy[str]:
    """Texts around and past the store's length limit."""
    unit = st.sampled_from(_ENGLISH + _JAPANESE + _CHINESE)
    over = st.integers(-1, 2_000)
    return st.builds(lambda piece, extra: (piece * LENGTH_LIMIT)[: LENGTH_LIMIT + extra], unit, over)
