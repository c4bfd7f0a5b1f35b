"""The `tokenizers` binding as it fails: in Exceptions without a type of their own, and in panics that print themselves.

It tokenizes nothing. DESIGN.md, "Command line": bad input is one clear line.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from overflow.errors import HarnessError, InputError

_STDERR = 2
#: Two threads that put the descriptor back would otherwise put back what the other had put there.
_one_at_a_time = threading.Lock()


@contextmanager
def told(problem: str, kind: type[HarnessError] = InputError) -> Iterator[None]:
    """In the block what the binding finds wrong, and what it panics at, is a `kind` that names the problem first."""
    try:
        yield
    except BaseException as error:
        # The type of a panic cannot be imported, and is no Exception.
        if type(error) is not Exception and type(error).__name__ != "PanicException":
            raise
        raise kind(f"{problem} ({' '.join(str(error).split())})") from error


@contextmanager
def unheard() -> Iterator[None]:
    """In the block nothing reaches stderr: of a panic the binding prints lines of its own, past Python."""
    with _one_at_a_time, ExitStack() as put_back:
        with suppress(OSError):  # It may be closed.
            stderr = os.dup(_STDERR)
            put_back.callback(os.close, stderr)
            put_back.callback(os.dup2, stderr, _STDERR)
            with Path(os.devnull).open("w") as nowhere:
                os.dup2(nowhere.fileno(), _STDERR)
        yield
