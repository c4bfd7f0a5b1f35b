"""The division core driven to its end: one text or many, blocking or awaited.

Nothing about the rule is decided here, and no driver can move a cut. DESIGN.md, principle 1.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

from overflow.division.core import Ask, division
from overflow.division.density import Density
from overflow.division.lockstep import Lockstep, Outcome
from overflow.division.spans import Division
from overflow.errors import InputError
from overflow.tokens.report import AsyncTokenWindow, TokenWindow


def divide(text: str, window: TokenWindow, *, density: Density | None = None) -> Division:
    """The division of `text`; `density` and the errors are those of `division`, and of the window's own measuring."""
    steps = division(text, prefix_safe=window.prefix_safe, density=density)
    try:
        ask = next(steps)
        while True:
            ask = steps.send(window.measure(ask.texts))
    except StopIteration as stop:
        divided: Division = stop.value
        return divided


async def adivide(text: str, window: AsyncTokenWindow, *, density: Density | None = None) -> Division:
    """`divide` with its measuring awaited."""
    steps = division(text, prefix_safe=window.prefix_safe, density=density)
    try:
        ask = next(steps)
        while True:
            ask = steps.send(await window.measure(ask.texts))
    except StopIteration as stop:
        divided: Division = stop.value
        return divided


def divide_many(texts: Iterable[str], window: TokenWindow) -> Iterator[tuple[int, Outcome]]:
    """Divide `texts` in lockstep; yields (place of the text, outcome) as records end, each exactly once.

    A record's own failure is its outcome. Raises UnavailableError when the server fails, for all that are left.
    """
    lockstep = Lockstep(texts, prefix_safe=window.prefix_safe)
    while asks := lockstep.round():
        # Before measuring, which may fail for good.
        yield from lockstep.finished()
        try:
            reports = window.measure(_texts(asks))
        except InputError as error:
            lockstep.refused(error)
        else:
            lockstep.receive(reports)
    yield from lockstep.finished()


async def adivide_many(texts: Iterable[str], window: AsyncTokenWindow) -> AsyncIterator[tuple[int, Outcome]]:
    """`divide_many` with its measuring awaited."""
    lockstep = Lockstep(texts, prefix_safe=window.prefix_safe)
    while asks := lockstep.round():
        for ended in lockstep.finished():
            yield ended
        try:
            reports = await window.measure(_texts(asks))
        except InputError as error:
            lockstep.refused(error)
        else:
            lockstep.receive(reports)
    for ended in lockstep.finished():
        yield ended


def _texts(asks: Sequence[Ask]) -> list[str]:
    return [text for ask in asks for text in ask.texts]
