"""A Hugging Face `tokenizer.json` as a TokenWindow: counts with special tokens, offsets in the text itself.

The file's own truncation, padding and dropout are cleared, since each would falsify every count. It reports what a
server of the CEmbedding contract reports over the same file. Overflow Tree, section 0.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from tokenizers import Encoding, Tokenizer
from tokenizers.models import BPE

from overflow.errors import InputError
from overflow.regular_file import TOO_LARGE, read_regular
from overflow.tokens.binding import told, unheard
from overflow.tokens.report import TokenReport
from overflow.tokens.separation import separates_words
from overflow.tokens.unicode_text import require_unicode

_NONE = "is not a tokenizer.json of Hugging Face tokenizers"


class TokenizerFileWindow:
    """A TokenWindow over the file at `path`; `window` in tokens, by default the file's own `truncation.max_length`.

    `prefix_safe` is what the file's own description says. Raises InputError for a file that cannot be read or is no
    tokenizer, and where there is no window of 1 or more.
    """

    def __init__(self, path: str | Path, window: int | None = None) -> None:
        source = _read(Path(path))
        self._tokenizer = _tokenizer(source, path)
        description = _description(source, path)
        self.prefix_safe = separates_words(description)
        self.window = _own_window(description, path) if window is None else window
        if self.window < 1:
            raise InputError(f"a window of {self.window} tokens holds no text; give 1 or more")
        self.name = f"hf:{path}@{self.window}"
        self._special_tokens = self._tokenizer.num_special_tokens_to_add(False)

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        """One report a text, in order, none unknown.

        Raises InputError for a lone surrogate, and for a text the file has no tokens for.
        """
        require_unicode(texts)
        with told(f"{self.name} cannot tokenize a text"):
            encodings = self._tokenizer.encode_batch(list(texts))
        return [self._report(text, encoding) for text, encoding in zip(texts, encodings, strict=True)]

    def _report(self, text: str, encoding: Encoding) -> TokenReport:
        count = len(encoding)
        if count <= self.window:
            return TokenReport(count=count, window=self.window, truncated=False, window_end_char=len(text))
        tokens = zip(encoding.offsets, encoding.special_tokens_mask, strict=True)
        content = (end for (_, end), special in tokens if not special)
        kept = list(islice(content, max(self.window - self._special_tokens, 0)))
        end = kept[-1] if kept else 0
        return TokenReport(count=count, window=self.window, truncated=True, window_end_char=end)


def _read(path: Path) -> str:
    try:
        return read_regular(path).decode()
    except OSError as error:
        raise InputError(f"cannot read the tokenizer file {path} ({error.strerror}); give a tokenizer.json") from error
    except MemoryError as error:
        raise InputError(f"cannot read the tokenizer file {path} ({TOO_LARGE}); give a tokenizer.json") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text; give a tokenizer.json of Hugging Face tokenizers") from error


def _tokenizer(source: str, path: str | Path) -> Tokenizer:
    with told(f"{path} {_NONE}"), unheard():
        tokenizer = Tokenizer.from_str(source)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        if isinstance(tokenizer.model, BPE):
            # Chance is for training: it would count a text otherwise each time.
            tokenizer.model.dropout = None
        _try_out(tokenizer)
    return tokenizer


def _try_out(tokenizer: Tokenizer) -> None:
    """Tokenize a little of everything: a file at which the binding panics is mostly known before any text is read."""
    with suppress(Exception):
        tokenizer.encode("A word, 日本語 😀.\n")


def _description(source: str, path: str | Path) -> dict[str, object]:
    try:
        description: dict[str, object] = json.loads(source)
    except (ValueError, RecursionError) as error:
        # The binding passes over what it does not know, such as a number of 5,000 digits.
        raise InputError(f"{path} {_NONE} (a number is too long, or lists too deep, for JSON)") from error
    return description


def _own_window(description: dict[str, object], path: str | Path) -> int:
    truncation = description.get("truncation")
    length = truncation.get("max_length") if isinstance(truncation, dict) else None
    if not isinstance(length, int):
        raise InputError(f"{path} names no window (truncation.max_length); give one, such as hf:{path}@512")
    return length
