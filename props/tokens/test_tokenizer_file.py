"""A tokenizer.json as a window: the library's own truncation says where the window closes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from overflow.contract.oracle import divide_by_the_rule
from overflow.division import divide
from overflow.errors import InputError
from overflow.tokens.report import TokenReport
from overflow.tokens.tokenizer_file import TokenizerFileWindow

TEXTS = st.text(
    st.sampled_from("the quick Fox é日😀\u0301\u200d\n\t.,!\0") | st.characters(codec="utf-8"), max_size=120
)


@pytest.fixture(scope="module")
def bytelevel_file(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    """A byte-level BPE, whose tokens may end inside a character; no truncation, no special tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(topics[:20], trainer)
    path = tmp_path_factory.mktemp("bpe") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


def expected(path: Path, text: str, window: int) -> TokenReport:
    """By the library's own truncation to `window`, which is how a model reads the text."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    count = len(tokenizer.encode(text).ids)
    if count <= window:
        return TokenReport(count, window, False, len(text))
    if window <= tokenizer.num_special_tokens_to_add(False):
        return TokenReport(count, window, True, 0)
    tokenizer.enable_truncation(window)
    kept = tokenizer.encode(text)
    ends = [end for (_, end), special in zip(kept.offsets, kept.special_tokens_mask, strict=True) if not special]
    return TokenReport(count, window, True, ends[-1] if ends else 0)


@given(text=TEXTS, window=st.integers(1, 40))
def test_wordpiece_closes_where_the_library_truncates(wordpiece_file: Path, text: str, window: int) -> None:
    """Count with special tokens, and the end of the last token the library keeps, for a BERT-like file."""
    assert TokenizerFileWindow(wordpiece_file, window).measure([text]) == [expected(wordpiece_file, text, window)]


@given(text=TEXTS, window=st.integers(1, 40))
def test_bytelevel_closes_where_the_library_truncates(bytelevel_file: Path, text: str, window: int) -> None:
    """The same where a token may end inside a character: the report is the server's, over the character's end."""
    assert TokenizerFileWindow(bytelevel_file, window).measure([text]) == [expected(bytelevel_file, text, window)]


def test_truncation_and_padding_of_the_file_count_for_nothing(wordpiece_file: Path, topics: list[str]) -> None:
    """The file truncates to 64 and pads to 100: neither shows in a count, alone or in a batch."""
    long = topics[-1]
    short, full = TokenizerFileWindow(wordpiece_file).measure(["one word", long])
    assert short is not None
    assert full is not None
    assert short.count < 64
    assert (full.window, full.truncated) == (64, True)
    assert full.count > 100


def test_nothing_to_measure_is_nothing(wordpiece_file: Path) -> None:
    """No texts give no reports."""
    assert TokenizerFileWindow(wordpiece_file).measure([]) == []


def test_a_lone_surrogate_is_refused(wordpiece_file: Path) -> None:
    """The binding would raise something of its own."""
    with pytest.raises(InputError, match="surrogate"):
        TokenizerFileWindow(wordpiece_file).measure(["\udfff"])


def test_a_file_without_a_window_asks_for_one(bytelevel_file: Path) -> None:
    """No truncation.max_length and no number given: one line that says how to give it."""
    with pytest.raises(InputError, match=r"truncation\.max_length.*@512"):
        TokenizerFileWindow(bytelevel_file)


def test_a_text_the_file_has_no_tokens_for_is_refused(tmp_path: Path) -> None:
    """A vocabulary without its unknown token: one line, not the binding's bare exception."""
    path = tmp_path / "tokenizer.json"
    Tokenizer(models.WordPiece({"a": 0}, unk_token="[UNK]")).save(str(path))
    window = TokenizerFileWindow(path, 8)
    assert window.measure(["a"]) == [TokenReport(1, 8, False, 1)]
    with pytest.raises(InputError, match=r"cannot tokenize a text .*\[UNK\]"):
        window.measure(["b"])


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff\xfe", b'{"version":"1.0","model":{"type":"Magic"}}'])
def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path, content: bytes) -> None:
    """Empty, other JSON, not text, an unknown model: one line that names the file."""
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"tokenizer\.json") as caught:
        TokenizerFileWindow(path, 8)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("window", [0, -3])
