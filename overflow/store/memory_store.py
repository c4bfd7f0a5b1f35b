"""The reference memory store: records, recall, a queue that builds nodes, a health check and its repair.

It puts the parts together and decides what is one transaction; what each part does is its own module. Writes answer
after one request to the embedding server, so they take as long as the model takes to embed one text (2 s for a full
window of the bundled e5), and nodes are built later. Overflow Tree, sections 3 to 7.
"""

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

from overflow.embedding.embedder import Embedder
from overflow.store import node_set, queue, reconstruct, records, repair, schema, search, transfer
from overflow.store.database import Database, Factory
from overflow.store.health import Health, examine
from overflow.store.model import Embedding, Model
from overflow.store.node_set import Verdict
from overflow.store.reconstruct import Item, Quote
from overflow.store.records import Kind, NewRecord, Ref, Scope
from overflow.store.repair import Repaired
from overflow.store.search import Hit, QueryVector
from overflow.store.vectors import pack
from overflow.store.worker import Drained, Worker
from overflow.tokens.report import TokenReport
from overflow.tokens.unicode_text import require_unicode

#: Texts of an import embedded at a time.
_BATCH = 50


@dataclass(frozen=True, slots=True)
class Nodes:
    """What a write says of nodes: they are queued."""

    status: Literal["queued"] = "queued"


@dataclass(frozen=True, slots=True)
class Stored:
    """The answer to a write. `nodes` is None unless nodes are queued for the record."""

    ref: Ref
    nodes: Nodes | None


@dataclass(frozen=True, slots=True)
class _Vector:
    """A text's vector as stored, None while the model is away, and the text's report, None if unknown."""

    vector: bytes | None = None
    model: str | None = None
    report: TokenReport | None = None


