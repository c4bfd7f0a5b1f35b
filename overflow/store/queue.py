"""The task queue, in the same database: a record waits here for its nodes until they are built or given up.

A task is claimed under a lease, so that it outlives the process that was killed while building; it never says what a
build is. Overflow Tree, section 3; DESIGN.md, "The reference store".
"""

from dataclasses import dataclass

from overflow.store.database import Database
from overflow.store.records import Ref
from overflow.tokens.report import TokenReport

#: Seconds a claim holds: longer than any build, or two would do the same work.
LEASE = 900.0
#: Seconds until a failed task is due again after its first attempt, and how much longer each next time.
BACK_OFF, BACK_OFF_FACTOR = 30.0, 4.0
#: A task that failed this often is removed; the health check still finds its record.
MAX_ATTEMPTS = 5
#: Seconds until a task is due again whose build was made in vain and did not fail.
RELEASED = 5.0
#: The most seconds until a task that is not over can be claimed: after a claim, or after its last attempt but one.
LONGEST_WAIT = max(LEASE, RELEASED, BACK_OFF * BACK_OFF_FACTOR ** (MAX_ATTEMPTS - 2))

_ADD = (
    "INSERT INTO tasks (type, kind, id, token_count, window, window_end_char) VALUES ('nodes', ?, ?, ?, ?, ?)"
    " ON CONFLICT (type, kind, id) DO UPDATE SET token_count = excluded.token_count, window = excluded.window,"
    " window_end_char = excluded.window_end_char, attempts = 0, due_at = 0, lease_until = NULL, lease_owner = NULL,"
    " last_error = NULL"
)
_REMOVE = "DELETE FROM tasks WHERE type = 'nodes' AND kind = ? AND id = ?"
_IS_KNOWN_LONG = "SELECT 1 FROM tasks WHERE type = 'nodes' AND kind = ? AND id = ? AND token_count > window"
_DUE = (
    "SELECT rowid, kind, id, token_count, window, window_end_char, attempts FROM tasks"
    " WHERE type = 'nodes' AND due_at <= :now AND (lease_until IS NULL OR lease_until <= :now)"
    " ORDER BY due_at, rowid LIMIT :limit"
)
_CLAIM = "UPDATE tasks SET attempts = attempts + 1, lease_until = ?, lease_owner = ? WHERE rowid = ?"
_RETRY = (
    "UPDATE tasks SET due_at = ?, lease_until = NULL, lease_owner = NULL, last_error = ?"
    " WHERE type = 'nodes' AND kind = ? AND id = ? AND lease_owner = ?"
)
_RELEASE = (
    "UPDATE tasks SET attempts = attempts - 1, due_at = ?, lease_until = NULL, lease_owner = NULL"
    " WHERE type = 'nodes' AND kind = ? AND id = ? AND lease_owner = ?"
)
_FINISH = "DELETE FROM tasks WHERE type = 'nodes' AND kind = ? AND id = ? AND lease_owner = ?"


@dataclass(frozen=True, slots=True)
class Task:
    """A claimed task: the report on the text when it was stored, if known, and which attempt this is, from 1."""

    ref: Ref
    report: TokenReport | None
    attempt: int


def add(database: Database, ref: Ref, report: TokenReport) -> None:
    """Queue the record's nodes, once however often it is asked; call it inside a transaction."""
    database.write(_ADD, (ref.kind, ref.id, report.count, report.window, report.window_end_char))


def remove(database: Database, ref: Ref) -> None:
    """Forget the record's task; call it inside a transaction."""
    database.write(_REMOVE, (ref.kind, ref.id))


def is_known_long(database: Database, ref: Ref) -> bool:
    """Whether the record waits for its nodes and was measured before: a trigger queues what may fit."""
    return database.row(_IS_KNOWN_LONG, (ref.kind, ref.id)) is not None


def claim(database: Database, owner: str, now: float, limit: int) -> list[Task]:
    """Up to `limit` tasks that are due, or whose lease ran out, now leased to `owner`."""
    values = {"now": now, "limit": limit}
    if not database.rows(_DUE, values):
        return []  # Looking takes no write lock.
    with database.transaction():
        due = database.rows(_DUE, values)
        for rowid, *_ in due:
            database.write(_CLAIM, (now + LEASE, owner, rowid))
    return [
        Task(Ref(kind, identifier), _report(count, window, end), attempts + 1)
        for _, kind, identifier, count, window, end, attempts in due
    ]


def retry(database: Database, task: Task, owner: str, now: float, error: str) -> None:
    """Let a claimed task wait for its next attempt; call it inside a transaction."""
    due = now + BACK_OFF * BACK_OFF_FACTOR ** (task.attempt - 1)
    database.write(_RETRY, (due, error, task.ref.kind, task.ref.id, owner))


def release(database: Database, task: Task, owner: str, now: float) -> None:
    """Give a claimed task back as if it had not been claimed; call it inside a transaction."""
    database.write(_RELEASE, (now + RELEASED, task.ref.kind, task.ref.id, owner))


def finish(database: Database, task: Task, owner: str) -> bool:
    """Remove a claimed task; False when its record changed and waits anew. Call it inside a transaction."""
    return database.write(_FINISH, (task.ref.kind, task.ref.id, owner)).rowcount > 0


def _report(count: int | None, window: int | None, end: int | None) -> TokenReport | None:
    if count is None or window is None or end is None:
        return None
    return TokenReport(count, window, count > window, end)
