"""Creation, migration and what cannot be opened: sections 1 and 4; DESIGN.md, "Bad input"."""

import json
import os
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from overflow.errors import InputError, UnavailableError
from overflow.store import Health, MemoryStore, Ref, Scope, schema
from overflow.store.errors import (
    DamagedStoreError,
    NewerSchemaError,
    NotAStoreError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreFullError,
)
from overflow.store.queue import LEASE
from props.store.conftest import Bench

#: Section 1 of the design, column for column: name, type, NOT NULL, default, place in the primary key.
RECORD_NODES = [
    ("parent_kind", "TEXT", 1, None, 1),
    ("parent_id", "INTEGER", 1, None, 2),
    ("node_index", "INTEGER", 1, None, 3),
    ("start_char", "INTEGER", 1, None, 0),
    ("end_char", "INTEGER", 1, None, 0),
    ("token_count", "INTEGER", 1, None, 0),
    ("window", "INTEGER", 1, None, 0),
    ("embedding", "BLOB", 0, None, 0),
    ("embedding_model", "TEXT", 1, "''", 0),
]

#: The store as it was before nodes: records and their lexical index.
VERSION_1 = """
CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL DEFAULT '', project TEXT NOT NULL
    DEFAULT '', channel TEXT NOT NULL DEFAULT '', content TEXT NOT NULL, locked INTEGER NOT NULL DEFAULT 0, created_at
    REAL NOT NULL DEFAULT 0, updated_at REAL NOT NULL DEFAULT 0, embedding BLOB, embedding_model TEXT);
CREATE TABLE episodes (id INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL DEFAULT '', project TEXT NOT NULL
    DEFAULT '', channel TEXT NOT NULL DEFAULT '', summary TEXT NOT NULL, locked INTEGER NOT NULL DEFAULT 0, created_at
    REAL NOT NULL DEFAULT 0, updated_at REAL NOT NULL DEFAULT 0, embedding BLOB, embedding_model TEXT);
INSERT INTO memories (agent, content, locked, created_at) VALUES ('agent', 'a short memory', 1, 5);
INSERT INTO memories (agent, content, created_at) VALUES ('agent', 'one two three four five six seven. ', 6);
INSERT INTO episodes (agent, summary, created_at) VALUES ('agent', 'eight nine ten eleven twelve thirteen', 7);
PRAGMA user_version = 1;
"""
RECORDS = "SELECT * FROM memories UNION ALL SELECT * FROM episodes"


def test_the_node_table_is_the_design_s_column_for_column(bench: Bench) -> None:
    """Section 1: names, types, defaults and key of record_nodes."""
    bench.open()
    columns = [tuple(row[1:]) for row in bench.raw().execute("PRAGMA table_info(record_nodes)")]
    assert columns == RECORD_NODES


def test_opening_again_writes_nothing(bench: Bench) -> None:
    """A store whose schema is whole is left as it is."""
    bench.open()
    raw = bench.raw()
    before = raw.execute("PRAGMA data_version").fetchone()
    bench.open()
    assert raw.execute("PRAGMA data_version").fetchone() == before


def test_opening_again_waits_for_no_writer(bench: Bench) -> None:
    """What writes nothing needs no lock."""
    bench.open()
    raw = bench.raw()
    raw.execute("BEGIN IMMEDIATE")
    assert bench.open(factory=_impatient).check_health() == Health((), {})


def test_a_version_1_database_keeps_its_records_and_gets_nodes(bench: Bench) -> None:
    """Migration adds tables and triggers, and repair builds the nodes of records written before: section 3."""
    raw = bench.raw()
    raw.executescript(VERSION_1)
    before = raw.execute(RECORDS).fetchall()
    store = bench.open()
    assert raw.execute(RECORDS).fetchall() == before
    assert raw.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)
    assert [hit.ref.kind for hit in store.recall("eleven", Scope(), 1)] == ["ep"]
    assert len(store.check_health().missing_nodes) == 2
    assert store.repair().built == 2
    assert raw.execute("SELECT DISTINCT parent_kind, parent_id FROM record_nodes").fetchall() == [("ep", 1), ("mem", 2)]
    health = store.check_health()
    assert (health.missing_nodes, health.findings) == ((), {})


