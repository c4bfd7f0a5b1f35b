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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from overflow.errors import UnavailableError

#: What the tests need of the tree.
_COPIED = ("overflow", "props", "bench", "mutation", "pyproject.toml")
_PLUGINS = ("under_mutation", "no:cacheprovider", "no:xdist", "no:benchmark")
_PYTEST = [word for name in _PLUGINS for word in ("-p", name)]
_CONTRACT = "mutation/test_contract_in_short.py"
_UNTESTED = "could not find any test case for any mutant"

#: Exit codes of mutmut's meta files, and of pytest with the plugin.
KILLED, SKIPPED, TIMED_OUT = {1}, {34}, {36, 152, 24, -signal.SIGXCPU}


@dataclass(frozen=True, slots=True)
class Piece:
    """One module to run: `tests` are its package's, `first` those its mutants meet before the others."""

    module: str
    tests: tuple[str, ...]
    first: tuple[str, ...]

    @property
    def file(self) -> str:
        return f"overflow/{self.module}.py"


@contextlib.contextmanager
def fresh_workspace(tree: Path, piece: Piece) -> Iterator["Workspace"]:
    """A workspace for one module of `tree`, gone at the end."""
    with tempfile.TemporaryDirectory(prefix="overflow-generated-", ignore_cleanup_errors=True) as folder:
        yield Workspace(Path(folder), tree, piece)


class Workspace:
    """A copy of the tree in which mutmut mutates one module; the tests run in `mutants/`, as mutmut has it."""

    def __init__(self, folder: Path, tree: Path, piece: Piece) -> None:
        self._folder = folder
        self._piece = piece
        self._checked = False
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

    def mutmut(self, names: Sequence[str]) -> dict[str, int]:
        """Run mutmut to its end: its exit code for each mutant called in `names`, or for each there is."""
        code, log = self._call(["-m", "mutmut", "run", "--max-children", "1", *names], self._folder)
        meta = self._folder / "mutants" / f"{self._piece.file}.meta"
        codes: dict[str, int | None] = json.loads(meta.read_text())["exit_code_by_key"] if meta.is_file() else {}
        # It also stops where there is nothing to mutate, and where no test calls what was mutated.
        if code and not (meta.is_file() and (not codes or _UNTESTED in log)):
            raise UnavailableError(f"the tests of {self._piece.module} cannot be run under mutmut: {_reason(log)}")
        return {name: -1 if value is None else value for name, value in codes.items() if not names or name in names}

    def diff(self, name: str) -> str:
        """What the mutant changes, as a unified diff."""
        _, shown = self._call(["-m", "mutmut", "show", name], self._folder)
        return shown[shown.index("---") :].rstrip()

    def everything(self, name: str) -> int:
        """pytest's exit code under a mutant, for all tests of its package and the contract in short."""
        tests = [*self._piece.tests, _CONTRACT]
        if not self._checked:
            code, log = self._pytest("", tests)
            if code:
                raise UnavailableError(f"the tests fail before anything is changed: {_reason(log)}")
            self._checked = True
        return self._pytest(name, tests)[0]

    def _pytest(self, mutant: str, tests: Sequence[str]) -> tuple[int, str]:
        words = ["-m", "pytest", "-x", "-q", "--tb=line", "--rootdir=.", *_PYTEST, *tests]
        return self._call(words, self._folder / "mutants", {"MUTANT_UNDER_TEST": mutant})

    def _call(self, words: Sequence[str], folder: Path, more: Mapping[str, str] | None = None) -> tuple[int, str]:
        # To a file: what a test leaves running would hold a pipe open.
        with (self._folder / "log.txt").open("w+", encoding="utf-8", errors="replace") as log:
            process = subprocess.Popen(
                [sys.executable, *words],
                cwd=folder,
                env={**self._environment, **(more or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
            try:
                code = process.wait()
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            log.seek(0)
            return code, log.read()


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
