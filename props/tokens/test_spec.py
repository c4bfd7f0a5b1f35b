"""The SPEC of the command line names a window, or says with examples what would."""

from pathlib import Path

import pytest

from overflow.errors import InputError
from overflow.tokens.report import TokenReport, TokenWindow
from overflow.tokens.spec import EXAMPLES, SYNTHETIC, file_of, opened_window, parse_window
from overflow.tokens.synthetic import KINDS, SyntheticWindow


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("e5", "e5"),
        ("wordllama", "wordllama@512"),
        ("wordllama@40", "wordllama@40"),
        ("words@40", "words@40"),
        ("chars@1", "chars@1"),
        ("bytes@1000000", "bytes@1000000"),
        ("http://127.0.0.1:8401", "http://127.0.0.1:8401"),
        ("http://127.0.0.1:8401/", "http://127.0.0.1:8401"),
        ("https://example.org/embedding", "https://example.org/embedding"),
        ("tei:http://127.0.0.1:8080", "tei:http://127.0.0.1:8080"),
    ],
)
def test_a_spec_names_its_window(spec: str, name: str) -> None:
    """Every form of the command line gives a token window that tells cuts from a prefix; nothing is asked or loaded."""
    with opened_window(spec) as window:
        assert isinstance(window, TokenWindow)
        assert window.name == name
        assert window.prefix_safe


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("special_tokens", [0, 2])
def test_a_window_of_a_counterexample_is_a_spec(kind: str, special_tokens: int) -> None:
    """What a counterexample calls its window is what `--window` takes, special tokens included."""
    window = SyntheticWindow(kind, 7, special_tokens=special_tokens)
    again = parse_window(window.name)
    assert again.name == window.name
    assert again.prefix_safe == window.prefix_safe
    assert again.measure(["ab cde f"]) == window.measure(["ab cde f"])


def test_every_synthetic_window_is_told() -> None:
    """The help has a line for each."""
    assert list(SYNTHETIC) == list(KINDS)


def test_a_file_takes_its_own_window_or_the_one_given(wordpiece_file: Path) -> None:
    """`hf:FILE` reads truncation.max_length (64 in this file), `hf:FILE@N` overrides it."""
    for spec, expected in ((f"hf:{wordpiece_file}", 64), (f"hf:{wordpiece_file}@7", 7)):
        (report,) = parse_window(spec).measure(["a text"])
        assert report is not None
        assert report.window == expected


def test_a_path_may_hold_an_at_sign(wordpiece_file: Path, tmp_path: Path) -> None:
    """Only a number after the last @ is a window."""
    path = tmp_path / "model@v2.json"
    path.write_text(wordpiece_file.read_text())
    assert parse_window(f"hf:{path}").name == f"hf:{path}@64"
    assert parse_window(f"hf:{path}@9").name == f"hf:{path}@9"


NO_WINDOW = "names no window;"
NO_NUMBER = "needs a window of 1 token or more after the @;"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("", NO_WINDOW),
        ("@40", NO_WINDOW),
        ("unknown", NO_WINDOW),
        ("ftp://example.org", NO_WINDOW),
        ("e6", NO_WINDOW),
        ("E5", f"{NO_WINDOW} did you mean e5?"),
        ("word@40", f"{NO_WINDOW} did you mean words?"),
        ("wordlama@40", f"{NO_WINDOW} did you mean wordllama?"),
        ("words", NO_NUMBER),
        ("words@", NO_NUMBER),
        ("words@0", NO_NUMBER),
        ("words@-1", NO_NUMBER),
        ("words@1.5", NO_NUMBER),
        ("words@٣", NO_NUMBER),
        ("words@²", NO_NUMBER),
        ("words@many", NO_NUMBER),
        ("words@1000000000", NO_NUMBER),
        ("hf:tokenizer.json@0", NO_NUMBER),
        ("wordllama@", NO_NUMBER),
        ("wordllama@0", NO_NUMBER),
        ("pairs", NO_NUMBER),
        ("pairs@3+", NO_NUMBER),
        ("pairs@3+x", NO_NUMBER),
        ("pairs@3+0", NO_NUMBER),
        ("e5@", "e5 has a window of its own and takes no @N;"),
        ("e5@256", "e5 has a window of its own and takes no @N;"),
    ],
)
def test_a_bad_spec_is_answered_with_examples(spec: str, problem: str) -> None:
    """What names no window is an input error of one line: the spec, what is wrong, what may be meant, examples."""
    with pytest.raises(InputError) as caught:
        parse_window(spec)
    said = f"{spec!r}: {problem}" if spec.startswith("e5") else f"{spec!r} {problem}"
    assert str(caught.value) == f"{said} examples: {EXAMPLES}"


@pytest.mark.parametrize("number", ["1", "999999999"])
def test_a_window_has_1_to_9_digits(number: str) -> None:
    """More tokens than any model reads."""
    (report,) = parse_window(f"words@{number}").measure(["one"])
    assert report == TokenReport(1, int(number), False, 3)


@pytest.mark.parametrize(
    ("spec", "file"),
    [
        ("hf:a/tokenizer.json", "a/tokenizer.json"),
        ("hf:a/tokenizer.json@512", "a/tokenizer.json"),
        ("hf:model@v2.json", "model@v2.json"),
        ("hf:model@2", "model"),
        ("hf:model@2@512", "model@2"),
        ("hf:hf:a", "hf:a"),
        ("words@40", None),
        ("tei:http://there", None),
    ],
)
def test_the_file_of_a_spec_is_known_without_reading_it(spec: str, file: str | None) -> None:
    """Only `hf:` has one; a number after the last @ is no part of it."""
    assert file_of(spec) == file


@pytest.mark.parametrize(
    "spec", ["http://", "http://a b", "http://u:p@localhost:1", "http://h?x=1", "tei:", "tei:8080"]
)
def test_what_is_no_address_is_refused(spec: str) -> None:
    """A server's address is checked before anything is sent; a password in it is not repeated."""
    with pytest.raises(InputError) as caught:
        parse_window(spec)
    assert "\n" not in str(caught.value)
    assert "u:p" not in str(caught.value)
