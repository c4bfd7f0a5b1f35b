"""The contract bound to the reference store.

In process every law runs as hard as profile `ci` looks: 300 examples an invariant, 100 a law beside them. Over stdio
the invariants, and what only a process of its own can show, run a few examples each: the wire is tested there.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from overflow.contract.evidence import PROFILES
from overflow.contract.laws import Law, all_laws
from overflow.contract.runner import Runner
from overflow.embedding.wordllama import wordllama_vectors
from overflow.subjects.registry import subject_factory

LAWS = all_laws()

#: Each example starts a process a store, so over stdio only these run.
OVER_STDIO = ("1", "2", "3", "4", "5", "6", "swap", "interleavings")


def _ids(law: Law) -> str:
    return f"{law.id}-{law.name.replace(' ', '-')}"


@pytest.fixture(scope="module")
def reference() -> Iterator[Runner]:
    with Runner(subject_factory("reference"), wordllama_vectors) as runner:
        yield runner


@pytest.fixture(scope="module")
def reference_stdio() -> Iterator[Runner]:
    with Runner(subject_factory("reference-stdio"), wordllama_vectors) as runner:
        yield runner


@pytest.mark.parametrize("law", LAWS, ids=_ids)
def test_reference_holds(law: Law, reference: Runner) -> None:
    """Every law holds on the reference, none is skipped, and at least half of its examples divided."""
    result = reference.check(law, PROFILES["ci"], 0)
    assert result.status == "holds", f"{result.reason}\n{result.counterexample}"
    assert result.divided * 2 >= result.examples >= PROFILES["ci"].count(law)


@pytest.mark.parametrize("law", [law for law in LAWS if law.id in OVER_STDIO], ids=_ids)
def test_reference_over_stdio_holds(law: Law, reference_stdio: Runner) -> None:
    """The same subject in a process of its own, over JSON-RPC, gives the same verdicts, in five examples or a few."""
    result = reference_stdio.check(law, replace(PROFILES["quick"], examples=round(5 / law.share)), 0)
    assert result.status == "holds", f"{result.reason}\n{result.counterexample}"
