"""What signals do during a run: an alarm bounds each call of a subject in process, and SIGTERM ends a run in order.

Both need the main thread, and put back what they found; elsewhere, and on a system without these signals, nothing is
bounded here. A call that never comes back to the interpreter (a loop inside a C library) cannot be interrupted. SIGQUIT
keeps its meaning, the end at once with a core to look into. DESIGN.md, "Command line": 3, the subject is not available.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from overflow.contract.ending import give_up
from overflow.contract.gone import GoneError

#: How long one call of a subject may take (seconds), in process or out of it, unless a run says otherwise.
TIMEOUT = 120.0
#: The alarm strikes again after this many seconds, for whoever swallowed it.
_AGAIN = 1.0
#: At this strike the call is held to swallow them all, and the process is given up.
_LAST_STRIKE = 5
#: The least a timer can be set to: 0 would turn it off.
_AT_ONCE = 1e-6

#: What asks a run to end: a person, a supervisor, a terminal that closed.
_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")

T = TypeVar("T")

_interruptions = 0
#: How many there were when the run began; None outside of one.
_before_the_run: int | None = None


class OverdueError(GoneError):
    """A call was given up because it took longer than it may."""


class _AlarmError(BaseException):
    """Strikes in the middle of a call. No handler for `Exception` catches it."""


def call_within(seconds: float, call: Callable[[], T], name: str = "call") -> T:
    """What `call` returns; raises OverdueError when it takes longer. The call may bound calls of its own.

    Ends the process for a call of a subject, its `name`, that swallows every alarm.
    """
    if not _has("setitimer"):
        return call()
    strikes = 0

    def strike(_number: int, _frame: FrameType | None) -> None:
        nonlocal strikes
        strikes += 1
        if strikes == _LAST_STRIKE:
            signal.setitimer(signal.ITIMER_REAL, 0)
            give_up(f"the subject's {name} did not answer within {seconds:g} s, and goes on whatever interrupts it")
        raise _AlarmError

    started = time.monotonic()
    before = signal.signal(signal.SIGALRM, strike)
    outer, again = signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    overdue = OverdueError(f"did not answer within {seconds:g} s")
    try:
        try:
            answer = call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except BaseException as error:
        # Whatever the call made of the alarm.
        if strikes:
            raise overdue from error
        raise
    finally:
        # Once more: the alarm may have struck in the line that turns it off.
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if outer:
            signal.setitimer(signal.ITIMER_REAL, max(outer - (time.monotonic() - started), _AT_ONCE), again)
    if strikes:
        raise overdue
    return answer


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """In the block SIGTERM and SIGHUP raise KeyboardInterrupt, as SIGINT does, so that everything opened is ended.

    A signal that is ignored, as under nohup, stays so.
    """
    global _before_the_run
    numbers = [getattr(signal, name) for name in _ENDING if _has(name)]
    before = {number: signal.getsignal(number) for number in numbers}
    replaced = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    outer, _before_the_run = _before_the_run, _interruptions
    for number in replaced:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        _before_the_run = outer
        for number, handler in replaced.items():
            signal.signal(number, handler)


def interruptions() -> int:
    """How many signals have asked for an end so far; whoever counts more after a call knows that one came meanwhile.

    A subject may raise KeyboardInterrupt without any, and may swallow that of one. Always 0 but in the main thread.
    """
    return _interruptions if threading.current_thread() is threading.main_thread() else 0


def end_if_asked() -> None:
    """Raise KeyboardInterrupt when a signal has asked for the end of this run, also where the first one was lost.

    Whatever is raised inside a finalizer or a callback of the garbage collector is printed and dropped.
    """
    if _before_the_run is not None and interruptions() > _before_the_run:
        raise KeyboardInterrupt


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    global _interruptions
    _interruptions += 1
    raise KeyboardInterrupt


def _has(name: str) -> bool:
    return hasattr(signal, name) and threading.current_thread() is threading.main_thread()
