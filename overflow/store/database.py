"""One SQLite connection of a store: opened for several threads, with transactions and named errors.

It knows no table. Each call holds the connection's lock for its SQL alone; a block (`transaction`, `snapshot`) and a
`stream` hold it to their end, because a connection has one moment that all of its reads are of. DESIGN.md, "Bad
input"; Overflow Tree, section 3 (the write lock).
"""

import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from overflow.store.errors import NotAStoreError, ReadOnlyStoreError, named_errors

#: Seconds to wait for another connection's write lock.
BUSY_TIMEOUT = 10.0

#: Rows read at a time by `stream`.
_BATCH = 100
#: Bytes of the smallest page there is: what is shorter is no SQLite file, unless it is empty.
_LEAST_PAGE = 512

#: Makes the connection from the arguments of sqlite3.Connection; tests give one that fails at a chosen statement.
Factory = Callable[..., sqlite3.Connection]

Row = tuple[Any, ...]
Parameters = Sequence[Any] | Mapping[str, Any]


class Database:
    """The database at `path`, created when it is not there. Text is decoded with U+FFFD for what is not UTF-8.

    With `writes` False nothing is set in the file. Raises the errors of `overflow.store.errors`.
    """

    def __init__(self, path: str, factory: Factory = sqlite3.Connection, *, writes: bool = True) -> None:
        self.path = path
        self._lock = threading.RLock()
        with named_errors(path), ExitStack() as opened:
            # The lock above guards the connection, which SQLite's own check would bind to one thread.
            self._connection = factory(path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False)
            opened.callback(self._connection.close)
            self._connection.text_factory = _tolerant
            if writes:
                self._connection.execute("PRAGMA synchronous = NORMAL")
                self._connection.execute("PRAGMA journal_mode = WAL")
            opened.pop_all()

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """All rows of one statement."""
        with self._lock, named_errors(self.path):
            return self._connection.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """The first row of one statement, if any."""
        rows = self.rows(sql, parameters)
        return rows[0] if rows else None

    def stream(self, sql: str, parameters: Parameters = ()) -> Iterator[Row]:
        """The rows of one statement, a few at a time, of one moment; other threads wait for the end of it."""
        with self._lock, named_errors(self.path), closing(self._connection.execute(sql, parameters)) as cursor:
            while rows := cursor.fetchmany(_BATCH):
                yield from rows

    def write(self, sql: str, parameters: Parameters = ()) -> sqlite3.Cursor:
        """Run one statement that writes; call it inside `transaction`."""
        with self._lock, named_errors(self.path):
            return self._connection.execute(sql, parameters)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the write lock: all of what the block writes is kept, or nothing of it."""
        return self._between("BEGIN IMMEDIATE")

    @contextmanager
    def transaction_now(self) -> Iterator[None]:
        """`transaction`, which raises StoreBusyError at once while another connection has the write lock."""
        with self._lock:
            self.write("PRAGMA busy_timeout = 0")
            try:
                with self.transaction():
                    yield
            finally:
                self.write(f"PRAGMA busy_timeout = {round(1000 * BUSY_TIMEOUT)}")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All of what the block reads is of one moment."""
        return self._between("BEGIN")

    def _between(self, begin: str) -> Iterator[None]:
        with self._lock, named_errors(self.path):
            self._connection.execute(begin)
            try:
                yield
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.rollback()

    def close(self) -> None:
        with self._lock:
            self._connection.close()


@contextmanager
def untouched(path: str) -> Iterator[Database | None]:
    """The database at `path` as it is, read without a byte written; None when there is nothing in it yet.

    Raises NotAStoreError, before SQLite would take a file shorter than a page for an empty one and overwrite it, wait
    for a pipe, or take no name for that of a database which goes when it is closed.
    """
    if not path:
        raise NotAStoreError("a store has a path, and this one is empty; give that of a store, or a new one")

    # Never by opening the file here: closing it would end every lock that this process holds on it, and another process
    # would take its log away as if nobody used it. POSIX advisory locks; sqlite.org/howtocorrupt.html, section 2.2.
    file = Path(path)
    try:
        status = file.stat()
    except ValueError as error:
        raise NotAStoreError(f"{path} is no path: no name of a file has such a character; give another") from error
    except OSError:
        yield None  # Not there, or SQLite says what is wrong when it is opened to be written.
        return
    if not stat.S_ISREG(status.st_mode):
        raise NotAStoreError(f"{path} is no regular file, but a folder, a pipe or a device; give the path of a store")
    size = status.st_size
    if not size:
        yield None
        return
    if not os.access(file, os.R_OK):
        raise ReadOnlyStoreError(f"{path} cannot be read; make it readable")
    if size < _LEAST_PAGE:
        raise NotAStoreError(f"{path} is not a SQLite database; give the path of a store, or a new one")
    with closing(Database(path, _reader, writes=False)) as database:
        yield database


def _reader(path: str, **options: Any) -> sqlite3.Connection:
    """A connection that cannot write: an ordinary one would checkpoint another program's log when it is closed.

    Without a log beside the file it takes it for immutable: SQLite would make an empty log, and leave it there.
    """
    log = Path(f"{path}-wal")
    how = "mode=ro" if log.is_file() and log.stat().st_size else "immutable=1"
    return sqlite3.Connection(f"{Path(path).absolute().as_uri()}?{how}", uri=True, **options)


def _tolerant(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
