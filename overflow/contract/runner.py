"""Runs laws against a subject and says of each whether it holds, is violated, or could not be asked.

A law that found no force in its own examples (too few of them divided, or nothing was ever recalled) does not hold: a
check that can't fail is a defect. DESIGN.md, principle 4; "Command line", `overflow check`.
"""

import math
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.errors import Flaky
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from overflow.contract.laws.law import Law
from overflow.contract.scenario import Scenario
from overflow.contract.signals import TIMEOUT, terminated_as_interrupted
from overflow.contract.steps import Steps
from overflow.contract.subject import CAPABILITIES, CLAIMS, Subject, capabilities
from overflow.contract.violation import Violation
from overflow.contract.watched import SubjectCrash, Watched, started
from overflow.contract.world import SubjectFactory, World
from overflow.embedding.script import Model, Script
from overflow.embedding.server import ScriptedServer
from overflow.errors import InputError, UnavailableError

Status = Literal["holds", "violated", "skipped"]


@dataclass(frozen=True)
class Profile:
    """How hard to look: examples an invariant, the share of them that must really divide, steps of a state machine.

    `beside` is the share of the examples that a law beside the six invariants runs.
    """

    name: str
    examples: int
    divided: float
    steps: int
    beside: float = 1.0
    phases: tuple[Phase, ...] = (Phase.explicit, Phase.generate, Phase.target, Phase.shrink)

    def count(self, law: Law) -> int:
        """Examples of one law."""
        share = law.share if law.is_invariant else min(law.share, self.beside)
        return max(1, round(self.examples * share))


PROFILES = {
    "quick": Profile("quick", 40, 0.5, 12),
    "ci": Profile("ci", 300, 0.5, 20, 1 / 3),
    "deep": Profile("deep", 3_000, 0.5, 50, 1 / 3),
}


@dataclass(frozen=True)
class CorpusResult:
    """A law on a real corpus: `records` in it, of which `divided`; times are seconds."""

    status: Status
    reason: str | None
    records: int
    divided: int
    seconds: float
    counterexample: dict[str, Any] | None = None


@dataclass(frozen=True)
class Result:
    """What became of one law. `error` tells a crash of the subject from a violation of the law."""

    invariant: str
    name: str
    source: str
    status: Status
    reason: str | None
    examples: int
    divided: int
    seconds: float
    counterexample: dict[str, Any] | None = None
    error: bool = False
    corpus: CorpusResult | None = None


@dataclass
class _Tally:
    """Counts over one law's examples, until the first failure: shrinking is no evidence."""

    examples: int = 0
    divided: int = 0
    evidence: Counter[str] = field(default_factory=Counter)
    failed: bool = False
    gone: SubjectCrash | None = None

    def add(self, world: World) -> None:
        if not self.failed:
            self.examples += 1
            self.divided += bool(world.divided)
            self.evidence += world.evidence


def described(violation: Violation) -> dict[str, str]:
    """A counterexample as data: every value as a person would read it."""
    found = {"title": violation.title, "expected": violation.expected, "got": violation.got, **violation.context}
    return _as_text(found)


def _as_text(context: Mapping[str, Any]) -> dict[str, str]:
    return {label: str(value) for label, value in context.items()}


