"""A short run of the contract on the reference: what a generated mutant meets that no test of its package noticed.

Its examples are few, so it never says that a law holds, nor that too few of them proved something.
DESIGN.md, principle 4.
"""

from collections.abc import Iterator

import pytest
from hypothesis import Phase

from overflow.contract.evidence import Profile
from overflow.contract.laws import Law, all_laws
from overflow.contract.runner import Runner
from overflow.embedding.wordllama import wordllama_vectors
from overflow.subjects.registry import subject_factory

SHORT = Profile("short", 12, 0.0, 12, phases=(Phase.explicit, Phase.generate))


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner(subject_factory("reference"), wordllama_vectors) as running:
        yield running


@pytest.mark.parametrize("law", all_laws(), ids=lambda law: law.id)
def test_no_law_is_violated(law: Law, runner: Runner) -> None:
    """No law of the contract is violated in a dozen examples."""
    result = runner.check(law, SHORT, 0)
    assert result.counterexample is None, result.counterexample
    assert not result.error, result.reason
