"""The bundled wordllama: counts of its tokenizer without special tokens, and the package itself never imported."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overflow.errors import InputError, UnavailableError
from overflow.tokens.report import TokenReport
from overflow.tokens.wordllama import WordllamaWindow, wordllama_tokenizer

TEXTS = st.text(st.sampled_from("the fox 日本é😀\u0301\u200d\n▁ \0") | st.characters(codec="utf-8"), max_size=80)


def report(text: str, window: int) -> TokenReport:
    (found,) = WordllamaWindow(window).measure([text])
    assert found is not None
    return found


@given(TEXTS, st.integers(1, 30))
def test_a_count_is_the_number_of_vectors_that_are_averaged(text: str, window: int) -> None:
    """No special token is counted, as none is embedded."""
    found = report(text, window)
    assert found.count == len(wordllama_tokenizer().encode(text, add_special_tokens=False).ids)
    assert (found.window, found.truncated) == (window, found.count > window)


def test_a_window_inside_a_character_closes_before_it() -> None:
    """An emoji is four byte tokens in this vocabulary: windows of 2 to 4 hold its mark and less than all of it."""
    assert report("😀", 5).truncated is False
    assert [report("😀", window).window_end_char for window in (1, 2, 3, 4)] == [0, 0, 0, 0]
    assert [report("日😀x", window).window_end_char for window in (1, 2, 3, 5, 6)] == [0, 1, 1, 1, 2]


def test_the_default_window_is_512() -> None:
    """The model has none of its own; what is asked for is in the name."""
    assert report("x", 512) == WordllamaWindow().measure(["x"])[0]
    assert (WordllamaWindow().name, WordllamaWindow(1).name) == ("wordllama@512", "wordllama@1")


def test_the_package_is_read_and_never_imported() -> None:
    """Importing it would configure logging and try to download."""
    code = (
        "import logging, sys\n"
        "from overflow.embedding.wordllama import WordllamaEmbedder\n"
        "assert WordllamaEmbedder().embed(['a text']).vectors.shape == (1, 256)\n"
        "assert 'wordllama' not in sys.modules and not logging.getLogger().handlers\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_window_below_one_and_a_lone_surrogate_are_refused() -> None:
    """As every window does."""
    with pytest.raises(InputError) as caught:
        WordllamaWindow(0)
    assert str(caught.value) == "a window of 0 tokens holds no text; give 1 or more"
    with pytest.raises(InputError, match="surrogate"):
        WordllamaWindow().measure(["\ud800"])


def test_a_text_without_an_encoding_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a tokenizer that gives too few nobody knows whose they are."""
    losing = SimpleNamespace(
        encode_batch=lambda texts, **options: wordllama_tokenizer().encode_batch(texts[1:], **options)
    )
    monkeypatch.setattr("overflow.tokens.wordllama.wordllama_tokenizer", lambda: losing)
    with pytest.raises(ValueError, match="shorter"):
        WordllamaWindow().measure(["a", "b"])


@pytest.mark.parametrize("content", [None, "{}"])
def test_a_damaged_package_is_not_available(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    """Its tokenizer missing or cut short: one line that says what to do."""
    (tmp_path / "tokenizers").mkdir()
    if content is not None:
        (tmp_path / "tokenizers" / "l2_supercat_tokenizer_config.json").write_text(content)
    monkeypatch.setattr("overflow.tokens.wordllama.wordllama_directory", lambda: tmp_path)
    with pytest.raises(UnavailableError, match="reinstall wordllama"):
        wordllama_tokenizer.__wrapped__()
