"""`overflow mutate`: break a subject in many ways, one at a time, and demand that exactly the named laws notice.

It wires a catalogue of mutants and the saboteurs to the gate, and prints what that says. DESIGN.md, "Command line".
"""

import json
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from overflow.cli.generated import generated as generated_mutants
from overflow.cli.output import require_apart, stdout_console, write_text
from overflow.contract.evidence import PROFILES
from overflow.contract.laws import all_laws
from overflow.contract.signals import terminated_as_interrupted
from overflow.errors import InputError
from overflow.gate import report
from overflow.gate.mutants import Catalogue, load
from overflow.gate.mutating import KEPT
from overflow.gate.run import Breaking, Gate, Ran, breakings
from overflow.gate.verdict import LawResult, Verdict
from overflow.shown import shown
from overflow.subjects.registry import subject_factory

_EXAMPLES = """
\b
Examples:
  overflow mutate
      every named mutant of the reference, and every saboteur
  overflow mutate --mutant admit-nodes-to-vector-search
      one of them
  overflow mutate --mutant list
      their names, and the laws each turns red
  overflow mutate --subject mypkg.adapter:Store
      the saboteurs around your own system
  overflow mutate --subject mypkg.adapter:Store --mutants mutants.toml
      and named mutants of its sources
  overflow mutate --html power.html --junit out.xml
      the power matrix as a page, and a report for CI
  overflow mutate --generated --mutant division/core
      every change mutmut can make in one module of the reference
"""

#: Where the reference's mutants lie in a checkout.
_CATALOGUE = Path("mutation", "mutants.toml")


@click.command(epilog=_EXAMPLES)
@click.option("--subject", default="reference", show_default=True, help="NAME, module:Class or cmd:COMMAND LINE.")
@click.option("--mutants", type=click.Path(dir_okay=False), metavar="FILE", help="Named mutants of its sources (TOML).")
@click.option("--mutant", "names", multiple=True, metavar="NAME", help="Only this mutant or saboteur; may be repeated.")
@click.option("--generated", is_flag=True, help="Every change mutmut can make in the reference, from a checkout.")
@click.option("--seed", default=0, show_default=True, help="Seed of the generated examples.")
@click.option("--workers", type=click.IntRange(1), help="Processes side by side; one more than processors if left out.")
@click.option("--html", type=click.Path(dir_okay=False), help="Write the power matrix as a page.")
@click.option("--junit", type=click.Path(dir_okay=False), help="Write a JUnit report.")
@click.option(
    "--json", "json_path", type=click.Path(dir_okay=False, allow_dash=True), help="Write the verdicts (- for stdout)."
)
def mutate(
    subject: str,
    mutants: str | None,
    names: Sequence[str],
    generated: bool,
    seed: int,
    workers: int | None,
    html: str | None,
    junit: str | None,
    json_path: str | None,
) -> int:
    """Prove that the laws notice.

    It breaks a memory store in many ways, one at a time, and demands that the laws which must notice go red, and no
    others.

    Exits 0 when every mutant and saboteur ends as expected, 1 when one does not or the laws are red before anything is
    broken, 2 on bad usage, 3 when the subject is not available.
    """
    if generated:
        if subject != "reference" or mutants or workers or html or junit or seed:
            raise InputError("--generated takes --mutant and --json alone: it runs the tests of this checkout")
        require_apart([json_path], [str(file) for file in KEPT])
        return generated_mutants(names, json_path)
    laws = {law.id: law.name for law in all_laws()}
    catalogue = _catalogue(subject, mutants, list(laws))
    chosen = breakings(subject, catalogue)
    if "list" in names:
        _list(chosen)
        return 0
    chosen = _chosen(chosen, names)
    outputs = [html, junit, json_path]
    require_apart(outputs, [str(_CATALOGUE) if mutants is None else mutants])
    subject_factory(subject)  # What is no subject is told here, and not by the first process that meets it.
    started = time.monotonic()
    workers = workers or (os.cpu_count() or 1) + 1
    gate = Gate(subject, catalogue, python=_interpreter(subject), seed=seed, workers=workers)
    _require_outside(outputs, gate.source)
    with terminated_as_interrupted(), gate, _Progress(len(chosen)) as progress:
        baseline = gate.baseline()
        red = [result for result in baseline.results if result.state in ("red", "broken")]
        if subject == "reference":
            # It lacks nothing: a law that is not asked of it took its mutants with it.
            red = [result for result in baseline.results if result.state != "green"]
        elif all(result.state in ("idle", "skipped") for result in baseline.results):
            # Each says why it came to nothing: a suite that proves nothing is not green.
            red = [result for result in baseline.results if result.state == "idle"]
        left_out = {} if red else _left_out(chosen, baseline)
        verdicts = [] if red else gate.break_each(_askable(chosen, baseline, left_out), baseline, progress.ended)
        if verdicts:
            progress.confirming()
            red = gate.confirm(verdicts, baseline)
    again = shlex.join(_again(subject, mutants, seed))
    if json_path != "-":
        out = stdout_console()
        if red:
            out.print(Group(*(Text(f"red on the subject unbroken: {each.law}: {each.reason}", "red") for each in red)))
            out.print(Text(f"  again: {shlex.join(_check(subject, seed, red[0]))}"))
        if verdicts:
            out.print(report.tables(list(laws), verdicts))
            out.print(report.not_asked(left_out))
            out.print(report.explanations(verdicts, again), soft_wrap=True)
            if not names and (unproved := report.unproved(list(laws), baseline.results, verdicts)):
                out.print(Text(f"asked, and noticed nothing: {', '.join(unproved)}; write a mutant for each"))
            out.print(report.summary(verdicts, progress.mutants_until - started, time.monotonic() - started))
    if html is not None:
        write_text(html, report.page(subject, laws, baseline.results, red, verdicts))
    if junit is not None:
        write_text(junit, report.junit(red, verdicts, left_out, again))
    if json_path is not None:
        write_text(json_path, json.dumps(report.as_json(red, verdicts, left_out), indent=1) + "\n")
    return 0 if verdicts and not red and all(verdict.passes for verdict in verdicts) else 1


