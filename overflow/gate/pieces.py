"""What generated mutants can be made of: a module each, the tests that its mutants meet, and what its verdicts rest on.

Read from `mutation/generated.toml`, where every mistake is told in one line; nothing is run. DESIGN.md, principle 4 and
"Layout" (`mutation/`).
"""

import importlib.metadata
import platform
import tomllib
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from overflow.errors import InputError
from overflow.gate.generated import ModuleResult, digest

CONFIGURATION = Path("mutation", "generated.toml")
#: What a survivor meets beside the tests of its package.
CONTRACT = "mutation/test_contract_in_short.py"
_PLUGIN = "mutation/under_mutation.py"
_DECIDING = ("mutmut", "pytest", "hypothesis")


@dataclass(frozen=True, slots=True)
class Piece:
    """One module to run: `tests` are its package's, `first` those its mutants meet before the others."""

    module: str
    tests: tuple[str, ...]
    first: tuple[str, ...]

    @property
    def package(self) -> str:
        return self.module.partition("/")[0]

    @property
    def file(self) -> str:
        return f"overflow/{self.module}.py"

    def source(self, tree: Path) -> str:
        """The digest of the module's text in `tree`."""
        return _digest(tree / self.file)

    def rests_on(self, tree: Path) -> str:
        """The digest of what decides its verdicts beside its text: the tests, what they share, and the tools' versions.

        The other modules that the tests call are left out: with them, every edit would make every result stale.
        """
        files = {tree / CONTRACT, tree / _PLUGIN}
        for test in {*self.tests, *self.first}:
            files |= {tree / test, *(tree / test).rglob("*")}
            for folder in Path(test).parents[:-1]:
                files |= {file for file in (tree / folder).iterdir() if not file.name.startswith("test_")}
        names = {file.relative_to(tree): file for file in files if file.is_file() and file.suffix != ".pyc"}
        parts = [f"{name.as_posix()} {_digest(file)}" for name, file in sorted(names.items())]
        parts += [f"{name} {version}" for name, version in versions().items() if name in _DECIDING]
        return digest("\n".join(parts).encode())

    def is_fresh(self, result: ModuleResult | None, tree: Path) -> bool:
        """Whether `result` is of this module's text in `tree`, and of what else decides its verdicts."""
        return result is not None and (result.source, result.tests) == (self.source(tree), self.rests_on(tree))


def versions() -> dict[str, str]:
    """What runs here, by name: Python and the tools that decide a verdict."""
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in _DECIDING}}


def pieces(tree: Path) -> list[Piece]:
    """What can be run in the checkout `tree`; InputError where it does not say so, or names what is not there."""
    file = tree / CONFIGURATION
    try:
        configuration = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}; run it in a checkout") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{file} is no TOML: {error}") from error
    return [piece for package, table in configuration.items() for piece in _pieces(tree, package, table)]


def _pieces(tree: Path, package: str, table: object) -> list[Piece]:
    file = tree / CONFIGURATION
    first = table.get("first", {}) if isinstance(table, dict) else None
    if not isinstance(table, dict) or not isinstance(first, dict) or set(table) - {"tests", "first"}:
        raise InputError(f"{file}: {package} needs tests = [PATH, …], may have first.MODULE = [PATH, …], and no more")
    for name, paths in [("tests", table.get("tests")), *first.items()]:
        if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
            raise InputError(f"{file}: {package} needs {name} = [PATH, …]")
    if not package.isidentifier() or not (tree / "overflow" / package).is_dir():
        raise InputError(f"{file}: there is no package {package}")
    tests: list[str] = table["tests"]
    modules = sorted(file.stem for file in (tree / "overflow" / package).glob("*.py") if file.stem != "__init__")
    for missing in [name for name in first if name not in modules]:
        raise InputError(f"{file}: there is no module {package}/{missing}")
    for missing in [test for test in chain(tests, *first.values()) if not _is_in(tree, test)]:
        raise InputError(f"{file}: there is no {missing}")
    return [Piece(f"{package}/{name}", tuple(tests), tuple(first.get(name) or tests)) for name in modules]


def _digest(file: Path) -> str:
    try:
        return digest(file.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error


def _is_in(tree: Path, test: str) -> bool:
    """Whether the path is of a file or folder of the tree; outside it is in no copy."""
    try:
        return (tree / test).resolve(strict=True).is_relative_to(tree.resolve())
    except (OSError, ValueError):  # ValueError: a NUL.
        return False
