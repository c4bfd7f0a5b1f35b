"""`overflow check`: the laws of a contract on one subject, over generated examples and over a real corpus.

It wires a subject, a model and a corpus to the contract's runner, and prints what that says. DESIGN.md, "Command line".
"""

import dataclasses
import json
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from overflow.cli.foreign_output import stdout_as_stderr
from overflow.cli.output import require_apart, stdout_console, write_text
from overflow.contract.signals import TIMEOUT
from overflow.errors import InputError, UnavailableError
from overflow.shown import shown

if TYPE_CHECKING:
    from overflow.cli.real_text import RealText
    from overflow.contract.evidence import Profile
    from overflow.contract.laws import Law
    from overflow.contract.results import CorpusResult, Result
    from overflow.contract.runner import Runner

_EXAMPLES = """
\b
Examples:
  overflow check
      the reference store, and the standard library's documentation
  overflow check --subject mypkg.adapter:Store
      your own system, through a class of yours
  overflow check --subject 'cmd:node adapter.js'
      your own system, through a process speaking JSON-RPC
  overflow check --invariant 1 --profile ci
      one invariant, 300 examples
  overflow check --saboteur admit-nodes --invariant 1
      see invariant 1 go red
  overflow check --window e5
      the corpus with multilingual-e5-small
  overflow check --corpus notes/ --junit out.xml
      your own documents, and a report for CI
"""

_TIMEOUT = round(TIMEOUT)

_clock = time.perf_counter


@click.command(epilog=_EXAMPLES, short_help="Check the invariants of the Overflow Tree on a memory store.")
@click.option(
    "--subject",
    default="reference",
    show_default=True,
    metavar="SUBJECT",
    help="The store to check: a NAME (reference, reference-stdio), module:Class or cmd:COMMAND LINE.",
)
@click.option(
    "--contract",
    type=click.Choice(["nodes"]),
    default="nodes",
    show_default=True,
    help="The set of laws to check: nodes, the six invariants of the Overflow Tree and the laws beside them.",
)
@click.option(
    "--invariant",
    "ids",
    multiple=True,
    metavar="N",
    help="Only this law, as 4 or swap; may be repeated. `list` names all.",
)
@click.option(
    "--profile",
    type=click.Choice(["quick", "ci", "deep"]),
    default="quick",
    show_default=True,
    help="How hard to look: 40, 300 or 3,000 generated examples an invariant; of a law beside them 40, 100 or 1,000.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the generated examples.")
@click.option(
    "--corpus",
    default="stdlib-docs",
    show_default=True,
    metavar="ID|PATH|none",
    help="Real texts to check on too: stdlib-docs, or a file or folder of .txt, .md and .jsonl; every one must be text"
    " that can be read, in UTF-8 and not empty.",
)
@click.option(
    "--window",
    "spec",
    default="wordllama",
    show_default=True,
    metavar="SPEC",
    help="What embeds the corpus: e5, wordllama, wordllama@N for N tokens, or an embedding server's http://…",
)
@click.option(
    "--timeout",
    type=click.IntRange(1, 86_400),
    default=_TIMEOUT,
    show_default=True,
    metavar="SECONDS",
    help="How long one call of the subject may take.",
)
@click.option("--saboteur", metavar="NAME", help="Break the subject on purpose; `list` names every saboteur.")
@click.option("--junit", type=click.Path(dir_okay=False), help="Write a JUnit report.")
@click.option(
    "--json", "json_path", type=click.Path(dir_okay=False, allow_dash=True), help="Write the results (- for stdout)."
)
def check(
    subject: str,
    contract: str,
    ids: Sequence[str],
    profile: str,
    seed: int,
    corpus: str,
    spec: str,
    timeout: int,
    saboteur: str | None,
    junit: str | None,
    json_path: str | None,
) -> int:
    """Check the six invariants of the Overflow Tree, and the laws beside them, on a memory store.

    Exits 0 when every law that could be asked holds, 1 when one is violated or none could be asked, 2 on bad usage, 3
    when the subject or a server is not available.
    """
    started = _clock()
    from overflow.embedding.cache import cache_directory

    # What Hypothesis computes once is no matter of the folder that a check is run from.
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(cache_directory() / "hypothesis"))
    from overflow.cli.catalogue import print_laws, print_saboteurs
    from overflow.cli.real_text import RealText
    from overflow.contract import report
    from overflow.contract.evidence import PROFILES
    from overflow.contract.laws import all_laws
    from overflow.contract.runner import Runner
    from overflow.contract.saboteurs import SABOTEURS, sabotaged
    from overflow.embedding.wordllama import wordllama_vectors
    from overflow.subjects.registry import subject_factory
    from overflow.tokens.spec import file_of

    if "list" in (saboteur, *ids):
        print_saboteurs(SABOTEURS.values()) if saboteur == "list" else print_laws(all_laws())
        return 0
    laws = _laws(ids)
    if saboteur is not None and saboteur not in SABOTEURS:
        raise InputError(f"no saboteur is called {saboteur!r}; --saboteur list names them")
    require_apart([junit, json_path], [corpus, file_of(spec)])
    # A subject may go to another folder; what is written, and read, stays where it was named.
    junit, json_path = _placed(junit), _placed(json_path)
    with ExitStack() as stack:
        stack.enter_context(stdout_as_stderr())
        factory = subject_factory(subject)
        if saboteur is not None:
            factory = sabotaged(saboteur, factory)
        progress = stack.enter_context(_progress(Console(stderr=True)))
        total = sum(PROFILES[profile].count(law) for law in laws)
        generated = progress.add_task("generated examples", total=total)
        texts = None if corpus == "none" else stack.enter_context(RealText(corpus, spec, seed, progress))
        runner = stack.enter_context(
            Runner(factory, wordllama_vectors, on_example=lambda: progress.advance(generated), timeout=timeout)
        )
        if saboteur is not None:
            _require_bite(saboteur, runner)
        results = _results(runner, laws, PROFILES[profile], seed, texts, progress, generated)
    broken = f", saboteur {saboteur}" if saboteur is not None else ""
    title = f"{runner.name} {runner.version}{broken}, contract {contract}, profile {profile}, seed {seed}"
    rerun = report.Rerun(_again(subject, profile, seed, saboteur, timeout), ["--corpus", corpus, "--window", spec])
    seconds = _clock() - started
    data = {
        "subject": {"name": runner.name, "version": runner.version},
        "saboteur": saboteur,
        "contract": contract,
        "profile": profile,
        "seed": seed,
        "corpus": None if texts is None else texts.description,
        "seconds": seconds,
        "results": [report.data(result, rerun) for result in results],
    }
    if json_path != "-":
        out = stdout_console()
        out.print(report.table(results, shown(title), None if texts is None else shown(texts.title), out.width))
        # A command to copy is longer than a line.
        out.print(report.explanations(results, rerun), crop=False)
        out.print(report.summary(results, seconds))
    if junit is not None:
        write_text(junit, report.junit(results, f"overflow.{runner.name}", rerun, seconds))
    if json_path is not None:
        write_text(json_path, json.dumps(data, indent=1) + "\n")
    return _exit_code(results, is_gone=runner.gone is not None)


