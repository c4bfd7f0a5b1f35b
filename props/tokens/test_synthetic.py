"""The synthetic windows are what their names say, and awkward in the way they claim."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overflow.errors import InputError
from overflow.tokens.foreign import checked_report
from overflow.tokens.report import TokenReport, TokenWindow
from overflow.tokens.spec import SYNTHETIC
from overflow.tokens.synthetic import KINDS, SyntheticWindow, UnknownWindow

TEXTS = st.text(st.sampled_from("abAB 日é😀\n\t.\u3000\0") | st.characters(codec="utf-8"), max_size=80)
WINDOWS = st.integers(1, 12)
SAFE = [kind for kind in KINDS if KINDS[kind].prefix_safe]
UNSAFE = [kind for kind in KINDS if not KINDS[kind].prefix_safe]


def report(kind: str, window: int, text: str, special_tokens: int = 0) -> TokenReport:
    (found,) = SyntheticWindow(kind, window, special_tokens=special_tokens).measure([text])
    assert found is not None
    return found


def test_a_synthetic_window_is_a_token_window() -> None:
    """Both classes have what the protocol asks for."""
    assert isinstance(SyntheticWindow("words", 3), TokenWindow)
    assert isinstance(UnknownWindow(), TokenWindow)


@given(TEXTS, WINDOWS)
def test_words_chars_and_bytes_count_what_python_counts(text: str, window: int) -> None:
    """`words` counts like `str.split`, `chars` like `len`, `bytes` like `str.encode`."""
    assert report("words", window, text).count == len(text.split())
    assert report("chars", window, text).count == len(text)
    assert report("bytes", window, text).count == len(text.encode())


@given(TEXTS, WINDOWS)
def test_the_window_of_the_command_line_kinds_closes_where_counting_says(text: str, window: int) -> None:
    """A truncated text closes after the last whole word, character, or character whose bytes all fit."""
    words, chars, utf8 = (report(kind, window, text) for kind in ("words", "chars", "bytes"))
    if chars.truncated:
        assert chars.window_end_char == window
    if words.truncated:
        head = text[: words.window_end_char]
        assert head.split() == text.split()[:window]
        assert not head[-1].isspace()
    if utf8.truncated:
        assert text[: utf8.window_end_char] == text.encode()[:window].decode(errors="ignore")


@pytest.mark.parametrize("kind", KINDS)
@given(text=TEXTS, window=WINDOWS, special_tokens=st.integers(0, 3))
def test_every_report_is_sound(kind: str, text: str, window: int, special_tokens: int) -> None:
    """A synthetic report passes the check that a report from outside must pass."""
    found = report(kind, window, text, special_tokens)
    value = {name: getattr(found, name) for name in ("count", "window", "truncated", "window_end_char")}
    assert checked_report(value, text, "here") == found
    assert found.count >= special_tokens


@pytest.mark.parametrize("kind", SAFE)
@given(text=TEXTS, window=WINDOWS, data=st.data())
def test_a_prefix_past_the_close_tells_where_the_window_closes(
    kind: str, text: str, window: int, data: st.DataObject
) -> None:
    """prefix_safe True: a truncated prefix that ends well past its own close has it where the text has."""
    prefix = text[: data.draw(st.integers(0, len(text)))]
    of_prefix = report(kind, window, prefix)
    if of_prefix.truncated and len(prefix) - of_prefix.window_end_char > 16:
        assert of_prefix.window_end_char == report(kind, window, text).window_end_char


#: A text of which a prefix, ending well past the close, misleads: it closes elsewhere than the text does.
MISLEADING = {
    "pairs_from_end": ("aaaaaaaaaaa", 10, 2),
    "even_words": ("abcdefghijkl z", 11, 2),
    "halves": ("abcdefghijkl", 11, 3),
}


@pytest.mark.parametrize("kind", MISLEADING)
def test_prefix_safe_false_is_meant(kind: str) -> None:
    """prefix_safe False: there is a text that its prefix misleads about."""
    text, end, window = MISLEADING[kind]
    of_prefix, of_text = report(kind, window, text[:end]), report(kind, window, text)
    assert of_prefix.truncated
    assert of_prefix.window_end_char != of_text.window_end_char
    assert not KINDS[kind].prefix_safe


def test_every_unsafe_kind_is_shown_or_reaches_across_white_space() -> None:
    """No kind says False without a reason: it misleads, or its tokens hold white space."""
    assert set(UNSAFE) == {*MISLEADING, "phrases"}
    assert report("phrases", 1, "one two three four").window_end_char == len("one two three")


@pytest.mark.parametrize(
    ("kind", "text", "closes"),
    [
        ("words", "", []),
        ("words", " ab  cde f", [3, 8, 10]),
        ("chars", "a é", [1, 2, 3]),
        ("bytes", "aé日", [1, 1, 2, 2, 2, 3]),
        ("triples", "aé\x7f\x80", [1, 1, 1, 2, 3, 3, 3, 4]),
        ("visible", " \n\u3000", []),
        ("visible", "a b c ", [1, 3, 6]),
        ("phrases", "a b c d e f g", [5, 11, 13]),
        ("phrases", "a b c d", [5, 7]),
        ("pairs", "aa", [2]),
        ("pairs", "aaa", [2, 3]),
        ("pairs", "aba", [1, 2, 3]),
        ("pairs", "abbac", [1, 3, 5]),
        ("pairs_from_end", "aaa", [1, 3]),
        ("pairs_from_end", "cabba", [2, 4, 5]),
        ("word_ends", "ab  c", [1, 1, 2, 3, 4, 4, 5]),
        ("even_words", "abc", [1, 2, 3]),
        ("even_words", "abc abcd", [1, 2, 3, 8]),
        ("run_pairs", "abcdefghijklmnop", [2, 4, 6, 8, 10, 12, 14, 16]),
        ("run_pairs", "abcdefghijklmnopqrs", [2, 4, 6, 8, 10, 12, 14, 16, 17, 19]),
        ("run_pairs", "今天气。1 b", [1, 3, 4, 5, 7]),
        ("run_pairs", "ab_c", [2, 3, 4]),
        ("halves", "abcde", [1, 2, 3, 4, 5]),
        ("halves", "abcdef", [2, 4, 6]),
    ],
)
def test_each_kind_counts_and_closes_as_it_is_told(kind: str, text: str, closes: list[int]) -> None:
    """Where each window closes, from 1 token to as many as the text has: as the line that tells of the kind says."""
    count = len(closes)
    expected = [TokenReport(count, window, window < count, close) for window, close in enumerate(closes, 1)]
    assert [report(kind, window, text) for window in range(1, count + 1)] == expected
    assert report(kind, count + 1, text) == TokenReport(count, count + 1, False, len(text))


@pytest.mark.parametrize(
    ("kind", "text", "tokens"),
    [
        ("words", " ab  c", ["ab", "c"]),
        ("chars", "a b", ["a", " ", "b"]),
        ("bytes", "aé", ["a", "é", "é"]),
        ("triples", "aé", ["a", "é", "é", "é"]),
        ("visible", "a b", ["a", "b"]),
        ("phrases", " a b c d", ["a b c", "d"]),
        ("pairs", "abbac", ["a", "bb", "ac"]),
        ("pairs_from_end", "cabba", ["ca", "bb", "a"]),
        ("word_ends", "ab c", ["a", "b", "b", " ", "c", "c"]),
        ("even_words", "ab cde fg", ["ab", "c", "d", "e", "fg"]),
        ("run_pairs", "abc de.f", ["a", "bc", "de", ".", "f"]),
        ("halves", "", []),
        ("halves", "ab", ["ab"]),
        ("halves", "abc", ["a", "b", "c"]),
        ("halves", "abcd", ["ab", "cd"]),
    ],
)
def test_each_token_stands_for_its_characters(kind: str, text: str, tokens: list[str]) -> None:
    """In text order; several may stand for one character."""
    spans = KINDS[kind].spans(text)
    assert [text[start:end] for start, end in spans] == tokens
    assert spans == sorted(spans)
    assert all(0 <= start < end <= len(text) for start, end in spans)


def test_the_prefix_at_the_close_may_run_over_when_measured_alone() -> None:
    """`word_ends`: inside a word the close makes a new end, which is a token more; at a word's end it makes none."""
    inside, after = report("word_ends", 4, "abcdefg"), report("word_ends", 4, "abc defg")
    assert (inside.window_end_char, report("word_ends", 4, "abcd").count) == (4, 5)
    assert (after.window_end_char, report("word_ends", 4, "abc").count) == (3, 4)


