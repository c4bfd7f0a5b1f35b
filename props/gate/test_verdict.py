"""What the gate says of a run: only a violation is red, and the red laws must equal the named ones."""

import io
import json
from dataclasses import replace
from typing import Any, Literal
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from overflow.gate import report
from overflow.gate.power import Power, power
from overflow.gate.verdict import LawResult, Outcome, Verdict, judged, law_result

State = Literal["green", "red", "skipped", "broken", "idle"]


def results(**states: State) -> list[LawResult]:
    return [LawResult(law.lstrip("_"), state, "why", 3, 0.1) for law, state in states.items()]


@pytest.mark.parametrize(
    ("expected", "states", "outcome", "said"),
    [
        ({"1"}, {"_1": "red", "_2": "green"}, "as_expected", None),
        ({"1", "2"}, {"_1": "red", "_2": "red"}, "as_expected", None),
        (set(), {"_1": "green", "_2": "skipped"}, "as_expected", None),
        ({"1"}, {"_1": "green", "_2": "green"}, "survived", "no law went red; 1 had to"),
        ({"1"}, {"_1": "skipped"}, "broken", "1 cannot be asked: why"),
        ({"1", "2"}, {"_1": "skipped", "_2": "red"}, "broken", "1 cannot be asked: why"),
        ({"1"}, {"_1": "green", "_2": "red"}, "wrong_red", "1 stayed green; 2 went red"),
        ({"1"}, {"_1": "red", "_2": "red"}, "wrong_red", "2 went red"),
        ({"1", "2"}, {"_1": "red", "_2": "green"}, "wrong_red", "2 stayed green"),
        (set(), {"_1": "red"}, "wrong_red", "1 went red"),
        ({"1"}, {"_1": "red", "_2": "broken"}, "broken", "2: why"),
        ({"1"}, {"_1": "broken"}, "broken", "1: why"),
        ({"1"}, {"_1": "red", "_2": "idle"}, "as_expected", None),
        ({"1"}, {"_1": "idle"}, "survived", "no law went red; 1 had to"),
    ],
)
def test_the_red_laws_must_equal_the_named_ones(
    expected: set[str], states: dict[str, State], outcome: Outcome, said: str | None
) -> None:
    """A law too few survives, a law too many is wrong, and what proves nothing breaks the run."""
    found, reason = judged(dict.fromkeys(expected, ()), results(**states))
    assert (found, reason) == (outcome, said)


@pytest.mark.parametrize(
    ("red", "outcome"),
    [
        ({"1": "a"}, "as_expected"),
        ({"1": "a", "2": "other"}, "as_expected"),
        ({"1": "other"}, "wrong_red"),
        ({"1": "a", "3": "c"}, "wrong_red"),
        ({}, "survived"),
    ],
)
def test_on_a_foreign_subject_one_of_the_laws_is_enough(red: dict[str, str], outcome: Outcome) -> None:
    """Which of its laws a saboteur reddens depends on what the subject does; one must, and no law beside them."""
    found = [LawResult(law, "red", title, 3, 0.1) for law, title in red.items()]
    assert judged({"1": ("a",), "2": ("b",)}, found, exact=False)[0] == outcome


def test_a_foreign_subject_may_fail_on_what_only_a_saboteur_shows() -> None:
    """A law beside the named ones may ask it for a node that is not there; that hides nothing, and proves nothing."""
    crash = LawResult("4", "broken", "no such node", 3, 0.1)
    assert judged({"1": ("a",)}, [LawResult("1", "red", "a", 3, 0.1), crash], exact=False) == ("as_expected", None)
    assert judged({"1": ("a",)}, [crash], exact=False) == ("broken", "4: no such node")
    assert judged({"1": ("a",)}, [LawResult("1", "red", "a", 3, 0.1), crash]) == ("broken", "4: no such node")


@pytest.mark.parametrize("state", ["skipped", "idle"])
def test_a_law_that_cannot_be_asked_any_more_has_not_stayed_green(state: State) -> None:
    """A mutant that takes a capability away, or keeps a law's case from coming, hides what else it breaks."""
    unbroken = results(_1="green", _2="green", _3="skipped")
    broken = results(_1="red", _2=state, _3="skipped")
    assert judged({"1": ()}, broken, unbroken) == ("broken", "2 comes to nothing any more: why")
    assert judged({}, results(_1="green", _2=state, _3="skipped"), unbroken)[0] == "broken"
    assert judged({"1": ()}, broken, unbroken, exact=False) == ("as_expected", None)
    assert judged({"1": ()}, results(_1="red", _2="green", _3="skipped"), unbroken) == ("as_expected", None)


def test_a_law_that_goes_red_for_another_reason_is_wrong() -> None:
    """Where the title of a violation is named, no other will do."""
    red = [LawResult("1", "red", "reconstruct returns the same records", 3, 0.1)]
    assert judged({"1": ("recall", "reconstruct returns the same records")}, red) == ("as_expected", None)
    assert judged({"1": ()}, red) == ("as_expected", None)
    assert judged({"1": ("a record is gone",)}, red) == (
        "wrong_red",
        "1 went red for another reason: reconstruct returns the same records",
    )


def line(status: str, counterexample: dict[str, str] | None, *, error: bool = False) -> dict[str, Any]:
    return {
        "invariant": "1",
        "status": status,
        "counterexample": counterexample,
        "error": error,
        "reason": None,
        "examples": 3,
        "seconds": 0.5,
    }


