"""The bundled wordllama model as an Embedder: the average of its token vectors, from the wheel's own weights.

It mirrors the package's pooling without importing it, and what lies past the window never reaches the vector.
DESIGN.md, "Windows and models".
"""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import version

import numpy as np
from safetensors.numpy import load_file

from overflow.embedding.embedder import Embedded, Vectors
from overflow.embedding.unit import unit_rows
from overflow.tokens.report import TokenReport
from overflow.tokens.wordllama import DEFAULT_WINDOW, WordllamaWindow, wordllama_directory, wordllama_tokenizer


class WordllamaEmbedder:
    """An Embedder of 256 dimensions and `window` tokens; a text without tokens has the zero vector."""

    def __init__(self, window: int = DEFAULT_WINDOW) -> None:
        self.window = WordllamaWindow(window)

    @property
    def prefix_safe(self) -> bool:
        """That of the window."""
        return self.window.prefix_safe

    def identity(self) -> str:
        """Package version, model and window; raises UnavailableError when the package is not installed."""
        wordllama_directory()
        return f"wordllama-{version('wordllama')}/l2_supercat_256/{self.window.window}"

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Unit vectors, shape (texts, 256), and reports; raises as `measure` does."""
        reports = self.measure(texts)
        heads = [
            text if report is None else text[: report.window_end_char]
            for text, report in zip(texts, reports, strict=True)
        ]
        return Embedded(wordllama_vectors(heads), reports)

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        """Reports without running the model, as `WordllamaWindow.measure` gives them."""
        return self.window.measure(texts)


def wordllama_vectors(texts: Sequence[str]) -> Vectors:
    """Unit vectors of whole texts, shape (texts, 256), cut by no window; raises UnavailableError when not installed."""
    table = _table()
    pooled = np.zeros((len(texts), table.shape[1]), np.float32)
    encodings = wordllama_tokenizer().encode_batch(list(texts), add_special_tokens=False)
    for row, encoding in zip(pooled, encodings, strict=True):
        if len(encoding):
            # An id past the table is the last row's, as in the package.
            row[:] = table[np.minimum(encoding.ids, len(table) - 1)].mean(axis=0, dtype=np.float32)
    return unit_rows(pooled)


@cache
def _table() -> Vectors:
    (table,) = load_file(wordllama_directory() / "weights" / "l2_supercat_256.safetensors").values()
    return np.ascontiguousarray(table, dtype=np.float32)