def test_special_tokens_that_fill_the_window_leave_nothing() -> None:
    """With as many special tokens as the window holds, no character fits; even the empty text may be over."""
    assert report("chars", 2, "ab", special_tokens=2).window_end_char == 0
    assert report("chars", 2, "", special_tokens=3).truncated


def test_unknown_is_none() -> None:
    """The unknown window reports None for each text."""
    assert UnknownWindow().measure(["a", ""]) == [None, None]


@pytest.mark.parametrize(
    ("kind", "window", "fault"),
    [
        ("words", 0, "a window of 0 tokens holds no text; give 1 or more"),
        ("words", -1, "a window of -1 tokens holds no text; give 1 or more"),
        ("syllables", 5, f"no synthetic tokenizer is called 'syllables'; there are {', '.join(SYNTHETIC)}"),
    ],
)
def test_a_window_that_cannot_be_is_refused(kind: str, window: int, fault: str) -> None:
    """An unknown kind and a window below 1 are input errors of one line."""
    with pytest.raises(InputError) as caught:
        SyntheticWindow(kind, window)
    assert str(caught.value) == fault


@pytest.mark.parametrize(("special_tokens", "name"), [(0, "words@3"), (1, "words@3+1")])
def test_a_window_is_what_it_was_made_from(special_tokens: int, name: str) -> None:
    """A counterexample shows it by the name that makes it again."""
    window = SyntheticWindow("words", 3, special_tokens=special_tokens)
    assert (window.kind, window.window, window.special_tokens) == ("words", 3, special_tokens)
    assert (window.name, repr(window)) == (name, name)
    assert SyntheticWindow("words", 3).special_tokens == 0
    assert (window.prefix_safe, SyntheticWindow("halves", 3).prefix_safe) == (True, False)


@pytest.mark.parametrize("window", [SyntheticWindow("words", 3), UnknownWindow()])
def test_a_lone_surrogate_is_refused(window: TokenWindow) -> None:
    """A lone surrogate is named with the text and the position."""
    with pytest.raises(InputError, match=r"text 1 .*U\+D800 at character 2"):
        window.measure(["fine", "ab\ud800"])
