"""One connection of a store: how it is opened, how long it waits, and that each of its errors names the file."""

import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from overflow.store.database import BUSY_TIMEOUT, Database, untouched
from overflow.store.errors import DamagedStoreError, NotAStoreError, StoreBusyError
from props.store.conftest import Bench

WAITS = (round(1000 * BUSY_TIMEOUT),)


def test_a_store_keeps_a_log(bench: Bench) -> None:
    """So that no reader waits for a writer."""
    bench.open()
    assert bench.raw().execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_connection_waits_for_the_write_lock_of_another(bench: Bench) -> None:
    """Ten seconds: also the one that only reads, and again after a transaction that did not wait."""
    bench.open()
    path = bench.path("a.db")
    with untouched(path) as reader:
        assert reader is not None
        assert reader.row("PRAGMA busy_timeout") == WAITS
    with closing(Database(path)) as database:
        assert database.row("PRAGMA busy_timeout") == WAITS
        with database.transaction_now():
            assert database.row("PRAGMA busy_timeout") == (0,)
        assert database.row("PRAGMA busy_timeout") == WAITS


def test_nothing_is_begun_but_by_name(bench: Bench) -> None:
    """A statement outside of a transaction is kept at once, and keeps no other connection from writing."""
    path = bench.path("a.db")
    with closing(Database(path)) as database, closing(Database(path)) as other:
        database.write("CREATE TABLE numbers (number)")
        database.write("INSERT INTO numbers VALUES (1)")
        assert other.rows("SELECT number FROM numbers") == [(1,)]
        with other.transaction_now():
            other.write("INSERT INTO numbers VALUES (2)")
        assert database.rows("SELECT number FROM numbers ORDER BY number") == [(1,), (2,)]


def test_a_look_says_that_its_name_is_a_uri(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some builds of SQLite take it for one unasked, and others for the name of a new file."""
    bench.open().close()
    asked: list[object] = []

    class Asking(sqlite3.Connection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            asked.append(options.get("uri"))
            super().__init__(*arguments, **options)

    monkeypatch.setattr(sqlite3, "Connection", Asking)
    with untouched(bench.path("a.db")) as reader:
        assert reader is not None
    assert asked == [True]


#: What one connection can be asked for, each on a table that is not there.
CALLS: dict[str, Callable[[Database], object]] = {
    "rows": lambda database: database.rows("SELECT * FROM absent"),
    "row": lambda database: database.row("SELECT * FROM absent"),
    "stream": lambda database: list(database.stream("SELECT * FROM absent")),
    "write": lambda database: database.write("DELETE FROM absent"),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_error_names_the_file(bench: Bench, call: str) -> None:
    """Several stores may be open: whose it is stands first."""
    path = bench.path("a.db")
    with closing(Database(path)) as database, pytest.raises(DamagedStoreError) as raised:
        CALLS[call](database)
    assert str(raised.value) == (
        f"{path} has not all of its tables (no such table: absent); run repair, or open it again"
    )


def test_an_error_of_opening_or_beginning_names_the_file(bench: Bench) -> None:
    """As any other."""
    path, missing = bench.path("a.db"), bench.path("missing/a.db")
    with pytest.raises(NotAStoreError) as raised:
        Database(missing)
    assert str(raised.value) == f"{missing} cannot be opened; check that its directory exists and can be written"
    raw = bench.raw()
    with closing(Database(path)) as database:
        raw.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError) as busy, database.transaction_now():
            pass
    assert str(busy.value) == f"{path} is locked by another process; try again when that has ended"


def test_rows_come_at_once_or_a_few_at_a_time(bench: Bench) -> None:
    """In each thread; what is no UTF-8 comes as U+FFFD."""
    sql, row = "SELECT ?, CAST(x'61ff' AS TEXT)", (7, "a\ufffd")
    found: list[object] = []
    with closing(Database(bench.path("a.db"))) as database:
        calls = (
            lambda: found.extend(database.rows(sql, (7,))),
            lambda: found.append(database.row(sql, (7,))),
            lambda: found.extend(database.stream(sql, (7,))),
        )
        for call in calls:
            thread = threading.Thread(target=call)
            thread.start()
            thread.join()
    assert found == [row] * 3


@pytest.mark.parametrize("statement", [1, 2])
def test_a_connection_that_cannot_be_set_up_is_closed(bench: Bench, statement: int) -> None:
    """The error that ended it passes as it is."""
    made: list[sqlite3.Connection] = []

    class Failing(sqlite3.Connection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            made.append(self)
            self.left = statement

        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            self.left -= 1
            if self.left == 0:
                raise MemoryError
            return super().execute(sql, parameters)

    with pytest.raises(MemoryError):
        Database(bench.path("a.db"), Failing)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        made[0].execute("SELECT 1")


def test_a_log_left_behind_is_read_and_left_as_it_is(bench: Bench) -> None:
    """A program that was killed leaves one: what it holds counts, and is not written back into the file."""
    raw = bench.raw()
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
    for end in ("", "-wal"):
        shutil.copy(bench.path(f"a.db{end}"), bench.path(f"left.db{end}"))
    left = [Path(bench.path(f"left.db{end}")) for end in ("", "-wal")]
    before = [path.read_bytes() for path in left]
    with pytest.raises(NotAStoreError, match="has no table memories"):
        bench.open("left.db")
    assert [path.read_bytes() for path in left] == before


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_look_makes_no_file_even_for_a_moment(bench: Bench, journal: str) -> None:
    """The folder of a database that is refused was not written to."""
    raw = bench.raw()
    raw.execute(f"PRAGMA journal_mode = {journal}")
    raw.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
    raw.close()
    before = bench.directory.stat().st_mtime_ns
    with pytest.raises(NotAStoreError, match="has no table memories"):
        bench.open()
    assert bench.directory.stat().st_mtime_ns == before
