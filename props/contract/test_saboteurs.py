"""The saboteurs as a set. That each turns exactly its laws red, for its own reason, the mutation gate shows."""

from dataclasses import replace

import pytest
from hypothesis import Phase

from overflow.contract.evidence import PROFILES
from overflow.contract.laws import all_laws
from overflow.contract.runner import Runner
from overflow.contract.saboteurs import SABOTEURS, sabotaged
from overflow.contract.subject import Ref, Stored
from overflow.embedding.wordllama import wordllama_vectors
from overflow.errors import InputError
from overflow.subjects.reference import Reference
from overflow.subjects.registry import subject_factory

LAWS = {law.id: law for law in all_laws()}
FINDING = replace(PROFILES["quick"], phases=(Phase.explicit, Phase.generate))


def test_every_law_has_a_saboteur() -> None:
    """DESIGN.md, principle 4: each law is shown red by one that names it, and none names a law that there is not."""
    named = set().union(*(each.expected for each in SABOTEURS.values()))
    assert named == set(LAWS)


def test_unknown_saboteur_is_named() -> None:
    """A name that is none is bad input, and the error says which there are."""
    with pytest.raises(InputError, match="admit-nodes"):
        sabotaged("no-such", subject_factory("reference"))


def titles_seen(name: str, law_id: str, seeds: range) -> set[str | None]:
    """Why a law was violated under one saboteur, over several seeds."""
    with Runner(sabotaged(name, subject_factory("reference")), wordllama_vectors) as runner:
        return {runner.check(LAWS[law_id], FINDING, seed).reason for seed in seeds}


@pytest.mark.parametrize(("name", "law_id"), [("write-old-text", "swap"), ("merge-nodes", "quote")])
def test_a_law_goes_red_for_one_of_its_titles_whatever_the_seed(name: str, law_id: str) -> None:
    """Which of several titles a violation has is drawn with its examples; one that is not named would be another."""
    assert titles_seen(name, law_id, range(6)) <= set(SABOTEURS[name].titles[law_id])


class BuildsNextTime(Reference):
    """What an update leaves to be built is built by the next run of the queue, not by the one it came into."""

    _has_run = False

    def update(self, ref: Ref, text: str) -> Stored:
        self.configure(queue=False)
        stored = super().update(ref, text)
        self.configure(queue=True)
        return stored

    def settle(self) -> None:
        super().settle()
        if self._has_run:
            self.repair()
        self._has_run = True


def test_merged_nodes_are_a_swap_on_any_queue() -> None:
    """A law that a saboteur names goes red whenever a subject builds the text that came in the race."""
    with Runner(BuildsNextTime, wordllama_vectors) as runner:
        assert runner.check(LAWS["swap"], FINDING, 0).status == "holds"
    with Runner(sabotaged("merge-nodes", BuildsNextTime), wordllama_vectors) as runner:
        assert runner.check(LAWS["swap"], FINDING, 0).reason in SABOTEURS["merge-nodes"].titles["swap"]


def test_titles_are_several_of_every_law() -> None:
    """A text alone is one title, and not so many letters."""
    assert all(isinstance(each, tuple) for saboteur in SABOTEURS.values() for each in saboteur.titles.values())
    assert SABOTEURS["admit-nodes"].titles["1"] == (
        "recall returns the same records, order and scores with or without nodes",
    )
