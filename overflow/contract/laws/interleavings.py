"""Any operation between any two steps of a build, and a kill between any two statements, as a state machine.

It says when what happens; what must be stored then, `written` says, and the database is held against that after every
step. Overflow Tree, sections 3 to 5.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from overflow.contract.laws.facts import check_answers, repair_all
from overflow.contract.laws.law import machine_law
from overflow.contract.laws.written import BUILDS, OPERATIONS, WRITES, Written
from overflow.contract.scenario import Scenario
from overflow.contract.strategies import scenarios
from overflow.contract.subject import SubjectDied
from overflow.contract.world import World
from overflow.embedding.script import Reply, Request

_LAW = "interleavings"
_NUMBERS = st.integers(0, 9)
#: A write runs up to so many statements, and the build of one record too.
_STATEMENTS = 24
#: Between two kills of one write, in statements.
_STRIDE = 4


@machine_law(
    _LAW,
    "invariants hold under every interleaving",
    source="Overflow Tree, sections 3 to 5",
    requires="store settle nodes text refs update delete repair configure",
    evidence=("operations inside a build", "restarts"),
    share=1 / 4,
)
class Interleavings(RuleBasedStateMachine):
    """Records are written, changed, deleted, built, repaired and killed in any order, also while a build waits."""

    def __init__(self, open_world: Callable[[Scenario], World]) -> None:
        super().__init__()
        self._open_world = open_world
        self._is_started = False
        #: What ended the example.
        self.failure: BaseException | None = None

    @initialize(scenario=st.deferred(lambda: scenarios(max_factor=6)))
    def start(self, scenario: Scenario) -> None:
        self.world = self._open_world(scenario)
        self._guarded(self._open)
        self._is_started = True
        self.written = Written(_LAW, self.world)
        self._guarded(lambda: self.written.store(self.subject, 0, episode=scenario.seed % 2 == 1))

    def _open(self) -> None:
        self.subject = self.world.open()

    @rule(operation=st.sampled_from(OPERATIONS), which=_NUMBERS, text=_NUMBERS)
    def operate(self, operation: str, which: int, text: int) -> None:
        self._guarded(lambda: self.written.operate(self.subject, operation, which, text))

    @rule(
        build=st.sampled_from(BUILDS),
        operation=st.sampled_from(OPERATIONS),
        which=_NUMBERS,
        text=_NUMBERS,
        wait=st.integers(0, 4),
    )
    def build_meanwhile(self, build: str, operation: str, which: int, text: int, wait: int) -> None:
        """Prepare the build of a long record, run `operation` by another handle, and let the build write."""
        self._guarded(lambda: self._build_meanwhile(build, operation, which, text, wait))

    @rule(build=st.sampled_from(BUILDS), after=st.integers(0, 3))
    def build_failing(self, build: str, after: int) -> None:
        """The embedding server fails from its `after`-th request on."""
        self._guarded(lambda: self._fail_a_build(build, after))

    @precondition(lambda self: self.world.offers("kill_at"))
    @rule(
        operation=st.sampled_from(OPERATIONS),
        # A write runs a few statements, a build of many records hundreds.
        statement=st.one_of(st.integers(1, 6), st.integers(1, 6), st.integers(1, 400)),
        which=_NUMBERS,
        text=_NUMBERS,
    )
    def kill(self, operation: str, statement: int, which: int, text: int) -> None:
        """The process dies before its `statement`-th statement, and the store is opened again."""
        self._guarded(lambda: self._kill(operation, statement, which, text))

    @precondition(lambda self: self.world.offers("kill_at"))
    @rule(build=st.sampled_from(BUILDS), statement=st.integers(1, 48), which=_NUMBERS)
    def kill_a_build(self, build: str, statement: int, which: int) -> None:
        """The process dies while it claims, reads or writes the build of a record that has just been stored."""

        def run() -> None:
            self._queue_a_build(which)
            self._kill(build, statement, 0, 0)

        self._guarded(run)

    @precondition(lambda self: not self.world.offers("kill_at"))
    @rule()
    def reopen(self) -> None:
        self._guarded(self._reopen)

    @invariant()
    def sound(self) -> None:
        """At every moment each record is the one that was stored, and its nodes are whole and of that text, or none."""
        if self._is_started and self.failure is None:
            self._guarded(lambda: self.written.check(self.subject))

    def teardown(self) -> None:
        if self._is_started and self.failure is None:
            self._guarded(self._finish)

    def _finish(self) -> None:
        """A build with something inside it and a restart belong to every example; then everything runs and is built."""
        number = self.world.scenario.seed
        build = BUILDS[number % 2]
        self._build_meanwhile(build, OPERATIONS[number // 2 % len(OPERATIONS)], number, number, number % 3)
        self.written.check(self.subject)
        # In no queue: only a later repair can make up for one that failed after its first questions.
        self.subject.configure(queue=False)
        self.written.store(self.subject, 0, episode=number % 2 == 1)
        self._fail_a_build("repair", 2 + number % 4)
        if self.world.offers("kill_at"):
            # Alone in the queue, the build is written from about the tenth statement on.
            self.subject.configure(queue=True)
            self.subject.settle()
            self._queue_a_build(number)
            self._kill("settle", 1 + number % _STATEMENTS, number, number)
            # An update has something to lose, and so it is in every example.
            for write in ("update", WRITES[number % len(WRITES)]):
                self._kill_on_the_way(write, number)
        else:
            self._reopen()
        self.written.check(self.subject)
        self.subject.configure(queue=True)
        self.world.settle(self.subject)
        repair_all(self.subject)
        self.written.check(self.subject)
        self.written.check_built(self.subject)
        # Now that every record has its nodes, a change of one must take them away.
        self.written.operate(self.subject, "update", number, number + 1)
        self.written.check(self.subject)

    def _build_meanwhile(self, build: str, operation: str, which: int, text: int, wait: int) -> None:
        embedding = 0

        def hook(request: Request) -> Reply | None:
            nonlocal embedding
            embedding += request.path == "/embed"
            if embedding != wait + 1 or request.path != "/embed":
                return None
            embedding += 1
            self.world.evidence["operations inside a build"] += 1
            with self.world.second_handle() as other:
                write = partial(self.written.operate, other, operation, which, text)
                check_answers(_LAW, f"{operation}, while a build waits for the embedding server,", write)
            return None

        self._queue_a_build(which)
        with self.world.meanwhile(hook):
            getattr(self.subject, build)()

    def _fail_a_build(self, build: str, after: int) -> None:
        with self.world.failing(after):
            getattr(self.subject, build)()

    def _kill_on_the_way(self, write: str, number: int) -> None:
        """Every few statements of one write, from one of the first on, until it comes to its end."""
        for statement in range(1 + number // len(WRITES) % _STRIDE, _STATEMENTS, _STRIDE):
            if not self._kill(write, statement, number, number):
                return
            self.written.check(self.subject)

    def _kill(self, operation: str, statement: int, which: int, text: int) -> bool:
        """Whether it died of it: a shorter operation has come to its end."""
        take_over = self.written.before_death(operation, which, text)
        self.subject.kill_at(statement)
        died = False
        try:
            self.written.operate(self.subject, operation, which, text)
        except SubjectDied:
            self.world.evidence["restarts"] += 1
            died = True
        self.world.abandon(self.subject)
        self._open()
        take_over(self.subject)
        return died

    def _reopen(self) -> None:
        self.world.evidence["restarts"] += 1
        self.world.abandon(self.subject)
        self._open()

    def _queue_a_build(self, which: int) -> None:
        """A long record is there and has no nodes yet, and the queue that would build them is on."""
        self.subject.configure(queue=True)
        self.written.store(self.subject, 0, episode=which % 2 == 1)

    def _guarded(self, run: Callable[[], Any]) -> None:
        """Once something failed, the end of the example must not hide it behind a second failure."""
        try:
            run()
        except BaseException as failure:
            self.failure = failure
            raise
