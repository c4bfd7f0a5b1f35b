"""The scripts of `bench/` as programs: how they end, not what they measure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
SCRIPTS = sorted(path.name for path in BENCH.glob("*.py") if "__main__" in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_whose_reader_is_gone_ends_quietly(script: str) -> None:
    """As behind `| head`: no traceback, and the status that a shell knows a broken pipe by."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        command = [sys.executable, str(BENCH / script), "--help"]
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_there_are_scripts() -> None:
    """Those that the folder's page tells of."""
    page = (BENCH / "README.md").read_text(encoding="utf-8")
    assert SCRIPTS
    assert all(f"`{script}`" in page or f"bench/{script}" in page for script in SCRIPTS)
