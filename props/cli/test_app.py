"""The command as a process: how it starts, how it is interrupted, and what the help promises."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from overflow.cli.app import COMMANDS, overflow


def python(code: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False, **options
    )


def test_starting_imports_nothing_heavy() -> None:
    """The entry point needs click alone: no numpy, no rich, no HTTP, no tokenizer."""
    heavy = ("numpy", "rich", "httpx", "tokenizers", "hypothesis", "overflow.tokens", "overflow.division")
    ended = python(f"import sys, overflow.cli; print([name for name in {heavy!r} if name in sys.modules])")
    assert ended.stdout.strip() == "[]", ended.stderr


def test_a_closed_pipe_ends_quietly(tmp_path: Path) -> None:
    """When the reader has seen enough, nothing is written to stderr, and the exit code is that of SIGPIPE."""
    lines = tmp_path / "m.jsonl"
    lines.write_text('{"text": "one two three four five"}\n' * 3000)
    command = [sys.executable, "-m", "overflow", "divide", str(lines), "--window", "words@2", "--json", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        assert (process.wait(60), errors) == (141, b"")


def test_an_interrupt_is_one_line() -> None:
    """Control-C ends with 130 and without a traceback."""
    ended = python(
        "import sys\n"
        "from overflow.cli import app, main\n"
        "def interrupted(*_):\n"
        "    raise KeyboardInterrupt\n"
        "app._Commands.get_command = interrupted\n"
        "main(['divide'])"
    )
    assert ended.returncode == 130
    assert ended.stderr.strip() == "overflow: interrupted"


def test_a_defect_is_not_hidden() -> None:
    """An error that nobody expects keeps its traceback."""
    ended = python(
        "from overflow.cli import app, main\n"
        "def broken(*_):\n"
        "    raise RuntimeError('a defect')\n"
        "app._Commands.get_command = broken\n"
        "main(['divide'])"
    )
    assert "RuntimeError: a defect" in ended.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_teaches_by_example(name: str) -> None:
    """The help of each command is there, and shows how it is called."""
    context = click.Context(overflow)
    command = overflow.get_command(context, name)
    assert command is not None
    text = command.get_help(click.Context(command, info_name=name))
    assert f"overflow {name} " in text


def test_the_version_is_the_packages() -> None:
    """`overflow --version` names the command and its version."""
    ended = subprocess.run(
        [sys.executable, "-m", "overflow", "--version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.startswith("overflow, version ")
