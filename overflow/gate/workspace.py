"""A fresh copy of the tree in which mutmut mutates one module and runs its tests, and every word that mutmut is told.

A copy is made each time, because mutmut's verdicts outlive a change of the tests. It judges nothing. DESIGN.md,
principle 4.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from overflow.errors import InputError, UnavailableError
from overflow.gate.leader import led
from overflow.gate.pieces import CONTRACT, Piece

#: What the tests need of the tree.
_COPIED = ("overflow", "props", "bench", "mutation", "pyproject.toml")
_PLUGINS = ("under_mutation", "no:cacheprovider", "no:xdist", "no:benchmark")
_PYTEST = [word for name in _PLUGINS for word in ("-p", name)]
_UNTESTED = "could not find any test case for any mutant"

#: Exit codes of mutmut's meta files, and of pytest with the plugin.
KILLED, SKIPPED, TIMED_OUT = {1}, {34}, {36, 152, 24, -signal.SIGXCPU}
#: The one of them that the plugin ends with, and what was ended here.
_TIME_IS_UP = 36

#: The plugin bounds each test under a mutant, and mutmut each mutant; these end what hangs outside of that. Seconds:
#: mutmut's run over a module, the tests unbroken, and, so many times as long and so many more, under a mutant.
_MODULE, _UNBROKEN = 4 * 3600.0, 3600.0
_SLOWER, _GRACE = 10, 60.0


@contextlib.contextmanager
def fresh_workspace(tree: Path, piece: Piece) -> Iterator["Workspace"]:
    """A workspace for one module of `tree`, gone at the end; InputError where something is missing, or no room."""
    with contextlib.ExitStack() as stack:
        try:
            folder = tempfile.TemporaryDirectory(prefix="overflow-generated-", ignore_cleanup_errors=True)
            workspace = Workspace(Path(stack.enter_context(folder)), tree, piece)
        except OSError as error:
            raise InputError(f"cannot copy the checkout {tree}, whole, to a folder in TMPDIR: {error}") from error
        yield workspace


class Workspace:
    """A copy of the tree in which mutmut mutates one module; the tests run in `mutants/`, as mutmut has it."""

    def __init__(self, folder: Path, tree: Path, piece: Piece) -> None:
        self._folder = folder
        self._piece = piece
        self._unbroken: float | None = None
        for name in _COPIED:
            if (tree / name).is_dir():
                shutil.copytree(tree / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(tree / name, folder / name)
        mutants, plugins, temporary = folder / "mutants", folder / "mutants" / "mutation", folder / "tmp"
        # There before Python starts, which remembers of each place to import from whether it is one.
        plugins.mkdir(parents=True)
        temporary.mkdir()
        with (folder / "pyproject.toml").open("a", encoding="utf-8") as file:
            file.write(_settings(piece))
        self._environment = {name: value for name, value in os.environ.items() if name != "MUTANT_UNDER_TEST"} | {
            "PYTHONPATH": os.pathsep.join([str(mutants), str(plugins)]),
            "PYTHONHASHSEED": "0",
            "TMPDIR": str(temporary),
            # One processor is enough for each, and a pool of threads does not outlive a fork.
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }

    @property
    def source(self) -> str:
        """The digest of the module as it was copied."""
        return self._piece.source(self._folder)

    @property
    def rests_on(self) -> str:
        """The digest of what else decides the verdicts, as it was copied."""
        return self._piece.rests_on(self._folder)

    def mutmut(self, names: Sequence[str]) -> dict[str, int]:
        """Run mutmut to its end: its exit code for each mutant called in `names`, or for each there is."""
        code, log = self._call(["-m", "mutmut", "run", "--max-children", "1", *names], self._folder, _MODULE)
        meta = self._folder / "mutants" / f"{self._piece.file}.meta"
        try:
            codes: dict[str, int | None] = json.loads(meta.read_text())["exit_code_by_key"] if meta.is_file() else {}
        except (ValueError, KeyError) as error:
            raise UnavailableError(f"mutmut ended while it wrote its results: {_reason(log)}") from error
        # It also stops where there is nothing to mutate, and where no test calls what was mutated.
        stops_there = meta.is_file() and code != _TIME_IS_UP and (not codes or _UNTESTED in log)
        if code and not stops_there:
            raise UnavailableError(f"the tests of {self._piece.module} cannot be run under mutmut: {_reason(log)}")
        return {name: -1 if value is None else value for name, value in codes.items() if not names or name in names}

    def diff(self, name: str) -> str:
        """What the mutant changes, as a unified diff."""
        _, shown = self._call(["-m", "mutmut", "show", name], self._folder, _UNBROKEN)
        start = shown.find("---")
        if start < 0:
            raise UnavailableError(f"mutmut does not show what {name} changes: {_reason(shown)}")
        return shown[start:].rstrip()

    def everything(self, name: str) -> int:
        """pytest's exit code under a mutant, for all tests of its package and the contract in short.

        A test that cannot be collected counts as failed, too (1); 2 is an interruption, which says nothing.
        """
        tests = [*self._piece.tests, CONTRACT]
        if self._unbroken is None:
            started = time.monotonic()
            code, log = self._pytest("", tests, _UNBROKEN)
            if code:
                raise UnavailableError(f"the tests fail before anything is changed: {_reason(log)}")
            self._unbroken = time.monotonic() - started
        return self._pytest(name, tests, _SLOWER * self._unbroken + _GRACE)[0]

    def _pytest(self, mutant: str, tests: Sequence[str], limit: float) -> tuple[int, str]:
        words = ["-m", "pytest", "-x", "-q", "--tb=line", "--rootdir=.", "--continue-on-collection-errors"]
        return self._call([*words, *_PYTEST, *tests], self._folder / "mutants", limit, {"MUTANT_UNDER_TEST": mutant})

    def _call(
        self, words: Sequence[str], folder: Path, limit: float, more: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Python's exit code and what it wrote; the code of a time-out when it was ended after `limit` seconds."""
        # To a file: what a test leaves running would hold a pipe open.
        with (self._folder / "log.txt").open("w+", encoding="utf-8", errors="replace") as log:
            process = subprocess.Popen(
                led([sys.executable, *words]),
                cwd=folder,
                env={**self._environment, **(more or {})},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
            code: int | None = None
            with process:
                try:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        code = process.wait(limit)
                finally:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
            if code is None:
                log.write(f"\nno end within {limit:.0f} s\n")
            log.seek(0)
            return _TIME_IS_UP if code is None else code, log.read()


def _settings(piece: Piece) -> str:
    """The table that mutmut reads from a tree's pyproject.toml."""
    values = {
        "source_paths": ["overflow"],
        "only_mutate": [piece.file],
        "also_copy": ["props", "bench", "mutation"],
        "pytest_add_cli_args": _PYTEST,
        "pytest_add_cli_args_test_selection": list(piece.first),
        # Tests are collected once, and each mutant is met in a copy of that process, in which none has run: caches that
        # a test fills are empty. What a mutant does while the package is imported is noticed by the second pass alone.
        "process_isolation": "forkserver",
        "forkserver_warmup": "collect",
        # The plugin ends each test; this only ends what hangs outside of all.
        "timeout_constant": 60.0,
        "use_git_change_detection": False,
        "track_dependencies": False,
    }
    # JSON's texts, lists, numbers and truths are TOML's too.
    return "\n[tool.mutmut]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


def _reason(log: str) -> str:
    """The line of a log that says most: the first failed test, else the last line."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", log) if line.strip()]
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return (failed or lines or ["it says nothing"])[0 if failed else -1]
