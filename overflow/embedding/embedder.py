"""What turns a text into a vector, and says of the same text where its window closed.

A model identity can be absent (None), as a token report can: DESIGN.md, principle 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from overflow.tokens.report import TokenReport

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """`vectors` has shape (texts, dimensions), rows of unit length; `reports` has one entry a text, None if unknown."""

    vectors: Vectors
    reports: list[TokenReport | None]


@runtime_checkable
class Embedder(Protocol):
    """An embedding model, local or behind HTTP; also a TokenWindow's `measure`."""

    @property
    def prefix_safe(self) -> bool:
        """That of the TokenWindow its reports are of."""

    def identity(self) -> str | None:
        """What two sets of vectors must share to be compared; None when the model does not say."""

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Vectors and reports of `texts`. What lies past the window does not reach the vector.

        Raises InputError for text that is not Unicode, UnavailableError when the server cannot answer.
        """

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        """Reports without running the model."""
