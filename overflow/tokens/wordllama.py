"""The bundled wordllama model (static, 256 dimensions): its tokenizer as a TokenWindow, and where its two files are.

The package is located and never imported: importing it configures logging, and its loader tries to download a tokenizer
that the wheel already holds. DESIGN.md, "Windows and models".
"""

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tokenizers import Tokenizer

from overflow.errors import InputError, UnavailableError
from overflow.tokens.binding import told
from overflow.tokens.report import TokenReport
from overflow.tokens.spans import report_of_spans
from overflow.tokens.unicode_text import require_unicode

#: The model is a table of token vectors and has no window of its own; this one is set.
DEFAULT_WINDOW = 512


class WordllamaWindow:
    """A TokenWindow over wordllama's tokenizer.

    No special token is counted, because the package embeds without any (`add_special_tokens=False`): `count` is the
    number of vectors that are averaged. Raises InputError for a window below 1.
    """

    prefix_safe = True

    def __init__(self, window: int = DEFAULT_WINDOW) -> None:
        if window < 1:
            raise InputError(f"a window of {window} tokens holds no text; give 1 or more")
        self.window = window
        self.name = f"wordllama@{window}"

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        """One report a text, in order, none unknown; a window that closes inside a character closes before it.

        Raises InputError for a lone surrogate, UnavailableError when the package is not installed.
        """
        require_unicode(texts)
        encodings = wordllama_tokenizer().encode_batch(list(texts), add_special_tokens=False)
        return [
            report_of_spans(text, encoding.offsets, self.window, special_tokens=0)
            for text, encoding in zip(texts, encodings, strict=True)
        ]


@cache
def wordllama_tokenizer() -> Tokenizer:
    """The bundled tokenizer, truncation and padding cleared; raises UnavailableError when it is not installed whole."""
    file = wordllama_directory() / "tokenizers" / "l2_supercat_tokenizer_config.json"
    with told(f"wordllama's {file.name} cannot be read; reinstall wordllama", UnavailableError):
        tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


@cache
def wordllama_directory() -> Path:
    """Where the installed package's files are; raises UnavailableError when it is not installed."""
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise UnavailableError(
            "the package wordllama is not installed; install it, or choose another model, such as e5"
        )
    return Path(spec.submodule_search_locations[0])
