"""The task queue, in the same database: a record waits here for its nodes until they are built or given up.

A task is claimed under a lease, so that it outlives the process that was killed while building; it never says what a
build is. What makes no sense in a task that was edited by hand is read as if it were not there, so that its record is
built like any other. Overflow Tree, section 3; DESIGN.md, "The reference store".
"""

from collections.abc import Sequence
from dataclasses import dataclass

from overflow.store.database import Database
from overflow.store.records import Ref, is_time
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
_REPORT = "SELECT token_count, window, window_end_char FROM tasks WHERE type = 'nodes' AND kind = ? AND id = ?"
# A task waits for a moment that the queue can have set, and for no other: 'abc' and 9e999 are later than any.
_DUE = (
    "SELECT rowid, kind, id, token_count, window, window_end_char, attempts FROM tasks WHERE type = 'nodes'"
    " AND (due_at > :now AND due_at <= :now + :longest) IS NOT TRUE"
    " AND (lease_until > :now AND lease_until <= :now + :longest) IS NOT TRUE"
    " ORDER BY due_at, rowid LIMIT :limit"
)
_CLAIM = "UPDATE tasks SET attempts = ?, lease_until = ?, lease_owner = ? WHERE rowid = ?"
_RETRY = (
    "UPDATE tasks SET due_at = ?, lease_until = NULL, lease_owner = NULL, last_error = ?"
    " WHERE type = 'nodes' AND kind = ? AND id = ? AND lease_owner = ?"
)
_RELEASE = (
    "UPDATE tasks SET attempts = attempts - 1, due_at = ?, lease_until = NULL, lease_owner = NULL"
    " WHERE type = 'nodes' AND kind = ? AND id = ? AND lease_owner = ?"
)
_COLUMNS = (
    "SELECT rowid, kind, id, type, token_count, window, window_end_char, attempts, due_at, lease_until FROM tasks"
    " ORDER BY kind, id"
)
_REMOVE_ROW = "DELETE FROM tasks WHERE rowid = ?"
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
    row = database.row(_REPORT, (ref.kind, ref.id))
    return row is not None and _report(*row) is not None


def claim(database: Database, owner: str, now: float, limit: int) -> list[Task]:
    """Up to `limit` tasks that are due, or whose lease ran out, now leased to `owner`."""
    values = {"now": now, "longest": LONGEST_WAIT, "limit": limit}
    if not database.rows(_DUE, values):
        return []  # Looking takes no write lock.
    with database.transaction():
        claimed = []
        for rowid, kind, identifier, count, window, end, attempts in database.rows(_DUE, values):
            task = Task(Ref(kind, identifier), _report(count, window, end), _made(attempts) + 1)
            database.write(_CLAIM, (task.attempt, now + LEASE, owner, rowid))
            claimed.append(task)
    return claimed


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


def odd(database: Database) -> tuple[Ref, ...]:
    """The records of tasks that nobody here has written so."""
    return tuple(Ref(kind, identifier) for _, kind, identifier, *columns in database.rows(_COLUMNS) if _is_odd(columns))


def remove_odd(database: Database) -> int:
    """Delete those tasks; returns how many. Health still finds their records. Call it inside a transaction."""
    rowids = [rowid for rowid, _, _, *columns in database.rows(_COLUMNS) if _is_odd(columns)]
    for rowid in rowids:
        database.write(_REMOVE_ROW, (rowid,))
    return len(rowids)


def _is_odd(columns: Sequence[object]) -> bool:
    kind_of_work, *report, attempts, due_at, lease_until = columns
    is_known = any(value is not None for value in report)
    return (
        kind_of_work != "nodes"
        or (is_known and _report(*report) is None)
        or not _is_count(attempts)
        or not is_time(due_at)
        or not (lease_until is None or is_time(lease_until))
    )


def _report(count: object, window: object, end: object) -> TokenReport | None:
    """The report of a text that runs past its window; None for any other, which the queue never writes."""
    # Not by _is_count: mypy narrows a value by isinstance alone.
    if not (isinstance(count, int) and isinstance(window, int) and isinstance(end, int)):
        return None
    return TokenReport(count, window, True, end) if 1 <= window < count and end >= 0 else None


def _made(attempts: object) -> int:
    """The attempts so far. What is no count is 0: to give a record up takes evidence, and a claim writes a count."""
    return max(0, min(attempts, MAX_ATTEMPTS)) if isinstance(attempts, int) else 0


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value >= 0
