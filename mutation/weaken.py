"""Takes one assertion after another out of the laws, and demands that the mutation gate complains of each loss.

A gate that stays green without an assertion has no mutant for it. Every assertion that the laws reach is found by
running them; a whole run of the gate, in its JSON, says which breakings set one off, so that only those are run without
it. What came of all of them is kept in `mutation/assertions.json`. DESIGN.md, principle 4.

    overflow mutate --json build/mutate.json
    python mutation/weaken.py build/mutate.json                                 every assertion
    python mutation/weaken.py build/mutate.json "an id is never used again"     one of them
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import repeat
from pathlib import Path

import click

import overflow
from overflow.contract.laws import all_laws
from overflow.gate.child import Job
from overflow.gate.mutants import Catalogue, Mutant, load
from overflow.gate.run import Breaking, Gate, Ran, breakings
from overflow.gate.trees import copied, importing
from overflow.gate.verdict import Outcome, Verdict

PACKAGE = Path(overflow.__file__).parent
CATALOGUE = Path(__file__).with_name("mutants.toml")
RESULTS = Path(__file__).with_name("assertions.json")
#: Every assertion of a law passes here.
FILE, TEST = "contract/laws/law.py", "    if not holds:\n"
#: Breakings run without an assertion before it counts as one that nothing misses.
TRIES = 3
#: In place of a baseline, whose time bounds theirs: the gate that ran before had one.
UNASKED = Ran(frozenset(), (), None, 10.0)


@dataclass(frozen=True, slots=True)
class Loss:
    """What the gate said without one assertion, named by the title of its violation, in whichever laws it is made.

    `missed_by` is the breaking that then did not end as expected, and `outcome` how it did; None where the gate stayed
    green. One that is broken or timed out ran into what the assertion had kept the law from. `set_off_by` are all that
    it was seen to notice.
    """

    title: str
    missed_by: str | None
    outcome: Outcome | None
    set_off_by: tuple[str, ...]


def reached() -> set[str]:
    """The title of every assertion that the laws evaluate on the reference, unbroken."""
    telling = "    print(__import__('json').dumps([title]))\n" + TEST  # to stderr: in a child stdout is the protocol's
    with copied(PACKAGE, Mutant("telling", "", frozenset(), FILE, TEST, telling)) as folder:
        examples = {law.id: 3 for law in all_laws()}
        job = json.dumps(asdict(Job("reference", None, examples, 0, str(folder / PACKAGE.name))))
        command = [sys.executable, "-P", "-m", "overflow.gate.child", job]
        told = subprocess.run(command, env=importing(folder), capture_output=True, text=True, check=True).stderr
    return {json.loads(line)[0] for line in set(told.splitlines()) if line.startswith("[")}


@contextmanager
def without(title: str) -> Iterator[None]:
    """Inside, a gate runs on a copy of the package in which that assertion is never made."""
    weaker = f"    if not holds and title != {title!r}:\n"
    before = os.environ.get("PYTHONPATH")
    with copied(PACKAGE, Mutant("weaker", "", frozenset(), FILE, TEST, weaker)) as folder:
        os.environ["PYTHONPATH"] = importing(folder)["PYTHONPATH"]
        try:
            yield
        finally:
            if before is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = before


def verdict(catalogue: Catalogue, breaking: Breaking) -> Verdict:
    """What the gate says of one breaking."""
    with Gate("reference", catalogue, python=sys.executable, seed=0, workers=1) as gate:
        return gate.break_each([breaking], UNASKED, lambda _: None)[0]


def loss(title: str, catalogue: Catalogue, able: Sequence[Breaking]) -> Loss:
    """Run the breakings that set an assertion off without it, until the gate complains of one."""
    names = tuple(each.name for each in able)
    with without(title):
        for tried in able[:TRIES]:
            ended = verdict(catalogue, tried)
            if not ended.passes:
                return Loss(title, tried.name, ended.outcome, names)
    return Loss(title, None, None, names)


@click.command()
@click.argument("gate", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("titles", nargs=-1)
def main(gate: Path, titles: tuple[str, ...]) -> None:
    """Take the assertions with TITLES (every one without any) out, one at a time; exit 1 when the gate does not
    complain of each. GATE is what a whole run of it wrote with --json."""
    catalogue = load(CATALOGUE, [law.id for law in all_laws()])
    every = breakings("reference", catalogue)
    ran = json.loads(gate.read_bytes())["mutants"]
    if {each["name"] for each in ran if each["outcome"] == "as_expected"} != {each.name for each in every}:
        raise click.BadParameter(
            "is no whole run that ended as expected; run overflow mutate --json again", param_hint="GATE"
        )
    seen = {each["name"]: set(each["noticed"].values()) for each in ran}
    # What few laws notice comes first: it has nobody else to be noticed by.
    every.sort(key=lambda each: len(seen[each.name]))
    able = {
        title: [each for each in every if title in seen[each.name]]
        for title in sorted(titles or reached().union(*seen.values()))
    }
    losses = []
    # Processes, for each has an environment of its own.
    with ProcessPoolExecutor() as pool:
        for each in pool.map(loss, able, repeat(catalogue), able.values()):
            losses.append(each)
            missed = f"{each.missed_by}, {each.outcome}" if each.missed_by else "NOT MISSED"
            click.echo(f"{each.title}: {missed}", err=True)
    unmissed = [each for each in losses if each.missed_by is None]
    if not titles:
        partial = RESULTS.with_suffix(".partial")
        partial.write_text(json.dumps([asdict(each) for each in losses], indent=1) + "\n", encoding="utf-8")
        partial.replace(RESULTS)
    click.echo(f"{len(losses)} assertions, {len(unmissed)} of which the gate does not miss")
    sys.exit(1 if unmissed else 0)


if __name__ == "__main__":
    main()
