"""The reference store as a subject: MemoryStore behind the protocol, and its database read past it.

What looks past the store (`nodes`, `text`, `refs`, `record_bytes`, `execute`) goes through a connection of its own and
shares no code with the store's reads. DESIGN.md, "Subject protocol" and principle 3.
"""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from threading import RLock
from typing import Any

from overflow import __version__
from overflow.contract.subject import Health, Hit, Item, Node, Quote, Ref, Repaired, Scope, Stored, SubjectDied
from overflow.embedding.http import EmbeddingClient
from overflow.store import Item as StoreItem
from overflow.store import MemoryStore, schema
from overflow.store import Quote as StoreQuote
from overflow.store import Ref as StoreRef
from overflow.store import Scope as StoreScope
from overflow.store import Stored as StoreStored
from overflow.store.database import BUSY_TIMEOUT
from overflow.store.errors import named_errors
from overflow.store.queue import LONGEST_WAIT

#: The database's name inside the directory.
DATABASE = "store.sqlite3"
#: Seconds the clock is moved before a drain: further than any back-off or lease, so that settling waits for nothing.
_LATER = 2 * LONGEST_WAIT

_CONNECTION: dict[str, Any] = {"timeout": BUSY_TIMEOUT, "isolation_level": None, "check_same_thread": False}
_TABLES = {"mem": "memories", "ep": "episodes"}
_TEXTS = {"mem": "content", "ep": "summary"}


