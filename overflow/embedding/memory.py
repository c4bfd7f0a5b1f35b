"""A model whose answers are kept in memory, for runs that put the same texts to it again and again.

It changes no answer; what must outlive the process is `cache`'s to keep.
"""

from collections.abc import Callable, Sequence

import numpy as np

from overflow.embedding.embedder import Vectors
from overflow.tokens.report import TokenReport, TokenWindow


class RememberedWindow:
    """A TokenWindow that measures each text once."""

    def __init__(self, inner: TokenWindow) -> None:
        self.name = inner.name
        self.prefix_safe = inner.prefix_safe
        self._inner = inner
        self._reports: dict[str, TokenReport | None] = {}

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        """As `inner` measures; raises as it does."""
        new = [text for text in dict.fromkeys(texts) if text not in self._reports]
        if new:
            self._reports |= zip(new, self._inner.measure(new), strict=True)
        return [self._reports[text] for text in texts]


def remembered(model: Callable[[Sequence[str]], Vectors]) -> Callable[[Sequence[str]], Vectors]:
    """`model`, which embeds each text once; vectors of shape (texts, dimensions), none for no texts."""
    vectors: dict[str, Vectors] = {}

    def embed(texts: Sequence[str]) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in vectors]
        if new:
            vectors.update(zip(new, model(new), strict=True))
        return np.stack([vectors[text] for text in texts]) if texts else model(texts)

    return embed
