"""A subject in process that keeps the process: the run ends all the same, with a line and an exit code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PRELUDE = """
import os, signal, sys, threading
from overflow.contract.evidence import PROFILES
from overflow.contract.laws import all_laws
from overflow.contract.runner import Runner
from overflow.contract.stdio import PlainSubject
from overflow.contract.steps import Steps
from overflow.contract.watched import SubjectCrash, Watched
from overflow.embedding.wordllama import wordllama_vectors
from overflow.subjects.reference import Reference

class Subject(Reference):
    def store(self, text, scope):
        return act() or super().store(text, scope)

def check():
    with Runner(Subject, wordllama_vectors, timeout=0.5) as runner:
        return runner.check({law.id: law for law in all_laws()}["3"], PROFILES["quick"], 0)
"""


def ran(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`code` in a process of its own, with `folder` for its temporary files; never longer than a minute."""
    environment = {**os.environ, "TMPDIR": str(folder)}
    command = [sys.executable, "-c", PRELUDE + code]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)


def test_a_call_that_swallows_every_alarm_is_given_up(tmp_path: Path) -> None:
    """Exit 3 and one line, and the folder of the run is gone."""
    ended = ran(
        """
def act():
    while True:
        try:
            threading.Event().wait()
        except BaseException:
            continue

check()
""",
        tmp_path,
    )
    says = "overflow: the subject's store did not answer within 0.5 s, and goes on whatever interrupts it\n"
    assert (ended.returncode, ended.stderr) == (3, says)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("comes_back", ["return None", "raise ValueError", "sys.exit(0)"])
@pytest.mark.parametrize("served", ['Watched(Forks(), {"settle"}, Steps(), "a", 60.0)', "PlainSubject(Forks())"])
def test_a_forked_child_does_not_go_on_with_the_run(served: str, comes_back: str, tmp_path: Path) -> None:
    """One process goes on after the call, whichever way the other comes back. It forks once, and never again."""
    ended = ran(
        f"""
forks = []

class Forks:
    name, version = "forks", "1"

    def settle(self):
        if not forks:
            forks.append(True)
            child = os.fork()
            if child == 0:
                {comes_back}
            os.waitpid(child, 0)

try:
    {served}.settle()
except BaseException:
    pass
print("goes on", flush=True)
""",
        tmp_path,
    )
    assert (ended.returncode, ended.stdout) == (0, "goes on\n")


def test_a_thread_left_behind_does_not_keep_the_process(tmp_path: Path) -> None:
    """The process ends with its exit code, what it had still to write is written, and a line names the thread."""
    ended = ran(
        """
from overflow.contract.ending import end_in_time
threading.Thread(target=threading.Event().wait, name="indexer").start()
print("the verdict")
end_in_time(1, grace=0.1)
sys.exit(1)
""",
        tmp_path,
    )
    assert (ended.returncode, ended.stdout) == (1, "the verdict\n")
    says = "overflow: ended without waiting any longer for a thread that the subject left running: indexer\n"
    assert ended.stderr == says


@pytest.mark.parametrize(
    "left",
    [
        "import multiprocessing; multiprocessing.get_context('fork').Process(target=waiting).start()",
        "import atexit; atexit.register(waiting)",
    ],
)
def test_whatever_else_is_left_behind_does_not_keep_the_process(left: str, tmp_path: Path) -> None:
    """Neither a process that the interpreter joins at its end, nor what was registered for then."""
    ended = ran(
        f"""
from overflow.contract.ending import end_in_time
parent = os.getpid()

def waiting():
    while os.getppid() == parent or os.getpid() == parent:
        threading.Event().wait(0.05)

{left}
print("the verdict", flush=True)
end_in_time(1, grace=0.1)
sys.exit(1)
""",
        tmp_path,
    )
    assert (ended.returncode, ended.stdout) == (1, "the verdict\n")
    assert ended.stderr == "overflow: ended without waiting any longer for what the subject left\n"


def test_a_thread_that_ends_is_waited_for(tmp_path: Path) -> None:
    """Its work is done, and so is what the interpreter does at its end."""
    ended = ran(
        """
import atexit
from overflow.contract.ending import end_in_time
release = threading.Event()

def work():
    release.wait()
    print("worked")

atexit.register(print, "and cleaned up")
threading.Thread(target=work).start()
end_in_time(1)
release.set()
sys.exit(1)
""",
        tmp_path,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "worked\nand cleaned up\n", "")


def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """A run under nohup outlives its terminal."""
    ended = ran(
        """
signal.signal(signal.SIGHUP, signal.SIG_IGN)
act = lambda: signal.raise_signal(signal.SIGHUP)
print(check().status, signal.getsignal(signal.SIGHUP).name)
""",
        tmp_path,
    )
    assert (ended.stdout, ended.stderr) == ("holds SIG_IGN\n", "")
