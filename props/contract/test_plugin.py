"""`pytest --pyargs overflow.contract` from outside: what to pass is said, and what went wrong is a line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUBJECT = """
class Broken:
    name, version = "broken", "1"
    def open(self, directory, embedding_url): pass
    def close(self): pass
    def store(self, text, scope): raise OSError("no room")
    def nodes(self, ref): return []
    def text(self, ref): return ""
"""


def laws(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "mine.py").write_text(SUBJECT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "overflow.contract"]
    wide = {**os.environ, "COLUMNS": "200"}
    return subprocess.run([*command, *arguments], capture_output=True, text=True, cwd=folder, check=False, env=wide)


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_without_a_subject_one_line_says_what_to_pass(tmp_path: Path, workers: tuple[str, ...]) -> None:
    """A usage error, pytest's exit code 4, and no law is run; with workers too."""
    ran = laws(tmp_path, *workers)
    assert ran.returncode == 4
    assert ran.stderr.strip().count("\n") == 0
    assert "pass --overflow-subject module:Class" in ran.stderr
    assert "test_law" not in ran.stdout


def test_a_subject_that_is_none_is_named_without_a_traceback(tmp_path: Path) -> None:
    """The error of the law is the line that the command would print."""
    ran = laws(tmp_path, "--overflow-subject", "mine:Missing", "-k", "4-")
    assert ran.returncode == 1
    assert "the module 'mine' has no class 'Missing'" in ran.stdout
    assert "Traceback" not in ran.stdout
    assert "During handling" not in ran.stdout
    assert "InputError" not in ran.stdout


def test_a_violated_law_says_how_to_see_it_again(tmp_path: Path) -> None:
    """Its reason first, for pytest's summary, and the whole command of `overflow check`; what is missing is skipped."""
    ran = laws(tmp_path, "--overflow-subject", "mine:Broken", "-k", "4- or 1-")
    assert ran.returncode == 1
    assert " - Failed: the subject's store raised OSError: no room" in ran.stdout
    again = "again: overflow check --subject mine:Broken --profile quick --seed 0 --invariant 4 --corpus none"
    assert again in ran.stdout.splitlines()
    assert "1 failed, 1 skipped" in ran.stdout
