"""What can go wrong with a store and its database, each as one line that says what to do.

Nothing here catches anything. DESIGN.md, "Command line": exit 2 for what the caller can mend, 3 for what is not
available now.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from overflow.errors import InputError, UnavailableError


class StoreInputError(InputError):
    """A request the store refuses, or a file that is no store of this version."""


class NewerSchemaError(StoreInputError):
    """The database was written by a later version of this package."""


class NotAStoreError(StoreInputError):
    """The file is no SQLite database, is damaged, or holds tables of something else."""


class DamagedStoreError(StoreInputError):
    """Something that is derived from the records is missing, or the lexical index is damaged: repair mends it."""


class ReadOnlyStoreError(StoreInputError):
    """The database, or its directory, cannot be written."""


class UnknownRecordError(StoreInputError):
    """There is no such record."""


class LockedRecordError(StoreInputError):
    """The record is locked against update and delete."""


class NoMoreIdsError(StoreInputError):
    """The largest id there is was given: the store takes no new record of that kind."""


class StoreBusyError(UnavailableError):
    """Another process holds the database's write lock."""


class StoreFullError(UnavailableError):
    """The disk is full, or fails."""


DAMAGED_INDEX = "has a damaged lexical index; run repair, or import an export into a new store"
_DAMAGED = "is damaged; restore it, or import an export into a new store"

_NAMED: dict[int, tuple[type[StoreInputError | UnavailableError], str]] = {
    sqlite3.SQLITE_NOTADB: (NotAStoreError, "is not a SQLite database; give the path of a store, or a new one"),
    # Statements are constants of this package, so that one SQLite cannot run is one without its table.
    sqlite3.SQLITE_ERROR: (DamagedStoreError, "has not all of its tables ({error}); run repair, or open it again"),
    sqlite3.SQLITE_CORRUPT_VTAB: (DamagedStoreError, DAMAGED_INDEX),
    # No statement of this package meets a conflict of its own: the rows behind the lexical index contradict each other.
    sqlite3.SQLITE_CONSTRAINT: (DamagedStoreError, "holds rows that contradict each other ({error}); run repair"),
    sqlite3.SQLITE_CORRUPT: (NotAStoreError, _DAMAGED),
    sqlite3.SQLITE_CANTOPEN: (NotAStoreError, "cannot be opened; check that its directory exists and can be written"),
    sqlite3.SQLITE_READONLY: (ReadOnlyStoreError, "is read-only; make it and its directory writable"),
    sqlite3.SQLITE_PERM: (ReadOnlyStoreError, "cannot be accessed; make it and its directory writable"),
    sqlite3.SQLITE_BUSY: (StoreBusyError, "is locked by another process; try again when that has ended"),
    sqlite3.SQLITE_LOCKED: (StoreBusyError, "is locked by another connection; try again when that has ended"),
    sqlite3.SQLITE_FULL: (StoreFullError, "cannot grow: it or the disk is full; nothing of this write was kept"),
    sqlite3.SQLITE_IOERR: (StoreFullError, "cannot be read or written: the disk fails; nothing of this write was kept"),
}


@contextmanager
def named_errors(path: str) -> Iterator[None]:
    """Turn SQLite's errors about the database at `path` into named ones; a misuse of the connection passes as it is."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0)
        # The low byte is the primary code: SQLITE_READONLY_DIRECTORY is a kind of SQLITE_READONLY.
        named = _NAMED.get(code) or _NAMED.get(code & 0xFF)
        if named is None:
            raise
        kind, what = named
        raise kind(f"{path} {what.format(error=error)}") from error
    except UnicodeDecodeError as error:
        # sqlite3 decodes SQLite's message, which may quote a name of the file that is no UTF-8: then it has no code.
        raise NotAStoreError(f"{path} {_DAMAGED}") from error
