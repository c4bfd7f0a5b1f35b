"""Brings a database to the present schema: creates it, migrates an older one, and makes anew what it lacks.

A database of something else is refused before anything is written to it. No row of a record is touched. Overflow Tree,
section 1: "The migration adds a table and its triggers."
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from overflow.store.database import Database, untouched
from overflow.store.errors import NewerSchemaError, NotAStoreError

#: PRAGMA user_version of a database of the present schema. Version 1 had no nodes, no queue and no digests.
VERSION = 2

#: What the memories themselves are in. Everything else of the schema is derived from them and made anew when missing.
_RECORD_TABLES = ("memories", "episodes")
_INDEXES = ("memories_fts", "episodes_fts")
#: The tables FTS5 keeps behind each, from its documentation.
_INDEX_PARTS = ("data", "idx", "content", "docsize", "config")
#: What kind.sql is run with, once for each kind of record.
_KINDS = (
    {"{table}": "memories", "{text}": "content", "{kind}": "mem"},
    {"{table}": "episodes", "{text}": "summary", "{kind}": "ep"},
)

# What SQLite makes by itself, the tables behind a full-text index included, is no object of the schema.
_OBJECTS = (
    "SELECT name, type, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    " AND name NOT GLOB '*_fts_*' OR type = 'trigger'"
)
_COLUMNS = "SELECT name FROM pragma_table_info(?)"
# Of nothing else is it certain that it is a whole number, and another in each row.
_HAS_ID = "SELECT 1 FROM pragma_table_info(?) WHERE name = 'id' AND pk = 1 AND upper(type) = 'INTEGER'"

# A version-1 database may have records that no index holds yet, and an index made anew holds none.
_FILL_INDEX = (
    "INSERT INTO memories_fts (rowid, text) SELECT id, text FROM searchable"
    " WHERE kind = 'mem' AND id NOT IN (SELECT rowid FROM memories_fts)",
    "INSERT INTO episodes_fts (rowid, text) SELECT id, text FROM searchable"
    " WHERE kind = 'ep' AND id NOT IN (SELECT rowid FROM episodes_fts)",
)


@dataclass(frozen=True, slots=True)
class Made:
    """An object of the schema: its type and statement as SQLite keeps them, and the columns of a plain table."""

    type: str
    sql: str
    columns: frozenset[str] = frozenset()


def refuse_others(path: str) -> None:
    """Raise NewerSchemaError or NotAStoreError for a file that cannot be opened as a store; not a byte is written."""
    with untouched(path) as database:
        if database is not None:
            _require_own(database)


def ensure(database: Database) -> None:
    """Make the schema of `database` whole, in one transaction; writes nothing when it is.

    Whatever is derived from the records and is missing is made anew. Raises NewerSchemaError, NotAStoreError.
    """
    _require_own(database)
    if _version(database) == VERSION and _whole(_stored(database)):
        return
    with database.transaction():
        _require_own(database)
        version, stored = _version(database), _stored(database)
        for name in _altered(stored):
            database.write(f'DROP {stored[name].type} "{name}"')
        for statement in _statements():
            database.write(statement)
        if version < VERSION or {*_INDEXES} - stored.keys():
            _fill_indexes(database)
        if version != VERSION:
            database.write(f"PRAGMA user_version = {VERSION}")


def make_indexes_anew(database: Database) -> int:
    """Put new lexical indexes in the place of what is there; returns how many records they hold."""
    with database.transaction():
        try:
            # DROP TABLE would ask the damaged index first, which may not even come to life.
            database.write("PRAGMA writable_schema = ON")
            for name in _INDEXES:
                database.write("DELETE FROM sqlite_master WHERE name = ?", (name,))
        finally:
            database.write("PRAGMA writable_schema = RESET")
        for name in _INDEXES:
            for part in _INDEX_PARTS:
                database.write(f"DROP TABLE IF EXISTS {name}_{part}")
        for statement in _statements():
            database.write(statement)
        return _fill_indexes(database)


def missing_tables(database: Database) -> list[str]:
    """The tables of the schema that are missing, and the views that are missing or are not what they should be."""
    stored = _stored(database)
    return [
        name
        for name, made in _schema().items()
        if (made.type == "table" and name not in stored) or (made.type == "view" and stored.get(name) != made)
    ]


def faulty_triggers(database: Database) -> list[str]:
    """The triggers of the schema that are missing, or are not what they should be."""
    stored = _stored(database)
    return [name for name, made in _schema().items() if made.type == "trigger" and stored.get(name) != made]


def _fill_indexes(database: Database) -> int:
    return sum(database.write(statement).rowcount for statement in _FILL_INDEX)


def _whole(stored: dict[str, Made]) -> bool:
    return stored.keys() >= _schema().keys() and not _altered(stored)


def _altered(stored: dict[str, Made]) -> list[str]:
    """Triggers and views that are there, and are not what they should be."""
    made = _schema()
    return [
        name for name in made if made[name].type in ("trigger", "view") and stored.get(name, made[name]) != made[name]
    ]


def _version(database: Database) -> int:
    row = database.row("PRAGMA user_version")
    assert row is not None
    return int(row[0])


def _stored(database: Database) -> dict[str, Made]:
    return {name: Made(kind, sql) for name, kind, sql in database.rows(_OBJECTS)}


def _require_own(database: Database) -> None:
    """A database with anything in it must hold both record tables, and nothing else under a name of the schema."""
    version = _version(database)
    if version > VERSION:
        raise NewerSchemaError(
            f"{database.path} has schema version {version} and this package knows {VERSION};"
            " install the version that wrote it, or import its export into a new store"
        )
    stored = _stored(database)
    fault = next(_faults(database, stored), None) if stored else None
    if fault is not None:
        raise NotAStoreError(f"{database.path} is no memory store: {fault}; give another path")


def _faults(database: Database, stored: dict[str, Made]) -> Iterator[str]:
    for name, made in _schema().items():
        if name not in stored:
            continue
        if stored[name].type != made.type:
            yield f"its {name} is a {stored[name].type} and no {made.type}"
        columns = {column for (column,) in database.rows(_COLUMNS, (name,))} if made.columns else set()
        if missing := sorted(made.columns - columns):
            yield f"its table {name} lacks {', '.join(missing)}"
    for name in _RECORD_TABLES:
        if name not in stored:
            yield f"it has no table {name}"
        elif database.row(_HAS_ID, (name,)) is None:
            yield f"its table {name} has no id that is an INTEGER PRIMARY KEY"


@cache
def _statements() -> tuple[str, ...]:
    shared, of_each = ((files("overflow.store") / name).read_text("utf-8") for name in ("schema.sql", "kind.sql"))
    return (*_split(shared), *(statement for names in _KINDS for statement in _split(_filled(of_each, names))))


def _filled(sql: str, names: dict[str, str]) -> str:
    for placeholder, name in names.items():
        sql = sql.replace(placeholder, name)
    return sql


def _split(sql: str) -> Iterator[str]:
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement.strip()
            statement = ""


@cache
def _schema() -> dict[str, Made]:
    """Every object of the schema by its name, as a database that has just been made holds it."""
    found = {}
    with closing(sqlite3.connect(":memory:")) as memory:
        for statement in _statements():
            memory.execute(statement)
        for name, kind, sql in memory.execute(_OBJECTS).fetchall():
            # A virtual table has no columns here: to ask for those of a damaged one is an error.
            plain = kind == "table" and not sql.startswith("CREATE VIRTUAL")
            columns = memory.execute(_COLUMNS, (name,)).fetchall() if plain else []
            found[name] = Made(kind, sql, frozenset(column for (column,) in columns))
    return found
