"""Which tokenizer files are taken for prefix-safe, and that those whose tokens reach across white space are not.

What a file's own words say decides; the oracle, which measures the whole rest, says what is right.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

from overflow.contract.oracle import divide_by_the_rule
from overflow.division import divide
from overflow.tokens.separation import separates_words
from overflow.tokens.tokenizer_file import TokenizerFileWindow

P, N = pre_tokenizers, normalizers
GPT_4 = Regex(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA = N.Sequence([N.Prepend("\u2581"), N.Replace(" ", "\u2581")])


def described(
    path: Path,
    model: models.Model,
    pre: P.PreTokenizer | None = None,
    normalizer: N.Normalizer | None = None,
    *added: str,
) -> TokenizerFileWindow:
    """The window of 20 tokens over a file with these parts."""
    tokenizer = Tokenizer(model)
    tokenizer.add_tokens([AddedToken(each) for each in added])
    if pre is not None:
        tokenizer.pre_tokenizer = pre
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.save(str(path))
    return TokenizerFileWindow(path, 20)


PIECES = ["[UNK]", "a", "##a", "b", "##b", "##.", "## ", "##\n", "\u2581", "##\u2581"]


def wordpiece() -> models.Model:
    return models.WordPiece(
        dict(zip(PIECES, range(len(PIECES)), strict=True)), unk_token="[UNK]", max_input_chars_per_word=4000
    )


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
        (wordpiece, P.Metaspace(), None, False),
        (wordpiece, None, None, False),
        (wordpiece, P.Split("\n", "isolated"), None, False),
        (wordpiece, P.Sequence([P.Digits(), P.Punctuation()]), None, False),
        (wordpiece, P.Metaspace(split=False), None, False),
        (wordpiece, None, LLAMA, False),
        (lambda: models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"), None, None, False),
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


Json = dict[str, object]
SPLIT: Json = {"type": "WhitespaceSplit"}
MARKS: Json = {"type": "Metaspace"}
BPE: Json = {"type": "BPE", "vocab": {"a": 0, "\u2581a": 1, "\u2581\u2581": 2}}


def replaced(pattern: object, content: object) -> Json:
    return {"normalizer": {"type": "Replace", "pattern": pattern, "content": content}, "pre_tokenizer": SPLIT}


def expression(pattern: object, *pieces: str, kind: str = "BPE") -> Json:
    """A Split, as byte-level files have it, over these pieces."""
    split = {"type": "Split", "pattern": pattern}
    return {"pre_tokenizer": split, "model": {"type": kind, "vocab": dict.fromkeys(pieces, 0)}}


def marking(*pieces: str) -> Json:
    return {"pre_tokenizer": MARKS, "model": {"type": "Unigram", "vocab": [[piece, -1.0] for piece in pieces]}}


@pytest.mark.parametrize(
    ("description", "apart"),
    [
        ({}, False),
        ({"pre_tokenizer": None}, False),
        ({"pre_tokenizer": SPLIT}, True),
        ({"pre_tokenizer": {"type": "Whitespace"}}, True),
        ({"pre_tokenizer": {"type": "BertPreTokenizer"}}, True),
        ({"pre_tokenizer": {"type": "Punctuation"}}, False),
        ({"pre_tokenizer": {"type": "Sequence"}}, False),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits"}, SPLIT]}}, True),
        ({"pre_tokenizer": {"type": "Digits", "pretokenizers": [SPLIT]}}, False),
        (
            {
                "pre_tokenizer": {
                    "type": "Sequence",
                    "pretokenizers": [{"type": "Sequence", "pretokenizers": [SPLIT]}, {"type": "Digits"}],
                }
            },
            True,
        ),
        ({"pre_tokenizer": SPLIT, "model": {"type": "Unigram"}}, True),
        # Added tokens are found first; white space at their ends, or none, reaches across nothing.
        ({"pre_tokenizer": SPLIT, "added_tokens": [{"content": " a "}, {"content": "b"}, {"id": 1}]}, True),
        ({"pre_tokenizer": SPLIT, "added_tokens": [{"content": "b"}, {"content": "a\nb"}]}, False),
        ({"pre_tokenizer": SPLIT, "added_tokens": [{"content": "a\u2581b"}]}, False),
        ({"pre_tokenizer": SPLIT, "added_tokens": [{"content": "a\u0120b"}]}, False),
        # A normalizer leaves white space in its place, or is not believed to.
        ({"pre_tokenizer": SPLIT, "normalizer": {"type": "Magic"}}, False),
        ({"pre_tokenizer": SPLIT, "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]}}, True),
        (
            {
                "pre_tokenizer": SPLIT,
                "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Magic"}]},
            },
            False,
        ),
        (replaced({"Regex": "\\s"}, " "), True),
        (replaced({"Regex": "\\s"}, "_"), False),
        (replaced({"Regex": "\\s"}, ""), False),
        (replaced({"String": "-"}, ""), True),
        (replaced({"String": "-"}, "_"), True),
        (replaced({"String": "- "}, "_"), False),
        (replaced({"String": "- "}, "_ "), False),
        (replaced(None, "_"), False),
        # As a byte-level vocabulary splits: by an expression of its own, or by one of the file.
        ({"pre_tokenizer": {"type": "ByteLevel"}}, True),
        ({"pre_tokenizer": {"type": "ByteLevel", "use_regex": True}}, True),
        ({"pre_tokenizer": {"type": "ByteLevel", "use_regex": False}}, False),
        # Behind it white space is spelt otherwise, and nothing sees any.
        (
            {
                "pre_tokenizer": {
                    "type": "Sequence",
                    "pretokenizers": [{"type": "ByteLevel", "use_regex": False}, SPLIT],
                }
            },
            False,
        ),
        (expression({"Regex": "\\w+|\\s+"}, "a", "\u0120a"), True),
        (expression({"Regex": "\\w+|\\s+"}, "a\u0120a"), False),
        (expression({"Regex": "\\w+|\\s+"}, "a", kind="WordPiece"), False),
        (expression({"Regex": "\\w+"}, "a"), False),
        (expression({"String": "\\s+"}, "a"), False),
        (expression("\\s+", "a"), False),
        # SentencePiece's mark: where no piece goes on into it, or none from it.
        ({"pre_tokenizer": MARKS}, False),
        ({"pre_tokenizer": MARKS, "model": BPE}, True),
        ({"pre_tokenizer": {**MARKS, "replacement": "\u2581"}, "model": BPE}, True),
        ({"pre_tokenizer": {**MARKS, "replacement": "_"}, "model": BPE}, False),
        ({"pre_tokenizer": MARKS, "model": {**BPE, "type": "WordPiece"}}, False),
        ({"pre_tokenizer": MARKS, "model": {"vocab": BPE["vocab"], "merges": []}}, True),
        ({"pre_tokenizer": MARKS, "model": {"vocab": BPE["vocab"]}}, False),
        ({"pre_tokenizer": {"type": "ByteLevel", "use_regex": False}, "model": BPE}, False),
        (
            {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [MARKS, SPLIT]}, "model": {"type": "WordPiece"}},
            False,
        ),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits"}, MARKS]}, "model": BPE}, True),
        (
            {"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}, "model": BPE},
            True,
        ),
        (
            {"normalizer": {"type": "Replace", "pattern": {"String": "-"}, "content": "_"}, "model": BPE},
            False,
        ),
        (marking("a", "\u2581a", "\u2581\u2581"), True),
        (marking("a\u2581", "b\u2581"), True),
        (marking("a\u2581", "\u2581a"), False),
        (marking("a\u2581b"), False),
        (marking("a\n", "\u2581b"), True),
        (marking("a\n", "\nb"), False),
        (marking("a\n", "\u2581\nb"), False),
        (marking("a\n", "\n\n"), False),
    ],
)
def test_a_description_says_whether_white_space_ends_every_token(description: Json, apart: bool) -> None:
    """In doubt it does not: what is unknown, or missing, is not believed to."""
    assert separates_words(description) is apart


#: A piece may reach over 100 words, back from the `c` that ends them: a prefix without it shows a token a word.
TEXT = ("a " * 100 + "c ") * 60
TAILS = ["\u2581a" * words + "\u2581c" for words in range(101)]


def unigram(space: str) -> models.Unigram:
    """One whose pieces spell each space in this way."""
    pieces = [("<unk>", -9.0), ("\u2581", -9.0), ("\n", -9.0), ("a", -9.0), ("c", -9.0), ("\u2581a", -3.0)]
    reaching = [(f"{space}a", -3.0), *((tail.replace("\u2581", space), -1.0) for tail in TAILS)]
    return models.Unigram([*pieces, *reaching], unk_id=0)


def bpe(space: str) -> models.BPE:
    """The same pieces, merged from the `c` on."""
    word, tails = f"{space}a", [tail.replace("\u2581", space) for tail in TAILS]
    vocabulary = {piece: at for at, piece in enumerate(["<unk>", space, "a", "c", word, *tails])}
    merges = [(space, "a"), (space, "c"), *((word, tail) for tail in tails[:-1])]
    return models.BPE(vocabulary, merges, unk_token="<unk>")


NO_WORDS = P.Sequence([P.Split(Regex(r"x\s+"), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)])
#: The parts of a file, and a text that it does not take apart at white space.
REACHING: dict[str, tuple[Callable[[], models.Model], P.PreTokenizer | None, N.Normalizer | None, str]] = {
    "Unigram, one word": (lambda: unigram("\u2581"), P.Metaspace(split=False), None, TEXT),
    "Unigram, a word a line": (lambda: unigram("\n"), P.Metaspace(), None, TEXT.replace(" ", "\n")),
    "BPE, one word": (lambda: bpe("\u2581"), P.Metaspace(split=False), None, TEXT),
    "BPE, marks by the normalizer": (lambda: bpe("\u2581"), None, LLAMA, TEXT),
    "BPE, an expression of its own": (lambda: bpe("\u0120"), NO_WORDS, None, TEXT),
    "WordPiece, a word a line": (wordpiece, P.Metaspace(), None, "ab\n" * 4000),
    "WordPiece, spaces taken away": (wordpiece, P.WhitespaceSplit(), N.Replace(" ", ""), "ab " * 4000),
    "WordPiece, spaces marked": (wordpiece, P.WhitespaceSplit(), N.Replace(" ", "\u2581"), "ab " * 4000),
    "WordPiece, marked before it is split": (
        wordpiece,
        P.Sequence([P.Metaspace(split=False), P.WhitespaceSplit()]),
        None,
        "ab " * 4000,
    ),
}


@pytest.mark.parametrize("what", REACHING)
def test_tokens_that_reach_across_white_space_divide_by_the_rule(tmp_path: Path, what: str) -> None:
    """Whatever lets them: the file is not taken for prefix-safe, and would be divided wrongly if it were."""
    model, pre, normalizer, text = REACHING[what]
    assert_unsafe(described(tmp_path / "tokenizer.json", model(), pre, normalizer), text)


def test_an_added_token_with_white_space_inside_divides_by_the_rule(tmp_path: Path) -> None:
    """It is found before any word is; one that white space only surrounds reaches across none."""
    phrase = "ab " * 30 + "c"
    words = models.WordLevel({"[UNK]": 0, "ab": 1, "c": 2}, unk_token="[UNK]")
    path = tmp_path / "tokenizer.json"
    assert_unsafe(described(path, words, P.WhitespaceSplit(), None, phrase), f"{phrase} " * 60)
    assert described(path, words, P.WhitespaceSplit(), None, " ab\n", "   ", "<x>").prefix_safe


def test_pieces_that_end_in_white_space_reach_across_none(tmp_path: Path) -> None:
    """As Llama's `;\\r`, where no piece goes on from `\\r`; with one that does, right of it decides left of it."""
    ends = {piece: at for at, piece in enumerate(["a", "\r", "\u2581", "a\r", "\u2581a"])}
    merges = [("a", "\r"), ("\u2581", "a")]
    path = tmp_path / "tokenizer.json"
    assert described(path, models.BPE(ends, merges), None, LLAMA).prefix_safe
    goes_on = models.BPE({**ends, "\ra": 5}, [*merges, ("\r", "a")])
    assert not described(path, goes_on, None, LLAMA).prefix_safe


def assert_unsafe(window: TokenizerFileWindow, text: str) -> None:
    assert not window.prefix_safe
    expected = divide_by_the_rule(text, lambda each: window.measure([each])[0])
    assert divided(text, window) == expected
    window.prefix_safe = True
    assert divided(text, window) != expected


def divided(text: str, window: TokenizerFileWindow) -> list[tuple[int, int, int]]:
    return [(span.start, span.end, span.token_count) for span in divide(text, window).spans]


@pytest.mark.parametrize("pre", [None, P.Split("\n", "isolated"), P.WhitespaceSplit()])
def test_a_word_that_collapses_divides_by_the_rule(tmp_path: Path, pre: P.PreTokenizer | None) -> None:
    """A text of 14,000 characters that is one word, and so one unknown token, fits; a prefix of it would not."""
    window = described(tmp_path / "tokenizer.json", wordpiece(), pre)
    text = "ab ab. " * 2000

    assert divided(text, window) == divide_by_the_rule(text, lambda each: window.measure([each])[0])
