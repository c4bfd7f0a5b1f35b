"""Runs laws against a subject and says of each whether it holds, is violated, or could not be asked.

It knows subjects through the protocol alone, and leaves nothing behind. DESIGN.md, principle 4; "Command line",
`overflow check`.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

from hypothesis import HealthCheck, Verbosity, given, seed, settings
from hypothesis.errors import Flaky
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from overflow.contract import told
from overflow.contract.concerned import concerned
from overflow.contract.ending import before_giving_up
from overflow.contract.evidence import Profile, Tally, evident, force
from overflow.contract.laws.law import Law
from overflow.contract.results import CorpusResult, Result, Status, as_text, described
from overflow.contract.scenario import Scenario
from overflow.contract.signals import TIMEOUT, end_if_asked, terminated_as_interrupted
from overflow.contract.steps import Steps
from overflow.contract.subject import CAPABILITIES, CLAIMS, Subject, capabilities, method_name
from overflow.contract.violation import Violation
from overflow.contract.watched import SubjectCrash, Watched, answer, started
from overflow.contract.world import SubjectFactory, World
from overflow.embedding.script import Model, Script
from overflow.embedding.server import ScriptedServer
from overflow.errors import InputError, UnavailableError


class Runner:
    """One run over one subject: the scripted server, and a directory for the examples' stores; a context manager.

    `timeout` bounds each call of the subject (seconds). Interrupted, also by SIGTERM or SIGHUP, it ends what it opened
    and raises KeyboardInterrupt, whose text says which law and which call were running.
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
            directory = _directory()
            self._root = Path(self._stack.enter_context(directory))
            self._stack.enter_context(before_giving_up(directory.cleanup))
            self._server = self._stack.enter_context(ScriptedServer(Script(None, self._model)))
            self._introduce()
            self._stack = self._stack.pop_all()
        return self

    def _introduce(self) -> None:
        try:
            subject = started(self._factory, self._timeout)
            watched = Watched(subject, (), Steps(), "", self._timeout)
            watched.open(self._new_directory(), self._server.url)
            try:
                self.name, self.version = watched.name, watched.version
                self.capabilities = _capabilities(subject)
            finally:
                watched.close()
        except SubjectCrash as crash:
            raise UnavailableError(f"the subject's {crash}") from crash

    def _new_directory(self) -> str:
        """A directory for one example, inside the run's own, which a subject may have taken for one to remove."""
        self._root.mkdir(mode=0o700, exist_ok=True)
        return tempfile.mkdtemp(dir=self._root)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def check(self, law: Law, profile: Profile, random_seed: int) -> Result:
        """Run one law over generated examples."""
        if reason := self._cannot_ask(law):
            return Result(law.id, law.name, law.source, "skipped", reason, 0, 0, 0.0)
        tally = Tally()
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
        began = time.perf_counter()
        status, reason, counterexample, error = self._outcome(law, lambda: run(configured, random_seed))
        if status == "holds":
            status, reason = force(law, tally, profile)
        seconds = time.perf_counter() - began
        return Result(
            law.id, law.name, law.source, status, reason, tally.examples, tally.divided, seconds, counterexample, error
        )

    def _generated(self, law: Law, tally: Tally) -> Callable[[settings, int], None]:
        def example(scenario: Scenario) -> None:
            with self._world(law, scenario, tally) as world:
                _checked(law, world)
            self._on_example()

        return lambda configured, random_seed: seed(random_seed)(configured(given(law.scenarios())(example)))()

    def _machine(self, law: Law, machine: type[RuleBasedStateMachine], tally: Tally) -> Callable[[settings, int], None]:
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

    def check_corpus(
        self,
        law: Law,
        scenario: Scenario,
        model: Model | None = None,
        documents: Mapping[str, str] = MappingProxyType({}),
    ) -> CorpusResult:
        """Run one law once, over the records of a corpus, embedded by a model of its own.

        `documents` maps a record's text to the id that a person knows it by.
        """
        records = len(scenario.records)
        if not law.on_corpus:
            return CorpusResult("skipped", "its examples are made for it", records, 0, 0.0)
        if reason := self._cannot_ask(law):
            return CorpusResult("skipped", reason, records, 0, 0.0)
        began = time.perf_counter()
        divided = 0
        tally = Tally()

        def once() -> None:
            nonlocal divided
            with self._world(law, scenario, tally, model, documents) as world:
                try:
                    _checked(law, world)
                finally:
                    divided = world.most_divided

        status, reason, counterexample, error = self._outcome(law, once)
        if status == "holds":
            long = sum(scenario.runs_past(record.text) for record in scenario.records)
            if not divided or 2 * divided < long:
                status = "violated"
                reason = f"too few records divided: {divided} of the {long} that run past the window"
            else:
                status, reason = evident(law, tally)
        seconds = time.perf_counter() - began
        return CorpusResult(status, reason, records, divided, seconds, counterexample, error)

    @contextmanager
    def _world(
        self,
        law: Law,
        scenario: Scenario,
        tally: Tally,
        model: Model | None = None,
        documents: Mapping[str, str] | None = None,
    ) -> Iterator[World]:
        """One example's world in a directory of its own; what it saw is added to the tally.

        A failure is told with the whole example, or with what concerns it of the `documents` of a corpus.
        """
        end_if_asked()
        self._server.script = Script(scenario.window, model or self._model, scenario.identity)
        self._server.reset()
        if tally.gone is not None:
            # Shrinking would only wait for the same again: an ended process, a time-out, a full disk.
            raise tally.gone
        directory = Path(self._new_directory())
        try:
            world = World(
                self._factory, self._server, scenario, directory, self.capabilities, law.requires, self._timeout
            )
            with world:
                try:
                    yield world
                except (SubjectCrash, Violation) as failure:
                    if documents is None:
                        failure.context |= {"steps": str(world.steps), "scenario": self._told(scenario)}
                    else:
                        failure.context = concerned(failure, world.steps, documents)
                        failure.context["scenario"] = str(replace(scenario, records=()))
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

    def _told(self, scenario: Scenario) -> str:
        has_no_episodes = "archive_episode" not in self.capabilities
        if has_no_episodes and any(record.kind == "ep" for record in scenario.records):
            return f"{scenario}\nthe subject has no archive_episode: each ep is stored as a memory"
        return str(scenario)

    def _outcome(self, law: Law, run: Callable[[], None]) -> tuple[Status, str | None, dict[str, Any] | None, bool]:
        try:
            run()
        except Violation as violation:
            return "violated", violation.title, described(violation), False
        except Flaky as flaky:
            return "violated", f"the same example did not fail twice: {told.message(flaky)}", None, True
        except SubjectCrash as crash:
            if crash.unavailable:
                self.gone = str(crash)
            return "violated", f"the subject's {crash}", as_text(crash.context), True
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
    """What the subject offers; raises InputError for a name that is no capability, and for one without its method."""
    kind = type(subject).__name__
    try:
        offered = answer("capabilities", lambda: capabilities(subject), type(subject).__module__)
    except SubjectCrash as crash:
        if isinstance(crash.error, TypeError):
            raise InputError(f"{kind}: its `capabilities` is no collection of names") from crash
        raise
    unknown = sorted(told.value(name) for name in offered if name not in (*CAPABILITIES, *CLAIMS))
    if unknown:
        raise InputError(f"{kind} declares {unknown[0]}, and there is no such capability")
    for name in sorted(offered.intersection(CAPABILITIES)):
        method = method_name(name)
        if not answer(name, lambda method=method: callable(getattr(subject, method, None))):  # type: ignore[misc]
            raise InputError(f"{kind} declares the capability {name!r}, and has no method {method!r}")
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