@pytest.mark.parametrize(
    ("result", "state"),
    [
        (line("holds", None), "green"),
        (line("skipped", None), "skipped"),
        (line("violated", {"expected": "a"}), "red"),
        (line("violated", {"scenario": "a"}, error=True), "broken"),
        (line("violated", None), "idle"),
        (line("violated", None, error=True), "broken"),
    ],
)
def test_only_a_violation_is_red(result: dict[str, Any], state: State) -> None:
    """A crash of the subject is none, nor are examples in which too little divided, or the law's case never came."""
    assert law_result(result).state == state


def verdict(name: str, red: set[str], outcome: Outcome = "as_expected") -> Verdict:
    noticed = {law: f"title of {law}" for law in red}
    return Verdict(
        name,
        "source",
        "It <breaks> & so on.",
        frozenset(red),
        noticed,
        dict.fromkeys(red, 1),
        frozenset("12"),
        outcome,
        "r",
        1.25,
    )


def test_power_counts_what_a_law_caught_and_what_it_alone_caught() -> None:
    """A mutant that two laws notice is caught by both and alone by neither; one that did not pass counts nowhere."""
    verdicts = [verdict("a", {"1"}), verdict("b", {"1", "2"}), verdict("c", {"2"}, "wrong_red"), verdict("d", set())]
    assert power(["1", "2", "3"], verdicts) == [
        Power("1", ("a", "b"), ("a",)),
        Power("2", ("b",), ()),
        Power("3", (), ()),
    ]


def test_the_json_is_that_of_the_design() -> None:
    """DESIGN.md, "Command line": the keys it names, and no other."""
    told = json.loads(json.dumps(report.as_json([], [verdict("a", {"2", "1"})], {"b": "the subject lacks repair"})))
    assert told.keys() == {"baseline", "red", "mutants", "not_asked"}
    assert (told["baseline"], told["red"], told["not_asked"]) == ("green", {}, {"b": "the subject lacks repair"})
    (row,) = told["mutants"]
    assert row == {
        "name": "a",
        "kind": "source",
        "expected": ["1", "2"],
        "red": ["1", "2"],
        "noticed": {"1": "title of 1", "2": "title of 2"},
        "after": {"1": 1, "2": 1},
        "outcome": "as_expected",
        "seconds": 1.25,
        "reason": "r",
    }


def test_junit_has_a_case_a_mutant_and_a_failure_for_each_that_does_not_pass() -> None:
    """What CI shows is what the gate said."""
    verdicts = [verdict("a", {"1"}), verdict("b", {"1"}, "survived")]
    suite = ET.fromstring(report.junit([], verdicts, {"c": "the subject lacks repair"}, "overflow mutate"))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "1", "1")
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["b"]
    assert [case.get("name") for case in suite if case.find("skipped") is not None] == ["c"]
    assert "overflow mutate --mutant b" in "".join(suite.itertext())


def test_laws_that_are_red_at_once_are_told_in_every_form() -> None:
    """A run that broke nothing, because the subject breaks a law unbroken, is a failure and says of which law."""
    red = [LawResult("4", "red", "the last node ends at the parent's length", 3, 1.0)]
    suite = ET.fromstring(report.junit(red, [], {}, "overflow mutate"))
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert "4: the last node ends at the parent's length" in "".join(suite.itertext())
    told = report.as_json(red, [], {})
    assert (told["baseline"], told["red"]) == ("red", {"4": "the last node ends at the parent's length"})


def test_a_law_that_was_asked_and_noticed_nothing_is_named() -> None:
    """Nothing shows that it bites on this subject; one that could not be asked is no such law."""
    baseline = [
        LawResult("1", "green", None, 3, 1.0),
        LawResult("2", "green", None, 3, 1.0),
        LawResult("3", "skipped", "", 3, 1.0),
    ]
    assert report.unproved(["1", "2", "3"], baseline, [verdict("a", {"1"})]) == ["2"]


def test_names_and_reasons_from_outside_are_shown_as_text() -> None:
    """A mutants file and a subject say what they like: it forges no line, no element and no command."""
    hostile = replace(verdict("a b\x1b[2J", {"1"}, "survived"), reason="<x>\x00\nnext", breaks="\x1b[31mred\nb")
    junit = report.junit([LawResult("1", "red", "\x00\n", 3, 0.1)], [hostile], {"c\x07": "no\n"}, "overflow mutate")
    suite = ET.fromstring(junit)
    assert [case.get("name") for case in suite][1:] == [r"a b\x1b[2J", r"c\x07"]
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system=None)
    console.print(report.tables(["1"], [hostile]), report.explanations([hostile], "overflow mutate"))
    console.print(report.not_asked({"c\x07": "no\n"}))
    written = console.file.getvalue()  # type: ignore[attr-defined]  # the buffer given to it
    assert not {"\x1b", "\x00", "\x07"} & set(written)
    assert "again: overflow mutate --mutant 'a b\x1b[2J'".replace("\x1b", "\\x1b") in written


def test_the_summary_tells_the_mutants_time_apart() -> None:
    """The design bounds the time of named mutants; saboteurs come on top."""
    verdicts = [verdict("a", {"1"}), replace(verdict("b", {"1"}), kind="saboteur")]
    assert str(report.summary(verdicts, 12.4, 20.0)) == "2 as expected; 1 mutants in 12 s, all in 20 s"
    assert str(report.summary(verdicts[1:], 0.0, 20.0)) == "1 as expected; 20 s"
