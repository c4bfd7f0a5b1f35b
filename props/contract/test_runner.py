"""The runner on broken subjects: what is no violation is not called one, and a run without force does not hold."""

import errno
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase

from overflow.contract.child import EndedError
from overflow.contract.conformity import require_conformity
from overflow.contract.evidence import PROFILES
from overflow.contract.laws import all_laws
from overflow.contract.laws.law import Law
from overflow.contract.runner import Runner
from overflow.contract.scenario import Record, Scenario
from overflow.contract.steps import Steps
from overflow.contract.subject import Health, Hit, Node, Ref, Scope, Stored, Subject, SubjectDied, method_name
from overflow.contract.violation import Violation
from overflow.contract.watched import SubjectCrash, Watched
from overflow.contract.world import World
from overflow.embedding.wordllama import wordllama_vectors
from overflow.errors import InputError, UnavailableError
from overflow.subjects.reference import Reference
from overflow.tokens.synthetic import SyntheticWindow

LAWS = {law.id: law for law in all_laws()}
QUICK = PROFILES["quick"]
#: Finding a failure is asked here, not making it small.
FINDING = replace(PROFILES["ci"], phases=(Phase.explicit, Phase.generate))


class Gone(Reference):
    """A subject whose process ended, as a child over stdio would."""

    calls = 0

    def store(self, text: str, scope: Scope) -> Stored:  # noqa: ARG002 - the protocol's parameters
        Gone.calls += 1
        raise EndedError("the process ended", 1)


class LosesKilled(Reference):
    """A subject that loses its first record whenever it was killed during a settle or a repair."""

    def open(self, directory: str, embedding_url: str) -> None:
        super().open(directory, embedding_url)
        self._directory = directory

    def settle(self) -> None:
        try:
            super().settle()
        except SubjectDied:
            self.execute("DELETE FROM memories WHERE id = (SELECT min(id) FROM memories)")
            raise


class IgnoresQueueOff(Reference):
    """A subject that builds nodes although its queue is off, and ranks what has nodes first."""

    def configure(self, *, queue: bool | None = None, model: str | None = None) -> None:  # noqa: ARG002 - so it must
        super().configure(queue=None, model=model)

    def store(self, text: str, scope: Scope) -> Stored:
        stored = super().store(text, scope)
        self.settle()
        return stored

    def recall(self, query: str, scope: Scope, limit: int) -> list[Hit]:
        return sorted(super().recall(query, scope, limit), key=lambda hit: not self.nodes(hit.ref))


class NamesEverything(Reference):
    """Health that calls every record's nodes missing, also those of records that fit."""

    def health(self) -> Health:
        return Health(tuple(self.refs()), super().health().findings)


def result(subject: type[Subject], law_id: str) -> Any:
    with Runner(subject, wordllama_vectors) as runner:
        return runner.check(LAWS[law_id], FINDING, 0)


def test_gone_subject_is_asked_no_further() -> None:
    """A subject that is not available any more is an error of one law, found once, and no later law asks it."""
    Gone.calls = 0
    with Runner(Gone, wordllama_vectors) as runner:
        first = runner.check(LAWS["3"], QUICK, 0)
        second = runner.check(LAWS["4"], QUICK, 0)
    assert (first.status, first.error) == ("violated", True)
    assert first.counterexample is not None
    assert "window" in first.counterexample["scenario"]
    assert (second.status, second.examples) == ("skipped", 0)
    assert "not available any more" in (second.reason or "")
    assert Gone.calls == 1


class ServerAway(Reference):
    """A subject that says the server it embeds at is away, and can be asked again."""

    def settle(self) -> None:
        raise UnavailableError("the embedding server does not answer")


class NoRoom(Reference):
    def store(self, text: str, scope: Scope) -> Stored:  # noqa: ARG002 - the protocol's parameters
        raise RuntimeError("cannot write") from OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(("kind", "is_gone"), [(ServerAway, False), (NoRoom, True)])
def test_what_a_subject_raises_is_its_end_only_for_want_of_room(kind: type[Subject], is_gone: bool) -> None:
    """Any other exception is the error of one law, whatever its type, and the next law is asked."""
    with Runner(kind, wordllama_vectors) as runner:
        first = runner.check(LAWS["3"], FINDING, 0)
        second = runner.check(LAWS["4"], FINDING, 0)
    assert (first.status, first.error) == ("violated", True)
    assert (runner.gone is not None, second.status == "skipped") == (is_gone, is_gone)


