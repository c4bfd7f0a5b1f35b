"""Standard output and error as commands need them: any text can be written, and what cannot be written is told once.

A failure becomes an exception that no library takes for its own: rich and click end a process with 1, our "violated",
when a pipe breaks. DESIGN.md, "Command line".
"""

import io
import sys
from typing import TYPE_CHECKING, TextIO

from overflow.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Buffer


class ReaderGoneError(Exception):
    """The pipe behind stdout is closed at its other end."""


def prepare_streams() -> None:
    """Put streams of this module in place of the process's own; one that a caller has put there stays.

    Raises InputError when stdout is closed.
    """
    stdout, stderr = _own(sys.stdout, sys.__stdout__), _own(sys.stderr, sys.__stderr__)
    if stderr is not None:
        sys.stderr = _over(_Descriptor(stderr.fileno()), stderr)
    if sys.stdout is None:
        raise InputError("cannot write to stdout: it is closed; send it to a file, or to /dev/null")
    if stdout is not None:
        sys.stdout = _over(_Output(stdout.fileno()), stdout)


def _own(stream: TextIO | None, original: TextIO | None) -> TextIO | None:
    return stream if stream is original else None


def _over(raw: "_Descriptor", stream: TextIO) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        # An encoding that lacks a character, and a lone surrogate of a file name, are no reason to end.
        errors="backslashreplace",
        line_buffering=bool(stream.line_buffering),
    )


class _Descriptor(io.FileIO):
    """A descriptor that takes what it can: once a write has failed, all that follows goes nowhere."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._failed = False

    def write(self, data: "Buffer") -> int:
        # All is taken, or it would stay in the buffer above and fail once more at the interpreter's end.
        if not self._failed:
            try:
                return super().write(data)
            except OSError as error:
                self._failed = True
                self.failed(error)
        return memoryview(data).nbytes

    def failed(self, error: OSError) -> None:
        """Nothing: what cannot be told on stderr changes no result."""


class _Output(_Descriptor):
    """Stdout, whose first failure ends the command."""

    def failed(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError):
            raise ReaderGoneError from error
        raise InputError(f"cannot write to stdout: {error.strerror}") from error
