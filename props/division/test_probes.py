"""A bounded probe in place of the whole rest: tokenizers made to betray it, and what it saves."""

import random
import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overflow.contract.oracle import divide_by_the_rule
from overflow.division import divide
from overflow.tokens.report import TokenReport, TokenWindow
from overflow.tokens.synthetic import SyntheticWindow, report_of_spans
from overflow.tokens.wordllama import WordllamaWindow

Spans = list[tuple[int, int]]


def pieces(start: int, end: int, size: int) -> Spans:
    return [(at, min(at + size, end)) for at in range(start, end, size)]


def short_first(start: int, end: int, size: int) -> Spans:
    """Tokens of `size`, and the shorter one at the start: where each lies depends on where the last one ends."""
    first = start + (end - start) % size
    return ([(start, first)] if first > start else []) + pieces(first, end, size)


def long_words_unknown(text: str) -> Spans:
    """As WordPiece: a word of more than 100 characters is one token, however long; a shorter one has many."""
    words = [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
    return [span for a, b in words for span in ([(a, b)] if b - a > 100 else pieces(a, b, 3))]


def words_of_a_whole(text: str) -> Spans:
    """Words, and runs of marks, whose tokens depend on where they end."""
    return [span for match in re.finditer(r"\w+|[^\w\s]+", text) for span in short_first(*match.span(), 5)]


def marks_joined(text: str) -> Spans:
    """As the byte-level models, which join a mark to the letters after it, and to the line breaks after it."""
    joined = re.finditer(r"[^\w\s]?\w+|[^\w\s]+[\r\n]*|\s+", text)
    return [span for match in joined for span in short_first(*match.span(), 3)]


def elisions(text: str) -> Spans:
    """Words joined by one mark, as in `l'amour`, are one; their tokens depend on where it ends."""
    joined = re.finditer(r"\w+(?:[^\w\s]\w+)?|[^\w\s]", text)
    return [span for match in joined for span in short_first(*match.span(), 3)]


def leaning_spaces(text: str) -> Spans:
    """The last space of a run belongs to the next word where that is of even length."""
    spans = Spans()
    for match in re.finditer(r"(\s*)(\w+|[^\w\s]+)", text):
        (start, end), word_end = match.span(1), match.end()
        split = end - 1 if end > start and (word_end - end) % 2 == 0 else end
        spans += short_first(start, split, 4)
        spans.append((split, word_end))
    return spans


def repetitions(text: str) -> Spans:
    """As Unigram on a repetition of one sign or two, where the shorter token comes first."""
    runs = [match.span() for match in re.finditer(r"(.)\1+|(..)\2+|.", text, re.DOTALL)]
    return [span for a, b in runs for span in short_first(a, b, 8)]


#: Those that look no further than the end of a word with its marks, and those that look at 100 characters or so.
WHOLE_WORDS = [words_of_a_whole, marks_joined, elisions, leaning_spaces]
BOUNDED = [long_words_unknown, repetitions]


class Spied:
    """A TokenWindow over a tokenizer of this file."""

    name = "spied"
    prefix_safe = True

    def __init__(self, spans: Callable[[str], Spans], window: int) -> None:
        self.spans = spans
        self.window = window

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        return [report_of_spans(text, self.spans(text), self.window, 2) for text in texts]


LETTERS = "".join(random.Random(7).choices("abcdefghijklmnopqrstuvwxyz", k=200_000))
CLAUSES = ",".join(LETTERS[at : at + 11] for at in range(0, 330, 11)) + " "


def letters(least: int, most: int) -> st.SearchStrategy[str]:
    return st.integers(least, most).map(lambda length: LETTERS[length : 2 * length])


short = st.sampled_from(
    ["one more word ", "end.\n\n", "end.\n\n\n\n", "= = ", "今日は、", "版です。", "a,b;c ", "…\n", "a      b "]
)
long = st.sampled_from(["x" * 130 + " ", "ab" * 40 + "\n", "=" * 90 + " ", "-" * 60 + "\n" * 150, CLAUSES])


def check_belief(tokenizer: Callable[[str], Spans], texts: st.SearchStrategy[str], least: int, most: int) -> None:
    """In windows of `least` to `most` tokens."""
    divided = 0

    @settings(max_examples=60, deadline=None)
    @given(texts, st.integers(least, most))
    def example(text: str, room: int) -> None:
        nonlocal divided
        window = Spied(tokenizer, room)
        nodes = divide_by_the_rule(text, lambda rest: window.measure([rest])[0])
        assert [(span.start, span.end, span.token_count) for span in divide(text, window).spans] == nodes
        divided += bool(nodes)

    example()
    assert divided >= 30


@pytest.mark.parametrize("tokenizer", WHOLE_WORDS)
def test_a_probe_is_believed_only_behind_a_clean_break(tokenizer: Callable[[str], Spans]) -> None:
    """Where tokens depend on how their word ends, the nodes are those of the whole rest: in words of up to 800 letters,
    in runs of marks and spaces, and in sentences without spaces."""
    words = letters(90, 800).map(lambda word: word + " ")
    fragments = st.one_of(short, short, long, words)
    check_belief(tokenizer, st.lists(fragments, min_size=15, max_size=30).map("".join), 6, 60)


@pytest.mark.parametrize("tokenizer", BOUNDED)
def test_a_probe_is_believed_far_behind_the_close(tokenizer: Callable[[str], Spans]) -> None:
    """Where tokens depend on a bounded stretch, the nodes are those of the whole rest in words without end as well."""
    fragments = st.one_of(short, short, long, letters(90, 1500))
    check_belief(tokenizer, st.lists(fragments, min_size=6, max_size=8).map("".join), 20, 120)


@pytest.mark.parametrize("unit", ["=", "ab", "a,", "x。"])
@pytest.mark.parametrize("length", [3000, 3001, 3006])
def test_a_repetition_is_measured_whole(unit: str, length: int) -> None:
    """Where the short token of a repetition comes first, its length decides where the window closes."""
    window = Spied(repetitions, 32)
    for text in (unit * length, "some words " + unit * length + " and more words"):
        nodes = divide_by_the_rule(text, lambda rest: window.measure([rest])[0])
        assert [(span.start, span.end, span.token_count) for span in divide(text, window).spans] == nodes


def first_comes_first(text: str) -> Spans:
    """As BPE on a repetition: the remainder comes last, so that no window but the last ones sees it."""
    return pieces(0, len(text), 7)


@pytest.mark.parametrize("unit", ["=", "ab", "日本語", "\n", "。！"])
@pytest.mark.parametrize(
    "window",
    [WordllamaWindow(40), Spied(repetitions, 40), Spied(first_comes_first, 40), SyntheticWindow("word_ends", 90)],
    ids=["wordllama", "remainder first", "remainder last", "word ends"],
)
def test_windows_along_a_repetition_equal_the_rule(unit: str, window: TokenWindow) -> None:
    """Where most windows of a repetition are not measured, and where all of them must be, the nodes are the rule's:
    those inside, those at its end, those of a second one behind it, and those of the prose around."""
    run = (unit * 4501)[:4501]
    for text in (run, "Some words first. " + run + "abc" + "-" * 1500 + " and more words" * 9):
        nodes = divide_by_the_rule(text, lambda rest: window.measure([rest])[0])
        assert [(span.start, span.end, span.token_count) for span in divide(text, window).spans] == nodes


@pytest.mark.parametrize("unit", ["a", "=", "日", "word", "https://example.org/"])
@pytest.mark.parametrize("window", [WordllamaWindow(), SyntheticWindow("chars", 100), SyntheticWindow("words", 40)])
def test_a_repetition_costs_no_more_than_prose(unit: str, window: TokenWindow) -> None:
    """Where windows close alike however much follows, the rest is not measured; nor is one word without end, in which
    no window closes, widened by small steps."""
    text = (unit * 80_000)[:80_000]
    assert divide(text, window).cost.characters <= 2.5 * len(text)


@pytest.mark.parametrize(
    ("text", "most"),
    [
        (" ".join(LETTERS[at : at + 6] for at in range(0, len(LETTERS), 6)), 2.6),
        ("".join(LETTERS[at : at + 9] + "。" for at in range(0, len(LETTERS), 9)), 2.6),
        # No break anywhere: each probe goes 1,024 characters past the close, and never to the end.
        (LETTERS[:60_000], 6.0),
    ],
    ids=["words", "sentences without spaces", "one word"],
)
def test_the_rest_is_not_measured(text: str, most: float) -> None:
    """The characters measured are a small multiple of the text's, however long it is."""
    assert divide(text, WordllamaWindow()).cost.characters <= most * len(text)


def test_a_tokenizer_that_is_not_prefix_safe_is_asked_for_the_whole_rest() -> None:
    """Without that promise no prefix is measured in place of the rest."""

    class Asked(SyntheticWindow):
        texts: list[str]

        def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
            self.texts = [*getattr(self, "texts", []), *texts]
            return super().measure(texts)

    text, window = "one two three four five six seven", Asked("phrases", 1)
    spans = divide(text, window).spans
    assert len(spans) > 1
    assert set(window.texts) <= {text[span.start :] for span in spans} | {text[span.start : span.end] for span in spans}
