"""What must be stored after a history of operations: a model of the records, and the operations that change both.

The database is read past the subject and held against the model: invariants 3, 4 and 6 hold at every moment, and
everything that was said to be stored is. It decides nothing of when what happens. Overflow Tree, sections 3 to 5.
"""

from collections.abc import Callable
from typing import Any

from overflow.contract.laws.facts import check_partition, delete_by_sql, set_text, was_embedded
from overflow.contract.laws.law import expect
from overflow.contract.scenario import Record
from overflow.contract.subject import Ref, Subject
from overflow.contract.watched import SubjectCrash
from overflow.contract.world import World

BUILDS = ("settle", "repair")
#: What may happen at any moment. One that a subject does not offer is done as it can be done, or not at all.
OPERATIONS = (
    "store",
    "archive an episode",
    "update",
    "update by SQL",
    "delete",
    "delete by SQL",
    "update a locked record",
    "delete a locked record",
    "lock",
    "unlock",
    "queue off",
    "queue on",
    "change the model",
    *BUILDS,
)

#: Those of them that write a record, one of which a death in the middle must leave undone.
WRITES = ("store", "archive an episode", "update", "update a locked record", "delete", "delete a locked record")


class Written:
    """Each record's text and since when it has been that text; `law_id` is whose violations are raised.

    Texts to write are drawn from `pool`. A record in `_locked` may refuse to change, and then stays as it was.
    """

    def __init__(self, law_id: str, world: World) -> None:
        self._law = law_id
        self._world = world
        self._texts: dict[Ref, str] = {}
        self._since: dict[Ref, int] = {}
        self._locked: set[Ref] = set()
        self._pool = [record.text for record in world.scenario.records] + list(world.scenario.texts)

    def store(self, subject: Subject, text: int, *, episode: bool = False) -> None:
        mark = self._world.mark()
        record = Record(self._text(text), "ep" if episode else "mem")
        ref = self._world.write(subject, record).ref
        self._texts[ref], self._since[ref] = record.text, mark

    def operate(self, subject: Subject, operation: str, which: int, text: int) -> None:
        """Run one of OPERATIONS, on the `which`-th record and with the `text`-th text where it takes them."""
        ref = self._chosen(which)
        if operation in ("store", "archive an episode"):
            self.store(subject, text, episode=operation != "store")
        elif operation in BUILDS:
            getattr(subject, operation)()
        elif operation in ("queue off", "queue on"):
            subject.configure(queue=operation == "queue on")
        elif operation == "change the model":
            identity = f"model-{which % 3}"
            self._world.server.script.identity = identity
            subject.configure(model=identity)
        elif ref is None:
            return
        elif operation in ("lock", "unlock"):
            self._lock(subject, ref, locked=operation == "lock")
        elif operation.endswith("a locked record"):
            self._lock(subject, ref, locked=True)
            self.operate(subject, operation.split()[0], which, text)
            if ref in self._texts:
                self._lock(subject, ref, locked=False)
        elif operation.startswith("update"):
            self._update(subject, ref, self._other_text(ref, text), by_sql=operation == "update by SQL")
        else:
            self._delete(subject, ref, by_sql=operation == "delete by SQL")

    def before_death(self, operation: str, which: int, text: int) -> Callable[[Subject], None]:
        """What to call with the subject opened again when `operate` was killed: it happened wholly or not at all."""
        before, mark, chosen = dict(self._texts), self._world.mark(), self._chosen(which)
        is_update = operation.startswith("update")
        new = self._text(text) if chosen is None or not is_update else self._other_text(chosen, text)
        return lambda opened: self._take_over(opened, operation, before, chosen, new, mark)

    def check(self, subject: Subject) -> None:
        """Each record is the one that was stored, and its nodes are whole and of that text, or none."""
        refs = sorted(subject.refs())
        self._expect(refs == sorted(self._texts), "the stored records are those written", sorted(self._texts), refs)
        for ref, text in self._texts.items():
            got = subject.text(ref)
            self._expect(got == text, "a record's text is what was written last", repr(text), repr(got), ref)
            nodes = self._world.nodes(subject, ref)
            if not nodes:
                continue
            check_partition(self._law, text, nodes, ref, self._world.scenario.window.name)
            embedded = self._world.embedded_since(self._since[ref])
            stale = [(n.start, n.end) for n in nodes if not was_embedded(text[n.start : n.end], text, embedded)]
            self._expect(not stale, "a stale node survived", [], stale, ref)
            over = [n.index for n in nodes if self._world.scenario.runs_past(text[n.start : n.end])]
            self._expect(not over, "every node fits its window", [], over, ref)
        if self._world.can_write_sql():
            rows = subject.execute("SELECT DISTINCT parent_kind, parent_id FROM record_nodes")
            orphans = [row for row in rows if Ref(row[0], row[1]) not in self._texts]
            self._expect(not orphans, "nodes outlived their record", [], orphans)

    def check_built(self, subject: Subject) -> None:
        """Every record that can be divided has nodes."""
        for ref, text in self._texts.items():
            if self._world.scenario.divides(text):
                nodes = self._world.nodes(subject, ref)
                self._expect(bool(nodes), "a long record has no nodes in the end", "nodes", nodes, ref)

    def _update(self, subject: Subject, ref: Ref, new: str, *, by_sql: bool) -> None:
        mark = self._world.mark()
        if self._world.can_write_sql() and (by_sql or not self._world.can_update(ref)):
            set_text(subject, ref, new, self._law)
        elif not self._world.can_update(ref) or not self._accepted(ref, lambda: subject.update(ref, new)):
            return
        self._texts[ref], self._since[ref] = new, mark

    def _delete(self, subject: Subject, ref: Ref, *, by_sql: bool) -> None:
        if by_sql and self._world.can_write_sql():
            delete_by_sql(subject, ref, self._law)
        elif not self._accepted(ref, lambda: subject.delete(ref)):
            return
        del self._texts[ref]

    def _lock(self, subject: Subject, ref: Ref, *, locked: bool) -> None:
        if not self._world.offers("lock"):
            return
        if locked:
            self._locked.add(ref)  # Before it is: killed in the middle, it may be.
        subject.lock(ref, locked)
        if not locked:
            self._locked.discard(ref)

    def _accepted(self, ref: Ref, change: Callable[[], object]) -> bool:
        """Whether a change was made; one of a locked record may be refused."""
        try:
            change()
        except SubjectCrash as crash:
            if ref not in self._locked or crash.unavailable:
                raise
            self._world.evidence["locked records that refused"] += 1
            return False
        return True

    def _take_over(
        self, subject: Subject, operation: str, before: dict[Ref, str], chosen: Ref | None, new: str, mark: int
    ) -> None:
        now = {ref: text for ref in subject.refs() if (text := subject.text(ref)) is not None}
        changed = {ref: now.get(ref) for ref in before.keys() | now.keys() if before.get(ref) != now.get(ref)}
        allowed: list[dict[Ref, str | None]] = [{}]
        if operation in ("store", "archive an episode"):
            allowed += [{ref: new} for ref in now.keys() - before.keys()]
        elif chosen is not None and operation.startswith(("delete", "update")):
            allowed.append({chosen: None if operation.startswith("delete") else new})
        title = "a killed operation happened wholly or not at all"
        self._expect(changed in allowed, title, f"one of {allowed}", changed, chosen)
        self._texts = now
        self._since.update(dict.fromkeys(changed, mark))

    def _chosen(self, which: int) -> Ref | None:
        refs = sorted(self._texts)
        return refs[which % len(refs)] if refs else None

    def _other_text(self, ref: Ref, text: int) -> str:
        """The first text from the `text`-th on that the record does not hold."""
        texts = (self._text(text + step) for step in range(len(self._pool)))
        return next((each for each in texts if each != self._texts[ref]), self._texts[ref] + "x")

    def _text(self, text: int) -> str:
        return self._pool[text % len(self._pool)]

    def _expect(self, holds: bool, title: str, expected: Any, got: Any, ref: Ref | None = None) -> None:
        expect(holds, self._law, title, expected=expected, got=got, record=ref)
