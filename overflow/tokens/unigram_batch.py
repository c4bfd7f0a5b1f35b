"""Token counts of many short runs at once, for the first time that a text is met: the same sums as `unigram`, in
columns.

A new text brings hundreds of runs that no table knows yet; one by one in Python they would take most of the time. It
only counts, and knows nothing of positions. DESIGN.md, "Windows and models": over 3 Mchar/s.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from overflow.tokens.charmap import CodePoints, code_points

#: Runs of more characters than this are not for this module: its work grows with the square of the longest.
MAX_RUN = 24

_SLOT_BITS = 21
_SHIFT = np.uint64(64 - _SLOT_BITS)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class BatchCounter:
    """`scores` maps a piece to its log probability; `unknown_score` is that of a character that no piece matches."""

    def __init__(self, scores: Mapping[str, float], unknown_score: float) -> None:
        pieces = list(scores)
        lengths = np.array([len(piece) for piece in pieces])
        points = code_points("".join(pieces))
        starts = np.cumsum(lengths) - lengths
        keys = np.zeros(len(pieces), np.uint64)
        rows = np.arange(len(pieces))
        for column in range(int(lengths.max())):
            rows = rows[lengths[rows] > column]
            keys[rows] = _extended(keys[rows], points[starts[rows] + column])
        order = np.argsort(keys)
        # The key above all ends every search. Sorted keys with the same upper bits stand together from `slots` on.
        self._keys = np.append(keys[order], np.uint64(2**64 - 1))
        self._scores = np.append(np.array(list(scores.values()))[order], -np.inf)
        self._unknown = unknown_score
        per_slot = np.bincount((keys >> _SHIFT).astype(np.intp), minlength=1 << _SLOT_BITS)
        self._slots = (np.cumsum(per_slot) - per_slot).astype(np.uint32)

    def counts(self, runs: Sequence[str]) -> list[int]:
        """Tokens of each run; every run has 1 to MAX_RUN characters."""
        lengths = np.array([len(run) for run in runs])
        order = np.argsort(lengths)
        ordered = lengths[order]
        points = code_points("".join(runs))
        starts = (np.cumsum(lengths) - lengths)[order]
        # Shortest first, so that the runs of at least n characters are the rows from first[n] on.
        first = np.searchsorted(ordered, np.arange(ordered[-1] + 1)).tolist()
        best, tokens = [np.zeros(len(runs))], [np.zeros(len(runs))]
        keys: list[NDArray[np.uint64]] = []
        found = np.zeros(len(runs))
        for end in range(1, len(first)):
            rows = len(runs) - first[end]
            column = points[starts[first[end] :] + end - 1]
            keys = [_extended(key[-rows:], column) for key in [*keys, np.zeros(rows, np.uint64)]]
            top, count = np.full(rows, -np.inf), np.zeros(rows)
            for start, key in enumerate(keys):
                here, after = best[start][-rows:], tokens[start][-rows:] + 1
                scores = self._score(key)
                # A single character that is no piece is a token all the same.
                total = here + (scores if start < end - 1 else np.maximum(scores, self._unknown))
                better = total > top
                top, count = np.where(better, total, top), np.where(better, after, count)
            best.append(top)
            tokens.append(count)
            # Those of longer runs are only of their beginnings, and give way to the next.
            found[order[first[end] :]] = count
        return [int(count) for count in found.tolist()]

    def _score(self, keys: NDArray[np.uint64]) -> NDArray[np.float64]:
        at = self._slots[(keys >> _SHIFT).astype(np.intp)]
        below = self._keys[at] < keys
        while below.any():
            at = at + below
            below = self._keys[at] < keys
        return np.where(self._keys[at] == keys, self._scores[at], -np.inf)


def _extended(keys: NDArray[np.uint64], points: CodePoints) -> NDArray[np.uint64]:
    """Keys of strings that are one character longer; 64 bits wrap around as meant."""
    return (keys + points + np.uint64(1)) * _FACTOR
