"""Copies of an import package with one mutant applied: where a package lies, and that a copy is what gets imported.

The sources themselves are never written to. DESIGN.md, principle 4.
"""

import os
import shutil
import tempfile
import tokenize
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path

from overflow.errors import InputError, UnavailableError
from overflow.gate.mutants import Mutant
from overflow.gate.processes import Processes

#: Asked in the interpreter that will import the package, for only it knows; importing nothing of it. The current folder
#: comes last, as where a subject is looked for: a file there must not hide an installed module.
_WHERE = """
import importlib.util, os, sys
sys.path.append(os.getcwd())
spec = importlib.util.find_spec(sys.argv[1])
print(spec.origin if spec else "")
"""


#: Seconds that an interpreter has to say where a package lies: what is none may wait for ever.
_ASKING = 20.0

#: What every copy does when it is imported: only that proves which sources a subject runs, whatever it starts. It uses
#: no name that a package may have defined, changed or deleted, and no character that some encoding lacks.
_TOLD = ".imported"
_TELLING = "\nimport io as __overflow__\n__overflow__.open({}, 'w').close()\ndel __overflow__\n"


class StaleError(Exception):
    """A mutant's text is not in its file, or more than once: it does not say any more what is to be changed."""


def locate(python: str, package: str, environment: Mapping[str, str]) -> Path:
    """The folder, or the file of a single module, that `python` imports `package` from.

    Raises UnavailableError when it cannot be asked, InputError when it finds none.
    """
    command = [python, "-P", "-c", _WHERE, package]
    try:
        with tempfile.TemporaryDirectory(prefix="overflow-asking-") as folder, Processes() as processes:
            ended = processes.run(command, environment, Path(folder), _ASKING)
    except OSError as error:
        raise UnavailableError(f"{python} cannot say where the package {package!r} lies: {error}") from error
    if ended.code != 0:
        said = f"no end within {_ASKING:.0f} s" if ended.code is None else _last(ended.err) or f"exit code {ended.code}"
        raise UnavailableError(f"{python} cannot say where the package {package!r} lies: {said}")
    # Whatever is printed before it is of the interpreter's own start.
    origin = Path(_last(ended.out))
    if origin.suffix != ".py":
        raise InputError(f"{python} finds no package or module {package!r}, neither installed nor in this folder")
    return origin.parent if origin.name == "__init__.py" else origin


def _last(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]


@contextmanager
def copied(source: Path, mutant: Mutant | None) -> Iterator[Path]:
    """A folder with a copy of the package or module `source`, changed by `mutant`; gone at the end.

    Raises StaleError when the mutant's text is not there exactly once, InputError when there is no room.
    """
    with ExitStack() as stack:
        try:
            temporary = tempfile.TemporaryDirectory(prefix="overflow-mutant-", ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(temporary))
            if os.pathsep in str(folder):
                raise InputError(f"{folder} holds {os.pathsep!r}, which parts folders; set TMPDIR to one without")
            copy = folder / source.name
            # With its compiled files: they stay valid, as the times are copied too, and save compiling it each time.
            if source.is_dir():
                shutil.copytree(source, copy, ignore=shutil.ignore_patterns(f"*{_TOLD}"))
            else:
                shutil.copy2(source, copy)
            if mutant is not None:
                _apply(mutant, copy if copy.is_dir() else copy.parent)
                _forget_compiled((copy if copy.is_dir() else copy.parent) / mutant.file)
            _forget_compiled(_entrance(copy))
            with _entrance(copy).open("ab") as file:
                file.write(_TELLING.format(_escaped(_told(copy))).encode())
        except OSError as error:
            raise InputError(f"cannot copy {source}: {error}; set TMPDIR to a folder with room") from error
        yield folder


def was_imported(copy: Path) -> bool:
    """Whether a process has imported that copy to its end."""
    return _told(copy).exists()


def _entrance(copy: Path) -> Path:
    """The file that runs when the package or module is imported."""
    return copy / "__init__.py" if copy.is_dir() else copy


def _told(copy: Path) -> Path:
    entrance = _entrance(copy)
    return entrance.with_name(entrance.name + _TOLD)


def _escaped(path: Path) -> str:
    """A literal of bytes that holds nothing but letters and digits, as a path may hold any character."""
    return "b'" + "".join(f"\\x{byte:02x}" for byte in os.fsencode(path)) + "'"


def importing(folder: Path) -> dict[str, str]:
    """This process's environment, with `folder` first among the places that Python imports from."""
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *([before] if before else [])])}


def _forget_compiled(file: Path) -> None:
    """Remove what was compiled of a file that changes: some of that is run whatever the file holds (PEP 552)."""
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()


def _apply(mutant: Mutant, package: Path) -> None:
    file = package / mutant.file
    try:
        is_there = file.resolve().is_relative_to(package.resolve()) and file.is_file()
    except OSError:  # A name that no file can have.
        is_there = False
    if not is_there:
        raise StaleError(f"there is no file {mutant.file}")
    source = file.read_bytes()
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(source).readline)
        text = source.decode(encoding)
        first, last = text.find(mutant.find), text.rfind(mutant.find)
        if first < 0 or first != last:
            raise StaleError(f"its text is {'not' if first < 0 else 'more than once'} in {mutant.file}")
        file.write_bytes(text.replace(mutant.find, mutant.replace).encode(encoding))
    except (SyntaxError, LookupError, UnicodeError) as error:
        raise StaleError(f"{mutant.file} cannot be read, or changed, in its encoding: {error}") from error
