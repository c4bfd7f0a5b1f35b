"""Memories and episodes as rows: written, changed, and read as the bytes that are stored.

Everything about a record is true of its bytes decoded with U+FFFD for what is not UTF-8, and a row is never mended. It
knows nothing of nodes: triggers keep those true. Overflow Tree, sections 4 and 7.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from overflow.errors import InputError
from overflow.store.database import Database, Row
from overflow.store.errors import LockedRecordError, NoMoreIdsError, StoreFullError, UnknownRecordError
from overflow.store.vectors import usable
from overflow.tokens.unicode_text import require_unicode

Kind = Literal["mem", "ep"]

#: Section 7: what is longer is stored up to here, in code points.
LENGTH_LIMIT = 16_000


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """A memory (`mem`) or an episode (`ep`) by its id. Order: kind, then id.

    Raises UnknownRecordError for an id that no record can have: SQLite's are of 64 bits.
    """

    kind: Kind
    id: int

    def __post_init__(self) -> None:
        # Of a row edited by hand it may be anything else.
        if isinstance(self.id, int) and not -(2**63) <= self.id < 2**63:
            raise UnknownRecordError(f"there is no {self.kind} {self.id}")


@dataclass(frozen=True, slots=True)
class Scope:
    """The isolation axes a record is stored under; a read sees the records of exactly one scope."""

    agent: str = "agent"
    project: str = ""
    channel: str = ""

    def __post_init__(self) -> None:
        """Raises InputError for an axis that is no Unicode."""
        require_unicode([self.agent, self.project, self.channel])


@dataclass(frozen=True, slots=True)
class Text:
    """A stored text: its bytes, and the characters everything else is about."""

    raw: bytes
    is_text: bool = True

    @property
    def value(self) -> str:
        return self.raw.decode("utf-8", "replace")

    @property
    def readable(self) -> bool:
        """Whether it was stored as text, in valid UTF-8."""
        return self.is_text and self.value.encode() == self.raw

    @property
    def sha256(self) -> str:
        return sha256(self.raw).hexdigest()


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to insert; times in seconds, `vector` as `vectors.pack` gives it."""

    kind: Kind
    scope: Scope
    text: str
    locked: bool
    created_at: float
    updated_at: float
    vector: bytes | None
    model: str | None


@dataclass(frozen=True, slots=True)
class _Statements:
    table: str
    insert: str
    change: str
    vector: str
    lock: str
    delete: str


_STATEMENTS: dict[Kind, _Statements] = {
    "mem": _Statements(
        table="memories",
        insert="INSERT INTO memories (agent, project, channel, content, locked, created_at, updated_at, embedding,"
        " embedding_model) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        change="UPDATE memories SET content = ?, updated_at = ? WHERE id = ?",
        vector="UPDATE memories SET embedding = ?, embedding_model = ? WHERE id = ?",
        lock="UPDATE memories SET locked = ?, updated_at = ? WHERE id = ?",
        delete="DELETE FROM memories WHERE id = ?",
    ),
    "ep": _Statements(
        table="episodes",
        insert="INSERT INTO episodes (agent, project, channel, summary, locked, created_at, updated_at, embedding,"
        " embedding_model) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        change="UPDATE episodes SET summary = ?, updated_at = ? WHERE id = ?",
        vector="UPDATE episodes SET embedding = ?, embedding_model = ? WHERE id = ?",
        lock="UPDATE episodes SET locked = ?, updated_at = ? WHERE id = ?",
        delete="DELETE FROM episodes WHERE id = ?",
    ),
}
# NULL, which a table of another program may hold, is a text of no bytes that is none, as a BLOB is.
_TEXT = "SELECT coalesce(CAST(text AS BLOB), x''), typeof(text) FROM records WHERE kind = ? AND id = ?"
_TEXT_IN_SCOPE = _TEXT + " AND agent = ? AND project = ? AND channel = ?"
_VECTOR = (
    "SELECT r.embedding, r.embedding_model, v.text_sha256 FROM records r"
    " LEFT JOIN record_vectors v ON v.parent_kind = r.kind AND v.parent_id = r.id WHERE r.kind = ? AND r.id = ?"
)
_LAST_ID = "SELECT 1 FROM sqlite_sequence WHERE name = ? AND seq >= 9223372036854775807"
_DIGEST = (
    "INSERT INTO record_vectors (parent_kind, parent_id, text_sha256) VALUES (?, ?, ?)"
    " ON CONFLICT (parent_kind, parent_id) DO UPDATE SET text_sha256 = excluded.text_sha256"
)