def test_a_subject_lost_on_the_corpus_is_gone_for_every_law(runner: Runner) -> None:
    """It is an error and no violation, as among generated examples."""
    crashing = _law(lambda world: world.open().store("a", Scope()))
    with Runner(Gone, wordllama_vectors) as lost:
        found = lost.check_corpus(crashing, _scenario(["a b c d"]))
        assert (found.status, found.error) == ("violated", True)
        assert lost.check(LAWS["4"], QUICK, 0).status == "skipped"

    def violating(_: World) -> None:
        raise Violation("x", "never", 1, 2)

    found = runner.check_corpus(_law(violating), _scenario(["a b c d"]))
    assert (found.status, found.error) == ("violated", False)


class Undeclared(Reference):
    capabilities = ("no such thing",)
    closed = 0

    def close(self) -> None:
        super().close()
        Undeclared.closed += 1


def test_a_subject_that_cannot_be_introduced_is_closed() -> None:
    """What was opened is closed, also where its capabilities are refused."""
    with pytest.raises(InputError, match="no such capability"), Runner(Undeclared, wordllama_vectors):
        pass
    assert Undeclared.closed == 1


def test_tokens_are_known_again_after_a_law_that_failed(runner: Runner) -> None:
    """What a law does to the server ends with its block, however that ends."""
    left: list[object] = []

    def check(world: World) -> None:
        try:
            with world.tokens_unknown("token_info: null"):
                raise LookupError
        except LookupError:
            left.append(world.server.script.window)
        world.divided.add(("a", Ref("mem", 1)))

    scenario = _scenario(["a b c d"])
    runner.check_corpus(_law(check), scenario)
    assert left == [scenario.window]


def test_a_hook_inside_another_gives_back_the_outer_one(runner: Runner) -> None:
    """What a server does is changed for a block alone, also inside a block that changed it already."""
    seen: list[object] = []

    def check(world: World) -> None:
        with world.meanwhile(lambda _: None):
            outer = world.server.script.hook
            with world.failing(0):
                pass
            seen.append(world.server.script.hook is outer)
        seen.append(world.server.script.hook)
        world.divided.add(("a", Ref("mem", 1)))

    runner.check_corpus(_law(check), _scenario(["a b c d"]))
    assert seen == [True, None]


def test_loss_after_a_kill_is_seen() -> None:
    """A record that is gone after a settle was killed was lost by it: settling changes no record."""
    found = result(LosesKilled, "interleavings")
    assert found.status == "violated"
    assert found.reason == "a killed operation happened wholly or not at all"


def test_twin_with_nodes_compares_nothing() -> None:
    """Invariant 1 needs a store without nodes: one that builds them with its queue off is told."""
    found = result(IgnoresQueueOff, "1")
    assert (found.status, found.error) == ("violated", False)
    assert "builds no nodes" in found.reason


@pytest.mark.parametrize("law_id", ["repair", "model"])
def test_health_that_names_everything_is_wrong(law_id: str) -> None:
    """Naming records that fit is as wrong as naming none."""
    found = result(NamesEverything, law_id)
    assert (found.status, found.error) == ("violated", False)


@pytest.fixture
def runner() -> Iterator[Runner]:
    with Runner(Reference, wordllama_vectors) as running:
        yield running


def _scenario(texts: Sequence[str]) -> Scenario:
    return Scenario(SyntheticWindow("words", 3), tuple(Record(text) for text in texts), ("a", "b"), ("c", "d"))


def _law(check: Any, requires: str = "store", evidence: tuple[str, ...] = ()) -> Law:
    scenarios = LAWS["4"].scenarios
    return Law("x", "made up", "nowhere", frozenset(requires.split()), check, None, scenarios, 1.0, True, evidence)


def test_law_calls_only_what_it_requires(runner: Runner) -> None:
    """A law that uses an undeclared capability is a defect of the harness, and raises as one."""

    def check(world: World) -> None:
        world.open().health()

    with pytest.raises(LookupError, match="health"):
        runner.check_corpus(_law(check), _scenario(["a b c d"]))


