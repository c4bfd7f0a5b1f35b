"""How densely tokens lie in a text, learnt from the reports themselves, to choose how much to measure next.

An estimate and nothing else: a wrong one costs a second measuring, and no cut depends on it where the window is really
prefix-safe. Where that is a wrong belief, as it can be of a server, it chooses the prefix that the cut depends on.
DESIGN.md, "The division rule": measuring a bounded prefix.
"""

import math
import string
from dataclasses import dataclass, replace
from typing import Self

from overflow.tokens.report import TokenReport

#: A report moves the rates this far towards explaining it: the next stretch resembles the last, and those before it.
_STEP = 0.5
#: No rate falls below this, or text that makes no tokens would bring it to 0, from where it cannot rise.
_LEAST = 1e-6
_LATIN = f"{string.ascii_letters} ".encode()


@dataclass(frozen=True, slots=True)
class Density:
    """Tokens a character, apart for three kinds of character, because one text may change from prose to code or script.

    `latin` is letters of ASCII and spaces, `ascii` the rest of ASCII, `other` everything else; `window` is in tokens.
    """

    window: int
    latin: float
    ascii: float
    other: float

    @classmethod
    def of(cls, text: str, report: TokenReport) -> Self:
        """The density that the first report suggests. The rates it scales are those of common vocabularies in prose."""
        return cls(report.window, 0.25, 0.5, 0.5)._towards(text, report, 1.0)

    def after(self, text: str, report: TokenReport) -> Self:
        """The density with what the report of `text` adds."""
        return self._towards(text, report, _STEP)

    def advance(self, text: str, start: int, tokens: float) -> int:
        """Where about `tokens` tokens from `start` end: past it by a character at least, unless the text ends there."""
        size = math.ceil(tokens)
        for _ in range(3):
            expected = sum(self._parts(text[start : start + size]))
            # Fourfold at most, lest a text of a kind that makes hardly a token be looked at as a whole.
            size = math.ceil(size * min(4.0, tokens / expected))
        return min(len(text), start + size)

    def _parts(self, text: str) -> tuple[float, float, float]:
        in_ascii = text.encode("ascii", "ignore")
        rest = len(in_ascii.translate(None, _LATIN))
        return self.latin * (len(in_ascii) - rest), self.ascii * rest, self.other * (len(text) - len(in_ascii))

    def _towards(self, text: str, report: TokenReport, step: float) -> Self:
        """Share what the rates miss among them in proportion to their part in the text."""
        parts = self._parts(text)
        missed = step * (report.count - sum(parts)) / sum(part * part for part in parts)
        latin, ascii_, other = (max(0.2, 1 + missed * part) for part in parts)
        return replace(
            self,
            window=report.window,
            latin=max(_LEAST, self.latin * latin),
            ascii=max(_LEAST, self.ascii * ascii_),
            other=max(_LEAST, self.other * other),
        )
