"""A normalization that replaces single characters, applied to a whole text at once, with the way back to the text.

It knows nothing of tokens. Each character becomes none, one or several, so a position in the result is a position in
the text only through `sources`. Overflow Tree, section 0: a window's end is reported in the text itself.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CodePoints = NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class Normalized:
    """`points` are the code points of the result, `sources` the index in the text of the character behind each."""

    points: CodePoints
    sources: NDArray[np.intp]


class CharMap:
    """The normalization `replacements`, a mapping from a character to what replaces it."""

    def __init__(self, replacements: Mapping[str, str]) -> None:
        points = sys.maxunicode + 1
        # One flat table of outputs: first every character as itself, then the replacements.
        self._lengths = np.ones(points, np.uint8)
        self._starts = np.arange(points)
        extra, at = list[str](), points
        for character, replacement in replacements.items():
            self._lengths[ord(character)] = len(replacement)
            self._starts[ord(character)] = at
            extra.append(replacement)
            at += len(replacement)
        self._outputs = np.concatenate((np.arange(points, dtype=np.uint32), code_points("".join(extra))))

    def apply(self, text: str) -> Normalized:
        """The normalized text; raises UnicodeEncodeError for a lone surrogate."""
        points = code_points(text)
        lengths, starts = self._lengths[points], self._starts[points]
        sources = np.arange(len(points))
        if (lengths == 1).all():
            return Normalized(self._outputs[starts], sources)
        ends = np.cumsum(lengths, dtype=np.intp)
        within = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
        return Normalized(self._outputs[np.repeat(starts, lengths) + within], np.repeat(sources, lengths))


def code_points(text: str) -> CodePoints:
    """The code points of a text; raises UnicodeEncodeError for a lone surrogate."""
    return np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.uint32)


def as_text(points: CodePoints) -> str:
    """The text of code points."""
    return points.astype("<u4").tobytes().decode("utf-32-le")
