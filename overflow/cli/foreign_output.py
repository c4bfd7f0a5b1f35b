"""What a subject in process writes to stdout, kept out of the command's own output.

It changes nothing about what a command writes itself, once the block is left. DESIGN.md, "Command line" (`--json -`).
"""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress

from overflow.errors import UnavailableError

_STDOUT, _STDERR = 1, 2


@contextmanager
def stdout_as_stderr() -> Iterator[None]:
    """In the block what anything else writes to stdout, C code and child processes too, goes to stderr.

    It goes nowhere when stderr is closed.
    """
    sys.stdout.flush()
    kept = os.dup(_STDOUT)
    # The number of a closed stderr may be that of any other file by now.
    elsewhere = os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else os.dup(_STDERR)
    os.dup2(elsewhere, _STDOUT)
    os.close(elsewhere)
    # A stream of its own: whoever closes it closes none of the command's.
    stream = os.fdopen(os.dup(_STDOUT), "w", buffering=1, errors="backslashreplace")
    try:
        with redirect_stdout(stream):
            yield
    finally:
        with suppress(OSError):
            stream.close()
        _flush_foreign()
        try:
            os.dup2(kept, _STDOUT)
        except OSError as error:
            raise UnavailableError("the subject closed what this process writes to, its result is lost") from error
        os.close(kept)


def _flush_foreign() -> None:
    """Write out what stands in buffers that are not the command's own: the interpreter's first stdout, and C's."""
    with suppress(OSError, ValueError, AttributeError):
        sys.__stdout__.flush()  # type: ignore[union-attr]  # None is what AttributeError is for
    with suppress(OSError, TypeError):
        ctypes.CDLL(None).fflush(None)
