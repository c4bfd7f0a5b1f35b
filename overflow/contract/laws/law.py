"""A law: one named property of a subject, with the sentence of the design that demands it.

A law's check drives a world and raises Violation. What a subject raises is its crash and no violation, save where a law
promises an answer (`facts.check_answers`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis.stateful import RuleBasedStateMachine
from hypothesis.strategies import SearchStrategy

from overflow.contract.scenario import Scenario
from overflow.contract.strategies import scenarios
from overflow.contract.violation import Violation
from overflow.contract.world import World

Check = Callable[[World], None]


@dataclass(frozen=True)
class Law:
    """Either a `check` of one scenario, or a state `machine` that draws its own.

    `requires` are capabilities and claims; `evidence` are counters of the world that must not stay at zero over a whole
    run. `occasion` is a counter too, of how often the subject did what the law is about: where it stays at zero,
    although enough divided, the law was not asked. `share` is the part of a profile's examples that the law runs.
    """

    id: str
    name: str
    source: str
    requires: frozenset[str]
    check: Check | None
    machine: type[RuleBasedStateMachine] | None
    scenarios: Callable[[], SearchStrategy[Scenario]]
    share: float
    on_corpus: bool
    evidence: tuple[str, ...]
    occasion: str | None = None

    @property
    def is_invariant(self) -> bool:
        """Whether it is one of the six of section 5, and no law beside them."""
        return self.id.isdigit()


#: Every law of the contract by its id.
LAWS: dict[str, Law] = {}


def law(
    law_id: str,
    name: str,
    *,
    source: str,
    requires: str,
    scenarios: Callable[[], SearchStrategy[Scenario]] = scenarios,
    share: float = 1.0,
    on_corpus: bool = True,
    evidence: tuple[str, ...] = (),
    occasion: str | None = None,
) -> Callable[[Check], Check]:
    """Register a check; `requires` names capabilities, separated by spaces."""

    def register(check: Check) -> Check:
        needs = frozenset(requires.split())
        LAWS[law_id] = Law(law_id, name, source, needs, check, None, scenarios, share, on_corpus, evidence, occasion)
        return check

    return register


Machine = TypeVar("Machine", bound=type[RuleBasedStateMachine])


def machine_law(
    law_id: str, name: str, *, source: str, requires: str, share: float, evidence: tuple[str, ...]
) -> Callable[[Machine], Machine]:
    """Register a state machine; it is made with a function that opens the World of the scenario it draws."""

    def register(machine: Machine) -> Machine:
        LAWS[law_id] = Law(
            law_id, name, source, frozenset(requires.split()), None, machine, scenarios, share, False, evidence
        )
        return machine

    return register


def expect(holds: bool, law_id: str, title: str, *, expected: Any, got: Any, **context: Any) -> None:
    """Raise the law's Violation unless `holds`."""
    if not holds:
        raise Violation(law_id, title, expected, got, context)
