"""The gate's verdicts as JSON, as tables for a terminal, as JUnit and as a page. Pure functions; nothing is decided."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from jinja2 import Environment, PackageLoader, StrictUndefined
from rich.console import Group
from rich.table import Table
from rich.text import Text

from overflow.gate.power import power
from overflow.gate.verdict import LawResult, Verdict
from overflow.shown import shown


def as_json(red: Sequence[LawResult], verdicts: Sequence[Verdict], left_out: Mapping[str, str]) -> dict[str, Any]:
    """The object of DESIGN.md, "Command line"; times are seconds.

    `red` are the laws that are red on the subject unbroken; `left_out` gives each breaking that the subject cannot
    be asked about the reason.
    """
    return {
        "baseline": "red" if red else "green",
        "red": {result.law: result.reason for result in red},
        "mutants": [
            {
                "name": verdict.name,
                "kind": verdict.kind,
                "expected": sorted(verdict.expected),
                "red": sorted(verdict.red),
                "noticed": dict(verdict.noticed),
                "after": dict(verdict.after),
                "outcome": verdict.outcome,
                "seconds": round(verdict.seconds, 3),
                "reason": verdict.reason,
            }
            for verdict in verdicts
        ],
        "not_asked": dict(left_out),
    }


def tables(laws: Sequence[str], verdicts: Sequence[Verdict]) -> Group:
    """Each verdict, then the power of each law that caught something."""
    each = Table(title="mutants and saboteurs", title_justify="left")
    each.add_column("name", no_wrap=True)
    each.add_column("outcome", no_wrap=True)
    each.add_column("red", overflow="fold")
    each.add_column("breaks", overflow="fold")
    for verdict in verdicts:
        style = "green" if verdict.passes else "bold red"
        red = " ".join(_ordered(laws, verdict.red)) or ("stays green" if verdict.passes else "")
        # Untrusted text stays text: no markup is read in it.
        words = (Text(shown(verdict.name)), Text(verdict.outcome.replace("_", " "), style))
        each.add_row(*words, red, Text(shown(verdict.breaks)))
    catches = Table(title="power", title_justify="left")
    catches.add_column("law", no_wrap=True)
    catches.add_column("caught", justify="right")
    catches.add_column("alone")
    for law in power(laws, verdicts):
        if law.caught:
            catches.add_row(law.law, str(len(law.caught)), Text(shown(", ".join(law.alone))))
    return Group(each, catches)


def explanations(verdicts: Sequence[Verdict], again: str) -> Group:
    """Why each verdict that does not pass does not, and the command that shows it again (`again` with its name)."""
    lines = [
        f"{shown(v.name)}: {v.outcome.replace('_', ' ')}: {shown(v.reason or '')}\n  again: {_named(again, v)}"
        for v in verdicts
        if not v.passes
    ]
    return Group(*(Text(line) for line in lines))


def summary(verdicts: Sequence[Verdict], mutants: float, whole: float) -> Text:
    """One line: how many ended how, and how long the mutants and all of it took (seconds)."""
    outcomes = Counter(verdict.outcome.replace("_", " ") for verdict in verdicts)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    passes = bool(verdicts) and all(verdict.passes for verdict in verdicts)
    named = sum(verdict.kind == "source" for verdict in verdicts)
    times = f"{named} mutants in {mutants:.0f} s, all in {whole:.0f} s" if named else f"{whole:.0f} s"
    return Text(f"{counts or 'nothing to break'}; {times}", "green" if passes else "red")


def not_asked(left_out: Mapping[str, str]) -> Group:
    """What the subject cannot be asked about, a line a reason."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        by_reason.setdefault(reason, []).append(name)
    lines = [f"not asked, {reason}: {', '.join(names)}" for reason, names in by_reason.items()]
    return Group(*(Text(shown(line)) for line in lines))


def unproved(laws: Sequence[str], baseline: Sequence[LawResult], verdicts: Sequence[Verdict]) -> list[str]:
    """The laws that were asked and noticed nothing of all that was broken: nothing shows that they bite here."""
    asked = {result.law for result in baseline if result.state != "skipped"}
    return [law.law for law in power(laws, verdicts) if law.law in asked and not law.caught]


def junit(red: Sequence[LawResult], verdicts: Sequence[Verdict], left_out: Mapping[str, str], again: str) -> str:
    """One JUnit test suite: a case for the subject unbroken and one a mutant or saboteur.

    Every outcome but the expected one is a failure, with the command that shows it again (`again` with its name).
    """
    suite = ET.Element("testsuite", name="overflow.mutate", tests=str(1 + len(verdicts) + len(left_out)))
    suite.set("failures", str(bool(red) + sum(not verdict.passes for verdict in verdicts)))
    suite.set("skipped", str(len(left_out)))
    unbroken = ET.SubElement(suite, "testcase", classname="overflow.mutate", name="the laws on the subject unbroken")
    if red:
        failure = ET.SubElement(unbroken, "failure", message=f"red on the subject unbroken: {red[0].law}")
        failure.text = "\n".join(shown(f"{result.law}: {result.reason}") for result in red)
    for verdict in verdicts:
        case = ET.SubElement(suite, "testcase", classname=f"overflow.mutate.{verdict.kind}", name=shown(verdict.name))
        case.set("time", f"{verdict.seconds:.3f}")
        if not verdict.passes:
            failure = ET.SubElement(case, "failure", message=shown(f"{verdict.outcome}: {verdict.reason}"))
            laws = f"expected {' '.join(sorted(verdict.expected))}; red {' '.join(sorted(verdict.red))}"
            failure.text = "\n".join(shown(line) for line in (verdict.breaks, laws, _named(again, verdict)))
    for name, reason in left_out.items():
        case = ET.SubElement(suite, "testcase", classname="overflow.mutate", name=shown(name))
        ET.SubElement(case, "skipped", message=shown(reason))
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)


def page(
    subject: str,
    laws: Mapping[str, str],
    baseline: Sequence[LawResult],
    red: Sequence[LawResult],
    verdicts: Sequence[Verdict],
) -> str:
    """The power matrix as a page of its own, that opens without a network; `laws` gives each law its name."""
    environment = Environment(loader=PackageLoader("overflow.gate", "."), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("page.html").render(
        subject=subject,
        laws=list(laws),
        names=laws,
        skipped={result.law: result.reason for result in baseline if result.state == "skipped"},
        verdicts=verdicts,
        powers=power(list(laws), verdicts),
        failed=[verdict for verdict in verdicts if not verdict.passes],
        red=red,
    )


def _named(again: str, verdict: Verdict) -> str:
    return shown(f"{again} --mutant {shlex.quote(verdict.name)}")


def _ordered(laws: Sequence[str], some: frozenset[str]) -> list[str]:
    return [law for law in laws if law in some]
