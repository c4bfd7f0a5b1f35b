"""A Unigram tokenizer that gives the most probable pieces of a text, fast on text that repeats itself.

No piece holds certain pairs of neighbouring characters, so no token spans them: there a text falls apart into short
runs that are tokenized apart with the same result, and a run met before is looked up. A character no piece matches is a
token of its own. DESIGN.md, "Windows and models": over 3 Mchar/s, equal to the engine.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from overflow.tokens.charmap import CodePoints, as_text, code_points
from overflow.tokens.unigram_batch import MAX_RUN, BatchCounter

_FILTER_BITS = 22
_CACHED_RUN = 64
_CACHED_RUNS = 200_000
#: Fewer new runs than this are sooner counted one by one.
_FEW = 300


class Unigram:
    """`scores` maps a piece to its log probability; `unknown_score` is that of a character that no piece matches."""

    def __init__(self, scores: Mapping[str, float], unknown_score: float) -> None:
        self._scores = scores
        self._unknown = unknown_score
        self._longest = _longest(scores)
        self._joins = _joins(scores)
        self._counts = _Counts(self)
        self._batch = BatchCounter(scores, unknown_score)
        self._latest: tuple[str, Sequence[int]] = ("", [0])

    def runs(self, points: CodePoints) -> list[str]:
        """The text of `points` as the runs that no token leaves, in order."""
        if len(points) == 0:
            return []
        text = as_text(points)
        cuts = np.flatnonzero(~self._joins[_hashes(points[:-1], points[1:])]) + 1
        return [text[a:b] for a, b in pairwise([0, *cuts.tolist(), len(text)])]

    def counts(self, runs: list[str]) -> list[int]:
        """Tokens of each run."""
        counts = self._counts
        return [counts[run] for run in runs]

    def learn(self, runs: Iterable[str]) -> None:
        """Count the new among `runs` together, which is faster than one by one where they are many."""
        new = [run for run in set(runs) if len(run) <= MAX_RUN and run not in self._counts]
        if len(new) < _FEW:
            return
        if len(self._counts) + len(new) > _CACHED_RUNS:
            self._counts.clear()
        self._counts.update(zip(new, self._batch.counts(new), strict=True))

    def token_ends(self, run: str) -> list[int]:
        """Where each token of a run ends (characters, exclusive), in order: the last is the run's length."""
        origin, length = self._origins(run), len(run)
        ends = [length] if length else []
        while ends and origin[ends[-1]] > 0:
            ends.append(origin[ends[-1]])
        return ends[::-1]

    def _origins(self, run: str) -> Sequence[int]:
        """Where the last token begins of each beginning of a run, by its length.

        What follows a beginning says nothing of it: those of one long run serve all its beginnings, and of `a` ten
        thousand times, whose rest is measured again for each node, that is every rest.
        """
        known, origins = self._latest
        if not known.startswith(run):
            origins = self._computed(run)
            if len(run) > _CACHED_RUN:
                self._latest = run, origins
        return origins

    def _computed(self, run: str) -> Sequence[int]:
        # As the engine does it: a later start wins only with a strictly better sum.
        scores, unknown, longest, length = self._scores, self._unknown, self._longest, len(run)
        best = [float("-inf")] * (length + 1)
        best[0] = 0.0
        origin = array("q", bytes(8 * (length + 1)))
        for start in range(length):
            here = best[start]
            for end in range(start + 1, min(length, start + longest.get(run[start : start + 2], 1)) + 1):
                score = scores.get(run[start:end])
                if score is not None and here + score > best[end]:
                    best[end], origin[end] = here + score, start
            if here + unknown > best[start + 1]:
                best[start + 1], origin[start + 1] = here + unknown, start
        return origin


class _Counts(dict[str, int]):
    """Token counts by run. Long runs seldom come again and are not kept; a full table is emptied."""

    def __init__(self, unigram: Unigram) -> None:
        super().__init__()
        self._unigram = unigram

    def __missing__(self, run: str) -> int:
        count = len(self._unigram.token_ends(run))
        if len(run) <= _CACHED_RUN:
            if len(self) >= _CACHED_RUNS:
                self.clear()
            self[run] = count
        return count


def _longest(scores: Mapping[str, float]) -> dict[str, int]:
    """The length of the longest piece by its first two characters."""
    found: dict[str, int] = {}
    for piece in scores:
        if len(piece) > found.get(piece[:2], 1):
            found[piece[:2]] = len(piece)
    return found


def _joins(scores: Mapping[str, float]) -> NDArray[np.bool_]:
    """By hash, whether two neighbouring characters may stand inside one piece.

    A collision only joins two runs that could have been apart, which changes no token.
    """
    pieces = list(scores)
    points = code_points("".join(pieces))
    inside = np.ones(len(points), np.bool_)
    inside[np.cumsum([len(piece) for piece in pieces]) - 1] = False
    first = np.flatnonzero(inside)
    joins = np.zeros(1 << _FILTER_BITS, np.bool_)
    joins[_hashes(points[first], points[first + 1])] = True
    return joins


def _hashes(left: CodePoints, right: CodePoints) -> CodePoints:
    # Wraps around at 32 bits as meant; the factors are odd, and the upper bits are the well mixed ones.
    mixed = left * np.uint32(0x9E3779B1) + right * np.uint32(0x85EBCA77)
    return mixed >> np.uint32(32 - _FILTER_BITS)
