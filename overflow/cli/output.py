"""What commands write: a result whole or not at all, and text from outside in a form that a terminal shows as one line.

It never leaves a half-written file. DESIGN.md, "Command line" (`--json PATH`).
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from overflow.errors import InputError


def shown(text: str) -> str:
    """`text` with everything that is not printable, such as a line break or an escape sequence, spelled out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def write_text(path: str, text: str) -> None:
    """Write `text` to stdout for `-`, else to the file `path`: written aside and renamed, so it is never seen in part.

    Raises InputError when it cannot be written.
    """
    if path == "-":
        click.echo(text, nl=False)
        return
    target = Path(path).resolve()
    try:
        if target.exists() and not target.is_file():
            # A device or a pipe is written to, never replaced.
            target.write_text(text, encoding="utf-8", newline="")
            return
        aside = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            aside.write_text(text, encoding="utf-8", newline="")
            aside.replace(target)
        finally:
            aside.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def require_writable(path: str | None) -> None:
    """Raise InputError, before any work is done, for a path whose folder cannot be written to; `-` and None pass."""
    if path is not None and path != "-":
        folder = Path(path).resolve().parent
        if not os.access(folder, os.W_OK):
            raise InputError(f"cannot write {path}: {folder} is no folder to write to")


@contextmanager
def json_lines(path: str | None) -> Iterator[Callable[[object], None]]:
    """A function that writes a value as a line of JSON: to stdout at once for `-`, nowhere for None.

    A file is written as `write_text` does it when the block ends well. Raises InputError, for a folder that is missing
    or not writable before the block begins.
    """
    if path is None:
        yield lambda _value: None
    elif path == "-":
        yield lambda value: click.echo(_line(value), nl=False)
    else:
        require_writable(path)
        lines: list[str] = []
        yield lambda value: lines.append(_line(value))
        write_text(path, "".join(lines))


def _line(value: object) -> str:
    # ASCII alone: a file name that is no Unicode is a record's id too, and no stream could encode it.
    return json.dumps(value) + "\n"
