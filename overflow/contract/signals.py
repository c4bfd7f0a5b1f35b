"""What signals do during a run: an alarm bounds each call of a subject in process, and SIGTERM ends a run in order.

Both need the main thread, and put back what they found; elsewhere, and on a system without these signals, nothing is
bounded here. A call that never comes back to the interpreter (a loop inside a C library) cannot be interrupted.
DESIGN.md, "Command line": 3, the subject is not available.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from overflow.contract.gone import GoneError

#: How long one call of a subject may take (seconds), in process or out of it, unless a run says otherwise.
TIMEOUT = 120.0
#: The alarm strikes again after this many seconds, for whoever swallowed it.
_AGAIN = 1.0
#: The least a timer can be set to: 0 would turn it off.
_AT_ONCE = 1e-6

T = TypeVar("T")


class OverdueError(GoneError):
    """A call was given up because it took longer than it may."""


class _AlarmError(BaseException):
    """Strikes in the middle of a call. No handler for `Exception` catches it."""


def call_within(seconds: float, call: Callable[[], T]) -> T:
    """What `call` returns; raises OverdueError when it takes longer. The call may bound calls of its own."""
    if not _has("setitimer"):
        return call()

    def strike(_number: int, _frame: FrameType | None) -> None:
        raise _AlarmError

    started = time.monotonic()
    before = signal.signal(signal.SIGALRM, strike)
    outer, again = signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        try:
            return call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except _AlarmError as struck:
        raise OverdueError(f"did not answer within {seconds:g} s") from struck
    finally:
        # Once more: the alarm may have struck in the line that turns it off.
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if outer:
            signal.setitimer(signal.ITIMER_REAL, max(outer - (time.monotonic() - started), _AT_ONCE), again)


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """In the block SIGTERM raises KeyboardInterrupt, so that everything opened, a child process too, is ended."""
    if not _has("SIGTERM"):
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _has(name: str) -> bool:
    return hasattr(signal, name) and threading.current_thread() is threading.main_thread()
