"""A run's results as a person reads them, and as JUnit. Pure functions of results; nothing is decided here."""

import json
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


def explanations(results: Sequence[Result], command: str) -> Group:
    """What is behind every verdict but `holds`: reason, minimal counterexample, and a command that shows it again."""
    parts: list[RenderableType] = []
    for result in results:
        if result.status == "skipped":
            parts.append(Text(f"{result.invariant} skipped: {result.reason}"))
        if result.status == "violated":
            lines = [result.reason or "", f"demanded by {result.source}"]
            lines += _lines(result.counterexample)
            lines.append(f"again: {command} --invariant {result.invariant}")
            parts.append(Panel(Text("\n".join(lines)), title=f"{result.invariant} {result.name}", title_align="left"))
        if result.corpus is not None and result.corpus.status == "violated":
            lines = [result.corpus.reason or "", *_lines(result.corpus.counterexample)]
            parts.append(Panel(Text("\n".join(lines)), title=f"{result.invariant} on the corpus", title_align="left"))
    return Group(*parts)


def summary(results: Sequence[Result]) -> Text:
    """One line: how many laws hold, are violated, and were skipped."""
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
    counts = {status: sum(r.status == status for r in results) for status in ("violated", "skipped")}
    errors = sum(r.error for r in results)
    suite = ET.Element("testsuite", name=name, tests=str(len(results)), errors=str(errors))
    suite.set("failures", str(counts["violated"] - errors))
    suite.set("skipped", str(counts["skipped"]))
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
