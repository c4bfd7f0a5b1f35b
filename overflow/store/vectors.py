"""Vectors as they are stored, and how near two are: little-endian float32, compared by cosine.

It never decides which vectors may be compared; that is the model's identity. Overflow Tree, section 1 (`embedding`).
"""

from collections.abc import Sequence

import numpy as np

from overflow.embedding.embedder import Vectors


def pack(vector: Vectors) -> bytes:
    """One vector, shape (dimensions,), as it is stored."""
    return np.asarray(vector, dtype="<f4").tobytes()


def unpack(stored: Sequence[bytes]) -> Vectors:
    """Stored vectors of one length as rows, shape (vectors, dimensions)."""
    return np.frombuffer(b"".join(stored), dtype="<f4").reshape(len(stored), len(stored[0]) // 4).astype(np.float32)


def usable(stored: Sequence[object], dimensions: int | None) -> bool:
    """Whether stored values are vectors of one length, finite, and of `dimensions` numbers where that is known."""
    vectors = [value for value in stored if isinstance(value, bytes)]
    sizes = {len(vector) for vector in vectors}
    if len(vectors) != len(stored) or len(sizes) != 1:
        return False
    (size,) = sizes
    if size == 0 or size % 4 or dimensions not in (None, size // 4):
        return False
    return bool(np.isfinite(np.frombuffer(b"".join(vectors), dtype="<f4")).all())


def cosines(query: Vectors, rows: Vectors) -> list[float]:
    """The cosine of `query`, shape (dimensions,), to each of `rows`; -1 where a row edited by hand is no number."""
    # Not `rows @ query`: its sums depend on how many rows there are, so equal rows would get unequal scores.
    wide, target = rows.astype(np.float64), query.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide)) * np.sqrt(target @ target)
    with np.errstate(invalid="ignore"):
        scores = np.einsum("ij,j->i", wide, target) / np.where(lengths > 0, lengths, 1)
    return [float(score) if np.isfinite(score) else -1.0 for score in scores]
