"""What commands write: a result whole or not at all, and tables as wide as what they are written to.

It never leaves a half-written file. DESIGN.md, "Command line" (`--json PATH`).
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from overflow.errors import InputError
from overflow.whole_file import close_quietly, resolved, whole_file, writing

if TYPE_CHECKING:
    from rich.console import Console

#: Columns of what goes to a file or a pipe, where there is no terminal to ask; rich would take 80, and cut paths.
FILE_WIDTH = 120


def stdout_console(file_width: int = FILE_WIDTH) -> "Console":
    """Stdout for what people read: as wide as the terminal, else as `file_width` columns."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=file_width)


def counted(number: int, what: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def write_text(path: str, text: str) -> None:
    """Write `text` to stdout for `-`, else to the file `path`: written aside and renamed, so it is never seen in part.

    Raises InputError when it cannot be written.
    """
    if path == "-":
        click.echo(text, nl=False)
        return
    with _written(path) as write:
        write(text)


def require_writable(path: str | None) -> None:
    """Raise InputError, before any work is done, for a path that cannot be written to; `-` and None pass."""
    if path is None or path == "-":
        return
    with writing(path):
        target = resolved(path)
        if target.is_dir():
            raise InputError(f"cannot write {path}: it is a folder")
        # A name that is too long shows only when it is asked for.
        target.exists()
        if not os.access(target.parent, os.W_OK):
            raise InputError(f"cannot write {path}: {target.parent} is no folder to write to")


def require_apart(outputs: Sequence[str | None], inputs: Sequence[str | None]) -> None:
    """Raise InputError, before any work is done, where a path cannot be written to or something would be lost by it.

    That is one of the `inputs` (files, folders, `-`), or what another of the `outputs` writes. None passes.
    """
    from overflow.measure.records import reads

    read = [path for path in inputs if path is not None]
    places: list[Path] = []
    for path in outputs:
        require_writable(path)
        if path is None or path == "-":
            continue
        if reads(read, Path(path)):
            raise InputError(f"cannot write {path}: it is one of the files to read; give another")
        place = resolved(path)
        if place in places:
            raise InputError(f"cannot write {path}: two results would be written there; give another")
        # A device, such as /dev/null, takes as many as there are.
        if place.is_file() or not place.exists():
            places.append(place)


@contextmanager
def json_lines(path: str | None) -> Iterator[Callable[[object], None]]:
    """A function that writes a value as a line of JSON: to stdout at once for `-`, nowhere for None.

    A file is written as `write_text` does it, line by line, and appears when the block ends well. Raises InputError,
    for a folder that is missing or not writable before the block begins.
    """
    if path is None:
        yield lambda _value: None
    elif path == "-":
        yield lambda value: click.echo(_line(value), nl=False)
    else:
        require_writable(path)
        with _written(path) as write:
            yield lambda value: write(_line(value))


@contextmanager
def _written(path: str) -> Iterator[Callable[[str], None]]:
    """What writes to the file `path`, aside until the block ends well; a device or a pipe is written to as it is."""
    with writing(path):
        # Not where its links lead: those of /dev/fd lead to names that are none.
        target = Path(path)
        is_file = not target.exists() or target.is_file()
    with whole_file(path, path) if is_file else _device(target) as write:
        # A lone surrogate is spelled out, in the way that is JSON's too.
        yield lambda text: write(text.encode(errors="backslashreplace"))


@contextmanager
def _device(path: Path) -> Iterator[Callable[[bytes], None]]:
    with ExitStack() as stack:
        with writing(str(path)):
            device = path.open("wb")
            stack.callback(close_quietly, device)

        def write(content: bytes) -> None:
            with writing(str(path)):
                device.write(content)

        yield write
        with writing(str(path)):
            device.flush()


def _line(value: object) -> str:
    # ASCII alone: a file name that is no Unicode is a record's id too, and no stream could encode it.
    return json.dumps(value) + "\n"
