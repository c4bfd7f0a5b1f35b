"""A process that dies between any two statements leaves a sound store: every write is one transaction.

A child is killed after each SQL statement that may have written, in a life that creates, stores, changes, builds,
deletes, imports and repairs; then the store is opened again and held against what it may hold. DESIGN.md, "The
reference store": it survives a kill.
"""

import os
import shutil
import signal
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

from overflow.store import Health, MemoryStore, Scope
from overflow.store.queue import LEASE
from overflow.store.records import Text
from props.store.conftest import Bench, TinyEmbedder, Unsynced

LONG = "one two three four five six seven eight nine. "
OTHER = "other words that run well past the window too. "
EPISODE = "an episode of more than four words, and another sentence."
IMPORTED = ("imported text number one that is long enough", "short")

#: The texts of memories and episodes after each write of `_live`: a kill leaves one of these, nothing between.
STATES = [
    ([], []),
    ([LONG], []),
    ([LONG], [EPISODE]),
    ([LONG, "short"], [EPISODE]),
    ([OTHER, "short"], [EPISODE]),
    ([OTHER], [EPISODE]),
    ([OTHER, *IMPORTED], [EPISODE]),
]


def _live(store: MemoryStore, embedder: TinyEmbedder, file: Path) -> None:
    first = store.store(LONG, Scope()).ref
    episode = store.archive_episode(EPISODE, Scope()).ref
    short = store.store("short", Scope()).ref
    store.drain()
    store.lock(episode, True)
    store.update(first, OTHER)
    store.drain()
    store.delete(short)
    store.import_(str(file))
    embedder.name = "tiny-2"
    store.refresh_model()
    store.repair()
    store.drain()


def _import_file(bench: Bench) -> Path:
    file = bench.directory / "import.jsonl"
    file.write_text("".join(f'{{"kind": "mem", "agent": "agent", "text": "{text}"}}\n' for text in IMPORTED))
    return file


def _before_statement(number: int, act: Callable[[], object]) -> type[Any]:
    """A connection class that calls `act` in place of its `number`-th statement.

    It keeps how many there were, and which of them come after one that may have written.
    """

    class Counting(Unsynced):
        count = 0
        after_a_write: ClassVar = [1]

        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            Counting.count += 1
            if not arguments[0].startswith("SELECT"):
                Counting.after_a_write.append(Counting.count + 1)
            if Counting.count == number:
                act()
            return super().execute(*arguments)

    return Counting


def test_a_kill_before_any_statement_leaves_a_sound_store(bench: Bench) -> None:
    """Each kill leaves one of STATES, and what was queued is delivered after it."""
    file, embedder = _import_file(bench), bench.embedder
    counting = _before_statement(0, lambda: None)
    with MemoryStore(bench.path("whole.db"), embedder, clock=bench.clock, factory=counting) as store:
        _live(store, embedder, file)
    assert counting.count > 200
    reached = set()
    # After a SELECT the file is what it was before it, and so is what a kill leaves.
    for number in (number for number in counting.after_a_write if number <= counting.count):
        path = bench.path(f"{number}.db")
        _killed_before(number, path, bench, file)
        reached.add(_check(path, bench, number))
    assert reached == set(range(len(STATES)))


def _killed_before(number: int, path: str, bench: Bench, file: Path) -> None:
    with warnings.catch_warnings():
        # Later Pythons warn of a fork beside the threads of a numeric library; the child uses none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            bench.embedder.name = "tiny-1"
            dying = _before_statement(number, lambda: os.kill(os.getpid(), signal.SIGKILL))
            _live(MemoryStore(path, bench.embedder, clock=bench.clock, factory=dying), bench.embedder, file)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the child was to die before statement {number}"


def test_an_error_before_any_statement_leaves_a_store_that_goes_on(bench: Bench) -> None:
    """The same with an error that the caller survives: the same store object mends itself."""
    file, embedder = _import_file(bench), bench.embedder

    def fail() -> None:
        raise MemoryError

    MemoryStore(bench.path("new.db"), embedder).close()
    number, failed = 1, True
    while failed:
        path = bench.path(f"error-{number}.db")
        embedder.name = "tiny-1"
        shutil.copy(bench.path("new.db"), path)
        failing = _before_statement(number, fail)
        failing.count = -1_000  # opening does not count
        with MemoryStore(path, embedder, clock=bench.clock, factory=failing) as store:
            failing.count = 0
            try:
                _live(store, embedder, file)
                failed = False
            except MemoryError:
                bench.clock.now += LEASE
                _mend(store, number)
        _check(path, bench, number)
        number += 1
    assert number > 150


def _check(path: str, bench: Bench, number: int) -> int:
    """Hold the database against the design; returns which of STATES it holds."""
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("PRAGMA synchronous = OFF")
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",), number
        if not raw.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return 0
        for index in ("memories_fts", "episodes_fts"):
            raw.execute(f"INSERT INTO {index} ({index}) VALUES ('integrity-check')")
        state = tuple(
            [text for (text,) in raw.execute("SELECT text FROM records WHERE kind = ? ORDER BY id", (kind,))]
            for kind in ("mem", "ep")
        )
        assert state in STATES, (number, state)
        for kind, identifier, text in raw.execute("SELECT kind, id, text FROM records").fetchall():
            _check_nodes(raw, kind, identifier, text, number)
        records = set(raw.execute("SELECT kind, id FROM records"))
        waiting = set(raw.execute("SELECT kind, id FROM tasks"))
        divided = "SELECT DISTINCT parent_kind, parent_id FROM record_nodes"
        assert waiting | set(raw.execute(divided)) <= records
        bench.clock.now += LEASE
        with MemoryStore(path, bench.embedder, clock=bench.clock, factory=Unsynced) as store:
            store.drain()
            assert waiting <= set(raw.execute(divided)), f"{number}: what was queued is delivered"
            _mend(store, number)
    return STATES.index(state)


def _check_nodes(raw: sqlite3.Connection, kind: str, identifier: int, text: str, number: int) -> None:
    """A node set is whole or absent, with the digest of this text."""
    rows = raw.execute(
        "SELECT start_char, end_char, embedding FROM record_nodes WHERE parent_kind = ? AND parent_id = ?"
        " ORDER BY node_index",
        (kind, identifier),
    ).fetchall()
    digests = raw.execute(
        "SELECT text_sha256 FROM node_sets WHERE parent_kind = ? AND parent_id = ?", (kind, identifier)
    ).fetchall()
    assert digests == ([(Text(text.encode()).sha256,)] if rows else []), number
    if rows:
        assert (rows[0][0], rows[-1][1]) == (0, len(text)), number
        assert all(left[1] == right[0] for left, right in pairwise(rows)), number
        assert all(row[2] for row in rows), number


def _mend(store: MemoryStore, number: int) -> None:
    while (repaired := store.repair()).built or repaired.embedded:
        pass
    assert store.check_health() == Health((), {}), number
