"""A run's results as a person reads them, and as JUnit. Pure functions of results; nothing is decided here."""

import json
import shlex
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from overflow.contract.runner import CorpusResult, Result

_STYLES = {"holds": "green", "violated": "bold red", "skipped": "yellow"}

#: A value longer than this many characters is shown by its two ends; the whole of it is in the JSON.
_SHOWN = 600


def table(results: Sequence[Result], title: str, corpus: str | None) -> Table:
    """One row a law: verdict, examples, how many divided, seconds; on the corpus the verdict, and how many divided."""
    grid = Table(title=title, title_justify="left")
    grid.add_column("law")
    grid.add_column("name")
    grid.add_column("verdict")
    for heading in ("examples", "divided", "seconds"):
        grid.add_column(heading, justify="right")
    if corpus is not None:
        grid.add_column(corpus)
    for result in results:
        cells: list[RenderableType] = [
            result.invariant,
            result.name,
            _verdict(result.status, error=result.error),
            str(result.examples),
            str(result.divided),
            f"{result.seconds:.1f}",
        ]
        if corpus is not None:
            cells.append(_corpus_cell(result.corpus))
        grid.add_row(*cells)
    return grid


def _corpus_cell(corpus: CorpusResult | None) -> RenderableType:
    if corpus is None:
        return ""
    verdict = _verdict(corpus.status)
    return (
        verdict if corpus.status == "skipped" else verdict.append(f", {corpus.divided} of {corpus.records}", "default")
    )


def _verdict(status: str, *, error: bool = False) -> Text:
    return Text(f"{status} (error)" if error else status, style=_STYLES[status])


def explanations(results: Sequence[Result], command: Sequence[str], corpus: Sequence[str]) -> Group:
    """What is behind every verdict but `holds`: reason, minimal counterexample, and a command that shows it again.

    `command` is the command line without the choice of a law, `corpus` the options that choose the corpus.
    """
    parts: list[RenderableType] = []
    for result in results:
        again = [*command, "--invariant", result.invariant]
        if result.status == "skipped":
            parts.append(Text(f"{result.invariant} skipped: {result.reason}"))
        if result.status == "violated":
            title = f"{result.invariant} {result.name}"
            parts += _explained(
                title, result.source, result.reason, result.counterexample, [*again, "--corpus", "none"]
            )
        if result.corpus is not None and result.corpus.status == "violated":
            title = f"{result.invariant} {result.name}, on the corpus"
            found = result.corpus
            parts += _explained(title, result.source, found.reason, found.counterexample, [*again, *corpus])
    return Group(*parts)


def _explained(
    title: str, source: str, reason: str | None, counterexample: dict[str, str] | None, again: Sequence[str]
) -> list[RenderableType]:
    lines = [reason or "", f"demanded by {source}", *_lines(counterexample)]
    # The command stands outside the frame and is never broken, so that it can be copied.
    command = Text(f"again: {shlex.join(again)}\n", no_wrap=True, overflow="ignore")
    return [Panel(Text("\n".join(lines)), title=title, title_align="left"), command]


def summary(results: Sequence[Result]) -> Text:
    """One line: how many laws hold, are violated, were skipped; red unless something was asked and all of it holds."""
    verdicts = [r.status for r in results] + [r.corpus.status for r in results if r.corpus is not None]
    laws = {status: sum(r.status == status for r in results) for status in _STYLES}
    corpus = sum(r.corpus is not None and r.corpus.status == "violated" for r in results)
    line = ", ".join(f"{count} {status}" for status, count in laws.items())
    return Text(
        line + (f", {corpus} violated on the corpus" if corpus else ""), "red" if "violated" in verdicts else "green"
    )


def _lines(counterexample: dict[str, str] | None) -> list[str]:
    return [f"{label}: {shortened(value)}" for label, value in (counterexample or {}).items() if label != "title"]


def shortened(value: str) -> str:
    """A value by its two ends when it is long, saying how much is left out."""
    if len(value) <= _SHOWN:
        return value
    half = _SHOWN // 2
    return f"{value[:half]} … ({len(value) - 2 * half} characters left out) … {value[-half:]}"


def junit(results: Sequence[Result], name: str) -> str:
    """The run as one JUnit test suite: a case a law; a crash of the subject is an error, a violation a failure."""
    kinds = [kind for result in results for kind, *_ in _failures(result)]
    suite = ET.Element("testsuite", name=name, tests=str(len(results)))
    suite.set("errors", str(kinds.count("error")))
    suite.set("failures", str(kinds.count("failure")))
    suite.set("skipped", str(sum(result.status == "skipped" for result in results)))
    for result in results:
        case = ET.SubElement(suite, "testcase", classname=name, name=f"{result.invariant} {result.name}")
        case.set("time", f"{result.seconds:.3f}")
        if result.status == "skipped":
            ET.SubElement(case, "skipped", message=_xml(result.reason))
        for status, reason, counterexample in _failures(result):
            failure = ET.SubElement(case, status, message=_xml(reason))
            failure.text = _xml(json.dumps(counterexample, ensure_ascii=True, indent=1))
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)


def _failures(result: Result) -> list[tuple[str, str | None, dict[str, str] | None]]:
    failures = []
    if result.status == "violated":
        failures.append(("error" if result.error else "failure", result.reason, result.counterexample))
    if result.corpus is not None and result.corpus.status == "violated":
        failures.append(("failure", f"on the corpus: {result.corpus.reason}", result.corpus.counterexample))
    return failures


def _xml(text: str | None) -> str:
    """XML 1.0 has no control characters, not even escaped."""
    return "".join(
        c if c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff") else f"\\x{ord(c):02x}" for c in text or ""
    )