class Runner:
    """One run over one subject: the scripted server, and a directory for the examples' stores; a context manager.

    `timeout` bounds each call of the subject (seconds). Interrupted, also by SIGTERM, it ends what it opened and raises
    KeyboardInterrupt, whose text says which law and which call were running.
    """

    def __init__(
        self,
        factory: SubjectFactory,
        model: Model,
        *,
        on_example: Callable[[], None] = lambda: None,
        timeout: float = TIMEOUT,
    ) -> None:
        self._factory = factory
        self._model = model
        self._on_example = on_example
        self._timeout = timeout
        self._stack = ExitStack()
        #: Why the subject cannot be asked any further; None while it can.
        self.gone: str | None = None

    def __enter__(self) -> Self:
        """Start the server and open the subject once, to learn what it is; UnavailableError when it does not open."""
        with self._stack:
            self._stack.enter_context(terminated_as_interrupted())
            self._root = Path(self._stack.enter_context(_directory()))
            self._server = self._stack.enter_context(ScriptedServer(Script(None, self._model)))
            self._introduce()
            self._stack = self._stack.pop_all()
        return self

    def _introduce(self) -> None:
        try:
            subject = started(self._factory, self._timeout)
            watched = Watched(subject, (), Steps(), "", self._timeout)
            watched.open(str(self._root), self._server.url)
            self.name, self.version = subject.name, subject.version
            self.capabilities = _capabilities(subject)
            watched.close()
        except SubjectCrash as crash:
            raise UnavailableError(f"the subject's {crash}") from crash

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def check(self, law: Law, profile: Profile, random_seed: int) -> Result:
        """Run one law over generated examples."""
        if reason := self._cannot_ask(law):
            return Result(law.id, law.name, law.source, "skipped", reason, 0, 0, 0.0)
        tally = _Tally()
        configured = settings(
            max_examples=profile.count(law),
            phases=profile.phases,
            database=None,
            deadline=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
            stateful_step_count=profile.steps,
            verbosity=Verbosity.quiet,
        )
        run = self._machine(law, law.machine, tally) if law.machine else self._generated(law, tally)
        started = time.perf_counter()
        status, reason, counterexample, error = self._outcome(law, lambda: run(configured, random_seed))
        if status == "holds":
            status, reason = _force(law, tally, profile)
        seconds = time.perf_counter() - started
        return Result(
            law.id, law.name, law.source, status, reason, tally.examples, tally.divided, seconds, counterexample, error
        )

    def _generated(self, law: Law, tally: _Tally) -> Callable[[settings, int], None]:
        def example(scenario: Scenario) -> None:
            with self._world(law, scenario, tally) as world:
                _checked(law, world)
            self._on_example()

        return lambda configured, random_seed: seed(random_seed)(configured(given(law.scenarios())(example)))()

    def _machine(
        self, law: Law, machine: type[RuleBasedStateMachine], tally: _Tally
    ) -> Callable[[settings, int], None]:
        runner = self

        class Seeded(machine):  # type: ignore[valid-type,misc]  # a base class that is a value
            """The law's machine in worlds of this run, closed with each example."""

            def __init__(self) -> None:
                self._worlds = ExitStack()
                super().__init__(lambda scenario: self._worlds.enter_context(runner._world(law, scenario, tally)))

            def teardown(self) -> None:
                with self._worlds:
                    if self.failure is not None:
                        raise self.failure  # Once more, in its world, which knows the steps that led to it.
                    super().teardown()
                runner._on_example()

        return lambda configured, random_seed: run_state_machine_as_test(seed(random_seed)(Seeded), settings=configured)

    def check_corpus(self, law: Law, scenario: Scenario) -> CorpusResult:
        """Run one law once, over the records of a corpus."""
        records = len(scenario.records)
        if not law.on_corpus:
            return CorpusResult("skipped", "its examples are made for it", records, 0, 0.0)
        if reason := self._cannot_ask(law):
            return CorpusResult("skipped", reason, records, 0, 0.0)
        started = time.perf_counter()
        divided: set[str] = set()

        tally = _Tally()

        def once() -> None:
            with self._world(law, scenario, tally) as world:
                try:
                    _checked(law, world)
                finally:
                    divided.update(world.divided)

        status, reason, counterexample, _ = self._outcome(law, once)
        if status == "holds":
            long = sum(scenario.runs_past(record.text) for record in scenario.records)
            if not divided or 2 * len(divided) < long:
                status = "violated"
                reason = f"too few records divided: {len(divided)} of the {long} that run past the window"
            else:
                status, reason = _evident(law, tally)
        return CorpusResult(status, reason, records, len(divided), time.perf_counter() - started, counterexample)

    @contextmanager
    def _world(self, law: Law, scenario: Scenario, tally: _Tally) -> Iterator[World]:
        """One example's world in a directory of its own; what it saw is added to the tally."""
        self._server.script = Script(scenario.window, self._model, scenario.identity)
        self._server.reset()
        if tally.gone is not None:
            # Shrinking would only wait for the same again: an ended process, a time-out, a full disk.
            raise tally.gone
        directory = Path(tempfile.mkdtemp(dir=self._root))
        try:
            world = World(
                self._factory, self._server, scenario, directory, self.capabilities, law.requires, self._timeout
            )
            with world:
                try:
                    yield world
                except (SubjectCrash, Violation) as failure:
                    failure.context |= {"steps": str(world.steps), "scenario": scenario}
                    raise
                finally:
                    tally.add(world)
        except SubjectCrash as crash:
            tally.failed = True
            if crash.unavailable:
                tally.gone = crash
            raise
        except Violation:
            tally.failed = True
            raise
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _outcome(self, law: Law, run: Callable[[], None]) -> tuple[Status, str | None, dict[str, Any] | None, bool]:
        try:
            run()
        except Violation as violation:
            return "violated", violation.title, described(violation), False
        except Flaky as flaky:
            return "violated", f"the same example did not fail twice: {flaky}", None, True
        except SubjectCrash as crash:
            if crash.unavailable:
                self.gone = str(crash)
            return "violated", f"the subject's {crash}", _as_text(crash.context), True
        except KeyboardInterrupt as interrupt:
            raise KeyboardInterrupt(
                f"law {law.id}, {law.name}" + f"; {interrupt}" * bool(interrupt.args)
            ) from interrupt
        return "holds", None, None, False

    def _cannot_ask(self, law: Law) -> str | None:
        if self.gone is not None:
            return f"the subject is not available any more: {self.gone}"
        missing = sorted(law.requires - self.capabilities)
        return f"the subject lacks {', '.join(missing)}" if missing else None


