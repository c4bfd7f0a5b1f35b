"""The command as a process: how it starts, how it is interrupted, and what the help promises."""

import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import click
import pytest

from overflow.cli.app import COMMANDS, overflow
from overflow.contract.laws import all_laws
from overflow.contract.saboteurs import SABOTEURS

LAWS = {law.id: law for law in all_laws()}


def python(code: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False, **options
    )


def test_starting_imports_nothing_heavy() -> None:
    """The entry point needs click alone: no numpy, no rich, no HTTP, no tokenizer."""
    heavy = ("numpy", "rich", "httpx", "tokenizers", "hypothesis", "overflow.tokens", "overflow.division")
    ended = python(f"import sys, overflow.cli.app; print([name for name in {heavy!r} if name in sys.modules])")
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


def shell(command: str, **environment: str) -> tuple[int, str, str]:
    """`overflow` is the command of this environment, `code` what bash saw of it."""
    script = f'overflow() {{ "{sys.executable}" -m overflow "$@"; }}\n{command}'
    ended = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )
    return ended.returncode, ended.stdout, ended.stderr


def unasked(errors: str) -> str:
    """What stands on stderr beside the line of a log that each law of a check has."""
    return "".join(line for line in errors.splitlines(keepends=True) if not line.startswith("4 nodes partition"))


WRITERS = [
    "divide a.txt --window words@3",
    "divide a.txt --window words@3 --json -",
    "check --invariant 4 --corpus none",
    "check --saboteur list",
    "--help",
    "divide --help",
    "--version",
]


@pytest.fixture
def text_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("one two three four. Five six seven", encoding="utf-8")


@pytest.mark.usefixtures("text_file")
@pytest.mark.parametrize("arguments", WRITERS)
def test_a_reader_that_is_gone_is_no_violation(arguments: str) -> None:
    """Whatever writes, table, JSON or help: 141 and nothing on stderr, never the 1 of a violated law."""
    # The pipe is closed for certain once `true` has been waited for.
    command = f"mkfifo p; true < p & exec 3> p; wait $!; overflow {arguments} >&3"
    code, out, errors = shell(command)
    assert (code, out, unasked(errors)) == (141, "", "")


@pytest.mark.usefixtures("text_file")
@pytest.mark.parametrize("arguments", WRITERS)
def test_a_stdout_that_cannot_be_written_is_one_line(arguments: str) -> None:
    """A full device, and a closed descriptor: exit code 2."""
    for where, why in (
        ("> /dev/full", "No space left on device"),
        (">&-", "it is closed; send it to a file, or to /dev/null"),
    ):
        code, out, errors = shell(f"overflow {arguments} {where}")
        assert (code, out, unasked(errors)) == (2, "", f"overflow: cannot write to stdout: {why}\n")


@pytest.mark.usefixtures("text_file")
@pytest.mark.parametrize("where", ["2>/dev/full", "2>&-"])
def test_a_stderr_that_cannot_be_written_changes_no_exit_code(where: str) -> None:
    """What cannot be told is left out."""
    assert shell(f"overflow divide missing.txt {where}") == (2, "", "")
    code, out, _ = shell(f"overflow divide a.txt --window words@3 {where}")
    assert (code, out.splitlines()[-1][:9]) == (0, "1 record:")


def test_a_closed_stdin_is_one_line() -> None:
    """`-` has nothing to read."""
    command = "overflow divide - --window words@3 <&-"
    assert shell(command) == (2, "", "overflow: cannot read stdin: it is closed\n")


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    ],
)
def test_an_encoding_that_lacks_a_character_stops_nothing(tmp_path: Path, environment: dict[str, str]) -> None:
    """Help, table, JSON and error line are written, a name that is no Unicode among them."""
    (tmp_path / "日本.txt").write_text("one two three four. Five six seven", encoding="utf-8")
    name = os.fsencode(tmp_path) + b"/\xff.txt"
    os.close(os.open(name, os.O_CREAT))
    for arguments in ("--help", "divide --help", "check --help", "check --saboteur list"):
        code, _, errors = shell(f"overflow {arguments}", **environment)
        assert (code, errors) == (0, ""), arguments
    for more in ("", "--json -"):
        code, out, errors = shell(f"overflow divide '{tmp_path}' --window words@3 {more}", **environment)
        assert (code, errors) == (0, "")
        assert len(out.splitlines()) >= 2
    code, _, errors = shell(f"overflow divide '{tmp_path}'/$'日\\xff'", **environment)
    assert (code, len(errors.splitlines()), errors[:10]) == (2, 1, "overflow: ")


