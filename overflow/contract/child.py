"""One child process that answers lines on stdin with lines on stdout: started, asked, ended or killed.

It knows nothing of JSON or of subjects. Every failure is a GoneError with the last lines the child wrote to stderr,
and after one the child is over: an answer that comes late can never be taken for the next one. DESIGN.md, "Subject
protocol".
"""

import atexit
import os
import selectors
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, cast

from overflow.contract.gone import GoneError
from overflow.contract.signals import OverdueError
from overflow.contract.told import shortened
from overflow.errors import UnavailableError

#: What is kept of stderr (bytes), and how many of its lines an error shows.
STDERR_BYTES = 8_192
STDERR_LINES = 5
#: The longest answer taken (bytes): a child that never ends its line must not fill the memory.
ANSWER_BYTES = 64 * 1024 * 1024


class EndedError(GoneError):
    """The child ended in the middle of an exchange, by itself or by a signal (`returncode` is then negative)."""

    def __init__(self, message: str, returncode: int):
        super().__init__(message)
        self.returncode = returncode


class Child:
    """A child process, running until `is_over`.

    `timeout` bounds one exchange, `grace` each step of ending (seconds). Raises UnavailableError when the command
    cannot be started.
    """

    def __init__(self, command: Sequence[str], timeout: float, grace: float = 5.0):
        self._command = shlex.join(command)
        self.timeout = timeout
        self._grace = grace
        self._received = bytearray()
        self.is_over = False
        self._tail = b""
        try:
            # A session of its own, so that a wrapper (npx, uv run) is killed together with what it started.
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise UnavailableError(f"cannot start `{self._command}`: {error.strerror}") from error
        # Whatever ends this process, save SIGKILL, ends the child and what it started.
        atexit.register(self.kill)
        self._stdin = cast(IO[bytes], self._process.stdin)
        self._stdout = cast(IO[bytes], self._process.stdout)
        self._stderr = cast(IO[bytes], self._process.stderr)
        os.set_blocking(self._stdin.fileno(), False)
        self._stderr_reader = threading.Thread(target=self._keep_stderr, daemon=True)
        self._stderr_reader.start()

    def exchange(self, line: bytes) -> bytes:
        """Send `line` and give the line that answers it, both with their newline.

        Raises GoneError when the child ends, or gives no answer within the timeout.
        """
        try:
            return self._exchange(line)
        except BaseException:  # interrupted, an answer would still be on its way
            self.kill()
            raise

    def failure(self, what: str) -> GoneError:
        """The error that says `what` the child did, and its last words; the child is killed."""
        self.kill()
        return GoneError(self._account(what))

    def kill(self) -> None:
        """End the child at once with SIGKILL, as a fault would; nothing happens when it is over."""
        self.is_over = True
        atexit.unregister(self.kill)
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._stdin.close()
        self._stdout.close()
        self._stderr_reader.join(self._grace)
        if not self._stderr_reader.is_alive():  # else a process that outlived its session still holds the pipe
            self._stderr.close()

    def end(self) -> None:
        """End the child: its stdin is closed, then it is sent SIGTERM, then SIGKILL."""
        self._stdin.close()
        if not self._ends_within_grace():
            self._signal(signal.SIGTERM)
            self._ends_within_grace()
        self.kill()

    def _exchange(self, line: bytes) -> bytes:
        deadline = time.monotonic() + self.timeout
        unsent = memoryview(line)
        searched = 0
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdin, selectors.EVENT_WRITE)
            selector.register(self._stdout, selectors.EVENT_READ)
            while True:
                newline = self._received.find(b"\n", searched)
                if newline >= 0 and not unsent:
                    break
                searched = len(self._received)
                if searched > ANSWER_BYTES:
                    raise self.failure(f"wrote more than {ANSWER_BYTES} bytes without ending a line")
                remaining = deadline - time.monotonic()
                ready = selector.select(remaining) if remaining > 0 else []
                if not ready:
                    self.kill()
                    raise OverdueError(self._account(f"did not answer within {self.timeout:g} s"))
                for key, _ in ready:
                    if key.fileobj is self._stdout:
                        self._receive()
                    else:
                        unsent = self._send(unsent)
                        if not unsent:
                            selector.unregister(self._stdin)
        answer = bytes(self._received[: newline + 1])
        del self._received[: newline + 1]
        return answer

    def _send(self, unsent: memoryview) -> memoryview:
        try:
            return unsent[os.write(self._stdin.fileno(), unsent) :]
        except BrokenPipeError:
            raise self._ended() from None

    def _receive(self) -> None:
        chunk = os.read(self._stdout.fileno(), 65_536)
        if not chunk:
            raise self._ended()
        self._received += chunk

    def _ended(self) -> GoneError:
        if not self._ends_within_grace():
            return self.failure("closed its stdin or stdout")
        self.kill()
        status = self._process.returncode
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        return EndedError(self._account(how), status)

    def _account(self, what: str) -> str:
        lines = [line.strip() for line in self._tail.decode("utf-8", "replace").splitlines() if line.strip()]
        last_words = shortened(f"stderr ends: {' | '.join(lines[-STDERR_LINES:])}" if lines else "stderr is empty")
        return f"`{self._command}` {shortened(what)}; {last_words}"

    def _ends_within_grace(self) -> bool:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(self._grace)
        return self._process.poll() is not None

    def _signal(self, number: signal.Signals) -> None:
        # Also when the child itself has ended: what a wrapper started is still of its group, which has its number.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _keep_stderr(self) -> None:
        while chunk := os.read(self._stderr.fileno(), 65_536):
            self._tail = (self._tail + chunk)[-STDERR_BYTES:]
