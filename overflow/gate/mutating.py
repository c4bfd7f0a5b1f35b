"""Runs mutmut over one module of the reference at a time, in a fresh copy of the tree, and keeps what came of it.

Each piece is kept as it ends, so a run that is stopped goes on where it was. It gives no verdict (that is
`generated.py`) and writes nothing to the tree but the results. DESIGN.md, principle 4 and "Command line" (`overflow
mutate --generated`).
"""

import importlib.metadata
import importlib.util
import platform
import subprocess
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from overflow.errors import InputError, UnavailableError
from overflow.gate.generated import (
    Equivalent,
    ModuleResult,
    Survivor,
    digest,
    load_equivalents,
    load_results,
    save_results,
    unexplained,
)
from overflow.gate.workspace import KILLED, SKIPPED, TIMED_OUT, Piece, fresh_workspace

_FOLDER = Path("mutation")
_CONFIGURATION, _EQUIVALENTS, _RESULTS = (
    _FOLDER / name for name in ("generated.toml", "equivalents.toml", "generated.json")
)
_VERSIONED = ("mutmut", "pytest", "hypothesis")


@dataclass(frozen=True, slots=True)
class Generated:
    """Every kept result by module, and the reviewed equivalents by key."""

    results: Mapping[str, ModuleResult]
    equivalents: Mapping[str, Equivalent]


def run_generated(tree: Path, names: Sequence[str], told: Callable[[ModuleResult], None]) -> Generated:
    """Run what is left to run in the checkout `tree`, and return all that is kept; `told` hears of each as it ends.

    `names` are packages (`division`) and modules (`division/core`); all without any. A module without a kept result of
    its present text comes first; then every survivor that no reviewed equivalent explains meets all tests there are.
    Raises InputError outside a checkout and for an unknown name, UnavailableError without mutmut and when the tests
    fail before anything is changed.
    """
    if importlib.util.find_spec("mutmut") is None:
        raise UnavailableError("mutmut is not installed, and makes the mutants: pip install mutmut")
    chosen = _chosen(pieces(tree), names)
    equivalents = load_equivalents(tree / _EQUIVALENTS)
    known = {piece.module for piece in pieces(tree)}
    if unknown := [each for each in equivalents.values() if each.module not in known]:
        raise InputError(f"{tree / _EQUIVALENTS}: there is no module {unknown[0].module}, of {unknown[0].key}")
    results = {name: each for name, each in load_results(tree / _RESULTS).items() if name in known}

    def keep(result: ModuleResult) -> None:
        results[result.module] = result
        save_results(tree / _RESULTS, results.values(), equivalents)
        told(result)

    for piece in chosen:
        earlier = results.get(piece.module)
        if earlier is None or earlier.source != digest((tree / piece.file).read_bytes()):
            keep(_first(tree, piece))
    for piece in chosen:
        if left := unexplained([results[piece.module]], equivalents):
            keep(_again(tree, piece, results[piece.module], left))
    # The scores follow the equivalents, which may have been reviewed since.
    save_results(tree / _RESULTS, results.values(), equivalents)
    return Generated(results, equivalents)


def pieces(tree: Path) -> list[Piece]:
    """What `mutation/generated.toml` says can be run; InputError where it is missing, or names what is not there."""
    file = tree / _CONFIGURATION
    try:
        configuration = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}; run it in a checkout") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is no TOML: {error}") from error
    found = []
    for package, table in configuration.items():
        if not isinstance(table, dict) or not table.get("tests"):
            raise InputError(f"{file}: {package} needs tests")
        if not (tree / "overflow" / package).is_dir():
            raise InputError(f"{file}: there is no package {package}")
        tests, first = tuple(table["tests"]), table.get("first", {})
        modules = sorted(file.stem for file in (tree / "overflow" / package).glob("*.py") if file.stem != "__init__")
        for missing in [name for name in first if name not in modules]:
            raise InputError(f"{file}: there is no module {package}/{missing}")
        for missing in [test for test in {*tests, *chain(*first.values())} if not (tree / test).exists()]:
            raise InputError(f"{file}: there is no {missing}")
        found += [Piece(f"{package}/{name}", tests, tuple(first.get(name, tests))) for name in modules]
    return found


def _chosen(known: Sequence[Piece], names: Sequence[str]) -> list[Piece]:
    for name in names:
        if not any(name in (piece.module, piece.module.partition("/")[0]) for piece in known):
            raise InputError(f"no module or package {name!r}; there are {', '.join(piece.module for piece in known)}")
    return [piece for piece in known if not names or {piece.module, piece.module.partition("/")[0]} & set(names)]


def _first(tree: Path, piece: Piece) -> ModuleResult:
    """Every mutant of one module, against the tests it meets first."""
    started = time.monotonic()
    source, commit = digest((tree / piece.file).read_bytes()), _commit(tree)
    with fresh_workspace(tree, piece) as workspace:
        codes = workspace.mutmut([])
        survivors = tuple(Survivor(name, workspace.diff(name)) for name, code in codes.items() if _survives(code))
    ended = list(codes.values())
    return ModuleResult(
        module=piece.module,
        source=source,
        date=datetime.now(UTC).date().isoformat(),
        commit=commit,
        versions={
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in _VERSIONED},
        },
        seconds=round(time.monotonic() - started, 1),
        killed=sum(code in KILLED for code in ended),
        timed_out=sum(code in TIMED_OUT for code in ended),
        skipped=sum(code in SKIPPED for code in ended),
        survivors=survivors,
    )


def _again(tree: Path, piece: Piece, earlier: ModuleResult, left: Sequence[Survivor]) -> ModuleResult:
    """`earlier` after its survivors `left` met all tests of the package, and the contract in short."""
    started, commit = time.monotonic(), _commit(tree)
    with fresh_workspace(tree, piece) as workspace:
        codes = workspace.mutmut([each.name for each in left])
        for name in [name for name, code in codes.items() if _survives(code)]:
            # Without mutmut: under a mutant, a test that cannot even be collected (2) has noticed it.
            code = workspace.everything(name)
            codes[name] = 1 if code == 2 else code
    timed_out = sum(code in TIMED_OUT for code in codes.values())
    survivors = tuple(each for each in earlier.survivors if _survives(codes.get(each.name, 0)))
    return replace(
        earlier,
        date=datetime.now(UTC).date().isoformat(),
        commit=commit,
        seconds=round(earlier.seconds + time.monotonic() - started, 1),
        killed=earlier.killed + len(earlier.survivors) - len(survivors) - timed_out,
        timed_out=earlier.timed_out + timed_out,
        survivors=survivors,
    )


def _survives(code: int) -> bool:
    """Whether mutmut's exit code leaves a mutant alive, or undecided: not tested, or its tests could not be collected
    (which mutmut calls a time-out)."""
    return code not in KILLED | SKIPPED | TIMED_OUT


def _commit(tree: Path) -> str:
    """The commit of the tree, marked when its files differ from it; the results differ with every module that ends."""
    try:
        commit = _git(tree, "rev-parse", "--short=12", "HEAD")
        changed = _git(tree, "status", "--porcelain", "--untracked-files=no", "--", ".", f":(exclude){_RESULTS}")
    except (OSError, subprocess.CalledProcessError) as error:
        raise InputError(f"{tree} is no git checkout, so a result could not say what it is of: {error}") from error
    return commit + "-dirty" * bool(changed)


def _git(tree: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(tree), *words], capture_output=True, text=True, check=True).stdout.strip()
