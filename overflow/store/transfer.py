"""Export and import as JSON lines: records with their scope, lock and times, without nodes, vectors and ids.

A file appears whole or not at all, and so do the records of an import. Overflow Tree, section 4: nodes "are derived
from text the export already carries, and an import rebuilds them".
"""

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overflow.errors import InputError
from overflow.regular_file import TOO_LARGE, read_regular
from overflow.store.database import Database
from overflow.store.errors import StoreInputError
from overflow.store.records import Kind, Scope, accepted, is_time
from overflow.whole_file import whole_file

_RECORDS = (
    "SELECT kind, coalesce(CAST(agent AS BLOB), x''), coalesce(CAST(project AS BLOB), x''),"
    " coalesce(CAST(channel AS BLOB), x''), CAST(text AS BLOB), locked,"
    " created_at, updated_at FROM records WHERE CAST(text AS BLOB) <> x'' ORDER BY kind, id"
)


@dataclass(frozen=True, slots=True)
class Imported:
    """One line of an export; times in seconds, None where the line has none."""

    kind: Kind
    scope: Scope
    text: str
    locked: bool
    created_at: float | None
    updated_at: float | None


def export(database: Database, path: str) -> None:
    """Write every record to `path`, one JSON object a line, each as an import accepts it.

    What is not UTF-8 is written as U+FFFD, and a time that is no finite number as 0. A record without any text, which
    only another program can have written, is left out: no store takes it. Health names all of these.
    A link stays, and what it points to is written. Raises InputError when the file cannot be written, or is a pipe or a
    device; an older file at `path` then stays.
    """
    with whole_file(path, f"the export {path}") as write:
        for line in _lines(database):
            write(line)


def parse(path: str) -> list[Imported]:
    """The records of an export.

    Raises StoreInputError, with its number, for a line that is none of an export's.
    """
    try:
        return _parsed(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except MemoryError as error:
        raise InputError(f"cannot read {path}: {TOO_LARGE}") from error


def _parsed(path: str) -> list[Imported]:
    content = read_regular(Path(path)).removeprefix(codecs.BOM_UTF8)
    found = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if line.strip():
            try:
                found.append(_record(line))
            except InputError as error:
                raise StoreInputError(f"{path}, line {number}: {error}; nothing was imported") from error
    return found


def _lines(database: Database) -> Iterator[bytes]:
    for kind, agent, project, channel, text, locked, created_at, updated_at in database.stream(_RECORDS):
        record = {
            "kind": kind,
            "agent": agent.decode("utf-8", "replace"),
            "project": project.decode("utf-8", "replace"),
            "channel": channel.decode("utf-8", "replace"),
            "text": text.decode("utf-8", "replace"),
            "locked": bool(locked),
            "created_at": created_at if is_time(created_at) else 0.0,
            "updated_at": updated_at if is_time(updated_at) else 0.0,
        }
        yield json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _record(line: bytes) -> Imported:
    try:
        value = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise InputError("it is not JSON in UTF-8") from error
    if not isinstance(value, dict):
        raise InputError("it is not a JSON object")
    kind, text, locked = value.get("kind"), value.get("text"), value.get("locked", False)
    if kind not in ("mem", "ep"):
        raise InputError(f"kind is {kind!r} and must be mem or ep")
    if not isinstance(text, str):
        raise InputError("text is missing, or no text")
    if not isinstance(locked, bool):
        raise InputError("locked is neither true nor false")
    return Imported(kind, _scope(value), accepted(text), locked, _time(value, "created_at"), _time(value, "updated_at"))


def _scope(value: dict[str, Any]) -> Scope:
    axes = [value.get(axis, "") for axis in ("agent", "project", "channel")]
    if not all(isinstance(axis, str) for axis in axes):
        raise InputError("agent, project and channel must be texts")
    return Scope(*axes)


def _time(value: dict[str, Any], name: str) -> float | None:
    time = value.get(name)
    if time is None:
        return None
    # JSON's true is an int to Python; its NaN would be NULL to SQLite.
    if isinstance(time, bool) or not is_time(time):
        raise InputError(f"{name} is no number of seconds")
    return float(time)
