"""A counterexample lists what led to it, and a crash says where it was raised."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn

import pytest
from hypothesis import Phase
from hypothesis.internal.reflection import repr_call

from overflow.contract.evidence import PROFILES
from overflow.contract.laws import all_laws, expect
from overflow.contract.laws.law import Law
from overflow.contract.runner import Runner
from overflow.contract.scenario import Record, Scenario
from overflow.contract.steps import LINES, Steps
from overflow.contract.subject import Ref, Scope, Stored
from overflow.contract.world import World
from overflow.embedding.script import Request
from overflow.embedding.wordllama import wordllama_vectors
from overflow.subjects.reference import Reference
from overflow.tokens.synthetic import SyntheticWindow

LAWS = {law.id: law for law in all_laws()}
LONG = "The billing database is PostgreSQL 15. " * 5


def steps_of(check: object) -> list[str]:
    """The steps of the violation that `check` raises on the reference."""
    law = LAWS["4"]
    asked = Law(
        "x", "x", "x", frozenset({"store", "update", "settle", "text"}), check, None, law.scenarios, 1, True, ()
    )  # type: ignore[arg-type]
    scenario = Scenario(SyntheticWindow("words", 3), (Record("a b c d"),), ("a",), ("b", "c"))
    with Runner(Reference, wordllama_vectors) as runner:
        found = runner.check_corpus(asked, scenario).counterexample
    assert found is not None
    return [line.removeprefix("  ") for line in found["steps"].splitlines()[1:]]


def test_counterexample_lists_the_calls_in_order() -> None:
    """What the law did, long texts by their two ends; reads that look past the subject are no steps."""

    def check(world: World) -> None:
        subject = world.open()
        ref = subject.store(LONG, Scope()).ref
        subject.settle()
        subject.text(ref)
        subject.update(ref, "new")
        expect(False, "x", "never", expected=1, got=2)

    assert steps_of(check) == [
        "open",
        "store 'The billing database'…'e is PostgreSQL 15. ' (195 characters) in agent 'agent' → mem 1, queued",
        "settle",
        "update mem 1 'new' → mem 1",
    ]


def test_steps_say_on_which_of_two_stores() -> None:
    """With several directories each step begins with the one it was in."""

    def check(world: World) -> None:
        left, right = world.open("with"), world.open("without")
        right.settle()
        left.settle()
        expect(False, "x", "never", expected=1, got=2)

    assert steps_of(check) == ["with: open", "without: open", "without: settle", "with: settle"]


def test_calls_inside_a_call_are_shown_inside_it() -> None:
    """What happens while a build waits comes after the build began."""

    def check(world: World) -> None:
        subject = world.open()
        ref = subject.store("a b c d", Scope()).ref

        def update(request: Request) -> None:
            if request.path == "/embed":
                world.server.script.hook = None
                with world.second_handle() as other:
                    other.update(ref, "e")

        with world.meanwhile(update):
            subject.settle()
        expect(False, "x", "never", expected=1, got=2)

    assert steps_of(check)[2:6] == [
        "settle",
        "  meanwhile open",
        "  meanwhile update mem 1 'e' → mem 1",
        "  meanwhile close",
    ]


@pytest.mark.parametrize(
    ("scope", "told"),
    [
        (Scope("ada", "", "mail"), "agent 'ada', channel 'mail'"),
        (Scope("", "tree", ""), "project 'tree'"),
        (Scope("", "", ""), "no scope"),
    ],
)
def test_a_scope_is_shown_by_its_axes(scope: Scope, told: str) -> None:
    """Only those that are not empty, named; in the scenario as in the steps."""
    steps = Steps()
    steps.end(steps.begin("a", "recall", ("q", scope, 1), {}), None)
    assert str(steps) == f"\n  recall 'q' in {told} 1"
    scenario = Scenario(SyntheticWindow("words", 3), (Record("a", "mem", scope),), (), ())
    assert str(scenario).splitlines()[1] == f"mem in {told}: 'a'"


def test_long_histories_keep_first_and_last() -> None:
    """Of a long history both ends are shown, and how much was left out."""
    steps = Steps()
    for number in range(1_000):
        steps.note(f"step {number}")
    lines = str(steps).splitlines()[1:]
    assert len(lines) == LINES + 1
    assert (lines[0], lines[-1]) == ("  step 0", "  step 999")
    assert lines[LINES // 2] == f"  … ({1_000 - LINES} steps left out) …"


class Breaks(Reference):
    def update(self, ref: Ref, text: str) -> Stored:
        self._claim(ref, text)

    def _claim(self, ref: Ref, text: str) -> NoReturn:  # noqa: ARG002 - like the protocol's
        raise ValueError("no such lease")


@pytest.fixture
def breaks() -> Iterator[Runner]:
    with Runner(Breaks, wordllama_vectors) as runner:
        yield runner


def test_crash_says_where_and_after_what(breaks: Runner) -> None:
    """The last frame of the subject's own code ends the line, and the steps are there as with a violation."""
    found = breaks.check(LAWS["rewrite"], PROFILES["quick"], 0)
    line = Breaks._claim.__code__.co_firstlineno + 1
    assert found.reason == (f"the subject's update raised ValueError: no such lease (test_steps.py:{line}, in _claim)")
    assert found.counterexample is not None
    last = found.counterexample["steps"].splitlines()[-1]
    assert last.startswith("  update ")
    assert last.endswith(" → ValueError")


def test_machine_s_counterexample_lists_its_steps() -> None:
    """The state machine's steps are the calls it made, as any law's."""

    class Loses(Reference):
        def delete(self, ref: Ref) -> None: ...

    with Runner(Loses, wordllama_vectors) as runner:
        finding = replace(PROFILES["quick"], phases=(Phase.generate,))
        found = runner.check(LAWS["interleavings"], finding, 0)
    assert found.reason == "the stored records are those written"
    assert found.counterexample is not None
    assert re.search(r"^  (  meanwhile )?delete (mem|ep) \d+$", found.counterexample["steps"], re.MULTILINE)


def test_scenario_of_long_records_is_written_out_shortly() -> None:
    """Hypothesis writes out what it draws, and warns of values as long as a record at the limit."""
    scenario = Scenario(SyntheticWindow("words", 3), (Record("a " * 8_000),), ("a",), ("b", "c"))
    assert len(repr_call(lambda drawn: drawn, (scenario,), {})) < 200
