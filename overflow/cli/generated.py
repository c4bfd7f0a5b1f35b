"""`overflow mutate --generated`: every change that mutmut can think of in the reference, and what of it nobody noticed.

It goes on from the results that are kept in the checkout, and prints all of them. DESIGN.md, "Command line".
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Group
from rich.table import Table
from rich.text import Text

from overflow.cli.output import stdout_console, write_text
from overflow.contract.signals import terminated_as_interrupted
from overflow.gate.generated import ModuleResult, Score, Survivor, groundless, scores, unexplained
from overflow.gate.mutating import run_generated


def generated(names: Sequence[str], json_path: str | None) -> int:
    """Run what is left of `names` (packages and modules; all without any) and tell what is kept; the exit code."""
    with terminated_as_interrupted():
        found = run_generated(Path.cwd(), names, _ended, _again)
    for stale in found.stale:
        click.echo(
            f"{stale.module}: stale, for its text, its tests or their tools changed since {stale.date}", err=True
        )
    results = list(found.results.values())
    by_package = scores(results, found.equivalents)
    left, unfounded = unexplained(results, found.equivalents), groundless(results, found.equivalents)
    if json_path != "-":
        out = stdout_console()
        out.print(_table(by_package))
        out.print(_failures(left))
        for entry in unfounded:
            out.print(Text(f"{entry.module}: the equivalent {entry.key} is of no mutant that survives", "red"))
    if json_path is not None:
        data = {
            "packages": [{**asdict(score), "score": score.value} for score in by_package],
            "survivors": [asdict(survivor) for survivor in left],
            "groundless": [asdict(entry) for entry in unfounded],
        }
        write_text(json_path, json.dumps(data, indent=1) + "\n")
    return 1 if left or unfounded else 0


def _ended(result: ModuleResult) -> None:
    told = f"{result.killed} killed, {result.timed_out} timed out, {len(result.survivors)} survive"
    click.echo(f"{result.module}: {told}, {result.seconds:.0f} s", err=True)


def _again(earlier: ModuleResult) -> None:
    click.echo(f"{_stale(earlier)}, and runs again", err=True)


def _stale(result: ModuleResult) -> str:
    return f"{result.module}: stale, its text, its tests or their tools are not those of {result.date}"


def _table(by_package: Sequence[Score]) -> Table:
    table = Table(title="generated mutants", title_justify="left")
    table.add_column("package")
    for heading in ("all", "killed", "timed out", "skipped", "equivalent", "score"):
        table.add_column(heading, justify="right")
    for score in by_package:
        counts = (score.all, score.killed, score.timed_out, score.skipped, score.equivalent)
        table.add_row(score.package, *(f"{count:,}" for count in counts), f"{score.value:.1%}")
    return table


def _failures(left: Sequence[Survivor]) -> Group:
    """The survivors that no reviewed equivalent explains, each with what it changes."""
    return Group(*(Text(f"survives: {survivor.name}\n{survivor.diff}") for survivor in left))
