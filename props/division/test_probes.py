"""A bounded probe in place of the whole rest: tokenizers made to betray it, and what it saves."""

import random
import re
from collections.abc import Callable, Sequence
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overflow.contract.oracle import divide_by_the_rule
from overflow.division import divide
from overflow.tokens.report import TokenReport
from overflow.tokens.synthetic import SyntheticWindow, report_of_spans
from overflow.tokens.wordllama import WordllamaWindow

Spans = list[tuple[int, int]]


def pieces(start: int, end: int, size: int) -> Spans:
    return [(at, min(at + size, end)) for at in range(start, end, size)]


def long_words_unknown(text: str) -> Spans:
    """As WordPiece: a word of more than 100 characters is one token, however long; a shorter one has many."""
    words = [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
    return [span for a, b in words for span in ([(a, b)] if b - a > 100 else pieces(a, b, 3))]


def short_token_first(text: str) -> Spans:
    """As Unigram on a repetition: a run of one sign is tokens of 8, and the shorter one comes first."""
    spans, at = Spans(), 0
    for _, group in groupby(text):
        length = len(list(group))
        first = length % 8
        spans += [(at, at + first)] if first else []
        spans += pieces(at + first, at + length, 8)
        at += length
    return spans


def marks_join(text: str) -> Spans:
    """As the byte-level models: a mark is joined to the letters after it, and to the line breaks after it."""
    return [match.span() for match in re.finditer(r"[^\w\s]?\w+|[^\w\s]+[\r\n]*|\s+", text)]


def odd_ends(text: str) -> Spans:
    """The tokens of a word, or of a run of marks, depend on its last character: pairs from the start, or the end."""
    spans = Spans()
    for match in re.finditer(r"\w+|[^\w\s]+", text):
        a, b = match.span()
        shift = (b - a) % 2 if ord(text[b - 1]) % 2 else 0
        spans += [(a, a + 1)] if shift else []
        spans += pieces(a + shift, b, 2)
    return spans


TOKENIZERS = [long_words_unknown, short_token_first, marks_join, odd_ends]


class Spied:
    """A TokenWindow over a tokenizer of this file."""

    name = "spied"
    prefix_safe = True

    def __init__(self, spans: Callable[[str], Spans], window: int) -> None:
        self.spans = spans
        self.window = window

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        return [report_of_spans(text, self.spans(text), self.window, 2) for text in texts]


fragments = st.sampled_from(
    [
        "one more word ",
        "end.\n\n",
        "end.\n",
        "x" * 130,
        "ab" * 40,
        "= " * 3,
        "=" * 90,
        "今日は、",
        "版です。",
        "a,b;c ",
        "…\n",
    ]
)


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_a_probe_is_believed_only_where_the_rest_agrees(tokenizer: Callable[[str], Spans]) -> None:
    """Tokenizers whose tokens depend on what follows give the same nodes as when the whole rest is measured."""
    divided = 0

    @settings(max_examples=60, deadline=None)
    @given(st.lists(fragments, min_size=20, max_size=120), st.integers(6, 40))
    def example(parts: list[str], room: int) -> None:
        nonlocal divided
        text, window = "".join(parts), Spied(tokenizer, room)
        nodes = divide_by_the_rule(text, lambda rest: window.measure([rest])[0])
        assert [(span.start, span.end, span.token_count) for span in divide(text, window).spans] == nodes
        divided += bool(nodes)

    example()
    assert divided >= 30


@pytest.mark.parametrize("length", [3000, 3001, 3007])
def test_a_repetition_is_measured_whole(length: int) -> None:
    """Where the short token of a repetition comes first, its length decides where the window closes."""
    window = Spied(short_token_first, 32)
    for text in ("=" * length, "some words " + "=" * length + " and more words"):
        nodes = divide_by_the_rule(text, lambda rest: window.measure([rest])[0])
        assert [(span.start, span.end, span.token_count) for span in divide(text, window).spans] == nodes


LETTERS = "".join(random.Random(7).choices("abcdefghijklmnopqrstuvwxyz", k=200_000))


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
