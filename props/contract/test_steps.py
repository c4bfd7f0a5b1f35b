"""A counterexample lists what led to it, and a crash says where it was raised."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn

import pytest
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.internal.reflection import repr_call

from overflow.contract.evidence import PROFILES
from overflow.contract.laws import all_laws, expect
from overflow.contract.laws.law import Law
from overflow.contract.runner import Runner
from overflow.contract.scenario import Record, Scenario
from overflow.contract.steps import LINES, Steps
from overflow.contract.subject import Kind, Ref, Scope, Stored
from overflow.contract.world import World
from overflow.embedding.script import Request
from overflow.embedding.wordllama import wordllama_vectors
from overflow.subjects.reference import Reference
from overflow.tokens.synthetic import SyntheticWindow

LAWS = {law.id: law for law in all_laws()}
LONG = "The billing database is PostgreSQL 15. " * 5


def steps_of(check: object) -> list[str]:
    """The steps of the violation that `check` raises on the reference."""
    found = check_once(check)
    return [line.removeprefix("  ") for line in found["steps"].splitlines()[1:]]


def check_once(
    check: object, subject: type[Reference] = Reference, kind: Kind = "mem", **corpus: dict[str, str]
) -> dict[str, str]:
    """The counterexample that `check` gives, on an example of its own or on a corpus of these `documents`."""
    texts = corpus.get("documents", {"a b c d": "a"})
    records = tuple(Record(text, kind) for text in texts)
    scenario = Scenario(SyntheticWindow("words", 3), records, ("a",), ("b", "c"))
    requires = frozenset({"store", "update", "delete", "settle", "text"})
    asked = Law("x", "x", "x", requires, check, None, lambda: st.just(scenario), 1, True, ())  # type: ignore[arg-type]
    with Runner(subject, wordllama_vectors) as runner:
        if corpus:
            found = runner.check_corpus(asked, scenario, None, **corpus).counterexample
        else:
            found = runner.check(asked, replace(PROFILES["quick"], phases=(Phase.generate,)), 0).counterexample
    assert found is not None
    return found


DOCUMENTS = {"a b c d": "corp/a.md", "e f g h": "corp/b.md", "i j k l": "c.jsonl:12", "m n o p": "d.txt"}


def test_a_failure_on_a_corpus_names_its_document_and_tells_its_steps_alone() -> None:
    """The document whose text the record has; the other records' steps are counted, and no record is listed."""

    def check(world: World) -> None:
        subject = world.open()
        refs = [stored.ref for stored in world.fill(subject)]
        subject.settle()
        expect(False, "x", "never", expected=1, got=2, record=refs[1])

    found = check_once(check, documents=DOCUMENTS)
    assert found["document"] == "corp/b.md"
    assert [each.strip() for each in found["steps"].splitlines()[1:]] == [
        "open",
        "… (1 step about other records) …",
        "store 'e f g h' in agent 'agent' → mem 2, queued",
        "… (2 steps about other records) …",
        "settle",
    ]
    assert found["scenario"].splitlines() == ["window words@3, seed 0, model model-1"]


def test_a_text_that_a_law_shows_is_the_document_of_its_failure() -> None:
    """Also where the record was changed since."""

    def check(world: World) -> None:
        subject = world.open()
        refs = [stored.ref for stored in world.fill(subject)]
        subject.update(refs[0], "i j k l")
        expect(False, "x", "never", expected=1, got=2, record=refs[0], text=repr("a b c d"))

    assert check_once(check, documents=DOCUMENTS)["document"] == "corp/a.md"


def test_a_failure_about_no_document_names_none() -> None:
    """A record whose text is no document's, and a law that names no record."""

    def changed(world: World) -> None:
        subject = world.open()
        ref = world.fill(subject)[0].ref
        subject.update(ref, "something else")
        expect(False, "x", "never", expected=1, got=2, record=ref)

    def nameless(world: World) -> None:
        world.fill(world.open())
        expect(False, "x", "never", expected=1, got=2)

    assert "document" not in check_once(changed, documents=DOCUMENTS)
    found = check_once(nameless, documents=DOCUMENTS)
    assert "document" not in found
    assert [each.strip() for each in found["steps"].splitlines()[1:]] == ["open", "… (4 steps about single records) …"]


class FailsOnOne(Reference):
    def store(self, text: str, scope: Scope) -> Stored:
        if text == "e f g h":
            raise ValueError("no")
        return super().store(text, scope)

    def delete(self, ref: Ref) -> None:  # noqa: ARG002 - the protocol's parameter
        raise ValueError("no")


def test_a_crash_on_a_corpus_names_the_document_of_the_call() -> None:
    """What was being written, or the record that the call was about."""

    def writes(world: World) -> None:
        world.fill(world.open())

    def deletes(world: World) -> None:
        subject = world.open()
        ref = subject.store("a b c d", Scope()).ref
        subject.delete(ref)

    found = check_once(writes, FailsOnOne, documents=DOCUMENTS)
    assert found["document"] == "corp/b.md"
    assert found["steps"].splitlines()[-1].strip() == "store 'e f g h' in agent 'agent' → ValueError"
    assert check_once(deletes, FailsOnOne, documents=DOCUMENTS)["document"] == "corp/a.md"


class WithoutEpisodes(Reference):
    archive_episode = None  # type: ignore[assignment]


@pytest.mark.parametrize(("subject", "is_told"), [(Reference, False), (WithoutEpisodes, True)])
def test_an_episode_stored_as_a_memory_is_told(subject: type[Reference], is_told: bool) -> None:
    """The scenario says what became of the kind that a subject does not have."""

    def check(world: World) -> None:
        world.fill(world.open())
        expect(False, "x", "never", expected=1, got=2)

    told = check_once(check, subject, "ep")["scenario"]
    assert ("stored as a memory" in told) == is_told


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

    assert steps_of(check)[2:7] == [
        "settle",
        "  meanwhile by another handle (of a program: another process), from its open to its close:",
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
    assert str(steps) == f"\n  recall 'q' in {told} limit 1"
    scenario = Scenario(SyntheticWindow("words", 3), (Record("a", "mem", scope),), (), ())
    assert str(scenario).splitlines()[1] == f"mem in {told}: 'a'"


@pytest.mark.parametrize(
    ("method", "arguments", "named", "told"),
    [
        ("recall", ("q", Scope("ada"), 10), {}, "recall 'q' in agent 'ada' limit 10"),
        ("contents", (Ref("mem", 1), Scope("ada"), None), {}, "contents mem 1 in agent 'ada'"),
        ("contents", (Ref("mem", 1), Scope("ada"), 0), {}, "contents mem 1 in agent 'ada' node 0"),
        ("lock", (Ref("ep", 2), True), {}, "lock ep 2 locked True"),
        ("kill_at", (3,), {}, "kill_at statement 3"),
        ("configure", (), {"queue": False}, "configure queue False"),
        ("configure", (), {"model": "m"}, "configure model 'm'"),
    ],
)
def test_a_number_says_what_it_is_the_number_of(
    method: str, arguments: tuple[object, ...], named: dict[str, object], told: str
) -> None:
    """By the protocol's own name for it; what was not given is left out."""
    steps = Steps()
    steps.end(steps.begin("a", method, arguments, named), None)
    assert str(steps) == f"\n  {told}"


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
