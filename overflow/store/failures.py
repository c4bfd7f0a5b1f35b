"""Which records' work failed and how often, so that the next repair takes the others first.

A failure never excludes a record: it only makes it wait. DESIGN.md, "The reference store": "A record that
always fails never keeps others out".
"""

from collections.abc import Iterable
from typing import Literal

from overflow.division import WindowTooSmallError
from overflow.errors import HarnessError
from overflow.store.database import Database
from overflow.store.records import Ref, refs_of

Work = Literal["nodes", "vector"]

_NOTE = (
    "INSERT INTO failures (work, parent_kind, parent_id, attempts, undividable, reason) VALUES (?, ?, ?, 1, ?, ?)"
    " ON CONFLICT (work, parent_kind, parent_id) DO UPDATE SET attempts = max(coalesce(attempts, 0), 0) + 1,"
    " undividable = excluded.undividable, reason = excluded.reason"
)
_CLEAR = "DELETE FROM failures WHERE work = ? AND parent_kind = ? AND parent_id = ?"
# A row edited by hand may hold anything: what is no number is no failure.
_COUNTS = (
    "SELECT parent_kind, parent_id, attempts FROM failures"
    " WHERE work = ? AND typeof(attempts) IN ('integer', 'real') AND attempts > 0"
)
_UNDIVIDABLE = "SELECT parent_kind, parent_id FROM failures WHERE undividable ORDER BY parent_kind, parent_id"


def note(database: Database, work: Work, ref: Ref, error: HarnessError) -> None:
    """Count one more failure; call it inside a transaction."""
    undividable = int(isinstance(error, WindowTooSmallError))
    database.write(_NOTE, (work, ref.kind, ref.id, undividable, str(error)))


def clear(database: Database, work: Work, ref: Ref) -> None:
    """Forget the record's failures; call it inside a transaction."""
    database.write(_CLEAR, (work, ref.kind, ref.id))


def least_failed(database: Database, work: Work, refs: Iterable[Ref], limit: int) -> list[Ref]:
    """The first `limit` of `refs` by failures, then kind and id."""
    counts = {Ref(kind, identifier): attempts for kind, identifier, attempts in database.rows(_COUNTS, (work,))}
    return sorted(refs, key=lambda ref: (counts.get(ref, 0), ref))[:limit]


def undividable(database: Database) -> tuple[Ref, ...]:
    """The records whose last division found that no character fits the window."""
    return refs_of(database.rows(_UNDIVIDABLE))
