"""Vectors as bytes, against Python's own `struct`, and how near two are, against a cosine summed number by number."""

import math
import struct

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from overflow.store.vectors import cosines, pack, unpack, usable

#: Lengths from far below 1 to far above it: a model need not give unit vectors.
numbers = st.floats(-1e6, 1e6, width=32).filter(lambda value: value == 0 or abs(value) > 1e-6)
matrices = st.integers(1, 4).flatmap(
    lambda size: st.lists(st.lists(numbers, min_size=size, max_size=size), min_size=2, max_size=5)
)
NO_NUMBER = [math.nan, math.inf, -math.inf]


@given(rows=matrices)
@example(rows=[[0.5, 0.25]])
def test_a_vector_is_stored_as_little_endian_float32(rows: list[list[float]]) -> None:
    """Section 1 (`embedding`), whatever type the embedder's numbers have; and comes back as it was."""
    stored = [pack(np.array(row, np.float64)) for row in rows]
    assert stored == [struct.pack(f"<{len(row)}f", *row) for row in rows]
    unpacked = unpack(stored)
    assert (unpacked.tolist(), unpacked.dtype) == (rows, np.float32)


@given(rows=matrices)
@example(rows=[[0.5, 0.25], [0.25, 0.5]])
def test_vectors_are_compared_by_their_cosine(rows: list[list[float]]) -> None:
    """Of any length; nothing is near to a vector of zeros, and equal rows are equally near."""
    query, *others = rows
    scores = cosines(np.array(query, np.float32), np.array([*others, others[0]], np.float32))
    assert scores[:-1] == pytest.approx([_cosine(query, other) for other in others], abs=1e-9)
    assert scores[-1] == scores[0]


def _cosine(left: list[float], right: list[float]) -> float:
    lengths = math.hypot(*left) * math.hypot(*right)
    return math.fsum(a * b for a, b in zip(left, right, strict=True)) / lengths if lengths else 0.0


@pytest.mark.parametrize("value", NO_NUMBER)
def test_a_row_that_is_no_number_is_as_far_as_can_be(value: float) -> None:
    """-1, the least cosine there is, and no warning."""
    assert cosines(np.ones(2, np.float32), np.array([[value, value], [1, 1]], np.float32)) == pytest.approx([-1, 1])


@pytest.mark.parametrize(
    ("stored", "dimensions", "expected"),
    [
        ([b"\0" * 8], None, True),
        ([b"\0" * 8, b"\0" * 8], 2, True),
        ([b"\0" * 8], 3, False),
        ([b"\0" * 8, b"\0" * 4], None, False),
        ([b"\0" * 6], None, False),
        ([b""], None, False),
        ([], None, False),
        (["\0" * 8], None, False),
        ([None], None, False),
        ([b"\0" * 8, None], None, False),
        *(([b"\0" * 8, struct.pack("<2f", 0, value)], None, False) for value in NO_NUMBER),
    ],
)
def test_only_finite_vectors_of_one_length_are_usable(
    stored: list[object], dimensions: int | None, expected: bool
) -> None:
    """And of the model's length, where it is known."""
    assert usable(stored, dimensions) is expected