def test_a_newer_schema_is_left_alone(bench: Bench) -> None:
    """A later version's database is refused with what to do, and keeps its version."""
    bench.open().close()
    raw = bench.raw()
    raw.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    with pytest.raises(NewerSchemaError) as raised:
        bench.open()
    assert str(raised.value) == (
        f"{bench.path('a.db')} has schema version {schema.VERSION + 1} and this package knows {schema.VERSION};"
        " install the version that wrote it, or import its export into a new store"
    )
    assert raw.execute("PRAGMA user_version").fetchone() == (schema.VERSION + 1,)


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5_000])
def test_a_file_that_is_no_database_is_named_and_kept(bench: Bench, content: bytes) -> None:
    """The path is named, and the file stays as it is to the byte."""
    path = Path(bench.path("a.db"))
    path.write_bytes(content)
    with pytest.raises(NotAStoreError, match=re.escape(str(path))):
        bench.open()
    assert path.read_bytes() == content


def test_tables_of_something_else_are_named(bench: Bench) -> None:
    """A table of one of our names without our columns is somebody else's."""
    raw = bench.raw()
    raw.execute("CREATE TABLE memories (id INTEGER PRIMARY KEY, body TEXT)")
    with pytest.raises(NotAStoreError, match="its table memories lacks agent"):
        bench.open()
    assert raw.execute("SELECT count(*) FROM sqlite_master").fetchone() == (1,)


CUSTOMERS = "CREATE TABLE customers (id INTEGER PRIMARY KEY)"
FOREIGN = {
    "customers only": ([CUSTOMERS], "has no table memories"),
    "a table tasks": ([CUSTOMERS, "CREATE TABLE tasks (id INTEGER PRIMARY KEY, title)"], "its table tasks lacks"),
    "its own schema version": ([CUSTOMERS, "PRAGMA user_version = 2"], "has no table memories"),
    "a negative version": ([CUSTOMERS, "PRAGMA user_version = -1"], "has no table memories"),
    "a newer version": ([CUSTOMERS, "PRAGMA user_version = 3"], "schema version 3"),
    "memories of another form": (
        ["CREATE TABLE memories (x)"],
        "its table memories lacks agent, channel, content, created_at",
    ),
    "ids that are none": (
        [
            "CREATE TABLE memories (id PRIMARY KEY, agent, project, channel, content, locked, created_at, updated_at,"
            " embedding, embedding_model)",
            "CREATE TABLE episodes (id INTEGER PRIMARY KEY, agent, project, channel, summary, locked, created_at,"
            " updated_at, embedding, embedding_model)",
        ],
        "its table memories has no id",
    ),
    "a view of one of our names": (["CREATE VIEW memories AS SELECT 1"], "its memories is a view and no table"),
    "a table of a view's name": (["CREATE TABLE records (x)"], "its records is a table and no view"),
}


@pytest.mark.parametrize("journal", ["delete", "wal", "wal with a log"])
@pytest.mark.parametrize("foreign", FOREIGN)
def test_what_is_refused_is_left_as_it_is_to_the_byte(bench: Bench, foreign: str, journal: str) -> None:
    """Not even its journal mode is set, no file is left beside it, and a log is not written back into it."""
    statements, says = FOREIGN[foreign]
    raw = bench.raw()
    raw.execute(f"PRAGMA journal_mode = {journal.split()[0]}")
    for statement in statements:
        raw.execute(statement)
    if journal != "wal with a log":
        raw.close()
    before = _files(bench)
    for _ in range(2):
        with pytest.raises((NotAStoreError, NewerSchemaError), match=says):
            bench.open()
    with pytest.raises((NotAStoreError, NewerSchemaError), match=says):
        bench.open(factory=_read_only)
    assert _files(bench) == before


def _files(bench: Bench) -> dict[str, bytes]:
    # The -shm file is an index into the log, in which readers note where they are.
    return {path.name: path.read_bytes() for path in bench.directory.iterdir() if not path.name.endswith("-shm")}


@pytest.mark.parametrize("content", [b"x", b"hello", b"SQLite format 2\0" * 40])
def test_a_file_shorter_than_a_page_is_no_empty_database(bench: Bench, content: bytes) -> None:
    """SQLite itself would take it for one, and overwrite it."""
    path = Path(bench.path("a.db"))
    path.write_bytes(content)
    with pytest.raises(NotAStoreError, match="is not a SQLite database"):
        bench.open()
    assert path.read_bytes() == content


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.mkdir()


def _device(path: Path) -> None:
    path.symlink_to(os.devnull)


