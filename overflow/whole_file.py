"""Writing a file whole or not at all: aside, in the same folder, and renamed when all of it is there.

A link stays, and what it points to is replaced; a pipe or a device is never replaced. DESIGN.md, "Bad input":
nothing half-written.
"""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from overflow.errors import InputError


@contextmanager
def whole_file(path: str, name: str) -> Iterator[Callable[[bytes], None]]:
    """What writes to the file `path`, which appears when the block ends well; until then, and else, an older one stays.

    Raises InputError, which calls the file `name`, where it cannot be written or is no regular file.
    """
    with ExitStack() as stack:
        with writing(name):
            target = resolved(path)
            older = target.stat().st_mode if target.exists() else None
            if older is not None and not stat.S_ISREG(older):
                raise InputError(f"cannot write {name}: not a regular file, but {_kind(older)}")
            # No other run has this name, in whatever container it shares the folder; and it is never too long.
            aside = target.with_name(f".overflow-{secrets.token_hex(8)}")
            stack.callback(aside.unlink, missing_ok=True)
            # Not by mkstemp: nobody else could read its file.
            file = aside.open("xb")
            stack.callback(close_quietly, file)
            if older is not None:
                aside.chmod(stat.S_IMODE(older))

        def write(content: bytes) -> None:
            with writing(name):
                file.write(content)

        yield write
        with writing(name):
            file.flush()
            os.fsync(file.fileno())
            aside.replace(target)


@contextmanager
def writing(name: str) -> Iterator[None]:
    """In the block an OSError is an InputError: the file called `name` cannot be written."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {name}: {error.strerror}") from error


def resolved(path: str) -> Path:
    """Where `path` leads through every link; raises OSError for a loop of them, and for what no path can be."""
    try:
        return Path(path).resolve()
    except RuntimeError as error:
        # What pathlib says of a loop of symbolic links before Python 3.13.
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error
    except ValueError as error:
        raise OSError(errno.EINVAL, "no name of a file has such a character") from error


def _kind(mode: int) -> str:
    return "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"


def close_quietly(file: IO[bytes]) -> None:
    """Close a file whose writing may have failed."""
    # What is left after a failed write fails once more, and has been told.
    with suppress(OSError):
        file.close()
