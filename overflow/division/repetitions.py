"""Long repetitions, such as a rule of `=` or one letter ten thousand times: where one ends, and whether that matters.

To some tokenizers the first token of a repetition depends on how long all of it is, so its windows must be measured to
its end, and a long one costs the square of its length. Whether a tokenizer is such a one is tried out on stretches of a
few lengths: tested, not proved. No cut is decided here. DESIGN.md, "The division rule": measuring a bounded prefix.

What stays more than linear: a repetition under a Unigram tokenizer that has several ways to take it apart. Under e5
`a`, `ab` and `=` are measured 11, 13 and 4 times at 40,000 characters, 19, 22 and 7 times at 80,000; `日` and `words`
are not, nor is anything under wordllama and the synthetic kinds. And any text under a window not prefix-safe, whose
whole rest is measured each time. Unbroken text that repeats nothing is linear, but dear in a narrow window: 4 times its
length under wordllama, 13 times under chars@100, because each window is measured 1,024 characters beyond its close.
"""

from dataclasses import dataclass, field, replace

from overflow.division.reading import Reading

#: A stretch without any break says enough when it is longer than each limit that tokenizers set themselves on a word
#: (WordPiece gives up at 100 code points) or a token.
UNBROKEN = 1024
_HALF = UNBROKEN // 2
#: No token in use covers two repetitions of more code points than this.
_PERIOD = 64
#: How many periods more than the first each stretch has that is tried. A remainder that comes first moves the close of
#: one at least, whatever the length of the token that goes on repeating.
_TRIED = (1, 2, 3, 5, 8)


@dataclass(slots=True)
class _Trial:
    """Stretches from one start: the first ends at `first`, `tried` more were asked, and all closed at `close`."""

    start: int
    close: int
    first: int
    tried: int = 0


@dataclass(slots=True)
class _Repetition:
    """`text[start:end]` repeats itself every `period` code points.

    `settled` has a reading for each place in the period where windows close alike however much follows; `whole` tells
    that they do not, and only the whole repetition says where they close.
    """

    start: int
    end: int
    period: int
    whole: bool = False
    trial: _Trial | None = None
    settled: dict[int, Reading] = field(default_factory=dict)

    def covers(self, reading: Reading) -> bool:
        """Whether the window opens here, and closes so far from the end that it sees no more than how far that is."""
        return self.start <= reading.start and reading.close + 2 * UNBROKEN <= self.end


class Repetitions:
    """The repetitions of one text, one at a time, from its start on. All positions are code points of the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._current = _Repetition(0, 0, 1)

    def end_at(self, close: int, start: int) -> int | None:
        """Where the repetition ends in which, or a little before which, the window closes that opens at `start`."""
        current = self._current
        if not current.start <= close < current.end:
            position = close + _HALF
            stretch = self._text[position : position + _HALF]
            period = _period(stretch) if len(stretch) == _HALF else None
            if period is None:
                return None
            self._current = _Repetition(*_extent(self._text, position, period, start), period)
        return self._current.end

    def enough(self, reading: Reading) -> int | None:
        """Where the next stretch to try ends, or the last one when they agree; None when the whole must be measured."""
        current = self._current
        if current.whole or not current.covers(reading):
            return None
        if reading.end < reading.close + _HALF:
            return reading.close + _HALF
        if reading.start % current.period in current.settled:
            return reading.end
        if current.trial is None or current.trial.start != reading.start:
            current.trial = _Trial(reading.start, reading.close, reading.end)
        trial = current.trial
        if reading.close != trial.close:
            current.whole = True
            return None
        if trial.tried == len(_TRIED):
            current.settled[reading.start % current.period] = reading
            return reading.end
        end = trial.first + _TRIED[trial.tried] * current.period
        trial.tried += 1
        return end if end + _HALF <= current.end else None

    def known(self, start: int) -> Reading | None:
        """What measuring the rest from `start` would tell, where an earlier reading tells it already."""
        current = self._current
        earlier = current.settled.get(start % current.period)
        if earlier is None:
            return None
        offset = start - earlier.start
        reading = replace(earlier, start=start, end=earlier.end + offset)
        return reading if current.covers(reading) else None


def _period(text: str) -> int | None:
    return next((period for period in range(1, _PERIOD + 1) if text[period:] == text[:-period]), None)


def _extent(text: str, position: int, period: int, least: int) -> tuple[int, int]:
    """How far around `position` the text repeats itself, back to `least`: in steps that grow, so that it is linear."""
    end, size = position + period, period
    while end < len(text):
        stretch = text[end : end + size]
        if stretch == text[end - period : end - period + len(stretch)]:
            end, size = end + len(stretch), 2 * size
        elif size > 1:
            size //= 2
        else:
            break
    start = position
    while start > least and text[start - 1] == text[start - 1 + period]:
        start -= 1
    return start, end