def _catalogue(subject: str, mutants: str | None, laws: Sequence[str]) -> Catalogue | None:
    """The mutants of the subject's sources; the reference's own lie in a checkout, another's are where it says."""
    if mutants is not None:
        return load(Path(mutants), laws)
    if subject != "reference":
        return None
    if not _CATALOGUE.is_file():
        click.echo(f"no {_CATALOGUE} here, as in a checkout: the reference is asked with saboteurs alone", err=True)
        return None
    return load(_CATALOGUE, laws)


def _interpreter(subject: str) -> str:
    """What imports the subject's sources: the first word of a command line, or the interpreter that runs this."""
    kind, _, command = subject.partition(":")
    return shlex.split(command)[0] if kind == "cmd" else sys.executable


def _require_outside(outputs: Sequence[str | None], source: Path | None) -> None:
    """Raise InputError for an output among the sources that are mutated."""
    for path in outputs:
        if path not in (None, "-") and source is not None and Path(path).resolve().is_relative_to(source.resolve()):
            raise InputError(f"cannot write {path}: it is among the sources of {source.stem}; give another")


def _chosen(every: list[Breaking], names: Sequence[str]) -> list[Breaking]:
    known = {each.name for each in every}
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"no mutant or saboteur is called {unknown[0]!r}; --mutant list names them")
    return [each for each in every if not names or each.name in names]


def _askable(chosen: list[Breaking], baseline: Ran, left_out: Mapping[str, str]) -> list[Breaking]:
    """The breakings that are not left out; those that depend on the subject with the laws it can be asked for."""
    asked = frozenset(result.law for result in baseline.results if result.state != "skipped")
    kept = [
        each
        if each.exact
        else replace(each, expected={law: titles for law, titles in each.expected.items() if law in asked})
        for each in chosen
        if each.name not in left_out
    ]
    if not kept or not asked:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise InputError(f"nothing of it can be asked of this subject: {reasons}")
    return kept


def _left_out(chosen: list[Breaking], baseline: Ran) -> dict[str, str]:
    """The breakings that this subject cannot be asked about, each with what it lacks, or why its laws were skipped.

    Whoever names a mutant knows the subject: the laws of one are what it says, and it is never left out.
    """
    skipped = {result.law: result.reason or "" for result in baseline.results if result.state == "skipped"}
    left_out = {}
    for each in (each for each in chosen if not each.exact):
        if lacking := sorted(each.requires - baseline.capabilities):
            left_out[each.name] = f"the subject lacks {', '.join(lacking)}"
        elif each.expected and each.expected.keys() <= skipped.keys():
            left_out[each.name] = skipped[min(each.expected)]
    return left_out


def _list(every: list[Breaking]) -> None:
    width = max(len(each.name) for each in every)
    for each in every:
        laws = " ".join(sorted(each.expected)) or "stays green"
        click.echo(shown(f"{each.name:{width}}  {laws}: {each.breaks}"))


def _again(subject: str, mutants: str | None, seed: int) -> list[str]:
    words = ["overflow", "mutate", "--subject", subject, "--seed", str(seed)]
    return words + (["--mutants", mutants] if mutants else [])


def _check(subject: str, seed: int, result: LawResult) -> list[str]:
    words = ["overflow", "check", "--subject", subject, "--invariant", result.law, "--seed", str(seed)]
    # The quick profile may not come to a rare fault.
    return words + (["--profile", "ci"] if result.examples > PROFILES["quick"].examples else [])


class _Progress(Progress):
    """A bar on a terminal; without one a plain line a verdict, so that a log shows that the run is alive."""

    def __init__(self, total: int) -> None:
        self._errors = Console(stderr=True)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        super().__init__(*columns, console=self._errors, transient=True, disable=not self._errors.is_terminal)
        self._bar = self.add_task("the laws on the subject unbroken", total=total)
        #: When the last mutant of sources ended; they come before the saboteurs.
        self.mutants_until = time.monotonic()

    def confirming(self) -> None:
        self.update(self._bar, description="the laws on the subject unbroken, for as long as they took to notice")

    def ended(self, verdict: Verdict) -> None:
        name = shown(verdict.name)
        self.update(self._bar, advance=1, description=name)
        if verdict.kind == "source":
            self.mutants_until = time.monotonic()
        if not self._errors.is_terminal:
            click.echo(f"{name}: {verdict.outcome.replace('_', ' ')}, {verdict.seconds:.0f} s", err=True)
