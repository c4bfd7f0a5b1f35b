"""What became of the mutants that mutmut generated: kept results a module, reviewed equivalents, and the score.

It runs nothing (that is `mutating.py`) and forgives nothing: a survivor passes only by a reviewed reason, and a reason
only by a survivor. DESIGN.md, principle 4, principle 8 and "Command line" (`overflow mutate --generated`).
"""

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from overflow.errors import InputError

_TEXTS = {"key", "module", "reason"}
#: No module has so many mutants, and none takes so many seconds.
_MOST = 10**9


@dataclass(frozen=True, slots=True)
class Survivor:
    """A mutant that no test noticed, by mutmut's name for it, and what it changes as a unified diff."""

    name: str
    diff: str

    @property
    def key(self) -> str:
        """What it changes in which lines of which file, wherever in the file they stand: 16 hexadecimal digits."""
        lines = [line for line in self.diff.splitlines() if not line.startswith("@@")]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ModuleResult:
    """One module, such as `division/core`, at a commit: how many of its mutants ended how, and those that survived.

    `source` is the digest of its text, `tests` of what else decides a verdict, `date` is of the day it was run,
    `seconds` is what it took.
    """

    module: str
    source: str
    tests: str
    date: str
    commit: str
    versions: Mapping[str, str]
    seconds: float
    killed: int
    timed_out: int
    skipped: int
    survivors: tuple[Survivor, ...]

    @property
    def package(self) -> str:
        return self.module.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Equivalent:
    """The reviewed reason why the survivor with this key, in this module, changes nothing that a test could see."""

    key: str
    module: str
    reason: str


@dataclass(frozen=True, slots=True)
class Score:
    """A package's mutants: `value` is the share of those that count which was killed or timed out, 0 to 1."""

    package: str
    all: int
    killed: int
    timed_out: int
    skipped: int
    equivalent: int

    @property
    def value(self) -> float:
        counted = self.all - self.skipped - self.equivalent
        return (self.killed + self.timed_out) / counted if counted else 1.0


def digest(source: bytes) -> str:
    """The digest of a module's text: 16 hexadecimal digits."""
    return hashlib.sha256(source).hexdigest()[:16]


def load_equivalents(path: Path) -> dict[str, Equivalent]:
    """The reviewed equivalents by key; InputError for a file that cannot be read, or an entry that lacks something."""
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", [])
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is no TOML: {error}") from error
    if not isinstance(entries, list):
        raise InputError(f"{path} holds no list of [[equivalent]]")
    equivalents: dict[str, Equivalent] = {}
    for number, entry in enumerate(entries, 1):
        if (
            not isinstance(entry, dict)
            or set(entry) != _TEXTS
            or not all(isinstance(text, str) and text.strip() for text in entry.values())
        ):
            raise InputError(f"{path}: equivalent {number} needs {', '.join(sorted(_TEXTS))}, and nothing else")
        if entry["key"] in equivalents:
            raise InputError(f"{path}: two equivalents have the key {entry['key']!r}")
        equivalents[entry["key"]] = Equivalent(**entry)
    return equivalents


def load_results(path: Path) -> dict[str, ModuleResult]:
    """The kept results by module, none without a file; InputError for a file that is no such results."""
    try:
        results = [_kept(each) for each in json.loads(path.read_text(encoding="utf-8"))["modules"]]
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(f"{path} holds no results of generated mutants; remove it to begin anew") from error
    return {result.module: result for result in results}


def save_results(path: Path, results: Iterable[ModuleResult], equivalents: Mapping[str, Equivalent]) -> None:
    """Keep `results`, with the score of each package beside them, whole or not at all; InputError when it cannot."""
    ordered = sorted(results, key=lambda result: result.module)
    modules = [
        asdict(result) | {"survivors": [asdict(each) | {"key": each.key} for each in result.survivors]}
        for result in ordered
    ]
    packages = [asdict(score) | {"score": round(score.value, 4)} for score in scores(ordered, equivalents)]
    text = json.dumps({"packages": packages, "modules": modules}, indent=1, ensure_ascii=False) + "\n"
    partial = path.with_suffix(".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise InputError(f"cannot keep the results in {path}: {partial.name}: {error.strerror}") from error


def scores(results: Sequence[ModuleResult], equivalents: Mapping[str, Equivalent]) -> list[Score]:
    """The score of each package, in the order of the results."""
    return [
        _score(package, [result for result in results if result.package == package], equivalents)
        for package in dict.fromkeys(result.package for result in results)
    ]


def unexplained(results: Iterable[ModuleResult], equivalents: Mapping[str, Equivalent]) -> list[Survivor]:
    """The survivors that no reviewed reason is given for."""
    return [each for result in results for each in result.survivors if not _explained(result, each, equivalents)]


def groundless(results: Iterable[ModuleResult], equivalents: Mapping[str, Equivalent]) -> list[Equivalent]:
    """The equivalents, of modules that were run, that no survivor needs: it is killed by now, or its lines changed."""
    needed = {result.module: {each.key for each in result.survivors} for result in results}
    return [each for each in equivalents.values() if each.module in needed and each.key not in needed[each.module]]


def _explained(result: ModuleResult, survivor: Survivor, equivalents: Mapping[str, Equivalent]) -> bool:
    reviewed = equivalents.get(survivor.key)
    return reviewed is not None and reviewed.module == result.module


def _score(package: str, results: Sequence[ModuleResult], equivalents: Mapping[str, Equivalent]) -> Score:
    killed, timed_out, skipped = (
        sum(getattr(result, name) for result in results) for name in ("killed", "timed_out", "skipped")
    )
    survivors = [each for result in results for each in result.survivors]
    equivalent = sum(_explained(result, each, equivalents) for result in results for each in result.survivors)
    return Score(package, killed + timed_out + skipped + len(survivors), killed, timed_out, skipped, equivalent)


def _kept(each: Mapping[str, Any]) -> ModuleResult:
    """One module of a file of results; ValueError, TypeError or KeyError for what no run keeps."""
    survivors = tuple(Survivor(kept["name"], kept["diff"]) for kept in each["survivors"])
    # Results from before the tests were told apart are of no tests that are known.
    result = ModuleResult(**{"tests": "", **each, "survivors": survivors})
    if not isinstance(result.versions, dict):
        raise TypeError("versions without names")
    texts = [result.module, result.source, result.tests, result.date, result.commit, *chain(*result.versions.items())]
    for text in [*texts, *chain(*(astuple(survivor) for survivor in survivors))]:
        if not isinstance(text, str):
            raise TypeError(f"{text!r} is no text")
        text.encode()  # A lone surrogate could not be kept again.
    counts = (result.killed, result.timed_out, result.skipped)
    if not all(type(number) is int for number in counts) or not isinstance(result.seconds, int | float):
        raise TypeError("a text where a number should be")
    if not all(0 <= number < _MOST for number in (*counts, result.seconds)):
        raise ValueError("a number that counts nothing")
    return result
