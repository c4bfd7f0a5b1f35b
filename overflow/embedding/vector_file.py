"""Vectors kept in one SQLite file by model identity and text: a convenience that may vanish at any time.

It never raises for the state of the file: what cannot be read is not there, what cannot be written is left out, and one
line of the log says so. Processes may share the file; a batch is written whole or not at all. DESIGN.md, "Windows
and models".
"""

import hashlib
import logging
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from overflow.shown import shown

logger = logging.getLogger(__name__)

#: One unit vector, shape (dimensions,).
Vector = NDArray[np.float32]

_CREATE = """
CREATE TABLE IF NOT EXISTS vectors (
    identity TEXT NOT NULL,
    sha256   BLOB NOT NULL,
    vector   BLOB NOT NULL,
    PRIMARY KEY (identity, sha256)
) WITHOUT ROWID
"""
_EXISTS = "SELECT count(*) FROM sqlite_master WHERE name = 'vectors'"
_SELECT = "SELECT vector FROM vectors WHERE identity = ? AND sha256 = ?"
_INSERT = "INSERT OR REPLACE INTO vectors (identity, sha256, vector) VALUES (?, ?, ?)"

#: A file of another kind, a failing disk; and a message of SQLite that quotes what is no UTF-8, which sqlite3 decodes.
_FAILURES = (sqlite3.Error, OSError, UnicodeDecodeError)

#: No database, a database of which a part is lost, and one whose table has other columns.
_DAMAGE = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR)

#: Bytes at the end of a row that digest those before.
_SEAL = 8

#: Seconds to wait for another process that writes.
_PATIENCE = 5.0


class VectorFile:
    """The file at `path`, opened anew for each batch, so that nothing of it is held between two."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._readable = True
        self._writable = True

    def read(self, identity: str, texts: Sequence[str]) -> list[Vector | None]:
        """What is kept of each text, None where nothing (sound) is."""
        if not self._readable:
            return [None] * len(texts)
        try:
            # Reading makes no file.
            if not self.path.exists():
                return [None] * len(texts)
            with closing(self._open()) as connection:
                # Another process may have made the file and not yet the table.
                if connection.execute(_EXISTS).fetchone() == (0,):
                    return [None] * len(texts)
                rows = [connection.execute(_SELECT, (identity, _digest(text))).fetchone() for text in texts]
        except _FAILURES as error:
            self._readable = self._writable = False
            self._warn("read", error, "going on without" + "; delete it" * _is_damage(error))
            return [None] * len(texts)
        return [None if row is None else _sound(row[0]) for row in rows]

    def write(self, identity: str, vectors: Iterable[tuple[str, Vector]]) -> None:
        """Keep the vector of each text, all of them or none."""
        if not self._writable:
            return
        rows = [(identity, _digest(text), _stored(vector)) for text, vector in vectors]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open()) as connection, connection:
                connection.execute(_CREATE)
                connection.executemany(_INSERT, rows)
        except _FAILURES as error:
            self._writable = False
            self._warn("write", error, "going on without")

    def _warn(self, what: str, error: Exception, advice: str) -> None:
        # SQLite quotes names of the file, and a path may hold a line break.
        logger.warning("%s", shown(f"cannot {what} the vector cache {self.path} ({error}): {advice}"))

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=_PATIENCE)


def _is_damage(error: Exception) -> bool:
    """Whether the file is none of ours or is no longer whole; not one that is locked, or that may not be read."""
    return isinstance(error, UnicodeDecodeError) or getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _stored(vector: Vector) -> bytes:
    """Its numbers, and a digest of them: a row of another length, or of other numbers, can be a unit vector too."""
    numbers = vector.astype("<f4").tobytes()
    return numbers + _seal(numbers)


def _seal(numbers: bytes) -> bytes:
    return hashlib.sha256(numbers).digest()[:_SEAL]


def _sound(stored: object) -> Vector | None:
    """The vector of a row, None when the row is damaged or holds a number that is none."""
    if not isinstance(stored, bytes) or len(stored) <= _SEAL:
        return None
    numbers = stored[:-_SEAL]
    if stored[-_SEAL:] != _seal(numbers) or len(numbers) % 4:
        return None
    vector = np.frombuffer(numbers, "<f4").astype(np.float32)
    return vector if np.isfinite(vector).all() else None
