"""Brings a database to the present schema: creates it, migrates an older one, and makes missing triggers anew.

No row of a record is touched. Overflow Tree, section 1: "The migration adds a table and its triggers."
"""

import sqlite3
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from overflow.store.database import Database
from overflow.store.errors import NewerSchemaError, NotAStoreError

#: PRAGMA user_version of a database of the present schema. Version 1 had no nodes, no queue and no digests.
VERSION = 2

_COLUMNS = {"id", "agent", "project", "channel", "locked", "created_at", "updated_at", "embedding", "embedding_model"}
_TEXT_COLUMNS = {"memories": "content", "episodes": "summary"}

# A version-1 database may have records that no index holds yet.
_FILL_INDEX = (
    "INSERT INTO memories_fts (rowid, text) SELECT id, text FROM searchable"
    " WHERE kind = 'mem' AND id NOT IN (SELECT rowid FROM memories_fts)",
    "INSERT INTO episodes_fts (rowid, text) SELECT id, text FROM searchable"
    " WHERE kind = 'ep' AND id NOT IN (SELECT rowid FROM episodes_fts)",
)


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger of schema.sql by its name, with the statement that creates it."""

    name: str
    sql: str

    def same_as(self, stored: str) -> bool:
        """Whether `stored`, as SQLite keeps it, is this trigger: it rewrites what stands before the name."""
        return self.sql.partition(self.name)[2] == stored.partition(self.name)[2]


def ensure(database: Database) -> None:
    """Make the schema of `database` whole, in one transaction; writes nothing when it is.

    Raises NewerSchemaError, NotAStoreError.
    """
    version = _version(database)
    if version > VERSION:
        raise NewerSchemaError(
            f"{database.path} has schema version {version} and this package knows {VERSION};"
            " install the version that wrote it, or import its export into a new store"
        )
    if version == VERSION and not faulty_triggers(database):
        return
    with database.transaction():
        for trigger in faulty_triggers(database):
            database.write(f'DROP TRIGGER IF EXISTS "{trigger.name}"')
        _require_own_tables(database)
        for statement in _statements():
            database.write(statement)
        if version < VERSION:
            for statement in _FILL_INDEX:
                database.write(statement)
            database.write(f"PRAGMA user_version = {VERSION}")


def faulty_triggers(database: Database) -> list[Trigger]:
    """The triggers of the schema that are missing, or are not what they should be."""
    stored: dict[str, str] = dict(database.rows("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"))
    return [trigger for trigger in _triggers() if not trigger.same_as(stored.get(trigger.name, ""))]


def _version(database: Database) -> int:
    row = database.row("PRAGMA user_version")
    assert row is not None
    return int(row[0])


def _require_own_tables(database: Database) -> None:
    for table, text in _TEXT_COLUMNS.items():
        columns = {name for (name,) in database.rows("SELECT name FROM pragma_table_info(?)", (table,))}
        missing = (_COLUMNS | {text}) - columns
        if columns and missing:
            raise NotAStoreError(
                f"{database.path} is no memory store: its table {table} lacks {', '.join(sorted(missing))};"
                " give another path"
            )


@cache
def _statements() -> tuple[str, ...]:
    found, statement = [], ""
    for line in (files("overflow.store") / "schema.sql").read_text("utf-8").splitlines(keepends=True):
        if statement or not line.startswith(("--", "\n")):
            statement += line
        if statement and sqlite3.complete_statement(statement):
            found.append(statement.strip())
            statement = ""
    return tuple(found)


@cache
def _triggers() -> tuple[Trigger, ...]:
    start = "CREATE TRIGGER IF NOT EXISTS "
    statements = [statement for statement in _statements() if statement.startswith(start)]
    return tuple(
        Trigger(statement.removeprefix(start).split()[0], statement.rstrip(";").rstrip()) for statement in statements
    )
