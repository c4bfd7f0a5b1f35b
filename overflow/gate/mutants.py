"""Named mutants: one change of a source file each, and the laws that must go red for it.

They are read from a TOML file beside the sources that they change, and every mistake in it is told in one line.
DESIGN.md, principle 4 and "Layout" (`mutation/`).
"""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from overflow.contract.saboteurs import SABOTEURS
from overflow.errors import InputError


@dataclass(frozen=True, slots=True)
class Mutant:
    """In `file`, a path inside the package, the text `find` becomes `replace`; the laws `red` must notice, alone.

    Where it has `titles`, each of those laws must go red by a violation with one of them, and by no other. A control
    changes nothing that a law is about, and has no law in `red`. `breaks` says in a line what is broken.
    """

    name: str
    breaks: str
    red: frozenset[str]
    file: str
    find: str
    replace: str
    titles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The mutants of one import package."""

    package: str
    mutants: tuple[Mutant, ...]


_TEXTS = ("name", "breaks", "file", "find", "replace")


def load(path: Path, laws: Collection[str]) -> Catalogue:
    """The catalogue in the TOML file `path`; `laws` are the ids there are.

    Raises InputError for a file that cannot be read, is no TOML, or is no catalogue.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is no TOML: {error}") from error
    package, tables = data.pop("package", None), data.pop("mutant", None)
    if not isinstance(package, str) or not package.isidentifier():
        raise InputError(f'{path}: write package = "NAME", the import package that the mutants change')
    if data or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputError(f"{path}: besides `package` a catalogue holds [[mutant]] tables, and nothing else")
    mutants = tuple(_mutant(table, laws, f"{path}: mutant {number}") for number, table in enumerate(tables, 1))
    names = [*SABOTEURS, *(mutant.name for mutant in mutants)]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"{path}: two mutants, or a mutant and a saboteur, are called {twice[0]!r}")
    return Catalogue(package, mutants)


def _mutant(table: Mapping[str, object], laws: Collection[str], where: str) -> Mutant:
    if unknown := sorted(set(table) - {*_TEXTS, "red", "titles"}):
        raise InputError(f"{where} has {unknown[0]!r}, and a mutant has {', '.join(_TEXTS)}, red, titles")
    texts = {key: value for key in _TEXTS if isinstance(value := table.get(key), str)}
    if missing := [key for key in _TEXTS if key not in texts or (not texts[key].strip() and key != "replace")]:
        raise InputError(f"{where} has no text {missing[0]!r}")
    if not texts["name"].isprintable() or texts["name"] == "list":
        raise InputError(f"{where}: give it another name than {texts['name']!r}: printable, and not the word list")
    if "\0" in texts["file"]:
        raise InputError(f"{where} ({texts['name']}) names a file with a NUL")
    red = table.get("red")
    if not isinstance(red, list) or not all(isinstance(each, str) for each in red):
        raise InputError(f"{where} ({texts['name']}): write red = [LAW, …], and red = [] for a control")
    titles = table.get("titles", [])
    if not isinstance(titles, list) or not all(isinstance(each, str) for each in titles) or (titles and not red):
        raise InputError(f"{where} ({texts['name']}): titles are those of violations of the laws in `red`, a list")
    if foreign := sorted(set(red) - set(laws)):
        raise InputError(f"{where} ({texts['name']}) names the law {foreign[0]!r}; there are {', '.join(laws)}")
    if texts["find"] == texts["replace"]:
        raise InputError(f"{where} ({texts['name']}) replaces a text by itself")
    return Mutant(red=frozenset(red), titles=tuple(titles), **texts)
