"""The saboteurs as a set. That each turns exactly its laws red, for its own reason, the mutation gate shows."""

import pytest

from overflow.contract.laws import all_laws
from overflow.contract.saboteurs import SABOTEURS, sabotaged
from overflow.errors import InputError
from overflow.subjects.registry import subject_factory

LAWS = {law.id: law for law in all_laws()}


def test_every_law_has_a_saboteur() -> None:
    """DESIGN.md, principle 4: each law is shown red by one that names it, and none names a law that there is not."""
    named = set().union(*(each.expected for each in SABOTEURS.values()))
    assert named == set(LAWS)


def test_unknown_saboteur_is_named() -> None:
    """A name that is none is bad input, and the error says which there are."""
    with pytest.raises(InputError, match="admit-nodes"):
        sabotaged("no-such", subject_factory("reference"))