def test_evidence_is_demanded(runner: Runner) -> None:
    """A law whose case never came up in any example does not hold."""

    def check(world: World) -> None:
        world.divided.add(("a", Ref("mem", 1)))

    found = runner.check(_law(check, evidence=("races",)), QUICK, 0)
    assert (found.status, found.reason) == ("violated", "races: 0 in 40 examples, 2 are needed to prove anything")


@pytest.mark.parametrize(("occasions", "status"), [(0, "skipped"), (1, "violated")])
def test_evidence_is_demanded_of_whoever_gave_the_occasion(runner: Runner, occasions: int, status: str) -> None:
    """Where the subject never did what a law is about there is nothing to ask; where it did, the law needs force."""

    def check(world: World) -> None:
        world.divided.add(("a", Ref("mem", 1)))
        world.evidence["builds"] += occasions

    found = runner.check(replace(_law(check, evidence=("races",)), occasion="builds"), QUICK, 0)
    assert found.status == status
    assert ("no builds" if status == "skipped" else "races: 0 in 40") in (found.reason or "")


def test_corpus_of_which_too_little_divides_proves_nothing(runner: Runner) -> None:
    """DESIGN.md, principle 4: of the records that run past the window half must divide."""

    def check(world: World) -> None:
        world.divided.add(("a", Ref("mem", 1)))

    found = runner.check_corpus(_law(check), _scenario(["a b c d", "e f g h", "i j k l"]))
    assert (found.status, found.reason) == ("violated", "too few records divided: 1 of the 3 that run past the window")


def test_equal_texts_of_a_corpus_are_records_each(runner: Runner) -> None:
    """A corpus may hold a document twice, and a law two stores: what is counted is records of one store."""
    scenario = _scenario(["a b c d"] * 3)

    def check(world: World) -> None:
        for name in ("a", "b"):
            subject = world.open(name)
            refs = [each.ref for each in world.fill(subject)]
            world.settle(subject)
            for ref in refs:
                world.nodes(subject, ref)

    law = replace(_law(check), requires=frozenset({"store", "nodes", "text", "settle"}))
    found = runner.check_corpus(law, scenario)
    assert (found.status, found.divided, found.records) == ("holds", 3, 3), found.reason


@pytest.mark.parametrize(
    ("method", "value", "fits"),
    [
        ("store", Stored(Ref("mem", 1), None), True),
        ("store", Stored(Ref("mem", 1), "queued"), True),
        ("store", None, False),
        ("store", {"ref": 1}, False),
        ("store", Stored("mem 1", None), False),  # type: ignore[arg-type]
        ("store", Stored(Ref("note", 1), None), False),  # type: ignore[arg-type]
        ("nodes", [], True),
        ("nodes", [Node(0, 0, 1, 1, 1, None, "m")], True),
        ("nodes", [Node(0, 0, 1, 1, 1, "text", "m")], False),  # type: ignore[arg-type]
        ("nodes", [(0, 1)], False),
        ("nodes", None, False),
        ("text", None, True),
        ("text", "", True),
        ("text", 5, False),
        ("recall", [Hit(Ref("ep", 2), 1)], True),
        ("recall", [Hit(Ref("ep", 2), "1")], False),  # type: ignore[arg-type]
        ("health", Health((Ref("mem", 1),), {"odd": ()}), True),
        ("health", Health((), {"odd": ("mem",)}), False),  # type: ignore[dict-item]
        ("settle", None, True),
        ("settle", 0, False),
        ("execute", [[1, "a", None]], True),
    ],
)
def test_answers_are_held_to_the_protocol(method: str, value: Any, fits: bool) -> None:
    """A value of another shape than the protocol's is a TypeError that names the method."""
    if fits:
        require_conformity(method_name(method), value)
    else:
        with pytest.raises(TypeError, match=f"{method} returned"):
            require_conformity(method_name(method), value)


@pytest.mark.parametrize("raised", [ValueError("no"), SystemExit(0), SubjectDied("untold")])
def test_whatever_a_subject_raises_is_its_crash(raised: BaseException) -> None:
    """An exit or a death nobody asked for does not end the harness."""

    class Raising:
        def settle(self) -> None:
            raise raised

    with pytest.raises(SubjectCrash, match=type(raised).__name__):
        Watched(Raising(), {"settle"}, Steps(), "a", 60.0).settle()  # type: ignore[arg-type]
