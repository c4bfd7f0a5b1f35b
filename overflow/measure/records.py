"""The records of files that a person names: whole texts, lines of JSONL files, folders of both, and stdin.

A source that cannot be read is an error among the records and stops none of the others. A text is taken as it is, but
for a byte order mark, which is no part of it. DESIGN.md, "Command line" (`overflow divide`, `--corpus`).
"""

import codecs
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from overflow.errors import InputError
from overflow.regular_file import TOO_LARGE, read_regular

SUFFIXES = (".txt", ".md", ".jsonl")

#: A text with more NUL characters than one in so many is no text: UTF-16 read as UTF-8 has every other.
_NUL_SHARE = 10


@dataclass(frozen=True, slots=True)
class Record:
    """A text, where it was read (a path, `-` for stdin, file:line), and the `id` that its JSONL line gives it."""

    where: str
    text: str
    own_id: str | int | None = None

    @property
    def id(self) -> str | int:
        """What people call it: its own id, else where it was read."""
        return self.where if self.own_id is None else self.own_id


def read_records(paths: Iterable[str]) -> Iterator[Record | InputError]:
    """The records of each path in turn, drawn one by one; an InputError in place of each that cannot be had."""
    for path in paths:
        try:
            folder = path != "-" and Path(path).is_dir()
        except OSError as error:
            yield InputError(f"cannot read {path}: {error.strerror}")
            continue
        if path == "-":
            yield from _readable("stdin", _stdin())
        elif folder:
            yield from _folder(path)
        else:
            yield from _readable(path, _file(Path(path)))


def reads(paths: Iterable[str], file: Path) -> bool:
    """Whether the regular file `file` is one of those that `read_records` reads, by whatever name, or as stdin."""
    sought = _status(file)
    if sought is None or not stat.S_ISREG(sought.st_mode):
        return False
    return any(os.path.samestat(sought, found) for path in paths for found in _statuses(path))


def _statuses(path: str) -> Iterator[os.stat_result]:
    if path == "-":
        with suppress(OSError, ValueError, AttributeError):  # Closed, or none of the system's.
            yield os.fstat(sys.stdin.fileno())
        return
    files = _files_in(path, lambda _: None) if Path(path).is_dir() else [Path(path)]
    yield from (found for file in files if (found := _status(file)) is not None)


def _status(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except (OSError, ValueError):
        return None


def _readable(name: str, records: Iterator[Record | InputError]) -> Iterator[Record | InputError]:
    """The records of one source, which may be too large at any step: its bytes fit and its text does not."""
    try:
        yield from records
    except OSError as error:
        yield InputError(f"cannot read {name}: {error.strerror}")
    except MemoryError:
        yield InputError(f"cannot read {name}: {TOO_LARGE}")


def _stdin() -> Iterator[Record | InputError]:
    if sys.stdin is None:
        yield InputError("cannot read stdin: it is closed")
        return
    data = sys.stdin.buffer.read()
    yield from _lines("-", data) if _begins_as_lines(data) else _whole("-", data)


def _begins_as_lines(data: bytes) -> bool:
    """Whether stdin, which has no suffix to tell, is JSONL: its first line alone says so, as a later one may be bad.

    A text hardly ever begins with a JSON object that has a field `text`, and such a file can be named instead.
    """
    first = data.removeprefix(codecs.BOM_UTF8).lstrip().partition(b"\n")[0]
    try:
        row = json.loads(first.decode())
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and "text" in row


def _folder(path: str) -> Iterator[Record | InputError]:
    failures: list[OSError] = []
    found = _files_in(path, failures.append)
    for failure in failures:
        yield InputError(f"cannot read {failure.filename}: {failure.strerror}")
    if not found and not failures:
        yield InputError(f"{path} holds no file that ends in {', '.join(SUFFIXES)}")
    for file in found:
        yield from _readable(str(file), _file(file))


def _files_in(folder: str, failed: Callable[[OSError], None]) -> list[Path]:
    return sorted(
        Path(where) / name
        for where, _, names in os.walk(folder, onerror=failed)
        for name in names
        if name.lower().endswith(SUFFIXES)
    )


def _file(path: Path) -> Iterator[Record | InputError]:
    data = read_regular(path)
    yield from _lines(str(path), data) if path.suffix.lower() == ".jsonl" else _whole(str(path), data)


def _whole(name: str, data: bytes) -> Iterator[Record | InputError]:
    try:
        yield Record(name, _decoded(name, data))
    except InputError as error:
        yield error


def _lines(name: str, data: bytes) -> Iterator[Record | InputError]:
    offset = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    # Not splitlines: U+2028 and its kin stand unescaped inside JSON strings.
    for number, line in enumerate(data[offset:].split(b"\n"), 1):
        if line.strip():
            try:
                yield _line(f"{name}:{number}", _decoded(name, line, offset))
            except InputError as error:
                yield error
        offset += len(line) + 1


def _line(where: str, line: str) -> Record:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not JSON: {error}") from error
    if not isinstance(row, dict):
        raise InputError(f"{where}: not an object; give one with a field `text`")
    text, identifier = row.get("text"), row.get("id")
    if not isinstance(text, str):
        raise InputError(f"{where}: the field `text` is {'no string' if 'text' in row else 'missing'}")
    if isinstance(identifier, bool) or not isinstance(identifier, str | int | None):
        raise InputError(f"{where}: the field `id` is neither a string nor a whole number")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: `text` is not Unicode: a lone surrogate at character {error.start}") from error
    return Record(where, text, identifier)


def _decoded(name: str, data: bytes, offset: int = 0) -> str:
    """`data`, which starts at the byte `offset` of the file `name`, as text."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} is not UTF-8 text: byte 0x{data[error.start]:02x} at offset {offset + error.start}"
        ) from error
    if text.count("\0") * _NUL_SHARE > len(text):
        raise InputError(f"{name} is not text but binary: NUL at offset {offset + data.index(0)}")
    return text.removeprefix("\ufeff") if offset == 0 else text