def accepted(text: str) -> str:
    """`text` as it is stored: up to LENGTH_LIMIT. Raises InputError when it is empty or no Unicode."""
    require_unicode([text])
    if not text:
        raise InputError("the text is empty; give at least one character")
    return text[:LENGTH_LIMIT]


def insert(database: Database, record: NewRecord) -> Ref:
    """Insert a record; call it inside a transaction."""
    scope = record.scope
    values = (
        *(scope.agent, scope.project, scope.channel, record.text, int(record.locked)),
        *(record.created_at, record.updated_at, record.vector, record.model),
    )
    try:
        identifier = database.write(_STATEMENTS[record.kind].insert, values).lastrowid
    except StoreFullError as error:
        # SQLite has one error for both: an id is never given twice, and after the largest there is none.
        if database.row(_LAST_ID, (_STATEMENTS[record.kind].table,)) is None:
            raise
        raise NoMoreIdsError(f"{database.path} has given its last id; import an export into a new store") from error
    assert identifier is not None
    ref = Ref(record.kind, identifier)
    if record.vector is not None:
        database.write(_DIGEST, (ref.kind, ref.id, Text(record.text.encode()).sha256))
    return ref


def change(database: Database, ref: Ref, text: str, now: float) -> None:
    """Set the text of an unlocked record; call it inside a transaction. A new text takes the vector away."""
    require_unlocked(database, ref)
    database.write(_STATEMENTS[ref.kind].change, (text, now, ref.id))


def set_vector(database: Database, ref: Ref, text: Text, vector: bytes, model: str) -> bool:
    """Store the vector made of `text`, if that is still the record's; call it inside a transaction."""
    if text_of(database, ref) != text:
        return False
    database.write(_STATEMENTS[ref.kind].vector, (vector, model, ref.id))
    database.write(_DIGEST, (ref.kind, ref.id, text.sha256))
    return True


def has_vector(database: Database, ref: Ref, text: Text, model: str | None) -> bool:
    """Whether a record that holds `text` has a vector made of it by `model`; None is not known, and not compared."""
    row = database.row(_VECTOR, (ref.kind, ref.id))
    assert row is not None
    vector, made_by, text_sha256 = row
    is_of_model = model is None or made_by == model
    return is_of_model and text_sha256 in (None, text.sha256) and usable([vector], None)


def set_locked(database: Database, ref: Ref, locked: bool, now: float) -> None:
    """Lock or unlock a record; call it inside a transaction."""
    if not database.write(_STATEMENTS[ref.kind].lock, (int(locked), now, ref.id)).rowcount:
        raise UnknownRecordError(f"there is no {ref.kind} {ref.id}")


def delete(database: Database, ref: Ref) -> None:
    """Delete an unlocked record; call it inside a transaction."""
    require_unlocked(database, ref)
    database.write(_STATEMENTS[ref.kind].delete, (ref.id,))


def require_unlocked(database: Database, ref: Ref) -> None:
    """Raise UnknownRecordError or LockedRecordError unless the record can be changed."""
    row = database.row("SELECT locked FROM records WHERE kind = ? AND id = ?", (ref.kind, ref.id))
    if row is None:
        raise UnknownRecordError(f"there is no {ref.kind} {ref.id}")
    if row[0]:
        raise LockedRecordError(f"{ref.kind} {ref.id} is locked; unlock it first")


def text_of(database: Database, ref: Ref) -> Text | None:
    """The record's text; None when there is no such record."""
    return _text(database.row(_TEXT, (ref.kind, ref.id)))


def text_in_scope(database: Database, ref: Ref, scope: Scope) -> Text | None:
    """The record's text; None when `scope` does not hold it."""
    return _text(database.row(_TEXT_IN_SCOPE, (ref.kind, ref.id, *scope_values(scope))))


def scope_values(scope: Scope) -> tuple[str, str, str]:
    """The axes in the order every statement takes them."""
    return (scope.agent, scope.project, scope.channel)


def is_time(*values: object) -> bool:
    """Whether stored values are times: finite numbers of seconds."""
    # Not isfinite: a whole number that no float can hold is an OverflowError to it.
    return all(isinstance(value, int | float) and abs(value) <= sys.float_info.max for value in values)


def refs_of(rows: Sequence[Row]) -> tuple[Ref, ...]:
    """Rows of (kind, id) as refs."""
    return tuple(Ref(kind, identifier) for kind, identifier in rows)


def _text(row: Row | None) -> Text | None:
    return None if row is None else Text(row[0], row[1] == "text")
