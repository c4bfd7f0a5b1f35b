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


#: What every copy does when it is imported: only that proves which sources a subject runs, whatever it starts.
_TOLD = ".imported"
_TELLING = f"\nopen(__file__ + {_TOLD!r}, 'w').close()\n".encode()


class StaleError(Exception):
    """A mutant's text is not in its file, or more than once: it does not say any more what is to be changed."""


def locate(python: str, package: str, environment: Mapping[str, str]) -> Path:
    """The folder, or the file of a single module, that `python` imports `package` from.

    Raises UnavailableError when it cannot be asked, InputError when it finds none.
    """
    command = [python, "-P", "-c", _WHERE, package]
    try:
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise UnavailableError(f"{python} cannot say where the package {package!r} lies: {error}") from error
    origin = Path(found.stdout.strip())
    if origin.suffix != ".py":
        raise InputError(f"{python} finds no package or module {package!r}, neither installed nor in this folder")
    return origin.parent if origin.name == "__init__.py" else origin


@contextmanager
def copied(source: Path, mutant: Mutant | None) -> Iterator[Path]:
    """A folder with a copy of the package or module `source`, changed by `mutant`; gone at the end.

    Raises StaleError when the mutant's text is not there exactly once, InputError when there is no room.
    """
    with tempfile.TemporaryDirectory(prefix="overflow-mutant-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder, source.name)
        try:
            # With its compiled files: they stay valid, as the times are copied too, and save compiling it each time.
            if source.is_dir():
                shutil.copytree(source, copy, ignore=shutil.ignore_patterns(f"*{_TOLD}"))
            else:
                shutil.copy2(source, copy)
        except (OSError, shutil.Error) as error:
            raise InputError(f"cannot copy {source} to {folder}: {error}; set TMPDIR to a folder with room") from error
        if mutant is not None:
            _apply(mutant, copy if copy.is_dir() else copy.parent)
        with _entrance(copy).open("ab") as file:
            file.write(_TELLING)
        yield Path(folder)


def was_imported(copy: Path) -> bool:
    """Whether a process has imported that copy to its end."""
    entrance = _entrance(copy)
    return entrance.with_name(entrance.name + _TOLD).exists()


def _entrance(copy: Path) -> Path:
    """The file that runs when the package or module is imported."""
    return copy / "__init__.py" if copy.is_dir() else copy


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
