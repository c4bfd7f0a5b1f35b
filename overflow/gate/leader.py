"""The process that leads a group: it starts one program, and ends the group when the process that asked for it is gone.

It is started with a pipe as stdin, which nobody writes to, and which closes even when its other end is killed. What it
starts gets no stdin. DESIGN.md, principle 4.
"""

import sys
from collections.abc import Sequence

#: SIGTERM goes to the whole group and must not end the leader, whose end is taken for the program's.
_LEADER = """
import os, signal, subprocess, sys, threading, time
gone = threading.Event()
def follow():
    os.read(0, 1)
    gone.set()
    os.killpg(0, signal.SIGTERM)
    time.sleep(float(sys.argv[1]))
    os.killpg(0, signal.SIGKILL)
signal.signal(signal.SIGTERM, lambda *_: None)
threading.Thread(target=follow, daemon=True).start()
code = subprocess.call(sys.argv[2:], stdin=subprocess.DEVNULL)
if gone.is_set():
    os.killpg(0, signal.SIGKILL)
os._exit(code if code >= 0 else 128 - code)
"""

#: Seconds that a program has to end what it started and to remove its folders, when it is told to.
ENDING = 10.0


def led(command: Sequence[str]) -> list[str]:
    """The command of a leader that starts `command`, and ends with its exit code, 128 and the number of a signal."""
    return [sys.executable, "-I", "-S", "-c", _LEADER, str(ENDING), *command]
