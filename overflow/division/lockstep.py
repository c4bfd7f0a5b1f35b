"""Many records divided side by side, so that a round of measuring carries texts of all of them.

It schedules and does no input or output; a record that fails leaves, the others go on. DESIGN.md, principle 1 and
"CEmbedding 0.9.1 as observed": at most 100 texts a request.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from overflow.division.core import Ask, Steps, division
from overflow.division.density import Density
from overflow.division.spans import Division
from overflow.errors import InputError, UnavailableError
from overflow.tokens.report import TokenReport

#: How one record ended. Among the errors: TokensUnknownError, WindowTooSmallError, a text that no request can carry.
Outcome = Division | InputError | UnavailableError

#: Records in flight: two texts each make the 100 that one request carries.
_IN_FLIGHT = 50


@dataclass(slots=True)
class _Running:
    index: int
    steps: Steps[Division]
    ask: Ask


class Lockstep:
    """Asks for one round at a time: `round`, then `receive` or `refused`, then `finished`, until a round is empty.

    `texts` are drawn as others finish, so an iterator is never held whole.
    """

    def __init__(self, texts: Iterable[str], *, prefix_safe: bool) -> None:
        self._waiting = enumerate(texts)
        self._prefix_safe = prefix_safe
        self._density: Density | None = None
        self._running: list[_Running] = []
        self._round: list[_Running] = []
        self._alone: deque[_Running] = deque()
        self._finished: list[tuple[int, Outcome]] = []

    def round(self) -> list[Ask]:
        """The asks of the next round, one a record; empty when every record has ended."""
        if self._alone:
            self._round = [self._alone.popleft()]
        else:
            self._admit()
            self._round = list(self._running)
        return [running.ask for running in self._round]

    def receive(self, reports: Sequence[TokenReport | None]) -> None:
        """Take the reports of the round's texts, in the order of its asks and of the texts in each."""
        taken = 0
        for running in self._round:
            size = len(running.ask.texts)
            self._send(running, reports[taken : taken + size])
            taken += size

    def refused(self, error: InputError) -> None:
        """Take that the round could not be measured because of a text in it: each record's texts go alone next.

        A round of one record ends that record with `error`.
        """
        if len(self._round) > 1:
            self._alone.extend(self._round)
        else:
            self._end(self._round[0], error)

    def finished(self) -> list[tuple[int, Outcome]]:
        """The records that ended since the last call: the place of the text (from 0), and how it ended."""
        ended, self._finished = self._finished, []
        return ended

    def _admit(self) -> None:
        while len(self._running) < _IN_FLIGHT and (drawn := next(self._waiting, None)) is not None:
            index, text = drawn
            steps = division(text, prefix_safe=self._prefix_safe, density=self._density)
            try:
                self._running.append(_Running(index, steps, next(steps)))
            except StopIteration as stop:
                self._finished.append((index, stop.value))
            except InputError as error:
                self._finished.append((index, error))

    def _send(self, running: _Running, reports: Sequence[TokenReport | None]) -> None:
        try:
            running.ask = running.steps.send(reports)
        except StopIteration as stop:
            self._end(running, stop.value)
        except (InputError, UnavailableError) as error:
            self._end(running, error)

    def _end(self, running: _Running, outcome: Outcome) -> None:
        self._running.remove(running)
        self._finished.append((running.index, outcome))
        if isinstance(outcome, Division):
            self._density = outcome.density