@pytest.mark.parametrize("make", [_pipe, _folder, _device])
def test_what_is_no_file_is_no_store(bench: Bench, make: Callable[[Path], None]) -> None:
    """It is the caller's to mend (exit 2): no disk fails, and nobody waits for the other end of a pipe."""
    make(Path(bench.path("a.db")))
    with pytest.raises(NotAStoreError, match="no regular file"):
        bench.open()
    assert [path.name for path in bench.directory.iterdir()] == ["a.db"]


def test_a_store_without_a_path_is_refused(bench: Bench) -> None:
    """SQLite would keep it in a file without a name, and lose it with the connection."""
    with pytest.raises(NotAStoreError, match="empty"):
        MemoryStore("", bench.embedder)


@pytest.mark.parametrize("name", ["n" * 300, "n/" * 3000])
def test_a_path_longer_than_a_path_can_be_is_named(bench: Bench, name: str) -> None:
    """What no file system takes is bad input."""
    with pytest.raises(NotAStoreError, match="cannot be opened"):
        bench.open(name)


def test_an_empty_file_becomes_a_store(bench: Bench) -> None:
    """A file of no bytes, as another program may have made it, holds nothing to lose."""
    Path(bench.path("a.db")).touch()
    assert bench.open().store("text", Scope()).ref.id == 1


@pytest.mark.parametrize("table", ["memories", "episodes"])
def test_a_store_that_lost_its_records_is_not_made_empty_in_silence(bench: Bench, table: str) -> None:
    """Their ids would be given anew, and nothing can bring them back but a backup."""
    bench.open().close()
    bench.raw().execute(f"DROP TABLE {table}")
    with pytest.raises(NotAStoreError, match=f"has no table {table}"):
        bench.open()


DERIVED = {
    **dict.fromkeys(("record_nodes", "node_sets", "tasks", "record_vectors", "failures"), "TABLE"),
    **dict.fromkeys(("memories_fts", "episodes_fts"), "TABLE"),
    **dict.fromkeys(("records", "searchable"), "VIEW"),
    **dict.fromkeys(("memories_scope", "episodes_scope", "tasks_due"), "INDEX"),
    "memories_nodes_delete": "TRIGGER",
}
LONG = "one two three four five six seven. "


@pytest.mark.parametrize("name", [name for name, kind in DERIVED.items() if kind != "INDEX" and kind != "TRIGGER"])
def test_what_is_dropped_from_an_open_store_is_named_until_repair(bench: Bench, name: str) -> None:
    """Each read and write works, or says that repair mends it; health names what is gone; nothing is half-written."""
    store, raw = bench.open(), bench.raw()
    ref = store.store(LONG, Scope()).ref
    store.drain()
    raw.execute(f"DROP {DERIVED[name]} {name}")
    before = raw.execute("SELECT * FROM memories").fetchall()
    calls: list[Callable[[], object]] = [
        lambda: store.recall("three", Scope(), 3),
        lambda: store.reconstruct("three", Scope(), 3),
        lambda: store.quote(ref, "three", Scope()),
        lambda: store.contents(ref, Scope(), 0),
        lambda: store.export(bench.path("out.jsonl")),
        lambda: store.store(LONG, Scope()),
        lambda: store.update(ref, LONG + "more"),
        lambda: store.delete(ref),
        store.drain,
    ]
    refused = [error for call in calls if (error := _refusal(call)) is not None]
    assert refused
    assert all("run repair" in error and name in error for error in refused)
    if len(refused) == len(calls):
        assert raw.execute("SELECT * FROM memories").fetchall() == before
    assert store.check_health() == Health((), {"missing_tables": ()})
    store.repair()
    assert "missing_tables" not in store.check_health().findings
    assert store.store("short", Scope()).ref.kind == "mem"


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM memories_fts_data",
        "DELETE FROM memories_fts_config",
        "DROP TABLE memories_fts_data",
        "DROP TABLE memories_fts_content",
        "DROP TABLE memories_fts_config",
    ],
)
@pytest.mark.parametrize("more", ["SELECT 1", "DROP INDEX memories_scope"], ids=["alone", "beside what is missing"])
def test_a_lexical_index_damaged_while_the_store_was_closed_is_mended(bench: Bench, damage: str, more: str) -> None:
    """It may not even open: words are refused with the way out, health names it, repair makes it anew."""
    with bench.open() as store:
        ref = store.store(LONG, Scope()).ref
        store.drain()
    raw = bench.raw()
    for statement in (damage, more):
        raw.execute(statement)
    store = bench.open()
    raw.execute("BEGIN IMMEDIATE")
    assert store.check_health() == Health((), {"damaged_index": ()}), "whoever writes meanwhile"
    raw.execute("ROLLBACK")
    with pytest.raises(DamagedStoreError, match="run repair"):
        store.update(ref, LONG + "more")
    assert store.check_health() == Health((), {"damaged_index": ()})
    assert store.repair().indexed == 1
    assert store.check_health() == Health((), {})
    bench.embedder.away = True
    assert [hit.ref for hit in store.recall("three four", Scope(), 5)] == [ref]
    store.update(ref, LONG + "more")


