"""The division of one record as a generator: it yields texts to measure, receives their reports, returns the division.

It does no input or output, so one implementation serves the local, HTTP, async and batched drivers and the store. Where
it cuts depends on the text, the tokenizer and the window alone, where `prefix_safe` is true of the tokenizer. Where it
is wrongly said of one that counts a text by the whole of it, such as `halves`, the texts divided before may move a cut;
no node runs past its window all the same. Overflow Tree, section 2; DESIGN.md, principle 1.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from overflow.division.boundaries import choose_cut
from overflow.division.density import Density
from overflow.division.probes import first_end, next_end, wider_end
from overflow.division.reading import Reading
from overflow.division.repetitions import Repetitions
from overflow.division.spans import Cost, Division, Span, TokensUnknownError, WindowTooSmallError
from overflow.errors import UnavailableError
from overflow.tokens.report import TokenReport
from overflow.tokens.unicode_text import require_unicode


@dataclass(frozen=True, slots=True)
class Ask:
    """Texts to measure in one round. Send back the reports of `texts`, in order, None for an unknown one.

    `span` is a node as it would be stored: the report that comes with its embedding serves as well. `probe` is a
    stretch of what follows, measured to find where its window closes.
    """

    span: str | None
    probe: str | None

    @property
    def texts(self) -> tuple[str, ...]:
        """The one or two texts, span before probe."""
        return tuple(text for text in (self.span, self.probe) if text is not None)


T = TypeVar("T")
#: A generator that asks for reports and returns T.
Steps = Generator[Ask, Sequence[TokenReport | None], T]


def division(text: str, *, prefix_safe: bool, density: Density | None = None) -> Steps[Division]:
    """Divide `text`; `prefix_safe` is that of the TokenWindow whose reports are sent.

    `density` is that of an earlier division; it saves a sample and changes no cut of a tokenizer that is prefix-safe.
    The generator raises InputError for a lone surrogate, TokensUnknownError, WindowTooSmallError, and UnavailableError
    for reports that cannot be true. Source: Overflow Tree, section 2.
    """
    require_unicode([text])
    if not text:
        return Division((), fits=True, window=None, density=density, cost=Cost(0, 0, 0))
    asking = _Asking(text, prefix_safe)
    spans: list[Span] = []
    reading = yield from asking.first_probe(density)
    while True:
        reading = yield from asking.settled(reading)
        start, window = reading.start, reading.report.window
        if not reading.report.truncated:
            if spans:
                spans.append(Span(start, len(text), reading.report.count, window))
            break
        cut = asking.cut(start, reading.close, window)
        own, ahead = yield from asking.span_and_probe(start, cut, reading.density)
        while own.truncated:
            cut = asking.cut(start, min(start + own.window_end_char, cut - 1), window)
            own, ahead = (yield from asking.span(start, cut)), None
        spans.append(Span(start, cut, own.count, window))
        if cut == len(text):
            break
        reading = ahead or (yield from asking.next_probe(cut, reading.density))
    return Division(tuple(spans), fits=not spans, window=window, density=reading.density, cost=asking.cost)


class _Asking:
    """The questions about one text: it keeps what they cost, and lets no report through that cannot be true.

    All positions are code points of the whole text.
    """

    def __init__(self, text: str, prefix_safe: bool) -> None:
        self.cost = Cost(0, 0, 0)
        self._text = text
        self._prefix_safe = prefix_safe
        self._repetitions = Repetitions(text)
        self._window: int | None = None

    def first_probe(self, density: Density | None) -> Steps[Reading]:
        end = first_end(self._text, density) if self._prefix_safe else len(self._text)
        return (yield from self._probe(0, end, density))

    def next_probe(self, start: int, density: Density) -> Steps[Reading]:
        return (yield from self._probe(start, self._next_end(start, density), density))

    def settled(self, reading: Reading) -> Steps[Reading]:
        """Widen the probe until its report stands for the whole rest."""
        again = False
        while (end := wider_end(self._text, reading, self._repetitions, again=again)) is not None:
            reading = yield from self._probe(reading.start, end, reading.density)
            again = True
        return reading

    def cut(self, start: int, close: int, window: int) -> int:
        """The end of the node from `start`; raises WindowTooSmallError when the window closes where it opens."""
        if close <= start:
            raise WindowTooSmallError(start, window, self.cost)
        return choose_cut(self._text, start, close)

    def span(self, start: int, cut: int) -> Steps[TokenReport]:
        (report,) = yield from self._reports(Ask(self._text[start:cut], None))
        return report

    def span_and_probe(self, start: int, cut: int, density: Density) -> Steps[tuple[TokenReport, Reading | None]]:
        """The span and the probe of what follows, in one round: the span nearly always fits, so it is not awaited."""
        if cut == len(self._text):
            return (yield from self.span(start, cut)), None
        known = self._repetitions.known(cut)
        if known is not None:
            return (yield from self.span(start, cut)), known
        end = self._next_end(cut, density)
        own, ahead = yield from self._reports(Ask(self._text[start:cut], self._text[cut:end]))
        return own, self._reading(cut, end, ahead, density)

    def _next_end(self, start: int, density: Density) -> int:
        return next_end(self._text, start, density) if self._prefix_safe else len(self._text)

    def _probe(self, start: int, end: int, density: Density | None) -> Steps[Reading]:
        (report,) = yield from self._reports(Ask(None, self._text[start:end]))
        return self._reading(start, end, report, density)

    def _reading(self, start: int, end: int, report: TokenReport, density: Density | None) -> Reading:
        probe = self._text[start:end]
        return Reading(start, end, report, density.after(probe, report) if density else Density.of(probe, report))

    def _reports(self, ask: Ask) -> Steps[list[TokenReport]]:
        texts = ask.texts
        cost = self.cost
        self.cost = Cost(cost.requests + 1, cost.texts + len(texts), cost.characters + sum(map(len, texts)))
        reports = yield ask
        return [self._checked(text, report) for text, report in zip(texts, reports, strict=True)]

    def _checked(self, text: str, report: TokenReport | None) -> TokenReport:
        if report is None:
            raise TokensUnknownError(self.cost)
        if report.window != (self._window or report.window):
            raise UnavailableError(f"the window changed from {self._window} to {report.window} tokens in a division")
        self._window = report.window
        if not 0 <= report.window_end_char <= len(text):
            raise UnavailableError(
                f"a report closes the window of a text of {len(text)} characters at character {report.window_end_char}"
            )
        return report
