"""Any operation between any two steps of a build, and a kill between any two statements, as a state machine.

It keeps a model of what must be stored: each record's text, and since when it has been that text. After every step the
database is read past the subject and held against the model: invariants 3, 4 and 6 hold at every moment, and everything
that was said to be stored is. Overflow Tree, sections 3 to 5.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from overflow.contract.laws.facts import check_partition, repair_all
from overflow.contract.laws.law import expect, machine_law
from overflow.contract.scenario import Record, Scenario
from overflow.contract.strategies import scenarios
from overflow.contract.subject import Ref, Subject, SubjectDied
from overflow.contract.violation import Violation
from overflow.contract.world import FAULT, World
from overflow.embedding.script import Reply, Request

_LAW = "interleavings"
_NUMBERS = st.integers(0, 9)


@machine_law(
    _LAW,
    "invariants hold under every interleaving",
    source="Overflow Tree, sections 3 to 5",
    requires="store settle nodes text refs update delete execute repair configure",
    evidence=("operations inside a build",),
    share=1 / 5,
)
class Interleavings(RuleBasedStateMachine):
    """Records are written, changed, deleted, built, repaired and killed in any order, also while a build waits."""

    def __init__(self, open_world: Callable[[Scenario], World]) -> None:
        super().__init__()
        self._open_world = open_world
        self._texts: dict[Ref, str] = {}
        self._since: dict[Ref, int] = {}
        self._history: list[str] = []
        self.failed = False

    @initialize(scenario=st.deferred(lambda: scenarios(max_factor=6)))
    def start(self, scenario: Scenario) -> None:
        self.world = self._open_world(scenario)
        self.subject = self.world.open()
        self._pool = [record.text for record in scenario.records] + list(scenario.texts)
        self._step("store the first record", lambda: self._store(self.subject, scenario.records[0]))

    # What happens to records.

    @rule(text=_NUMBERS, episode=st.booleans())
    def store(self, text: int, episode: bool) -> None:
        record = Record(self._pool[text % len(self._pool)], "ep" if episode else "mem")
        self._step("store", lambda: self._store(self.subject, record))

    @rule(which=_NUMBERS, text=_NUMBERS, sql=st.booleans())
    def update(self, which: int, text: int, sql: bool) -> None:
        self._step("update", lambda: self._update(self.subject, which, text, sql))

    @rule(which=_NUMBERS, sql=st.booleans())
    def delete(self, which: int, sql: bool) -> None:
        self._step("delete", lambda: self._delete(self.subject, which, sql))

    # What happens to nodes.

    @rule()
    def settle(self) -> None:
        self._step("settle", self.subject.settle)

    @rule()
    def repair(self) -> None:
        self._step("repair", self.subject.repair)

    @rule(
        build=st.sampled_from(("settle", "repair")),
        operation=st.sampled_from(("store", "update", "delete", "repair", "settle")),
        which=_NUMBERS,
        text=_NUMBERS,
        wait=st.integers(0, 4),
    )
    def build_meanwhile(self, build: str, operation: str, which: int, text: int, wait: int) -> None:
        """Prepare the build of a long record, run `operation` by another handle, and let the build write."""
        seen = 0

        def hook(request: Request) -> Reply | None:
            nonlocal seen
            seen += request.path == "/embed"
            if seen != wait + 1 or request.path != "/embed":
                return None
            seen += 1
            self.world.evidence["operations inside a build"] += 1
            with self.world.second_handle() as other:
                operations: dict[str, Callable[[], Any]] = {
                    "store": lambda: self._store(other, Record(self._pool[text % len(self._pool)])),
                    "update": lambda: self._update(other, which, text, False),
                    "delete": lambda: self._delete(other, which, False),
                    "repair": other.repair,
                    "settle": other.settle,
                }
                operations[operation]()
            return None

        def run() -> None:
            self._queue_a_build()
            with self.world.meanwhile(hook):
                getattr(self.subject, build)()

        self._step(f"{build}, and {operation} while it waits", run)

    @rule(build=st.sampled_from(("settle", "repair")), after=st.integers(0, 3))
    def build_failing(self, build: str, after: int) -> None:
        """The embedding server fails from its `after`-th request on."""
        seen = 0

        def hook(_: Request) -> Reply | None:
            nonlocal seen
            seen += 1
            return FAULT if seen > after else None

        def run() -> None:
            with self.world.meanwhile(hook):
                getattr(self.subject, build)()

        self._step(f"{build} while the server fails", run)

    @precondition(lambda self: self.world.offers("kill_at"))
    @rule(
        operation=st.sampled_from(("store", "update", "delete", "settle", "repair")),
        statement=st.integers(1, 40),
        which=_NUMBERS,
        text=_NUMBERS,
    )
    def kill(self, operation: str, statement: int, which: int, text: int) -> None:
        """The process dies before its `statement`-th statement, and the store is opened again."""
        operations: dict[str, Callable[[], Any]] = {
            "store": lambda: self._store(self.subject, Record(self._pool[text % len(self._pool)])),
            "update": lambda: self._update(self.subject, which, text, False),
            "delete": lambda: self._delete(self.subject, which, False),
            "settle": self.subject.settle,
            "repair": self.subject.repair,
        }

        def run() -> None:
            before, mark = dict(self._texts), self.world.mark()
            self.subject.kill_at(statement)
            chosen = self._chosen(which)
            try:
                operations[operation]()
            except SubjectDied:
                self.world.evidence["kills"] += 1
            self.world.abandon(self.subject)
            self.subject = self.world.open()
            self._take_over(operation, before, chosen, self._pool[text % len(self._pool)], mark)

        self._step(f"{operation}, killed before statement {statement}", run)

    @precondition(lambda self: not self.world.offers("kill_at"))
    @rule()
    def reopen(self) -> None:
        def run() -> None:
            self.world.abandon(self.subject)
            self.subject = self.world.open()

        self._step("close and open", run)

    @rule(queue=st.booleans())
    def switch_queue(self, queue: bool) -> None:
        self._step(f"queue {'on' if queue else 'off'}", lambda: self.subject.configure(queue=queue))

    @rule(number=st.integers(1, 3))
    def change_model(self, number: int) -> None:
        def run() -> None:
            self.world.server.script.identity = f"model-{number}"
            self.subject.configure(model=f"model-{number}")

        self._step(f"model {number}", run)

    # What must hold.

    @invariant()
    def sound(self) -> None:
        """At every moment each record is the one that was stored, and its nodes are whole and of that text, or none."""
        if not self._history or self.failed:
            return
        self._guarded(self._sound)

    def teardown(self) -> None:
        if self._history and not self.failed:
            self._guarded(self._finish)

    def _finish(self) -> None:
        """Once everything ran, every long record has its nodes."""
        self._history.append("in the end: settle, and repair until nothing is built")
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
        gone = self.subject.execute("SELECT DISTINCT parent_kind, parent_id FROM record_nodes")
        orphans = [row for row in gone if Ref(row[0], row[1]) not in self._texts]
        self._expect(not orphans, "nodes outlived their record", [], orphans, None)

    def _expect(self, holds: bool, title: str, expected: Any, got: Any, ref: Ref | None) -> None:
        expect(holds, _LAW, title, expected=expected, got=got, record=ref, scenario=self.world.scenario)

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
        if sql or not self.world.can_update(ref):
            table, column = ("memories", "content") if ref.kind == "mem" else ("episodes", "summary")
            subject.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (new, ref.id))
        else:
            subject.update(ref, new)
        self._texts[ref], self._since[ref] = new, mark

    def _delete(self, subject: Subject, which: int, sql: bool) -> None:
        ref = self._chosen(which)
        if ref is None:
            return
        if sql:
            subject.execute(f"DELETE FROM {'memories' if ref.kind == 'mem' else 'episodes'} WHERE id = ?", (ref.id,))
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

    def _step(self, description: str, run: Callable[[], Any]) -> None:
        self._history.append(description)
        self._guarded(run)

    def _guarded(self, run: Callable[[], Any]) -> None:
        """Once something failed, the end of the example must not hide it behind a second failure."""
        try:
            run()
        except Violation as violation:
            self.failed = True
            violation.context["steps"] = "; ".join(self._history)
            raise
        except BaseException:
            self.failed = True
            raise
