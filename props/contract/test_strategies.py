"""What the strategies draw: texts at the very edge of the window, scopes that differ in one axis, what is weighed."""

from collections import Counter
from dataclasses import astuple

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from overflow.contract.evidence import PROFILES
from overflow.contract.laws import all_laws
from overflow.contract.scenario import Scenario
from overflow.contract.strategies import scenarios

LAWS = {law.id: law for law in all_laws()}
QUICK = PROFILES["quick"]
EXAMPLES = 100


def drawn() -> list[Scenario]:
    """The scenarios of one run of EXAMPLES, the same each time."""
    return run_of(scenarios(), 0, EXAMPLES)


def run_of(strategy: SearchStrategy[Scenario], number: int, examples: int) -> list[Scenario]:
    """The scenarios of one run with the seed `number`."""
    found: list[Scenario] = []

    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(scenario: Scenario) -> None:
        found.append(scenario)

    collect()
    return found


@pytest.mark.parametrize("law_id", ["limit", "repair-bound", "1", "2", "3", "rule", "interleavings"])
def test_examples_divide_whatever_the_seed(law_id: str) -> None:
    """DESIGN.md, principle 4: of each strategy enough divides for a verdict at every seed, and most of it in all.

    A law that runs many examples is asked for ten of them: the share of few varies more.
    """
    law = LAWS[law_id]
    strategy = scenarios(max_factor=6) if law.machine else law.scenarios()
    count = min(QUICK.count(law), 10)
    shares = []
    for number in range(50):
        runs = run_of(strategy, number, count)
        shares.append(sum(any(each.divides(record.text) for record in each.records) for each in runs) / len(runs))
    assert min(shares) >= QUICK.divided, shares
    assert sum(shares) / len(shares) > 0.8


def test_records_lie_at_the_edge_of_the_window() -> None:
    """Texts of exactly the window, of one token less and of one more are drawn; the first is a common one."""
    edges: Counter[int] = Counter()
    for scenario in drawn():
        texts = [*(record.text for record in scenario.records[1:]), *scenario.texts]
        reports = [scenario.report(text) for text in texts]
        edges.update({report.count - report.window for report in reports} & {-1, 0, 1})
    assert edges[0] >= EXAMPLES // 10
    assert edges[-1]
    assert edges[1]


def test_scopes_differ_in_one_axis_alone() -> None:
    """For each axis there are records of which one differs from another in it, and in nothing else."""
    differing: set[tuple[bool, ...]] = set()
    for scenario in drawn():
        scopes = {astuple(record.scope) for record in scenario.records}
        differing |= {tuple(a != b for a, b in zip(one, other, strict=True)) for one in scopes for other in scopes}
    assert {(True, False, False), (False, True, False), (False, False, True)} <= differing


def test_most_long_records_have_a_few_nodes() -> None:
    """At least half of the records that are drawn long fill their window up to four times: each node costs requests."""
    reports = [scenario.report(scenario.records[0].text) for scenario in drawn()]
    factors = [report.count / report.window for report in reports if report.truncated]
    assert len(factors) > EXAMPLES // 2
    assert sum(factor < 4 for factor in factors) > len(factors) / 2
