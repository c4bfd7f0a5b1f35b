"""Copies of an import package with one mutant applied: where a package lies, and that a copy is what gets imported.

The sources themselves are never written to. DESIGN.md, principle 4.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from overflow.errors import InputError, UnavailableError
from overflow.gate.mutants import Mutant

#: Asked in the interpreter that will import the package, for only it knows; importing nothing of it. The current folder
#: comes last, as where a subject is looked for: a file there must not hide an installed module.
_WHERE = """
import importlib.util, os, sys
sys.path.append(os.getcwd())
spec = importlib.util.find_spec(sys.argv[1])
print(spec.origin if spec else "")
"""


class StaleError(Exception):
    """A mutant's text is not in its file, or more than once: it does not say any more what is to be changed."""


def locate(python: str, package: str, environment: Mapping[str, str]) -> Path:
    """The folder that `python` imports `package` from; UnavailableError when it does not find one."""
    command = [python, "-P", "-c", _WHERE, package]
    try:
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise UnavailableError(f"{python} cannot say where the package {package!r} lies: {error}") from error
    origin = Path(found.stdout.strip())
    if origin.name != "__init__.py":
        raise UnavailableError(f"{python} finds no package {package!r}")
    return origin.parent


@contextmanager
def copied(source: Path, mutant: Mutant | None) -> Iterator[Path]:
    """A folder with a copy of the package `source`, changed by `mutant`; gone at the end.

    Raises StaleError when the mutant's text is not there exactly once, InputError when there is no room.
    """
    with tempfile.TemporaryDirectory(prefix="overflow-mutant-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder, source.name)
        try:
            # With its compiled files: they stay valid, as the times are copied too, and save compiling it each time.
            shutil.copytree(source, copy)
        except (OSError, shutil.Error) as error:
            raise InputError(f"cannot copy {source} to {folder}: {error}; set TMPDIR to a folder with room") from error
        if mutant is not None:
            _apply(mutant, copy)
        yield Path(folder)


def importing(folder: Path) -> dict[str, str]:
    """This process's environment, with `folder` first among the places that Python imports from."""
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *([before] if before else [])])}


def _apply(mutant: Mutant, package: Path) -> None:
    file = package / mutant.file
    if not file.resolve().is_relative_to(package.resolve()) or not file.is_file():
        raise StaleError(f"there is no file {mutant.file}")
    text = file.read_bytes().decode("utf-8")
    if (count := text.count(mutant.find)) != 1:
        raise StaleError(f"its text is {'not' if not count else f'{count} times'} in {mutant.file}")
    file.write_bytes(text.replace(mutant.find, mutant.replace).encode("utf-8"))