@pytest.mark.parametrize("reopened", [True, False])
@pytest.mark.parametrize("name", DERIVED)
def test_whatever_is_derived_is_made_anew_when_it_is_missing(bench: Bench, name: str, reopened: bool) -> None:
    """On open and by repair; the index is full again, nodes are missing and get built, and no record changes."""
    store, raw = bench.open(), bench.raw()
    refs = [put(LONG, Scope()).ref for put in (store.store, store.archive_episode)]
    store.drain()
    objects = "SELECT name, sql FROM sqlite_master ORDER BY name"
    nodes = "SELECT * FROM record_nodes ORDER BY parent_kind, node_index"
    before = [raw.execute(sql).fetchall() for sql in (objects, nodes, RECORDS)]
    raw.execute(f"DROP {DERIVED[name]} {name}")
    if reopened:
        store = bench.open()
        lost = name in ("record_nodes", "node_sets")
        health = store.check_health()
        assert health.missing_nodes == (tuple(sorted(refs)) if lost else ())
        assert not {"stale_index", "missing_triggers", "missing_tables"} & health.findings.keys()
    store.repair()
    health = store.check_health()
    assert (health.missing_nodes, health.findings) == ((), {})
    assert [raw.execute(sql).fetchall() for sql in (objects, nodes, RECORDS)] == before
    bench.embedder.away = True
    assert {hit.ref for hit in store.recall("three four", Scope(), 5)} == {*refs}
    assert store.store(LONG, Scope()).ref.id == 2


def test_a_view_of_another_statement_is_made_anew_on_open(bench: Bench) -> None:
    """A view that says something else would answer for the records."""
    bench.open()
    raw = bench.raw()
    view = "SELECT sql FROM sqlite_master WHERE name = 'searchable'"
    before = raw.execute(view).fetchone()
    raw.execute("DROP VIEW searchable")
    raw.execute("CREATE VIEW searchable (kind, id, text) AS SELECT 'mem', id, 'x' FROM memories")
    bench.open()
    assert raw.execute(view).fetchone() == before


def test_a_missing_directory_is_named(bench: Bench) -> None:
    """It is not made."""
    with pytest.raises(NotAStoreError, match="cannot be opened"):
        bench.open("missing/a.db")


def test_a_locked_database_is_named(bench: Bench) -> None:
    """Another process's write lock is "not available now", and passes."""
    store = bench.open(factory=_impatient)
    raw = bench.raw()
    raw.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError, match="locked by another process") as raised:
        store.store("text", Scope())
    assert isinstance(raised.value, UnavailableError)
    raw.execute("ROLLBACK")
    assert store.store("text", Scope()).ref.id == 1


def _import_file(bench: Bench) -> str:
    path = Path(bench.path("in.jsonl"))
    path.write_text("".join(json.dumps({"kind": "mem", "text": f"{LONG}{number} " * 99}) + "\n" for number in range(9)))
    return str(path)


#: Every write, each larger than the space that is left: on a store with memory 1, long and divided, and 2, not built.
WRITES: dict[str, Callable[[Bench, MemoryStore], object]] = {
    "store": lambda _, store: store.store("some words " * 400, Scope()),
    "archive_episode": lambda _, store: store.archive_episode("some words " * 400, Scope()),
    "update": lambda _, store: store.update(Ref("mem", 1), "other words " * 400),
    "delete": lambda _, store: store.delete(Ref("mem", 1)),
    "lock": lambda _, store: store.lock(Ref("mem", 1), True),
    "import": lambda bench, store: store.import_(_import_file(bench)),
    "drain": lambda _, store: store.drain(),
    "repair": lambda _, store: store.repair(),
}
TABLES = ("memories", "episodes", "record_nodes", "node_sets", "record_vectors", "failures", "memories_fts")


def _with_two_records(bench: Bench) -> None:
    with bench.open() as store:
        store.store(LONG * 20, Scope())
        store.drain()
        store.store(LONG * 400, Scope())


