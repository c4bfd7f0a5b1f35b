"""Small tokenizers that are stated in a line each: three for the command line, the others to be awkward on purpose.

Real vocabularies rarely show their worst in a short text; these do, from a window of 1 up: a longer text with fewer
tokens, several tokens a character, tokens that a cut tears apart, white space that is no token. DESIGN.md, "Command
line" (SPEC).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from overflow.errors import InputError
from overflow.tokens.report import TokenReport
from overflow.tokens.spans import Spans, report_of_spans
from overflow.tokens.unicode_text import require_unicode


def _words(text: str) -> Spans:
    return [match.span() for match in re.finditer(r"\S+", text)]


def _chars(text: str) -> Spans:
    return [(i, i + 1) for i in range(len(text))]


def _bytes(text: str) -> Spans:
    return [(i, i + 1) for i, c in enumerate(text) for _ in c.encode()]


def _triples(text: str) -> Spans:
    return [(i, i + 1) for i, c in enumerate(text) for _ in range(1 if c.isascii() else 3)]


def _visible(text: str) -> Spans:
    return [(i, i + 1) for i, c in enumerate(text) if not c.isspace()]


def _phrases(text: str) -> Spans:
    words = _words(text)
    return [(group[0][0], group[-1][1]) for group in (words[i : i + 3] for i in range(0, len(words), 3))]


def _pair(a: str, b: str) -> bool:
    return (ord(a) + ord(b)) % 2 == 0


def _pairs(text: str) -> Spans:
    spans, i = Spans(), 0
    while i < len(text):
        width = 2 if i + 1 < len(text) and _pair(text[i], text[i + 1]) else 1
        spans.append((i, i + width))
        i += width
    return spans


def _pairs_from_end(text: str) -> Spans:
    return [(len(text) - end, len(text) - start) for start, end in reversed(_pairs(text[::-1]))]


def _word_ends(text: str) -> Spans:
    spans = Spans()
    for i, c in enumerate(text):
        ends = not c.isspace() and (i + 1 == len(text) or text[i + 1].isspace())
        spans += [(i, i + 1)] * (2 if ends else 1)
    return spans


def _even_words(text: str) -> Spans:
    spans = Spans()
    for start, end in _words(text):
        spans += [(start, end)] if (end - start) % 2 == 0 else [(i, i + 1) for i in range(start, end)]
    return spans


def _run_pairs(text: str) -> Spans:
    spans = Spans()
    for match in re.finditer(r"[^\W_]{1,16}|\S", text):
        run, start = match.group(), match.start()
        odd = len(run) % 2
        spans += [(start, start + 1)] * odd + [(i, i + 2) for i in range(start + odd, match.end(), 2)]
    return spans


def _halves(text: str) -> Spans:
    if len(text) % 2:
        return _chars(text)
    return [(i, i + 2) for i in range(0, len(text), 2)]


@dataclass(frozen=True, slots=True)
class Kind:
    """One tokenizer: the tokens of a text, and whether a prefix well past the window's close tells where it closes."""

    spans: Callable[[str], Spans]
    prefix_safe: bool


#: The tokenizers by name.
KINDS: dict[str, Kind] = {
    # A word is a run of characters that are no white space.
    "words": Kind(_words, prefix_safe=True),
    "chars": Kind(_chars, prefix_safe=True),
    # A token for each byte of UTF-8: 1 to 4 a character.
    "bytes": Kind(_bytes, prefix_safe=True),
    # 3 tokens for a character outside ASCII: in a window of 1 or 2 it never fits.
    "triples": Kind(_triples, prefix_safe=True),
    # White space is no token: a text of it alone fits every window.
    "visible": Kind(_visible, prefix_safe=True),
    # 3 words a token: its tokens reach across white space.
    "phrases": Kind(_phrases, prefix_safe=False),
    # Two characters are one token where their code points add up to an even number; a cut inside a pair makes two.
    "pairs": Kind(_pairs, prefix_safe=True),
    # The same, paired from the end: `aaa` is a+aa and `aa` is aa, so every prefix may be paired anew.
    "pairs_from_end": Kind(_pairs_from_end, prefix_safe=False),
    # A token a character, and one more where a word ends: a cut inside a word makes an end, so the prefix at the close
    # counts more than the window.
    "word_ends": Kind(_word_ends, prefix_safe=True),
    # A word of even length is 1 token, one of odd length a token a character: `abc` counts 3 and `abcd` 1.
    "even_words": Kind(_even_words, prefix_safe=False),
    # Letters and digits in runs of up to 16, 2 a token, paired from the end of their run: where the window closes shows
    # a few characters later, never more.
    "run_pairs": Kind(_run_pairs, prefix_safe=True),
    # A text of even length has a token for two characters, one of odd length a token for each: nothing of it is local.
    "halves": Kind(_halves, prefix_safe=False),
}


class SyntheticWindow:
    """A TokenWindow over one of KINDS, with `special_tokens` (0 by default) counted beside the content.

    Raises InputError for an unknown kind, and for a window below 1.
    """

    def __init__(self, kind: str, window: int, *, special_tokens: int = 0) -> None:
        if kind not in KINDS:
            raise InputError(f"no synthetic tokenizer is called {kind!r}; there are {', '.join(KINDS)}")
        if window < 1:
            raise InputError(f"a window of {window} tokens holds no text; give 1 or more")
        self.name = f"{kind}@{window}" + (f"+{special_tokens}" if special_tokens else "")
        self.prefix_safe = KINDS[kind].prefix_safe
        self.kind = kind
        self.window = window
        self.special_tokens = special_tokens
        self._spans = KINDS[kind].spans

    def __repr__(self) -> str:
        return self.name

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        """One report a text, in order, none unknown; raises InputError for a lone surrogate."""
        require_unicode(texts)
        return [report_of_spans(text, self._spans(text), self.window, self.special_tokens) for text in texts]


class UnknownWindow:
    """A TokenWindow that knows nothing: every report is None, as behind a remote API."""

    name = "unknown"
    prefix_safe = True

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        """None for each text; raises InputError for a lone surrogate."""
        require_unicode(texts)
        return [None] * len(texts)
