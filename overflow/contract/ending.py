"""How a process ends that a subject in process would keep: by a call that no alarm ends, or by what it left behind.

It ends the process past every handler (`os._exit`), with a line that says why, and is never used where the interpreter
can still end it. DESIGN.md, "Command line": 3, the subject is not available.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from overflow.errors import UnavailableError
from overflow.shown import shown

#: How long threads that were left behind have to end by themselves (seconds).
GRACE = 5.0

_acts: list[Callable[[], object]] = []


@contextmanager
def before_giving_up(act: Callable[[], object]) -> Iterator[None]:
    """In the block, `act` is done before the process is given up: nothing else is then cleaned up."""
    _acts.append(act)
    try:
        yield
    finally:
        _acts.remove(act)


def give_up(why: str) -> NoReturn:
    """End this process now, with the exit code of a subject that is not available, and say why on stderr."""
    for act in reversed(_acts):
        with suppress(BaseException):
            act()
    _end(why, UnavailableError.exit_code)


def end_in_time(code: int, grace: float = GRACE) -> None:
    """To be called last, with the exit code: the process ends with it even where something left behind would keep it.

    Threads, child processes that `multiprocessing` joins and whatever else runs at the interpreter's end are waited for
    as ever, but not longer than `grace` (seconds).
    """

    def end() -> None:
        threading.Event().wait(grace)
        threads = [
            each.name for each in threading.enumerate() if not each.daemon and each is not threading.main_thread()
        ]
        left = f"a thread that the subject left running: {', '.join(threads)}" if threads else "what the subject left"
        _end(f"ended without waiting any longer for {left}", code)

    threading.Thread(target=end, daemon=True).start()


def _end(why: str, code: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with suppress(BaseException):
            stream.flush()
    # Past the streams of the interpreter, whose locks may be held by what is being ended.
    with suppress(OSError):
        os.write(2, f"overflow: {shown(why)}\n".encode("utf-8", "backslashreplace"))
    os._exit(code)
