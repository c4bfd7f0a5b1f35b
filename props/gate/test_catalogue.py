"""The reference's own catalogue: that no mutant is stale, and that there is what the design asks for."""

from collections import Counter
from pathlib import Path

import pytest

import overflow
from overflow.contract.laws import all_laws
from overflow.gate.mutants import Mutant, load

PACKAGE = Path(overflow.__file__).parent
LAWS = [law.id for law in all_laws()]
MUTANTS = load(Path(__file__).parents[2] / "mutation" / "mutants.toml", LAWS).mutants
#: Every path by which a node could reach a ranking, as docs/mutate.md has them.
PATHS = {
    "search-nodes-by-default",
    "admit-nodes-to-vector-search",
    "nodes-among-record-vectors",
    "builder-indexes-nodes",
    "trigger-indexes-nodes",
    "break-ties-by-nodes",
    "score-by-nodes",
    "reconstruct-divided-first",
    "limit-before-merge",
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_no_mutant_is_stale(mutant: Mutant) -> None:
    """What it changes is in its file, once: known at once, and not only when the gate has run."""
    assert (PACKAGE / mutant.file).read_text(encoding="utf-8").count(mutant.find) == 1


def test_there_are_as_many_as_the_design_asks_for() -> None:
    """At least 40, and 3 for each invariant and each law beside them; some must not be noticed."""
    noticed = Counter(law for mutant in MUTANTS for law in mutant.red)
    assert sum(bool(mutant.red) for mutant in MUTANTS) >= 40
    assert {law: noticed[law] for law in LAWS if noticed[law] < 3} == {}
    assert sum(not mutant.red for mutant in MUTANTS) >= 3


def test_each_says_by_which_violations_it_must_be_noticed() -> None:
    """For its own reason: but where the title names whichever operation found the store locked."""
    untitled = {mutant.name for mutant in MUTANTS if mutant.red and not mutant.titles}
    assert untitled == {"build-under-the-lock", "repair-under-the-lock"}


def test_every_path_to_a_ranking_has_its_mutant() -> None:
    """Invariant 1 must notice each, the seed's own first: nodes admitted to vector search."""
    by_name = {mutant.name: mutant for mutant in MUTANTS}
    assert by_name["admit-nodes-to-vector-search"].red == {"1"}
    assert {name for name in PATHS if "1" in by_name[name].red} == PATHS