def test_a_window_below_one_is_refused(wordpiece_file: Path, tmp_path: Path, window: int) -> None:
    """Given by the caller or written in the file."""
    with pytest.raises(InputError, match="1 or more"):
        TokenizerFileWindow(wordpiece_file, window)
    content = json.loads(wordpiece_file.read_text())
    content["truncation"]["max_length"] = 0
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="1 or more"):
        TokenizerFileWindow(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    """What cannot be read is an input error that names it."""
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            TokenizerFileWindow(path, 8)


P, N = pre_tokenizers, normalizers
GPT_4 = Regex(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA = N.Sequence([N.Prepend("\u2581"), N.Replace(" ", "\u2581")])


def described(
    path: Path, model: models.Model, pre: P.PreTokenizer | None = None, normalizer: N.Normalizer | None = None
) -> TokenizerFileWindow:
    """The window of 20 tokens over a file with these parts."""
    tokenizer = Tokenizer(model)
    if pre is not None:
        tokenizer.pre_tokenizer = pre
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.save(str(path))
    return TokenizerFileWindow(path, 20)


PIECES = {"[UNK]": 0, "a": 1, "##a": 2, "b": 3, "##b": 4, "##.": 5, "## ": 6}


def wordpiece() -> models.Model:
    return models.WordPiece(PIECES, unk_token="[UNK]", max_input_chars_per_word=4000)


@pytest.mark.parametrize(
    ("model", "pre", "normalizer", "safe"),
    [
        (wordpiece, P.BertPreTokenizer(), None, True),
        (wordpiece, P.Whitespace(), None, True),
        (wordpiece, P.WhitespaceSplit(), N.Lowercase(), True),
        (wordpiece, P.Sequence([P.Split("\n", "isolated"), P.WhitespaceSplit()]), None, True),
        (models.BPE, P.ByteLevel(), None, True),
        (models.BPE, P.Sequence([P.Split(GPT_4, "isolated"), P.ByteLevel(use_regex=False)]), None, True),
        (models.BPE, None, LLAMA, True),
        (models.BPE, P.Metaspace(split=False), None, True),
        (models.Unigram, P.Metaspace(), None, True),
        (wordpiece, P.Metaspace(), None, True),
        (wordpiece, None, None, False),
        (wordpiece, P.Split("\n", "isolated"), None, False),
        (wordpiece, P.Sequence([P.Digits(), P.Punctuation()]), None, False),
        (wordpiece, P.Metaspace(split=False), None, False),
        (wordpiece, None, LLAMA, False),
        (lambda: models.WordLevel(PIECES, unk_token="[UNK]"), None, None, False),
        (models.BPE, None, None, False),
        (models.BPE, P.ByteLevel(use_regex=False), None, False),
        (models.Unigram, None, N.NFKC(), False),
    ],
)
def test_a_file_is_prefix_safe_where_white_space_separates(
    tmp_path: Path,
    model: Callable[[], models.Model],
    pre: P.PreTokenizer | None,
    normalizer: N.Normalizer | None,
    safe: bool,
) -> None:
    """By its own description: the pre-tokenizer, any step of a sequence, or the normalizer of a model of pieces."""
    assert described(tmp_path / "tokenizer.json", model(), pre, normalizer).prefix_safe == safe


@pytest.mark.parametrize("pre", [None, P.Split("\n", "isolated"), P.WhitespaceSplit()])
def test_a_word_that_collapses_divides_by_the_rule(tmp_path: Path, pre: P.PreTokenizer | None) -> None:
    """A text of 14,000 characters that is one word, and so one unknown token, fits; a prefix of it would not."""
    window = described(tmp_path / "tokenizer.json", wordpiece(), pre)
    text = "ab ab. " * 2000

    def measure(each: str) -> TokenReport | None:
        return window.measure([each])[0]

    found = [(span.start, span.end, span.token_count) for span in divide(text, window).spans]
    assert found == divide_by_the_rule(text, measure)
