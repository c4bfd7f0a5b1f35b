"""The suite bites: each saboteur turns the laws it names red, for their own reason, and no other invariant."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import Phase

from overflow.contract.evidence import PROFILES
from overflow.contract.laws import all_laws
from overflow.contract.runner import Runner
from overflow.contract.saboteurs import SABOTEURS, sabotaged
from overflow.embedding.wordllama import wordllama_vectors
from overflow.errors import InputError
from overflow.subjects.registry import subject_factory

LAWS = {law.id: law for law in all_laws()}
INVARIANTS = ("1", "2", "3", "4", "5", "6")

#: Finding a failure is asked here, not making it small.
FINDING = replace(PROFILES["ci"], phases=(Phase.explicit, Phase.generate))
LOOKING = replace(PROFILES["quick"], examples=12, phases=(Phase.explicit, Phase.generate))


@pytest.fixture(scope="module", params=sorted(SABOTEURS))
def sabotage(request: pytest.FixtureRequest) -> Iterator[tuple[str, Runner]]:
    with Runner(sabotaged(request.param, subject_factory("reference")), wordllama_vectors) as runner:
        yield request.param, runner


def test_named_laws_go_red(sabotage: tuple[str, Runner]) -> None:
    """Each law a saboteur names is violated for the saboteur's own reason, and not by an error or for want of force."""
    name, runner = sabotage
    for law_id in sorted(SABOTEURS[name].expected):
        result = runner.check(LAWS[law_id], replace(FINDING, divided=0.0), 0)
        assert (result.status, result.error) == ("violated", False), (law_id, result.reason)
        assert result.counterexample is not None, (law_id, result.reason)
        assert result.counterexample["title"] == SABOTEURS[name].titles[law_id], law_id


def test_other_invariants_stay_green(sabotage: tuple[str, Runner]) -> None:
    """A saboteur breaks one thing: of the six invariants those that it does not name hold."""
    name, runner = sabotage
    for law_id in INVARIANTS:
        if law_id not in SABOTEURS[name].expected:
            result = runner.check(LAWS[law_id], LOOKING, 0)
            assert result.status == "holds", (law_id, result.reason, result.counterexample)


def test_every_law_has_a_saboteur() -> None:
    """DESIGN.md, principle 4: each law is shown red by one that names it, and none names a law that there is not."""
    named = set().union(*(each.expected for each in SABOTEURS.values()))
    assert named == set(LAWS)


def test_unknown_saboteur_is_named() -> None:
    """A name that is none is bad input, and the error says which there are."""
    with pytest.raises(InputError, match="admit-nodes"):
        sabotaged("no-such", subject_factory("reference"))
