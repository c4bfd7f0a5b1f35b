"""The law of pending nodes on stores that a failed build leaves without nodes: it promises reads, no more."""

from typing import ClassVar

import pytest

from overflow.contract.evidence import PROFILES
from overflow.contract.laws import all_laws
from overflow.contract.runner import Runner
from overflow.embedding.wordllama import wordllama_vectors
from overflow.subjects.reference import Reference


class Requeueing(Reference):
    """The reference as a store without repair: what failed is built by the next settling."""

    capabilities: ClassVar = ("store", "nodes", "text", "recall", "settle", "configure")


class Dropping(Requeueing):
    """It forgets a build that failed."""

    _settled = False

    def settle(self) -> None:
        if not self._settled:
            super().settle()
        self._settled = True


@pytest.mark.parametrize("subject", [Requeueing, Dropping])
def test_what_becomes_of_a_failed_build_is_no_matter_of_pending(subject: type[Reference]) -> None:
    """Overflow Tree, section 3: until its nodes exist a record is read; that they come is for health and repair."""
    (law,) = (law for law in all_laws() if law.id == "pending")
    with Runner(subject, wordllama_vectors) as runner:
        result = runner.check(law, PROFILES["quick"], 0)
    assert result.status == "holds", result.reason
