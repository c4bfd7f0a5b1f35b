"""`overflow divide`: the spans of each text under a window, as a table for people or a JSON line a record.

It decides nothing about division; it pairs records with outcomes and says how each ended. DESIGN.md, "Command line".
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from overflow.cli.output import counted, json_lines, require_apart, stdout_console
from overflow.shown import shown
from overflow.tokens.spec import SYNTHETIC

if TYPE_CHECKING:
    from overflow.division.lockstep import Outcome
    from overflow.measure.records import Record

_EXAMPLES = """
\b
Examples:
  overflow divide notes.md
      the nodes of one file under the bundled multilingual-e5-small
  overflow divide docs/ memories.jsonl
      every .txt, .md and .jsonl file of a folder, and each line of a file
  overflow divide docs/ --window http://127.0.0.1:8401
      as the embedding server at that address counts
  cat notes.md | overflow divide - --window words@200 --json -
      stdin, for a program to read; JSONL has a record a line here too
"""

_WINDOWS = """
\b
Windows:
  e5              the bundled multilingual-e5-small, 512 tokens
  wordllama[@N]   the bundled wordllama vocabulary, 512 tokens or N
  hf:FILE[@N]     a tokenizer.json, with its own window or N
  http://…        an embedding server of the CEmbedding contract
  tei:http://…    a server of text-embeddings-inference
  KIND@N[+S]      N tokens, S of them taken by special ones; they count,
                  and a counterexample of `overflow check` names them so:
"""
_WINDOWS += "".join(f"    {kind:16}{counts}\n" for kind, counts in SYNTHETIC.items())


@click.command(epilog=_EXAMPLES + _WINDOWS)
@click.argument("paths", nargs=-1, required=True, metavar="PATH…|-")
@click.option(
    "--window",
    "spec",
    default="e5",
    show_default=True,
    metavar="SPEC",
    help="Whose tokens, and how many; listed below.",
)
@click.option("--divider", "name", default="reference", show_default=True, metavar="NAME", help="How to divide.")
@click.option("--json", "json_path", metavar="PATH|-", help="Write one JSON object a record, a line each.")
def divide(paths: Sequence[str], spec: str, name: str, json_path: str | None) -> int:
    """Divide texts into spans that each fit an embedding window.

    A .jsonl file has a record a line, an object with a field `text`, and so has stdin when it begins with such a line;
    anything else is one record. Offsets are code points, ends exclusive. A record that cannot be divided stops no
    other. A server is believed to count a beginning alike whatever follows; if not, cuts depend on the other records.
    """
    from overflow.cli.outcomes import Told, exit_code, row
    from overflow.contract.signals import terminated_as_interrupted
    from overflow.division.registry import divider
    from overflow.measure.records import Record, read_records
    from overflow.tokens.spec import file_of, opened_window

    divide_many = divider(name)
    require_apart([json_path], [*paths, file_of(spec)])
    refused: list[str] = []
    first_failure, failures, code = "", 0, 0
    people = Told()

    def records() -> Iterator[Record]:
        for record in read_records(paths):
            if isinstance(record, Record):
                yield record
            else:
                refused.append(str(record))

    try:
        with (
            terminated_as_interrupted(),
            opened_window(spec) as window,
            json_lines(json_path) as write,
            _progress() as advance,
        ):
            for record, outcome in _in_order(records(), lambda texts: divide_many(texts, window)):
                code = max(code, exit_code(outcome))
                if isinstance(outcome, Exception):
                    first_failure, failures = first_failure or f"{record.id}: {outcome}", failures + 1
                told = row(record, outcome)
                write(told)
                people.add(told, record.text)
                advance(len(record.text))
        table = None if json_path == "-" else people.table(f"{name}, {window.name}")
        if table is not None:
            stdout_console().print(table)
    finally:
        for line in refused:
            _tell(line)
    if failures:
        more = f" (and {failures - 1} more)" if failures > 1 else ""
        _tell(f"{first_failure}{more}")
    return 2 if refused else code


def _tell(line: str) -> None:
    click.echo(f"overflow: {shown(line)}", err=True)


def _in_order(
    records: Iterable["Record"], divide_many: "Callable[[Iterable[str]], Iterator[tuple[int, Outcome]]]"
) -> Iterator[tuple["Record", "Outcome"]]:
    """Each record with its outcome, in the order of the records, as soon as all before it have ended."""
    drawn: dict[int, Record] = {}
    ended: dict[int, Outcome] = {}
    due = 0

    def texts() -> Iterator[str]:
        for index, record in enumerate(records):
            drawn[index] = record
            yield record.text

    for index, outcome in divide_many(texts()):
        ended[index] = outcome
        while due in ended:
            yield drawn.pop(due), ended.pop(due)
            due += 1


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """A function to call with the length of each record done; it draws on a terminal alone."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    done, characters = 0, 0
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("reading")

        def advance(length: int) -> None:
            nonlocal done, characters
            done, characters = done + 1, characters + length
            progress.update(task, description=f"{counted(done, 'record')}, {counted(characters, 'character')}")

        yield advance
