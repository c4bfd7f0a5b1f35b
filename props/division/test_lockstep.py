"""Many records side by side: what a refused round ends, and that the drivers differ in nothing but how they wait."""

import asyncio
from collections.abc import Sequence

from overflow.division import Density, Division, Lockstep, adivide, adivide_many, divide, divide_many
from overflow.errors import InputError
from overflow.tokens.report import TokenReport
from overflow.tokens.synthetic import SyntheticWindow

TEXT = "Some words of a sentence that goes on. " * 60
WINDOW = SyntheticWindow("words", 30)
#: Far from what the text holds, and near it.
WRONG, RIGHT = Density(30, 2.0, 2.0, 2.0), Density(30, 0.2, 0.2, 0.2)


class Awaited:
    """The same window, awaited."""

    name = WINDOW.name
    prefix_safe = WINDOW.prefix_safe

    async def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        await asyncio.sleep(0)
        return WINDOW.measure(texts)


def test_a_refused_round_of_two_ends_neither() -> None:
    """Each goes alone, and only the one whose own round is refused ends with the error."""
    lockstep = Lockstep(["aaaa", "bbbb"], prefix_safe=False)
    assert [ask.texts for ask in lockstep.round()] == [("aaaa",), ("bbbb",)]
    lockstep.refused(InputError("no request can carry one of them"))
    assert lockstep.finished() == []
    assert [ask.texts for ask in lockstep.round()] == [("aaaa",)]
    lockstep.refused(InputError("this one"))
    assert [(place, str(outcome)) for place, outcome in lockstep.finished()] == [(0, "this one")]
    assert [ask.texts for ask in lockstep.round()] == [("bbbb",)]
    lockstep.receive([TokenReport(4, 8, False, 4)])
    ((place, outcome),) = lockstep.finished()
    assert place == 1
    assert isinstance(outcome, Division)
    assert outcome.fits
    assert lockstep.round() == []
    assert lockstep.finished() == []


def test_before_the_first_round_there_is_nothing_to_receive() -> None:
    """Nothing was asked, so nothing ends."""
    lockstep = Lockstep([TEXT], prefix_safe=True)
    lockstep.receive([])
    assert lockstep.finished() == []
    assert len(lockstep.round()) == 1


def test_a_density_is_used_whoever_waits() -> None:
    """What is expected of a text changes what its division costs, the same for a caller that awaits."""
    costs = [divide(TEXT, WINDOW, density=density).cost for density in (None, WRONG, RIGHT)]
    assert len(set(costs)) == 3
    assert costs == [asyncio.run(adivide(TEXT, Awaited(), density=density)).cost for density in (None, WRONG, RIGHT)]


def test_awaiting_changes_nothing_about_many() -> None:
    """The same records end in the same order, with the same spans at the same cost."""

    async def awaited() -> list[object]:
        return [ended async for ended in adivide_many([TEXT, "one", "", TEXT[5:]] * 30, Awaited())]

    blocking = list(divide_many([TEXT, "one", "", TEXT[5:]] * 30, WINDOW))
    assert asyncio.run(awaited()) == blocking
    assert len(blocking) == 120


def test_a_refused_record_ends_with_its_error_whoever_waits() -> None:
    """The text that no request can carry ends its own record, with what was said of it."""

    class Refusing(Awaited):
        async def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
            if "no" in texts:
                raise InputError("no request can carry it")
            return await super().measure(texts)

    async def awaited() -> dict[int, object]:
        return {place: outcome async for place, outcome in adivide_many(["yes", "no"], Refusing())}

    ended = asyncio.run(awaited())
    assert isinstance(ended[0], Division)
    assert isinstance(ended[1], InputError)
    assert str(ended[1]) == "no request can carry it"


def test_a_record_that_ended_teaches_the_next_to_begin() -> None:
    """Its density chooses the first probe of the record that takes its place."""
    lockstep = Lockstep(["aaaa", *["b" * 64] * 49, "c" * 64], prefix_safe=True)
    # Nothing is known yet: 64 letters are looked at in a 32nd part, 4 in whole.
    assert {ask.texts for ask in lockstep.round()} == {("aaaa",), ("bb",)}
    # A token a letter, in a window of 8.
    lockstep.receive([TokenReport(4, 8, False, 4), *[TokenReport(2, 8, False, 2)] * 49])
    assert [place for place, _ in lockstep.finished()] == [0]
    # 1.2 windows hold 10 letters, of "c" as of "a".
    assert ("c" * 10,) in {ask.texts for ask in lockstep.round()}