def _capabilities(subject: Subject) -> frozenset[str]:
    try:
        offered = capabilities(subject)
    except TypeError as error:
        raise InputError(f"{subject.name}: its `capabilities` is no collection of names") from error
    unknown = sorted(str(name) for name in offered if name not in (*CAPABILITIES, *CLAIMS))
    if unknown:
        raise InputError(f"{subject.name} declares {unknown[0]!r}, and there is no such capability")
    return offered


def _directory() -> tempfile.TemporaryDirectory[str]:
    """Where the examples' stores lie, gone at the end; raises InputError where none can be made."""
    try:
        return tempfile.TemporaryDirectory(prefix="overflow-", ignore_cleanup_errors=True)
    except OSError as error:
        raise InputError(f"cannot make a temporary folder ({error.strerror}); set TMPDIR to one with room") from error


def _checked(law: Law, world: World) -> None:
    assert law.check is not None
    law.check(world)


def _force(law: Law, tally: _Tally, profile: Profile) -> tuple[Status, str | None]:
    """What examples without a failure prove: that the law holds, nothing (and why), or that it could not be asked."""
    if tally.divided < profile.divided * tally.examples:
        few = f"too few examples divided: {tally.divided} of {tally.examples}, {profile.divided:.0%} are needed"
        return "violated", few
    return _evident(law, tally)


#: The share of examples in which what a law is about must really have happened.
_EVIDENCE = 0.05


def _evident(law: Law, tally: _Tally) -> tuple[Status, str | None]:
    if law.occasion is not None and not tally.evidence[law.occasion]:
        return "skipped", f"the subject had no {law.occasion}, in {tally.examples} examples: there was nothing to ask"
    for name in law.evidence:
        needed = max(1, math.ceil(_EVIDENCE * tally.examples))
        if tally.evidence[name] < needed:
            few = f"{name}: {tally.evidence[name]} in {tally.examples} examples, {needed} are needed to prove anything"
            return "violated", few
    return "holds", None
