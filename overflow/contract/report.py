"""A run's results as a person reads them, and as JUnit. Pure functions of results; nothing is decided here.

DESIGN.md, "Command line" (`overflow check`).
"""

import shlex
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from xml.etree import ElementTree as ET

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from overflow.contract.readable import apart
from overflow.contract.results import CorpusResult, Result
from overflow.shown import shown

_STYLES = {"holds": "green", "violated": "bold red", "error": "bold red", "skipped": "yellow"}

#: A value longer than this many characters is shown by its two ends, and so are one line of several, and several that
#: are longer together than that many; the whole of it is in the JSON.
_VALUE = 600
_LINE = 200
_LINES = 3_000

#: A name in fewer columns is no help to anybody.
_NAME = 20


@dataclass(frozen=True, slots=True)
class Rerun:
    """The command line that led to the results, without the choice of a law; `corpus` are its options for that."""

    command: Sequence[str]
    corpus: Sequence[str] = ()

    def of(self, law: str, *, on_corpus: bool) -> str:
        """What to type to see one law again."""
        return shlex.join([*self.command, "--invariant", law, *(self.corpus if on_corpus else ("--corpus", "none"))])


def table(results: Sequence[Result], title: str, corpus: str | None, width: int) -> Group:
    """One row a law: verdict, how many examples divided; on the corpus the verdict, and how many records divided.

    Where `width` columns do not hold all of it the seconds are left out, and then the names; a law's id never is.
    """
    wide = Console(width=1_000)
    for left_out in ((), ("seconds",), ("seconds", "name")):
        grid = _grid(results, corpus, left_out)
        if wide.measure(grid).minimum <= width:
            break
    return Group(Text(title, style="bold"), grid, Text())


