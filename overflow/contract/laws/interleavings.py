"""Any operation between any two steps of a build, and a kill between any two statements, as a state machine.

It keeps a model of what must be stored: each record's text, and since when it has been that text. After every step the
database is read past the subject and held against the model: invariants 3, 4 and 6 hold at every moment, and everything
that was said to be stored is. Overflow Tree, sections 3 to 5.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from overflow.contract.laws.facts import TABLES, check_partition, repair_all
from overflow.contract.laws.law import expect, machine_law
from overflow.contract.scenario import Record, Scenario
from overflow.contract.strategies import scenarios
from overflow.contract.subject import Ref, Subject, SubjectDied
from overflow.contract.world import World
from overflow.embedding.script import Reply, Request

_LAW = "interleavings"
_NUMBERS = st.integers(0, 9)
_BUILDS = ("settle", "repair")
_OPERATIONS = ("store", "update", "delete", *_BUILDS)


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
        self._texts: dict[Ref, str] = {}
        self._since: dict[Ref, int] = {}
        self._is_started = False
        #: What ended the example.
        self.failure: BaseException | None = None

    @initialize(scenario=st.deferred(lambda: scenarios(max_factor=6)))
    def start(self, scenario: Scenario) -> None:
        self.world = self._open_world(scenario)
        self._guarded(self._open)
        self._is_started = True
        self._pool = [record.text for record in scenario.records] + list(scenario.texts)
        self._guarded(lambda: self._store(self.subject, scenario.records[0]))

    def _open(self) -> None:
        self.subject = self.world.open()

    # What happens to records.

    @rule(text=_NUMBERS, episode=st.booleans())
    def store(self, text: int, episode: bool) -> None:
        record = Record(self._pool[text % len(self._pool)], "ep" if episode else "mem")
        self._guarded(lambda: self._store(self.subject, record))

    @rule(which=_NUMBERS, text=_NUMBERS, sql=st.booleans())
    def update(self, which: int, text: int, sql: bool) -> None:
        self._guarded(lambda: self._update(self.subject, which, text, sql))

    @rule(which=_NUMBERS, sql=st.booleans())
    def delete(self, which: int, sql: bool) -> None:
        self._guarded(lambda: self._delete(self.subject, which, sql))

    # What happens to nodes.

    @rule()
    def settle(self) -> None:
        self._guarded(self.subject.settle)

    @rule()
    def repair(self) -> None:
        self._guarded(self.subject.repair)

    @rule(
        build=st.sampled_from(_BUILDS),
        operation=st.sampled_from(_OPERATIONS),
        which=_NUMBERS,
        text=_NUMBERS,
        wait=st.integers(0, 4),
    )
    def build_meanwhile(self, build: str, operation: str, which: int, text: int, wait: int) -> None:
        """Prepare the build of a long record, run `operation` by another handle, and let the build write."""
        self._guarded(lambda: self._build_meanwhile(build, operation, which, text, wait))

    @rule(build=st.sampled_from(_BUILDS), after=st.integers(0, 3))
    def build_failing(self, build: str, after: int) -> None:
        """The embedding server fails from its `after`-th request on."""

        def run() -> None:
            with self.world.failing(after):
                getattr(self.subject, build)()

        self._guarded(run)

    @precondition(lambda self: self.world.offers("kill_at"))
    @rule(
        operation=st.sampled_from(_OPERATIONS),
        # A write runs a few statements, a build many.
        statement=st.one_of(st.integers(1, 6), st.integers(1, 40)),
        which=_NUMBERS,
        text=_NUMBERS,
    )
    def kill(self, operation: str, statement: int, which: int, text: int) -> None:
        """The process dies before its `statement`-th statement, and the store is opened again."""
        self._guarded(lambda: self._kill(operation, statement, which, text))

    @precondition(lambda self: not self.world.offers("kill_at"))
    @rule()
    def reopen(self) -> None:
        self._guarded(self._reopen)

    @rule(queue=st.booleans())
    def switch_queue(self, queue: bool) -> None:
        self._guarded(lambda: self.subject.configure(queue=queue))

    @rule(number=st.integers(1, 3))
    def change_model(self, number: int) -> None:
        def run() -> None:
            self.world.server.script.identity = f"model-{number}"
            self.subject.configure(model=f"model-{number}")

        self._guarded(run)

    # What must hold.

    @invariant()
    def sound(self) -> None:
        """At every moment each record is the one that was stored, and its nodes are whole and of that text, or none."""
        if not self._is_started or self.failure is not None:
            return
        self._guarded(self._sound)

    def teardown(self) -> None:
        if self._is_started and self.failure is None:
            self._guarded(self._finish)

    def _finish(self) -> None:
        """A build with something inside it and a restart belong to every example; then everything runs and is built."""
        number = self.world.scenario.seed
        build = _BUILDS[number % 2]
        self._build_meanwhile(build, _OPERATIONS[number // 2 % len(_OPERATIONS)], number, number, number % 3)
        self._sound()
        if self.world.offers("kill_at"):
            self._queue_a_build()
            self._kill(build, 1 + number % 12, number, number)
        else:
            self._reopen()
        self._sound()
        self.subject.configure(queue=True)
        self.world.settle(self.subject)
        repair_all(self.subject)
        self._sound()
        for ref, text in self._texts.items():
            if self.world.scenario.divides(text):
                nodes = self.world.nodes(self.subject, ref)
                self._expect(bool(nodes), "a long record has no nodes in the end", "nodes", nodes, ref)

    def _sound(self) -> None:
        refs = sorted(self.subject.refs())
        self._expect(
            refs == sorted(self._texts), "the stored records are those written", sorted(self._texts), refs, None
        )
        for ref, text in self._texts.items():
            got = self.subject.text(ref)
            self._expect(got == text, "a record's text is what was written last", repr(text), repr(got), ref)
            nodes = self.world.nodes(self.subject, ref)
            if not nodes:
                continue
            check_partition(_LAW, text, nodes, ref, self.world.scenario.window.name)
            embedded = self.world.embedded_since(self._since[ref])
            stale = [(n.start, n.end) for n in nodes if text[n.start : n.end] not in embedded]
            self._expect(not stale, "a stale node survived", [], stale, ref)
            over = [n.index for n in nodes if self.world.scenario.runs_past(text[n.start : n.end])]
            self._expect(not over, "every node fits its window", [], over, ref)
        if not self.world.can_write_sql():
            return
        gone = self.subject.execute("SELECT DISTINCT parent_kind, parent_id FROM record_nodes")
        orphans = [row for row in gone if Ref(row[0], row[1]) not in self._texts]
        self._expect(not orphans, "nodes outlived their record", [], orphans, None)

    def _expect(self, holds: bool, title: str, expected: Any, got: Any, ref: Ref | None) -> None:
        expect(holds, _LAW, title, expected=expected, got=got, record=ref)

    # What a step does.

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
                self._operation(other, operation, which, text)
            return None

        self._queue_a_build()
        with self.world.meanwhile(hook):
            getattr(self.subject, build)()

    def _kill(self, operation: str, statement: int, which: int, text: int) -> None:
        before, mark = dict(self._texts), self.world.mark()
        chosen = self._chosen(which)
        self.subject.kill_at(statement)
        try:
            self._operation(self.subject, operation, which, text)
        except SubjectDied:
            self.world.evidence["restarts"] += 1
        self.world.abandon(self.subject)
        self._open()
        self._take_over(operation, before, chosen, self._pool[text % len(self._pool)], mark)

    def _reopen(self) -> None:
        self.world.evidence["restarts"] += 1
        self.world.abandon(self.subject)
        self._open()

    def _operation(self, subject: Subject, operation: str, which: int, text: int) -> None:
        if operation == "store":
            self._store(subject, Record(self._pool[text % len(self._pool)]))
        elif operation == "update":
            self._update(subject, which, text, False)
        elif operation == "delete":
            self._delete(subject, which, False)
        else:
            getattr(subject, operation)()

    # The model.

    def _store(self, subject: Subject, record: Record) -> None:
        mark = self.world.mark()
        ref = self.world.write(subject, record).ref
        self._texts[ref], self._since[ref] = record.text, mark

    def _update(self, subject: Subject, which: int, text: int, sql: bool) -> None:
        ref = self._chosen(which)
        new = self._pool[text % len(self._pool)]
        if ref is None or self._texts[ref] == new:
            return
        mark = self.world.mark()
        sql = self.world.can_write_sql() and (sql or not self.world.can_update(ref))
        if not sql and not self.world.can_update(ref):
            return
        if sql:
            table, column = TABLES[ref.kind]
            subject.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (new, ref.id))
        else:
            subject.update(ref, new)
        self._texts[ref], self._since[ref] = new, mark

    def _delete(self, subject: Subject, which: int, sql: bool) -> None:
        ref = self._chosen(which)
        if ref is None:
            return
        if sql and self.world.can_write_sql():
            subject.execute(f"DELETE FROM {TABLES[ref.kind][0]} WHERE id = ?", (ref.id,))
        else:
            subject.delete(ref)
        del self._texts[ref]

    def _chosen(self, which: int) -> Ref | None:
        refs = sorted(self._texts)
        return refs[which % len(refs)] if refs else None

    def _queue_a_build(self) -> None:
        """A long record is there and has no nodes yet, and the queue that would build them is on."""
        self.subject.configure(queue=True)
        self._store(self.subject, Record(self._pool[0]))

    def _take_over(self, operation: str, before: dict[Ref, str], chosen: Ref | None, new: str, mark: int) -> None:
        """A killed operation happened wholly or not at all; the model takes over which."""
        now = {ref: text for ref in self.subject.refs() if (text := self.subject.text(ref)) is not None}
        changed = {ref: now.get(ref) for ref in before.keys() | now.keys() if before.get(ref) != now.get(ref)}
        allowed: list[dict[Ref, str | None]] = [{}]
        if operation == "store":
            allowed += [{ref: new} for ref in now.keys() - before.keys()]
        elif operation == "delete" and chosen is not None:
            allowed.append({chosen: None})
        elif operation == "update" and chosen is not None:
            allowed.append({chosen: new})
        title = "a killed operation happened wholly or not at all"
        self._expect(changed in allowed, title, f"one of {allowed}", changed, chosen)
        self._texts = now
        self._since.update(dict.fromkeys(changed, mark))

    def _guarded(self, run: Callable[[], Any]) -> None:
        """Once something failed, the end of the example must not hide it behind a second failure."""
        try:
            run()
        except BaseException as failure:
            self.failure = failure
            raise