def _contents(raw: sqlite3.Connection) -> list[list[tuple[object, ...]]]:
    return [raw.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES]


@pytest.mark.parametrize("write", [name for name in WRITES if name not in ("delete", "lock")])
def test_a_full_disk_is_named_and_leaves_nothing_half_written(bench: Bench, write: str) -> None:
    """Whatever is written: what was there is there, the store can be read, and with space again it goes on."""
    _with_two_records(bench)
    full: list[sqlite3.Connection] = []

    def small_disk(path: str, **options: Any) -> sqlite3.Connection:
        connection = sqlite3.Connection(path, **options)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        full.append(connection)
        return connection

    store, raw = bench.open(factory=small_disk), bench.raw()
    before = _contents(raw)
    with pytest.raises(StoreFullError, match=r"disk is full; nothing of this write was kept"):
        WRITES[write](bench, store)
    assert _contents(raw) == before
    assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert store.recall("three four", Scope(), 5)
    full[0].execute("PRAGMA max_page_count = 1000000")
    bench.clock.now += LEASE
    WRITES[write](bench, store)
    store.drain()
    assert store.check_health() == Health((), {})


@pytest.mark.parametrize("write", WRITES)
def test_a_read_only_database_is_named_and_still_read(bench: Bench, write: str) -> None:
    """Every read answers, every write says what is wrong, and nothing changes."""
    _with_two_records(bench)
    store, raw = bench.open(factory=_read_only), bench.raw()
    before = _contents(raw)
    with pytest.raises(ReadOnlyStoreError, match="is read-only") as raised:
        WRITES[write](bench, store)
    assert isinstance(raised.value, InputError)
    assert _contents(raw) == before
    assert store.recall("three four", Scope(), 5)
    assert store.quote(Ref("mem", 1), "three", Scope()).node is not None
    assert store.check_health() == Health((Ref("mem", 2),), {})


def test_a_missing_or_altered_trigger_is_made_anew_on_open(bench: Bench) -> None:
    """Section 4 rests on the triggers: each is there again, as it was."""
    bench.open()
    raw = bench.raw()
    triggers = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name"
    before = raw.execute(triggers).fetchall()
    assert len(before) == 12
    raw.execute("DROP TRIGGER memories_nodes_update")
    raw.execute("DROP TRIGGER episodes_nodes_delete")
    raw.execute("CREATE TRIGGER episodes_nodes_delete AFTER DELETE ON episodes BEGIN SELECT 1; END")
    bench.open()
    assert raw.execute(triggers).fetchall() == before


def test_a_failed_open_leaves_no_half_made_schema(bench: Bench) -> None:
    """The schema is one transaction: an error before any statement of it leaves an empty database."""

    class Failing(sqlite3.Connection):
        left = 0

        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            Failing.left -= 1
            if Failing.left == 0:
                raise MemoryError
            return super().execute(*arguments)

    for number in range(3, 60):
        Failing.left = number
        name = f"{number}.db"
        try:
            MemoryStore(bench.path(name), bench.embedder, factory=Failing).close()
        except MemoryError:
            made = bench.raw(name).execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            assert made in (0, _complete(bench)), number
        else:
            break
    else:
        raise AssertionError("no number of statements was enough")
    assert number > 30


def _refusal(call: Callable[[], object]) -> str | None:
    try:
        call()
    except DamagedStoreError as error:
        return str(error)
    return None


def _complete(bench: Bench) -> int:
    bench.open("complete.db")
    return bench.raw("complete.db").execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _impatient(path: str, **options: Any) -> sqlite3.Connection:
    return sqlite3.Connection(path, **(options | {"timeout": 0}))


def _read_only(path: str, **options: Any) -> sqlite3.Connection:
    return sqlite3.Connection(f"file:{path}?mode=ro", uri=True, **options)


def test_a_name_that_is_no_utf8_is_a_damaged_database(bench: Bench) -> None:
    """SQLite's message quotes it, and Python cannot decode that: the error is named all the same."""
    bench.open().close()
    raw = bench.raw()
    raw.execute("PRAGMA writable_schema = ON")
    raw.execute("UPDATE sqlite_master SET name = CAST(x'ff' AS TEXT), sql = 'CREATE TABLE (' WHERE name = 'tasks'")
    raw.close()
    with pytest.raises(NotAStoreError, match=r"a\.db is damaged; restore it"):
        bench.open()