@pytest.mark.parametrize("module", ["click", "overflow.errors", "overflow.cli.divide", "overflow.cli.outcomes"])
def test_an_interrupt_while_it_is_loaded_is_one_line(module: str) -> None:
    """Control-C before the command has begun, whatever is being imported: 130, and no traceback."""
    ended = python(
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}:\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from overflow.cli import main\n"
        "main(['divide', 'a.txt'])"
    )
    assert (ended.returncode, ended.stderr.strip()) == (130, "overflow: interrupted")


def test_an_interrupt_says_what_was_running() -> None:
    """What the one who raised it says is told, spelled out."""
    ended = python(
        "from overflow.cli import app, main\n"
        "def interrupted(*_):\n"
        "    raise KeyboardInterrupt('law 3, in a\\tcall')\n"
        "app._Commands.get_command = interrupted\n"
        "main(['divide'])"
    )
    assert (ended.returncode, ended.stderr.strip()) == (130, "overflow: interrupted: law 3, in a\\tcall")


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


def test_interrupts_while_it_ends_are_told_once() -> None:
    """A second Control-C while it cleans up, and a third at the interpreter's end: one line, 130, what was running."""
    code = (
        "import atexit, os, signal\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
        "from overflow.cli import app, main\n"
        "def interrupted(*_):\n"
        "    try:\n"
        "        raise KeyboardInterrupt('law 3')\n"
        "    finally:\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "app._Commands.get_command = interrupted\n"
        "main(['divide'])"
    )
    ended = python(code)
    assert (ended.returncode, ended.stderr.strip()) == (130, "overflow: interrupted: law 3")


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


@pytest.mark.parametrize("name", ["divide", "check", "mutate"])
def test_the_examples_of_the_help_can_be_typed(name: str) -> None:
    """Each is parsed as it stands, and the laws and saboteurs that it names are there."""
    command = overflow.get_command(click.Context(overflow), name)
    assert command is not None
    _, _, examples = command.get_help(click.Context(command, info_name=name)).partition("Examples:")
    typed = re.findall(rf"overflow {name}((?: \S+)*?)(?:  .*)?$", examples, re.MULTILINE)
    assert len(typed) >= 4
    for line in typed:
        words = shlex.split(line)
        assert command.make_context(name, list(words)).params
        named = set(pairwise(words))
        assert {value for option, value in named if option == "--invariant"} <= LAWS.keys()
        assert {value for option, value in named if option == "--saboteur"} <= SABOTEURS.keys()


def test_the_version_is_the_packages() -> None:
    """`overflow --version` names the command and its version."""
    ended = subprocess.run(
        [sys.executable, "-m", "overflow", "--version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.startswith("overflow, version ")


def test_a_thread_that_a_subject_left_does_not_keep_the_command(tmp_path: Path) -> None:
    """The command ends with the verdict's exit code and says which thread it no longer waits for."""
    (tmp_path / "lingering.py").write_text(
        "import threading\n"
        "from overflow.subjects.reference import Reference\n"
        "class Lingering(Reference):\n"
        "    def open(self, directory, embedding_url):\n"
        "        threading.Thread(target=threading.Event().wait, name='indexer').start()\n"
        "        super().open(directory, embedding_url)\n"
    )
    code = (
        "from overflow.contract import ending\n"
        "ending.end_in_time.__defaults__ = (0.0,)\n"  # the grace, in seconds
        "from overflow.cli import main\n"
        "main(['check', '--subject', 'lingering:Lingering', '--invariant', 'limit', '--corpus', 'none'])\n"
    )
    ended = python(code, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "1 holds" in ended.stdout
    assert "indexer" in ended.stderr.splitlines()[-1]
