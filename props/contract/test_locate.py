"""Finding a class by `module:Class`: what was imported is said, when it is not what a person meant."""

import string
import sys
from pathlib import Path

import pytest

from overflow.contract.locate import subject_maker
from overflow.errors import InputError


def test_a_file_that_lost_to_an_installed_module_is_not_blamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`string.py` of the current directory is hidden by the standard library's: the error names the file imported."""
    (tmp_path / "string.py").write_text("class Store: ...", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        subject_maker("string:Store")
    assert str(caught.value).endswith(f"has no class 'Store'; it was imported from {string.__file__}")


def test_a_module_without_a_file_is_told_as_such() -> None:
    """What is built into the interpreter has none."""
    with pytest.raises(InputError, match="'sys' has no class 'Store'; it was imported from no file: it is built in"):
        subject_maker("sys:Store")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import asyncio\nraise asyncio.CancelledError('no loop')", "does not import: CancelledError: no loop"),
        ("class Quiet(Exception):\n def __str__(self): raise ValueError\nraise Quiet", "cannot be shown: ValueError"),
        ("raise ImportError('x' * 10**6)", "1000000 characters"),
        (
            "class Notes:\n def open(self): ...\n close = open\n def __init__(self): raise GeneratorExit",
            "GeneratorExit",
        ),
    ],
)
def test_whatever_a_module_or_a_class_raises_is_one_short_line(
    source: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception that no `except Exception` catches, that has no text, or far too much of it."""
    (tmp_path / "clumsy_notes.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "clumsy_notes", raising=False)
    with pytest.raises(InputError, match=said) as refused:
        subject_maker("clumsy_notes:Notes")()
    assert len(str(refused.value)) < 1_000
