"""Rows of unit length, safely: the one normalization of every embedder, local or behind HTTP.

It never divides by zero; a vector of nothing (an empty text in a model that averages tokens) stays zero. DESIGN.md,
"Windows and models".
"""

import numpy as np

from overflow.embedding.embedder import Vectors


def unit_rows(vectors: Vectors) -> Vectors:
    """`vectors`, shape (texts, dimensions), with each row scaled to length 1 and zero rows left as they are."""
    # In float64: the square of a float32 above 1e19 overflows.
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)