def _grid(results: Sequence[Result], corpus: str | None, left_out: Sequence[str]) -> Table:
    columns = {
        "law": [Text(result.invariant) for result in results],
        "name": [Text(result.name) for result in results],
        "verdict": [_verdict(result) for result in results],
        "examples divided": [Text(_of(result.divided, result.examples)) for result in results],
    }
    if corpus is not None:
        columns[f"{corpus}: records divided"] = [_corpus_cell(result.corpus) for result in results]
    columns["seconds"] = [Text(f"{result.seconds:.1f}") for result in results]
    kept = {heading: cells for heading, cells in columns.items() if heading not in left_out}
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading, cells in kept.items():
        if heading == "name":
            grid.add_column(heading, min_width=_NAME)
        else:
            widest = max((cell.cell_len for cell in cells), default=0)
            # A heading of several words may be folded between them.
            width = max(widest, *(len(word) for word in heading.split()[-2:]))
            justify = "right" if heading in ("examples divided", "seconds") else "left"
            grid.add_column(heading, width=width, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in zip(*kept.values(), strict=True):
        grid.add_row(*row)
    return grid


def _corpus_cell(corpus: CorpusResult | None) -> Text:
    if corpus is None:
        return Text()
    verdict = _verdict(corpus)
    return verdict if corpus.status == "skipped" else verdict.append(f", {_of(corpus.divided, corpus.records)}", "none")


def _verdict(result: Result | CorpusResult) -> Text:
    said = _said(result)
    return Text(said, style=_STYLES[said])


def _of(divided: int, examples: int) -> str:
    return f"{divided} of {examples}" if examples else ""


def line(result: Result) -> str:
    """One law in a line of a log."""
    said = [f"{result.invariant} {result.name}: {_ended(result, result.divided, result.examples)}"]
    if result.corpus is not None:
        corpus = result.corpus
        said.append(f"on the corpus {_ended(corpus, corpus.divided, corpus.records)}")
    return "; ".join(said)


def _ended(result: Result | CorpusResult, divided: int, examples: int) -> str:
    if result.status == "skipped":
        return "skipped"
    return f"{_said(result)}, {_of(divided, examples)} divided"


def explanations(results: Sequence[Result], rerun: Rerun) -> Group:
    """What is behind every verdict but `holds`: reason, minimal counterexample, and a command that shows it again."""
    parts: list[RenderableType] = []
    for failure in (failure for result in results for failure in _failures(result, rerun)):
        parts.append(Panel(Text("\n".join(failure.lines)), title=Text(failure.title), title_align="left"))
        # The command stands outside the frame and is never broken, so that it can be copied.
        parts.append(Text(f"again: {failure.again}\n", no_wrap=True, overflow="ignore"))
    # What ends a screen is what was found; the reasons of what was not asked stand above it.
    skips = [Text(line) for line in _skips(results)]
    return Group(*skips, *[Text()] * bool(skips and parts), *parts)


def _skips(results: Sequence[Result]) -> Iterator[str]:
    """A line a reason, with the laws it is the reason for."""
    laws: dict[str, list[str]] = {}
    for result in results:
        if result.status == "skipped":
            laws.setdefault(f"skipped, {result.reason}", []).append(result.invariant)
        elif result.corpus is not None and result.corpus.status == "skipped":
            laws.setdefault(f"skipped on the corpus, {result.corpus.reason}", []).append(result.invariant)
    for reason, ids in laws.items():
        yield shown(f"{reason}: {', '.join(ids)}")


def summary(results: Sequence[Result], seconds: float) -> Text:
    """One line: how many laws hold, are violated, met an error, were skipped, and the time of it all.

    Each law is counted once, by the worse of its two verdicts. Red unless something was asked and all of it holds.
    """
    said = [_worse(result) for result in results]
    laws, corpus = Counter(verdict for verdict, _ in said), Counter(verdict for verdict, alone in said if alone)
    violated, errors = f"{laws['violated']} violated", _errors(laws["error"])
    counts = [f"{laws['holds']} holds", violated + _on_corpus(corpus["violated"], laws["violated"])]
    counts += [errors + _on_corpus(corpus["error"], laws["error"]), f"{laws['skipped']} skipped"]
    is_green = laws["holds"] and not laws["violated"] + laws["error"]
    return Text(f"{', '.join(counts)}, in {_lasted(seconds)}", "green" if is_green else "red")


def _worse(result: Result) -> tuple[str, bool]:
    """What a law comes to, a violation before an error, and whether it was seen on the corpus alone."""
    generated, corpus = _said(result), _said(result.corpus) if result.corpus is not None else ""
    for failed in ("violated", "error"):
        if failed in (generated, corpus):
            return failed, generated != failed
    return generated, False


def _on_corpus(number: int, of: int) -> str:
    if not number:
        return ""
    return " (on the corpus)" if number == of else f" ({number} on the corpus)"


def _said(result: Result | CorpusResult) -> str:
    return "error" if result.error else result.status


def _errors(number: int) -> str:
    return "1 error" if number == 1 else f"{number} errors"


def _lasted(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def data(result: Result, rerun: Rerun) -> dict[str, Any]:
    """One law as JSON has it; `again`, here and on the corpus, is None where there is nothing to show again."""
    described = asdict(result)
    described["again"] = rerun.of(result.invariant, on_corpus=False) if result.status == "violated" else None
    if result.corpus is not None:
        failed = result.corpus.status == "violated"
        described["corpus"]["again"] = rerun.of(result.invariant, on_corpus=True) if failed else None
    return described


@dataclass(frozen=True, slots=True)
class _Failure:
    """One law that did not hold: on generated examples, or on the corpus. `lines` are what there is to read."""

    title: str
    kind: str
    reason: str
    lines: list[str]
    again: str


def _failures(result: Result, rerun: Rerun) -> Iterator[_Failure]:
    title = f"{result.invariant} {result.name}"
    if result.status == "violated":
        again = rerun.of(result.invariant, on_corpus=False)
        lines = _lines(result.reason, result, result.counterexample)
        yield _Failure(title, _kind(result), result.reason or "", lines, again)
    corpus = result.corpus
    if corpus is not None and corpus.status == "violated":
        again = rerun.of(result.invariant, on_corpus=True)
        lines = _lines(corpus.reason, result, corpus.counterexample)
        yield _Failure(f"{title}, on the corpus", _kind(corpus), f"on the corpus: {corpus.reason}", lines, again)


def _kind(result: Result | CorpusResult) -> str:
    return "error" if result.error else "failure"


def _lines(reason: str | None, law: Result, counterexample: dict[str, Any] | None) -> list[str]:
    lines = [shown(reason or ""), f"demanded by {law.source}; told in full in docs/laws.md#{law.invariant}"]
    entries = dict(counterexample or {})
    entries.pop("title", None)
    if found := apart(entries.get("expected", ""), entries.get("got", "")):
        expected, got, where = found
        lines += [*_entry("expected", expected), *_entry("got", got), f"they differ: {where}"]
        del entries["expected"], entries["got"]
    for label, value in entries.items():
        lines += _entry(label, textwrap.dedent(value.strip("\n")).split("\n"))
    return lines


def _entry(label: str, lines: list[str]) -> list[str]:
    """`label: value`; a value of several lines stands indented below its label."""
    if len(lines) == 1:
        return [f"{label}: {_shortened(shown(lines[0]), _VALUE)}"]
    return [f"{label}:", *(f"  {line}" for line in _both_ends([_shortened(shown(line), _LINE) for line in lines]))]


def _shortened(text: str, most: int) -> str:
    """A line by its two ends when it is long, saying how much is left out."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} … ({len(text) - 2 * half} characters left out) … {text[-half:]}"


def _both_ends(lines: list[str]) -> list[str]:
    if sum(map(len, lines)) <= _LINES:
        return lines
    head, tail = _within(lines, _LINES // 2), _within(lines[::-1], _LINES // 2)[::-1]
    return [*head, f"… ({len(lines) - len(head) - len(tail)} lines left out) …", *tail]


def _within(lines: list[str], room: int) -> list[str]:
    kept = []
    for text in lines:
        room -= len(text)
        if room < 0:
            break
        kept.append(text)
    return kept


def junit(results: Sequence[Result], name: str, rerun: Rerun, seconds: float) -> str:
    """The run as one JUnit test suite: a case a law; a crash of the subject is an error, a violation a failure.

    `seconds` are those of the whole run.
    """
    failures = {result.invariant: list(_failures(result, rerun)) for result in results}
    kinds = [failure.kind for each in failures.values() for failure in each]
    suite = ET.Element("testsuite", name=name, tests=str(len(results)))
    suite.set("errors", str(kinds.count("error")))
    suite.set("failures", str(kinds.count("failure")))
    suite.set("skipped", str(sum(result.status == "skipped" for result in results)))
    suite.set("time", f"{seconds:.3f}")
    for result in results:
        case = ET.SubElement(suite, "testcase", classname=shown(name), name=f"{result.invariant} {result.name}")
        case.set("time", f"{result.seconds:.3f}")
        if result.status == "skipped":
            ET.SubElement(case, "skipped", message=shown(result.reason or ""))
        for failure in failures[result.invariant]:
            element = ET.SubElement(case, failure.kind, message=shown(failure.reason))
            element.text = "\n".join([*failure.lines, f"again: {failure.again}"])
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)
