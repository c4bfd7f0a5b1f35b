"""How many of a query's runs of one or two characters a text holds, found in one pass over the text however many.

It never looks at a longer run: those have trigrams, and the index finds them. DESIGN.md, "The length of a record must
never hide a memory": a search per run took 256 passes over each record.
"""

import sys
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray


class ShortRuns:
    """The different ones of `runs`, each of one or two characters."""

    def __init__(self, runs: Collection[str]) -> None:
        letters = sorted({character for run in runs for character in run})
        # Each character that is asked for has a number from 1; 0 is every other one.
        self._number = np.zeros(sys.maxunicode + 1, np.uint16)
        self._number[[ord(letter) for letter in letters]] = np.arange(1, len(letters) + 1)
        # `_run[a, b]` is the number of the run ab, from 1, and `_run[a, 0]` that of the run a alone.
        self._run = np.zeros((len(letters) + 1, len(letters) + 1), np.uint16)
        for number, run in enumerate(dict.fromkeys(runs), 1):
            first, *second = self._numbers(run)
            self._run[first, second[0] if second else 0] = number

    def held_by(self, text: str) -> int:
        """How many of the runs `text` holds."""
        numbers = self._numbers(text)
        # A pair of which the second is not asked for would be the entry of the first alone, which is right: it is held.
        found = np.concatenate([self._run[numbers[:-1], numbers[1:]], self._run[numbers, 0]])
        return len(np.unique(found[found > 0]))

    def _numbers(self, text: str) -> NDArray[np.uint16]:
        numbers: NDArray[np.uint16] = self._number[np.frombuffer(text.encode("utf-32-le"), "<u4")]
        return numbers
