"""A tokenizer.json as a window: the library's own truncation says where the window closes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors, trainers

from overflow.errors import InputError
from overflow.tokens import tokenizer_file
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
    with pytest.raises(InputError) as caught:
        TokenizerFileWindow(bytelevel_file)
    assert str(caught.value) == (
        f"{bytelevel_file} names no window (truncation.max_length); give one, such as hf:{bytelevel_file}@512"
    )


def test_a_text_the_file_has_no_tokens_for_is_refused(tmp_path: Path) -> None:
    """A vocabulary without its unknown token: one line, not the binding's bare exception."""
    path = tmp_path / "tokenizer.json"
    Tokenizer(models.WordPiece({"a": 0}, unk_token="[UNK]")).save(str(path))
    window = TokenizerFileWindow(path, 8)
    assert window.measure(["a"]) == [TokenReport(1, 8, False, 1)]
    with pytest.raises(InputError, match=r"\[UNK\]") as caught:
        window.measure(["b"])
    assert str(caught.value).startswith(f"hf:{path}@8 cannot tokenize a text (")


def test_a_text_without_an_encoding_is_not_passed_over(wordpiece_file: Path) -> None:
    """Of a binding that gives too few nobody knows whose they are."""
    window = TokenizerFileWindow(wordpiece_file)
    whole = window._tokenizer
    window._tokenizer = SimpleNamespace(encode_batch=lambda texts: whole.encode_batch(texts[1:]))  # type: ignore[assignment]
    with pytest.raises(ValueError, match="shorter"):
        window.measure(["one", "two"])


NONE = "is not a tokenizer.json of Hugging Face tokenizers"


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"version":"1.0","model":{"type":"Magic"}}'])
def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path, content: str) -> None:
    """Empty, other JSON, an unknown model: one line that names the file, with what the binding says of it."""
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        TokenizerFileWindow(path, 8)
    assert str(caught.value).startswith(f"{path} {NONE} (")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """The binding would panic at some, and read others."""
    path = tmp_path / "tokenizer.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError) as caught:
        TokenizerFileWindow(path, 8)
    assert str(caught.value) == f"{path} is not text; give a tokenizer.json of Hugging Face tokenizers"


@pytest.mark.parametrize("odd", ["1" * 5_000, "[" * 20_000 + "]" * 20_000], ids=["a long number", "deep lists"])
@pytest.mark.parametrize("window", [None, 8])
def test_json_that_only_the_binding_takes_is_refused(tmp_path: Path, odd: str, window: int | None) -> None:
    """It stands where the binding looks at nothing: one line that names the file, its window given or not."""
    path = tmp_path / "tokenizer.json"
    tokenizer = Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    tokenizer.enable_truncation(8)
    tokenizer.save(str(path))
    path.write_text(re.sub(r'("truncation": *\{)', rf'\1"odd": {odd},', path.read_text()))
    Tokenizer.from_file(str(path))
    with pytest.raises(InputError) as caught:
        TokenizerFileWindow(path, window)
    assert str(caught.value) == f"{path} {NONE} (a number is too long, or lists too deep, for JSON)"


