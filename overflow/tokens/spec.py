"""A SPEC of the command line, such as `e5` or `words@40`, as the TokenWindow it names.

It asks no server and loads no bundled model: that happens at the first measuring. DESIGN.md, "Command line".
"""

from collections.abc import Iterator
from contextlib import contextmanager

from overflow.errors import InputError
from overflow.nearest import did_you_mean
from overflow.tokens.report import TokenWindow

EXAMPLES = (
    "e5, wordllama, wordllama@256, hf:tokenizer.json@512, http://127.0.0.1:8401, tei:http://127.0.0.1:8080, words@40"
)

#: What each synthetic window counts. Counterexamples name them all, and a person must be able to divide under one.
SYNTHETIC = {
    "words": "1 a word",
    "chars": "1 a character",
    "bytes": "1 a byte of UTF-8",
    "triples": "1 an ASCII character, 3 any other",
    "visible": "1 a character that is no white space",
    "phrases": "1 for 3 words",
    "pairs": "1 for 2 neighbours whose code points have an even sum",
    "pairs_from_end": "as pairs, paired from the end of the text",
    "word_ends": "1 a character, 1 more where a word ends",
    "even_words": "1 a word of even length, 1 a character of any other",
    "run_pairs": "1 for 2 letters, paired from the end of each 16 in a row",
    "halves": "1 for 2 characters in a text of even length, else 1 each",
}


@contextmanager
def opened_window(spec: str) -> Iterator[TokenWindow]:
    """The window of `spec`, closed at the end when there is something to close; raises as `parse_window` does."""
    window = parse_window(spec)
    try:
        yield window
    finally:
        close = getattr(window, "close", None)
        if close is not None:
            close()


def parse_window(spec: str) -> TokenWindow:
    """The TokenWindow that `spec` names; one behind a server has a `close`.

    Raises InputError, with examples, for a spec that names none, and for a tokenizer file that cannot be read.
    """
    if spec.startswith(("http://", "https://")):
        from overflow.tokens.http import HttpWindow

        return HttpWindow(spec)
    if spec.startswith("tei:"):
        from overflow.tokens.tei import TeiWindow

        return TeiWindow(spec.removeprefix("tei:"))
    if spec.startswith("hf:"):
        from overflow.tokens.tokenizer_file import TokenizerFileWindow

        path, number = _file_and_number(spec)
        return TokenizerFileWindow(path) if number is None else TokenizerFileWindow(path, _window(number, spec))
    kind, at, number = spec.partition("@")
    if kind == "e5":
        from overflow.tokens.e5 import E5Window

        if at:
            raise InputError(f"{spec!r}: e5 has a window of its own and takes no @N; examples: {EXAMPLES}")
        return E5Window()
    if kind == "wordllama":
        from overflow.tokens.wordllama import WordllamaWindow

        return WordllamaWindow(_window(number, spec)) if at else WordllamaWindow()
    if kind in SYNTHETIC:
        from overflow.tokens.synthetic import SyntheticWindow

        # As the window names itself: `words@9+2` is 9 tokens, 2 of which are special ones.
        room, plus, special = number.partition("+")
        return SyntheticWindow(kind, _window(room, spec), special_tokens=_window(special, spec) if plus else 0)
    near = did_you_mean(kind, ("e5", "wordllama", *SYNTHETIC))
    raise InputError(f"{spec!r} names no window; {near}examples: {EXAMPLES}")


def file_of(spec: str) -> str | None:
    """The file that the window of `spec` is read from, if it is read from one."""
    return _file_and_number(spec)[0] if spec.startswith("hf:") else None


def _file_and_number(spec: str) -> tuple[str, str | None]:
    path, at, number = spec.removeprefix("hf:").rpartition("@")
    # A path may hold an @ itself: only a number after the last one is a window.
    return (path, number) if at and number.isdecimal() else (spec.removeprefix("hf:"), None)


def _window(number: str, spec: str) -> int:
    if not (number.isascii() and number.isdecimal() and len(number) < 10 and int(number) > 0):
        raise InputError(f"{spec!r} needs a window of 1 token or more after the @; examples: {EXAMPLES}")
    return int(number)
