"""The power matrix: which law caught which mutant or saboteur, and which of them it alone caught.

A law that alone catches nothing could be left out and no verdict would change. Pure functions of verdicts.
DESIGN.md, principle 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from overflow.gate.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Power:
    """What one law caught, and what no other law caught beside it, by name."""

    law: str
    caught: tuple[str, ...]
    alone: tuple[str, ...]


def power(laws: Sequence[str], verdicts: Sequence[Verdict]) -> list[Power]:
    """The power of each law, in the order given; only verdicts as expected count."""
    passed = [verdict for verdict in verdicts if verdict.passes]
    return [
        Power(
            law,
            tuple(verdict.name for verdict in passed if law in verdict.red),
            tuple(verdict.name for verdict in passed if verdict.red == {law}),
        )
        for law in laws
    ]