@pytest.mark.parametrize("window", [0, -3])
def test_a_window_below_one_is_refused(wordpiece_file: Path, tmp_path: Path, window: int) -> None:
    """Given by the caller or written in the file."""
    with pytest.raises(InputError) as caught:
        TokenizerFileWindow(wordpiece_file, window)
    assert str(caught.value) == f"a window of {window} tokens holds no text; give 1 or more"
    content = json.loads(wordpiece_file.read_text())
    content["truncation"]["max_length"] = 0
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="a window of 0 tokens holds no text; give 1 or more"):
        TokenizerFileWindow(path)
    assert TokenizerFileWindow(wordpiece_file, 1).window == 1
    assert TokenizerFileWindow(wordpiece_file, 1).prefix_safe is True


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    """What cannot be read is an input error that names it."""
    for path, why in ((tmp_path / "absent.json", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(InputError) as caught:
            TokenizerFileWindow(path, 8)
        assert str(caught.value) == f"cannot read the tokenizer file {path} ({why}); give a tokenizer.json"


class Huge(bytes):
    """Bytes that memory holds, but not as text."""

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        raise MemoryError(encoding, errors)


def test_a_file_whose_text_is_larger_than_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is where its bytes are."""
    monkeypatch.setattr(tokenizer_file, "read_regular", lambda _path: Huge())
    with pytest.raises(InputError) as caught:
        TokenizerFileWindow("tokenizer.json", 8)
    assert str(caught.value) == (
        "cannot read the tokenizer file tokenizer.json (larger than the memory there is); give a tokenizer.json"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory has no such limit")
@pytest.mark.parametrize("size", [10**11, 7 * 10**7], ids=["its bytes", "its text"])
def test_a_file_larger_than_memory_is_refused(tmp_path: Path, size: int) -> None:
    """One line that names it, where its bytes do not fit and where they do and its text does not."""
    path = tmp_path / "tokenizer.json"
    path.touch()
    os.truncate(path, size)  # Of holes alone: it takes no room on the disk.
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from overflow.errors import InputError\n"
        "from overflow.tokens.tokenizer_file import TokenizerFileWindow\n"
        "pages = int(Path('/proc/self/statm').read_text().split()[0])\n"
        "limit = pages * resource.getpagesize() + 100_000_000\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
        "try:\n"
        "    TokenizerFileWindow(sys.argv[1], 3)\n"
        "except InputError as error:\n"
        "    print(error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False)
    assert (ended.stderr, ended.returncode) == ("", 0)
    assert ended.stdout == (
        f"cannot read the tokenizer file {path} (larger than the memory there is); give a tokenizer.json\n"
    )


def test_dropout_of_the_file_counts_for_nothing(tmp_path: Path) -> None:
    """A BPE trained with dropout merges by chance: here it merges always, so that a text has one count."""
    path = tmp_path / "tokenizer.json"
    tokenizer = Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")], dropout=0.5))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(path))
    assert TokenizerFileWindow(path, 512).measure(["ab " * 256]) == [TokenReport(256, 512, False, 768)]


#: Files at which the binding panics: when it reads them, and at the first text.
PANICS = {
    "a prefix longer than the pieces": {"model": {"continuing_subword_prefix": "abcdef"}},
    "a charsmap that is none": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}},
    "a special token nobody defined": {
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "X", "type_id": 0}}],
            "pair": [],
            "special_tokens": {},
        }
    },
    "chunks without a length": {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
}


@pytest.mark.parametrize("what", PANICS)
def test_a_file_at_which_the_binding_panics_is_refused(
    tmp_path: Path, what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A panic is no Exception, and prints itself: here it is one line that names the file, and nothing else."""
    path = tmp_path / "tokenizer.json"
    Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")])).save(str(path))
    content = json.loads(path.read_text())
    for key, value in PANICS[what].items():
        content[key] = {**(content[key] or {}), **value}
    path.write_text(json.dumps(content))
    with pytest.raises(InputError) as caught:
        TokenizerFileWindow(path, 8)
    assert str(caught.value).startswith(f"{path} {NONE} (")
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


def panicking_at(path: Path, characters: str) -> Path:
    """A file at which the binding panics as soon as a text holds one of `characters`, a class of a regular expression.

    The others are dropped first, and of nothing no chunk is made.
    """
    tokenizer = Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(f"[^{characters}]"), "removed"), pre_tokenizers.FixedLength(1)]
    )
    tokenizer.save(str(path))
    content = json.loads(path.read_text())
    content["pre_tokenizer"]["pretokenizers"][1]["length"] = 0
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    "characters", ["A-Z", "a-z", " ", r"\n", ",.", "\u3040-\u30ff\u4e00-\u9fff", "\U0001f600-\U0001f64f"]
)
def test_a_file_that_panics_at_a_kind_of_character_is_refused(
    tmp_path: Path, characters: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Capitals, small letters, spaces, line ends, marks, signs of Japanese, emoji: before any text is read."""
    path = panicking_at(tmp_path / "tokenizer.json", characters)
    with pytest.raises(InputError) as caught:
        TokenizerFileWindow(path, 8)
    assert str(caught.value).startswith(f"{path} {NONE} (")
    assert capfd.readouterr().err == ""


def test_a_file_that_panics_at_one_letter_is_known_when_a_text_holds_it(tmp_path: Path) -> None:
    """Not every letter is tried out; of a text with it, one line is said."""
    path = panicking_at(tmp_path / "tokenizer.json", "X")
    window = TokenizerFileWindow(path, 8)
    assert window.measure(["abc"]) == [TokenReport(0, 8, False, 3)]
    with pytest.raises(InputError) as caught:
        window.measure(["aXc"])
    assert str(caught.value).startswith(f"hf:{path}@8 cannot tokenize a text (")
    assert "\n" not in str(caught.value)
