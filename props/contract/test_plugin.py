"""`pytest --pyargs overflow.contract` from outside: what to pass is said, and what went wrong is a line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUBJECT = """
import threading

class Broken:
    name, version = "broken", "1"
    def open(self, directory, embedding_url): pass
    def close(self): pass
    def store(self, text, scope): raise OSError("no room")
    def nodes(self, ref): return []
    def text(self, ref): return ""

class Closed(Broken):
    def open(self, directory, embedding_url): raise OSError("locked")

class Stuck(Broken):
    def store(self, text, scope): threading.Event().wait()

class Deaf(Broken):
    def store(self, text, scope):
        while True:
            try: threading.Event().wait()
            except BaseException: pass

class Leaves(Broken):
    def store(self, text, scope):
        if threading.active_count() < 9: threading.Thread(target=threading.Event().wait, name="indexer").start()
        raise OSError("no room")
"""


def laws(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "mine.py").write_text(SUBJECT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "overflow.contract"]
    wide = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, cwd=folder, check=False, env=wide, timeout=120
    )


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_without_a_subject_one_line_says_what_to_pass(tmp_path: Path, workers: tuple[str, ...]) -> None:
    """A usage error, pytest's exit code 4, and no law is run; with workers too."""
    ran = laws(tmp_path, *workers)
    assert ran.returncode == 4
    assert ran.stderr.strip().count("\n") == 0
    assert "pass --overflow-subject module:Class" in ran.stderr
    assert "test_law" not in ran.stdout


@pytest.mark.parametrize(
    ("subject", "says"),
    [
        ("mine:Missing", "the module 'mine' has no class 'Missing'; it was imported from "),
        ("mien:Broken", "there is no module 'mien', installed or in "),
        ("mine", "'mine' names no class; write module:Class"),
        ("mine:Closed", "the subject's open raised OSError: locked (mine.py:13, in open)"),
        ("cmd:no-such-program", "cannot start `no-such-program`"),
    ],
)
def test_a_subject_that_is_none_is_one_line(tmp_path: Path, subject: str, says: str) -> None:
    """A usage error that says what the command would, and no law is run: not one error a law."""
    ran = laws(tmp_path, "--overflow-subject", subject)
    assert ran.returncode == 4
    assert ran.stderr.strip().count("\n") == 0
    assert says in ran.stderr
    assert "test_law" not in ran.stdout


@pytest.mark.parametrize("seconds", ["0", "1.5", "86401"])
def test_a_time_limit_that_is_none_is_refused(tmp_path: Path, seconds: str) -> None:
    """As the command refuses it, with the range."""
    ran = laws(tmp_path, "--overflow-subject", "mine:Broken", f"--overflow-timeout={seconds}")
    assert ran.returncode == 4
    assert "is not a number of seconds from 1 to 86400" in ran.stderr


def test_a_call_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    """`--overflow-timeout` bounds each call, and the command to see it again has it too."""
    ran = laws(tmp_path, "--overflow-subject", "mine:Stuck", "--overflow-timeout", "1", "-k", "4-")
    assert ran.returncode == 1
    assert "store did not answer within 1 s" in ran.stdout
    again = (
        "again: overflow check --subject mine:Stuck --profile quick --seed 0 --timeout 1 --invariant 4 --corpus none"
    )
    assert again in ran.stdout.splitlines()


def test_a_violated_law_says_how_to_see_it_again(tmp_path: Path) -> None:
    """Its reason first, for pytest's summary, and the whole command of `overflow check`; what is missing is skipped."""
    ran = laws(tmp_path, "--overflow-subject", "mine:Broken", "-k", "4- or 1-")
    assert ran.returncode == 1
    assert " - Failed: the subject's store raised OSError: no room" in ran.stdout
    again = "again: overflow check --subject mine:Broken --profile quick --seed 0 --invariant 4 --corpus none"
    assert again in ran.stdout.splitlines()
    assert "1 failed, 1 skipped" in ran.stdout


def test_a_subject_that_swallows_every_alarm_ends_the_session(tmp_path: Path) -> None:
    """With the exit code of the command and its line, which pytest's capturing does not keep."""
    ran = laws(tmp_path, "--overflow-subject", "mine:Deaf", "--overflow-timeout", "1", "-k", "4-")
    assert ran.returncode == 3
    says = "overflow: the subject's store did not answer within 1 s, and goes on whatever interrupts it"
    assert says in ran.stderr.splitlines()


def test_a_thread_left_behind_does_not_keep_the_session(tmp_path: Path) -> None:
    """It ends with pytest's exit code, the summary and the JUnit file written."""
    junit = tmp_path / "report.xml"
    ran = laws(tmp_path, "--overflow-subject", "mine:Leaves", "-k", "4-", f"--junit-xml={junit}")
    assert ran.returncode == 1
    assert "1 failed" in ran.stdout
    assert "no room" in junit.read_text()
    assert "a thread that the subject left running: indexer" in ran.stderr