class Reference:
    """The subject `reference`. Usable from several threads, and several times on one directory."""

    name = "reference"
    version = __version__
    design_rule = True
    design_schema = True
    length_limit = True
    updates_episodes = True

    def open(self, directory: str, embedding_url: str) -> None:
        path = str(Path(directory) / DATABASE)
        self._ahead = 0.0
        self._fuse = _Fuse()
        self._lock = RLock()
        # Before the connection past the store sets what it needs: a file that is refused stays as it is.
        schema.refuse_others(path)
        with ExitStack() as opened, named_errors(path):
            self._past = opened.enter_context(closing(sqlite3.connect(path, **_CONNECTION)))
            _set_up(self._past)
            # The queue and the repair try again; a request that did would only make a failing server slow.
            self._client = opened.enter_context(EmbeddingClient(embedding_url, retry_delays=()))
            self._store = opened.enter_context(MemoryStore(path, self._client, clock=self._now, factory=self._connect))
            self._opened = opened.pop_all()

    def close(self) -> None:
        self._opened.close()

    def store(self, text: str, scope: Scope) -> Stored:
        return _stored(self._store.store(text, _scope(scope)))

    def archive_episode(self, text: str, scope: Scope) -> Stored:
        return _stored(self._store.archive_episode(text, _scope(scope)))

    def update(self, ref: Ref, text: str) -> Stored:
        return _stored(self._store.update(_ref(ref), text))

    def delete(self, ref: Ref) -> None:
        self._store.delete(_ref(ref))

    def lock(self, ref: Ref, locked: bool) -> None:
        self._store.lock(_ref(ref), locked)

    def settle(self) -> None:
        """Drain the queue, what waits for its next attempt or was claimed by a process that died included."""
        self._ahead += _LATER
        self._store.drain()

    def health(self) -> Health:
        health = self._store.check_health()
        # A node row written by hand may name a kind of parent that there is none of: a finding about no record.
        findings = {
            kind: tuple(_public(ref) for ref in refs if ref.kind in _TABLES) for kind, refs in health.findings.items()
        }
        return Health(tuple(map(_public, health.missing_nodes)), findings)

    def repair(self) -> Repaired:
        repaired = self._store.repair()
        return Repaired(repaired.built, repaired.failed)

    def recall(self, query: str, scope: Scope, limit: int) -> list[Hit]:
        return [Hit(_public(hit.ref), hit.score) for hit in self._store.recall(query, _scope(scope), limit)]

    def reconstruct(self, query: str, scope: Scope, limit: int) -> list[Item]:
        return [_item(item) for item in self._store.reconstruct(query, _scope(scope), limit)]

    def quote(self, ref: Ref, query: str, scope: Scope) -> Quote | None:
        quote = self._store.quote(_ref(ref), query, _scope(scope))
        return None if quote is None else _quote(quote)

    def contents(self, ref: Ref, scope: Scope, node: int | None = None) -> str | None:
        return self._store.contents(_ref(ref), _scope(scope), node)

    def export(self, path: str) -> None:
        self._store.export(path)

    def import_(self, path: str) -> None:
        self._store.import_(path)

    def nodes(self, ref: Ref) -> list[Node]:
        rows = self._rows_of(
            ref,
            "SELECT node_index, start_char, end_char, token_count, window, embedding, embedding_model FROM record_nodes"
            " WHERE parent_kind = ? AND parent_id = ? ORDER BY node_index",
            ref.kind,
        )
        return [Node(*row) for row in rows]

    def text(self, ref: Ref) -> str | None:
        """The stored text, with U+FFFD for what is not UTF-8: the text everything is true of."""
        text = _TEXTS[ref.kind]
        rows = self._rows_of(ref, f"SELECT CAST({text} AS BLOB) FROM {_TABLES[ref.kind]} WHERE id = ?")
        return rows[0][0].decode("utf-8", "replace") if rows else None

    def refs(self) -> list[Ref]:
        return [Ref(kind, row[0]) for kind in ("ep", "mem") for row in self.execute(f"SELECT id FROM {_TABLES[kind]}")]

    def record_bytes(self, ref: Ref) -> bytes | None:
        """Every column of the record's row: the text's bytes and type, the others as SQLite quotes them."""
        table, text = _TABLES[ref.kind], _TEXTS[ref.kind]
        others = ("agent", "project", "channel", "locked", "created_at", "updated_at", "embedding", "embedding_model")
        quoted = ", ".join(f"quote({column})" for column in others)
        rows = self._rows_of(ref, f"SELECT hex({text}), typeof({text}), {quoted} FROM {table} WHERE id = ?")
        return repr(rows[0]).encode() if rows else None

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[list[Any]]:
        with self._lock:
            return [list(row) for row in self._past.execute(sql, parameters)]

    def _rows_of(self, ref: Ref, sql: str, *parameters: str) -> list[list[Any]]:
        """The rows of `sql`, whose last parameter is the id: none for one past 64 bits, which no row can have."""
        return self.execute(sql, (*parameters, ref.id)) if -(2**63) <= ref.id < 2**63 else []

    def configure(self, *, queue: bool | None = None, model: str | None = None) -> None:
        """Turn the queue on or off; with `model`, whatever it is called, the store asks for the identity anew."""
        if queue is not None:
            self._store.queue = queue
        if model is not None:
            self._store.refresh_model()

    def kill_at(self, statement: int) -> None:
        self._fuse.left = statement

    def _now(self) -> float:
        return time.time() + self._ahead

    def _connect(self, *arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = _Mortal(*arguments, **options)
        connection.fuse = self._fuse
        return connection


class _Fuse:
    """How many statements are left before the next one kills; None when nothing does."""

    def __init__(self) -> None:
        self.left: int | None = None

    def burn(self) -> None:
        if self.left is None:
            return
        self.left = max(0, self.left - 1)
        if self.left == 0:
            # It stays at 0: who is dead runs no further statement either.
            raise SubjectDied("killed before a statement")


class _Mortal(sqlite3.Connection):
    """A connection that dies as its fuse says. What it had not committed is rolled back when it is closed."""

    fuse = _Fuse()

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        self.fuse.burn()
        return super().execute(sql, parameters)


def _set_up(past: sqlite3.Connection) -> None:
    """The connection past the store is the first to open the file and the last to close it, and spares both the disk.

    A store of the harness may be killed, which needs no flush; the power does not fail between two of its examples.
    """
    past.text_factory = lambda raw: raw.decode("utf-8", "replace")
    past.execute("PRAGMA synchronous = OFF")
    past.execute("PRAGMA journal_mode = WAL")


def _ref(ref: Ref) -> StoreRef:
    return StoreRef(ref.kind, ref.id)


def _public(ref: StoreRef) -> Ref:
    return Ref(ref.kind, ref.id)


def _scope(scope: Scope) -> StoreScope:
    return StoreScope(scope.agent, scope.project, scope.channel)


def _stored(stored: StoreStored) -> Stored:
    return Stored(_public(stored.ref), None if stored.nodes is None else stored.nodes.status)


def _quote(quote: StoreQuote) -> Quote:
    return Quote(_public(quote.ref), quote.start, quote.end, quote.text, quote.node)


def _item(item: StoreItem) -> Item:
    return Item(_public(item.ref), item.score, tuple(map(_quote, item.quotes)))
