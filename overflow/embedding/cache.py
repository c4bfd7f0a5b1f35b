"""An Embedder that remembers: vectors of another one, kept on disk by its identity and the text.

A model that does not state its identity is never cached, because nothing would tell its vectors from those of the next
one; reports are never cached. DESIGN.md, "Windows and models" and principle 5.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from platformdirs import user_cache_dir

from overflow.embedding.embedder import Embedded, Embedder
from overflow.embedding.vector_file import Vector, VectorFile
from overflow.tokens.report import TokenReport
from overflow.tokens.unicode_text import require_unicode

#: The environment variable that names the folder of the cache.
CACHE_VARIABLE = "OVERFLOW_CACHE"


class CachedEmbedder:
    """`inner` behind the vectors kept in `directory`, by default that of OVERFLOW_CACHE, else the user's cache folder.

    Its answers are those of `inner`. A file that cannot be read or written is logged once and done without.
    """

    def __init__(self, inner: Embedder, directory: Path | None = None) -> None:
        self.inner = inner
        self._file = VectorFile((directory or cache_directory()) / "vectors.sqlite")

    @property
    def prefix_safe(self) -> bool:
        """That of `inner`."""
        return self.inner.prefix_safe

    def identity(self) -> str | None:
        """That of `inner`."""
        return self.inner.identity()

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Vectors and reports of `texts`; `inner` embeds each text that is not kept once, and measures the others.

        Raises as `inner` does.
        """
        require_unicode(texts)
        identity = self.inner.identity()
        if identity is None or not texts:
            return self.inner.embed(texts)
        distinct = list(dict.fromkeys(texts))
        vectors: dict[str, Vector] = {}
        for text, vector in zip(distinct, self._file.read(identity, distinct), strict=True):
            if vector is not None:
                vectors[text] = vector
        if len({vector.size for vector in vectors.values()}) > 1:
            # A model has one number of dimensions, and nothing tells whose it is.
            vectors.clear()
        reports: dict[str, TokenReport | None] = {}
        self._embed(identity, [text for text in distinct if text not in vectors], vectors, reports)
        if reports:
            size = vectors[next(iter(reports))].size
            self._embed(identity, [text for text in distinct if vectors[text].size != size], vectors, reports)
        kept = [text for text in distinct if text not in reports]
        if kept:
            reports |= zip(kept, self.inner.measure(kept), strict=True)
        return Embedded(np.stack([vectors[text] for text in texts]), [reports[text] for text in texts])

    def _embed(
        self, identity: str, texts: list[str], vectors: dict[str, Vector], reports: dict[str, TokenReport | None]
    ) -> None:
        """Embed `texts`, keep them on disk, and add them to `vectors` and `reports`."""
        if texts:
            embedded = self.inner.embed(texts)
            new = dict(zip(texts, embedded.vectors, strict=True))
            self._file.write(identity, new.items())
            vectors |= new
            reports |= zip(texts, embedded.reports, strict=True)

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        """That of `inner`."""
        return self.inner.measure(texts)


def cache_directory() -> Path:
    """Where vectors are kept: the folder of OVERFLOW_CACHE, else the user's cache folder."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named) if named else Path(user_cache_dir("overflow"))