class MemoryStore:
    """A store in the SQLite database at `path`; close it, or use it as a context manager.

    `clock` gives seconds; `queue` False builds nothing until a repair. `factory` makes the SQLite connection. It may be
    used by several threads, and the same path by several processes. Every method raises the errors of
    `overflow.store.errors`; InputError for text that is empty or not Unicode.
    """

    def __init__(
        self,
        path: str,
        embedder: Embedder,
        *,
        clock: Callable[[], float] = time.time,
        queue: bool = True,
        factory: Factory = sqlite3.Connection,
    ) -> None:
        self.queue = queue
        self._clock = clock
        self._model = Model(embedder)
        # Before it is opened to be written: what is refused stays as it is, to the byte.
        schema.refuse_others(path)
        with ExitStack() as opened:
            self._database = Database(path, factory)
            opened.callback(self._database.close)
            schema.ensure(self._database)
            opened.pop_all()
        self._worker = Worker(self._database, self._model, clock)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def store(self, text: str, scope: Scope) -> Stored:
        """Store a memory, its text up to records.LENGTH_LIMIT.

        It answers once the text is embedded: beside that the store's own part takes milliseconds.
        """
        return self._store("mem", text, scope)

    def archive_episode(self, text: str, scope: Scope) -> Stored:
        """Store an episode's summary, up to records.LENGTH_LIMIT."""
        return self._store("ep", text, scope)

    def update(self, ref: Ref, text: str) -> Stored:
        """Change a record's text. The same text again keeps nodes that are current, and gets what it lacks."""
        text = records.accepted(text)
        new = records.Text(text.encode())
        # Under the lock: the text may be another by the time that it is taken.
        with self._database.transaction():
            records.require_unlocked(self._database, ref)
            name = self._model.last_name()
            if records.text_of(self._database, ref) == new and self._is_complete(ref, new, name):
                records.change(self._database, ref, text, self._clock())
                queue.remove(self._database, ref)
                return Stored(ref, None)
        (found,) = self._vectors([text])
        with self._database.transaction():
            is_same = records.text_of(self._database, ref) == new
            records.change(self._database, ref, text, self._clock())
            if found.vector is not None and found.model is not None:
                records.set_vector(self._database, ref, new, found.vector, found.model)
            if is_same and found.report is None:
                # Nothing was learnt of it: what waits goes on waiting.
                owed = self.queue and queue.is_known_long(self._database, ref)
                return Stored(ref, Nodes() if owed else None)
            if is_same and self._has_nodes(ref, new, found.model, found.report):
                queue.remove(self._database, ref)
                return Stored(ref, None)
            return Stored(ref, self._queue_nodes(ref, found.report))

    def delete(self, ref: Ref) -> None:
        """Delete a record, and with it its nodes."""
        with self._database.transaction():
            records.delete(self._database, ref)

    def lock(self, ref: Ref, locked: bool) -> None:
        """Lock a record against update and delete, or unlock it."""
        with self._database.transaction():
            records.set_locked(self._database, ref, locked, self._clock())

    def drain(self) -> Drained:
        """Run the queue until nothing is due; does nothing while it is off."""
        if not self.queue:
            return Drained(0, 0)
        # Also when nothing is due: from here on vectors are stored under the name of the model that runs now.
        self._model.refresh()
        return self._worker.drain()

    def check_health(self) -> Health:
        """Long records without current nodes, and every other finding."""
        return examine(self._database, self._model).health

    def repair(self) -> Repaired:
        """One run of the health check's repair; with the queue on or off."""
        return repair.repair(self._database, self._model)

    def recall(self, query: str, scope: Scope, limit: int) -> list[Hit]:
        """The best `limit` records of `scope` for `query`; while the model is away, by words alone."""
        return search.recall(self._database, query, self._query(query), scope, limit)

    def reconstruct(self, query: str, scope: Scope, limit: int) -> list[Item]:
        """What recall returns, each record quoted by its most relevant node, or from its start."""
        vector = self._query(query)
        hits = search.recall(self._database, query, vector, scope, limit)
        return reconstruct.reconstruct(self._database, hits, vector, scope)

    def quote(self, ref: Ref, query: str, scope: Scope) -> Quote | None:
        """The part of one record to show for `query`; None when `scope` does not hold the record."""
        return reconstruct.quote(self._database, ref, self._query(query), scope)

    def contents(self, ref: Ref, scope: Scope, node: int | None = None) -> str | None:
        """A record's text, or one node's; None when `scope` does not hold it, or it has no such node now.

        Whether it is a node of the model is judged by the name last learnt: nobody is asked to slice a text.
        """
        return reconstruct.contents(self._database, ref, scope, node, self._model.last_name())

    def export(self, path: str) -> None:
        """Write every record to a file of JSON lines, without nodes."""
        transfer.export(self._database, path)

    def import_(self, path: str) -> list[Stored]:
        """Add the records of an export under new ids, all or none."""
        lines = transfer.parse(path)
        found = [
            vector
            for first in range(0, len(lines), _BATCH)
            for vector in self._vectors([line.text for line in lines[first : first + _BATCH]])
        ]
        now, stored = self._clock(), []
        with self._database.transaction():
            for line, vector in zip(lines, found, strict=True):
                created_at = now if line.created_at is None else line.created_at
                updated_at = created_at if line.updated_at is None else line.updated_at
                record = NewRecord(
                    *(line.kind, line.scope, line.text, line.locked),
                    *(created_at, updated_at, vector.vector, vector.model),
                )
                ref = records.insert(self._database, record)
                stored.append(Stored(ref, self._queue_nodes(ref, vector.report)))
        return stored

    def refresh_model(self) -> None:
        """Ask the embedder for its identity again: the model behind it is another. Builds ask by themselves."""
        self._model.refresh()

    def _store(self, kind: Kind, text: str, scope: Scope) -> Stored:
        text = records.accepted(text)
        (found,) = self._vectors([text])
        now = self._clock()
        with self._database.transaction():
            record = NewRecord(kind, scope, text, False, now, now, found.vector, found.model)
            ref = records.insert(self._database, record)
            return Stored(ref, self._queue_nodes(ref, found.report))

    def _is_complete(self, ref: Ref, text: records.Text, name: str | None) -> bool:
        """Whether a record that holds `text` has its vector and its nodes, as far as can be told without asking."""
        return records.has_vector(self._database, ref, text, name) and self._has_nodes(ref, text, name, None)

    def _has_nodes(self, ref: Ref, text: records.Text, name: str | None, report: TokenReport | None) -> bool:
        """Whether its nodes are current, the window of `report` among it, where there is one."""
        found = node_set.read(self._database, ref)
        window = None if report is None else report.window
        return node_set.verdict(text, found, model=name, window=window) is Verdict.CURRENT

    def _queue_nodes(self, ref: Ref, report: TokenReport | None) -> Nodes | None:
        """Queue what is known to run past the window, and nothing else, whatever a trigger queued."""
        if self.queue and report is not None and report.truncated:
            queue.add(self._database, ref, report)
            return Nodes()
        queue.remove(self._database, ref)
        return None

    def _vectors(self, texts: Sequence[str]) -> list[_Vector]:
        """The vector and report of each text; without either where the model is away."""
        name, answers = self._model.embed_named(texts)
        return [
            _Vector()
            if not isinstance(answer, Embedding)
            else _Vector(None if name is None else pack(answer.vector), name, answer.report)
            for answer in answers
        ]

    def _query(self, query: str) -> QueryVector | None:
        require_unicode([query])
        if not query:
            return None
        embedded = self._model.embed_now(query)
        if embedded is None:
            return None
        name, answer = embedded
        return QueryVector(answer.vector, name, None if answer.report is None else answer.report.window)