def _results(
    runner: "Runner",
    laws: "Sequence[Law]",
    profile: "Profile",
    seed: int,
    texts: "RealText | None",
    progress: Progress,
    task: TaskID,
) -> "list[Result]":
    """Every law's result; progress is shown on a terminal, and elsewhere a line a law."""
    from overflow.contract import report

    results: list[Result] = []
    done = 0
    for law in laws:
        progress.update(task, description=f"{law.id} {law.name}")
        result = runner.check(law, profile, seed)
        done += profile.count(law)
        progress.update(task, completed=done)
        if texts is not None:
            result = dataclasses.replace(result, corpus=texts.check(law, runner))
        results.append(result)
        if not progress.console.is_terminal:
            click.echo(report.line(result), err=True)
    progress.update(task, description="done")
    return results


def _exit_code(results: "Sequence[Result]", *, is_gone: bool) -> int:
    """DESIGN.md's: a violation that was shown outweighs a subject that was lost, and what was never asked is no 0."""
    verdicts: list[Result | CorpusResult] = [*results, *(each.corpus for each in results if each.corpus is not None)]
    failed = [verdict for verdict in verdicts if verdict.status == "violated"]
    if is_gone and all(verdict.error for verdict in failed):
        return UnavailableError.exit_code
    asked = any(result.status != "skipped" for result in results)
    return 1 if failed or not asked else 0


def _laws(ids: Sequence[str]) -> "list[Law]":
    from overflow.contract.laws import all_laws

    known = {law.id: law for law in all_laws()}
    unknown = [each for each in ids if each not in known]
    if unknown:
        raise InputError(f"no invariant or law is called {unknown[0]!r}; there are {', '.join(known)}")
    return [law for law in known.values() if not ids or law.id in ids]


def _require_bite(saboteur: str, runner: "Runner") -> None:
    """Raise InputError when the runner's subject lacks what the saboteur needs, or each law that it breaks."""
    from overflow.contract.laws import all_laws
    from overflow.contract.saboteurs import SABOTEURS

    chosen = SABOTEURS[saboteur]
    if missing := sorted(chosen.requires - runner.capabilities):
        raise InputError(f"{saboteur} cannot break {runner.name}, which lacks {', '.join(missing)}")
    expected = chosen.expected
    lacking = {law.id: sorted(law.requires - runner.capabilities) for law in all_laws() if law.id in expected}
    if all(lacking.values()):
        told = "; ".join(f"law {law_id} needs {', '.join(needs)}" for law_id, needs in lacking.items())
        raise InputError(f"{saboteur} shows nothing on {runner.name}, which lacks what its laws need: {told}")


def _placed(path: str | None) -> str | None:
    return path if path is None or path == "-" else str(Path(path).absolute())


def _again(subject: str, profile: str, seed: int, saboteur: str | None, timeout: int) -> list[str]:
    words = ["overflow", "check", "--subject", subject, "--profile", profile, "--seed", str(seed)]
    words += ["--saboteur", saboteur] if saboteur else []
    return words + (["--timeout", str(timeout)] if timeout != _TIMEOUT else [])


def _progress(console: Console) -> Progress:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
