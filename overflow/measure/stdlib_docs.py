"""The texts of the corpus `stdlib-docs`: the documentation that this Python brings along, its topics and docstrings.

Sources are read and parsed, never imported, and nothing is downloaded: the texts depend on the Python version alone.
DESIGN.md, "The check": at least 200 records, of which at least 60 divide.
"""

import ast
import platform
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from overflow.contract.scenario import LENGTH_LIMIT
from overflow.errors import InputError

#: How many docstrings follow the topics: the longest ones, because most docstrings are a line.
DOCSTRINGS = 120

_HEADING = re.compile(r"^[^\n]+\n([*=\-~^])\1+$", re.MULTILINE)
_PARAGRAPH = re.compile(r"(?<=\n\n)(?!\n)")
_LINE = re.compile(r"(?<=\n)")

_APPLICATIONS = frozenset({"idlelib", "lib2to3", "turtledemo"})
_TESTS = frozenset({"test", "tests"})


def source() -> str:
    return f"the standard library of Python {platform.python_version()}"


def texts() -> Iterator[tuple[str, str]]:
    """Ids and texts: topics by name, then modules and classes by name. No text comes twice.

    Raises InputError when this Python was installed without its topics or its sources.
    """
    seen = set()
    for name, text in [*_topics(), *_docstrings()]:
        if text not in seen:
            seen.add(text)
            yield name, text


def parts(text: str, limit: int) -> Iterator[str]:
    """`text` in consecutive parts of at most `limit` code points, as few as its boundaries allow.

    A part ends before the last heading that fits, unless that leaves it less than half full; else before the last
    paragraph that does; else before the last line; else at the limit.
    """
    start = 0
    while len(text) - start > limit:
        end = _end_of_part(text, start, limit)
        yield text[start:end]
        start = end
    yield text[start:]


def _end_of_part(text: str, start: int, limit: int) -> int:
    for boundary in (_HEADING, _PARAGRAPH, _LINE):
        ends = [
            match.start()
            for match in boundary.finditer(text, start + max(1, limit // 2))
            if match.start() <= start + limit
        ]
        if ends:
            return ends[-1]
    return start + limit


def _topics() -> Iterator[tuple[str, str]]:
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        raise InputError("this Python comes without its documentation topics (pydoc_data)") from error
    for name, text in sorted(topics.items()):
        pieces = list(parts(text, LENGTH_LIMIT))
        for number, piece in enumerate(pieces, 1):
            yield f"topic/{name}" if len(pieces) == 1 else f"topic/{name}/{number}", piece


def _docstrings() -> list[tuple[str, str]]:
    found = [item for module, path in _modules() for item in _documented(module, path)]
    if not found:
        raise InputError("this Python comes without the sources of its standard library")
    longest = sorted(found, key=lambda item: (-len(item[1]), item[0]))[:DOCSTRINGS]
    return sorted(longest)


def _modules() -> Iterator[tuple[str, Path]]:
    """Dotted name and source of every public module, in no order; private, test and application modules left out."""
    library = Path(sysconfig.get_path("stdlib"))
    for top in sys.stdlib_module_names - _APPLICATIONS:
        for path in [library / f"{top}.py", *(library / top).rglob("*.py")]:
            names = path.relative_to(library).with_suffix("").parts
            names = names[:-1] if names[-1] == "__init__" else names
            if path.is_file() and not _TESTS.intersection(names) and not any(name.startswith("_") for name in names):
                yield ".".join(names), path


def _documented(module: str, path: Path) -> Iterator[tuple[str, str]]:
    """The docstrings of a module and of its public classes."""
    with warnings.catch_warnings(action="ignore"):  # of the sources' own, such as an invalid escape
        tree = ast.parse(path.read_bytes())
    documented: Iterable[tuple[str, ast.Module | ast.ClassDef]] = [
        (f"module/{module}", tree),
        *((f"class/{module}.{node.name}", node) for node in tree.body if isinstance(node, ast.ClassDef)),
    ]
    for name, node in documented:
        text = ast.get_docstring(node)
        if text and not name.rpartition(".")[2].startswith("_"):
            yield name, text
