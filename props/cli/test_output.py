"""What is written appears whole under its name, whoever else writes beside it, and keeps the mode it had."""

import os
import stat
from pathlib import Path

import pytest

from overflow.cli.output import json_lines, write_text


def test_two_runs_with_one_process_number_keep_their_files_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In two containers on one volume the numbers are often equal; each file holds its own run's lines."""
    monkeypatch.setattr(os, "getpid", lambda: 7)
    with json_lines(str(tmp_path / "a.json")) as a, json_lines(str(tmp_path / "b.json")) as b:
        for number in range(3):
            a({"a": number})
            b({"b": number})
    assert (tmp_path / "a.json").read_text() == '{"a": 0}\n{"a": 1}\n{"a": 2}\n'
    assert (tmp_path / "b.json").read_text() == '{"b": 0}\n{"b": 1}\n{"b": 2}\n'
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json"]


def test_a_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    """Results that only their owner may read stay so."""
    path = tmp_path / "mine.json"
    path.write_text("old")
    path.chmod(0o600)
    write_text(str(path), "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
