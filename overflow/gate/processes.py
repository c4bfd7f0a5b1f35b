"""Processes that a gate starts, side by side and each bounded in time: none is left when the block of `Processes` ends.

What they write goes to files, for a pipe would wait for whoever inherited it. It knows nothing of mutants.
DESIGN.md, principle 4.
"""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from overflow.gate.leader import ENDING, led


@dataclass(frozen=True, slots=True)
class Ended:
    """What a process wrote, and its exit code; None when its time was over."""

    out: str
    err: str
    code: int | None


class Processes:
    """A context manager; `run` may be called from many threads."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._closed = True
            running = list(self._running)
        for process in running:
            _signal(process, signal.SIGTERM)
        for process in running:
            _end(process)

    def run(self, command: Sequence[str], environment: Mapping[str, str], folder: Path, limit: float) -> Ended:
        """Run `command` to its end, for `limit` seconds at most, with files of its own in `folder`.

        Raises InterruptedError when the block has ended.
        """
        out, err = folder / "stdout", folder / "stderr"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            with self._lock:
                if self._closed:
                    raise InterruptedError
                process = subprocess.Popen(
                    led(command),
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=stdout,
                    stderr=stderr,
                    process_group=0,
                )
                self._running.add(process)
            try:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(limit)
                code = process.poll()
            finally:
                # Whatever ended the wait: nothing of its group stays.
                _end(process)
                assert process.stdin is not None
                process.stdin.close()
                with self._lock:
                    self._running.discard(process)
        return Ended(_text(out), _text(err), code)


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM first: only the process itself can end what it started in sessions of their own."""
    _signal(process, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(ENDING)
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """To the process and its group; some of it may have ended, or be another user's by now."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
