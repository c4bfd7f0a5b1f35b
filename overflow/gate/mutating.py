"""Runs mutmut over one module of the reference at a time, in a fresh copy of the tree, and keeps what came of it.

Each piece is kept as it ends, so a run that is stopped goes on where it was. It gives no verdict (that is
`generated.py`) and writes nothing to the tree but the results. DESIGN.md, principle 4 and "Command line" (`overflow
mutate --generated`).
"""

import contextlib
import fcntl
import importlib.util
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from overflow.errors import InputError, UnavailableError
from overflow.gate.generated import (
    Equivalent,
    ModuleResult,
    Survivor,
    load_equivalents,
    load_results,
    save_results,
    unexplained,
)
from overflow.gate.pieces import CONFIGURATION, Piece, pieces, versions
from overflow.gate.workspace import KILLED, SKIPPED, TIMED_OUT, fresh_workspace

_FOLDER = Path("mutation")
_EQUIVALENTS, _RESULTS = _FOLDER / "equivalents.toml", _FOLDER / "generated.json"
#: What a run reads, and what it keeps: files that nothing else may be written to.
KEPT = (CONFIGURATION, _EQUIVALENTS, _RESULTS)


@dataclass(frozen=True, slots=True)
class Generated:
    """Every kept result by module, those of them that are stale, and the reviewed equivalents by key."""

    results: Mapping[str, ModuleResult]
    stale: Sequence[ModuleResult]
    equivalents: Mapping[str, Equivalent]


def run_generated(
    tree: Path,
    names: Sequence[str],
    told: Callable[[ModuleResult], None],
    again: Callable[[ModuleResult], None],
) -> Generated:
    """Run what is left to run in the checkout `tree`, and return all that is kept; `told` hears of each as it ends.

    `names` are packages (`division`) and modules (`division/core`); all without any. A module without a kept result of
    its present text and tests comes first, and `again` hears of a result that was of others; then every survivor that
    no reviewed equivalent explains meets all tests there are.
    Raises InputError outside a checkout, for an unknown name, and where another run is at it; UnavailableError without
    mutmut and when the tests fail before anything is changed.
    """
    if importlib.util.find_spec("mutmut") is None:
        raise UnavailableError("mutmut is not installed, and makes the mutants: pip install mutmut")
    every = {piece.module: piece for piece in pieces(tree)}
    chosen = _chosen(list(every.values()), names)
    equivalents = load_equivalents(tree / _EQUIVALENTS)
    if unknown := [each for each in equivalents.values() if each.module not in every]:
        raise InputError(f"{tree / _EQUIVALENTS}: there is no module {unknown[0].module}, of {unknown[0].key}")
    with _alone(tree / _FOLDER):
        results = {name: each for name, each in load_results(tree / _RESULTS).items() if name in every}

        def keep(result: ModuleResult) -> None:
            results[result.module] = result
            save_results(tree / _RESULTS, results.values(), equivalents)
            told(result)

        for piece in chosen:
            earlier = results.get(piece.module)
            if not piece.is_fresh(earlier, tree):
                if earlier is not None:
                    again(earlier)
                keep(_first(tree, piece))
        for piece in chosen:
            if left := unexplained([results[piece.module]], equivalents):
                keep(_again(tree, piece, results[piece.module], left))
        # The scores follow the equivalents, which may have been reviewed since.
        save_results(tree / _RESULTS, results.values(), equivalents)
    stale = [result for result in results.values() if not every[result.module].is_fresh(result, tree)]
    return Generated(results, stale, equivalents)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One run at a time keeps results in `folder`, which is locked itself: the file in it is replaced by each result.

    The lock ends with the process, however that ends.
    """
    lock = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"another run keeps its results in {folder}; wait until it ends") from error
        yield
    finally:
        os.close(lock)


def _chosen(known: Sequence[Piece], names: Sequence[str]) -> list[Piece]:
    for name in names:
        if not any(name in (piece.module, piece.module.partition("/")[0]) for piece in known):
            raise InputError(f"no module or package {name!r}; there are {', '.join(piece.module for piece in known)}")
    return [piece for piece in known if not names or {piece.module, piece.module.partition("/")[0]} & set(names)]


def _first(tree: Path, piece: Piece) -> ModuleResult:
    """Every mutant of one module, against the tests it meets first."""
    started, commit = time.monotonic(), _commit(tree)
    with fresh_workspace(tree, piece) as workspace:
        source, tests = workspace.source, workspace.rests_on
        codes = workspace.mutmut([])
        survivors = tuple(Survivor(name, workspace.diff(name)) for name, code in codes.items() if _survives(code))
    ended = list(codes.values())
    return ModuleResult(
        module=piece.module,
        source=source,
        tests=tests,
        date=datetime.now(UTC).date().isoformat(),
        commit=commit,
        versions=versions(),
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
            codes[name] = workspace.everything(name)
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
    commit = _git(tree, "rev-parse", "--short=12", "HEAD")
    changed = _git(tree, "status", "--porcelain", "--untracked-files=no", "--", ".", f":(exclude){_RESULTS}")
    return commit + "-dirty" * bool(changed)


def _git(tree: Path, *words: str) -> str:
    try:
        ended = subprocess.run(["git", "-C", str(tree), *words], capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise UnavailableError(f"git does not start, and says which commit a result is of: {error}") from error
    if ended.returncode:
        said = (ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"])[0]
        raise InputError(f"{tree} is no git checkout with a commit, so a result could not say what it is of: {said}")
    return ended.stdout.strip()
