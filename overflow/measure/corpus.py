"""A corpus: named real texts to check and to measure on, with where they come from and a digest of what they are.

It reads, and never changes a text, downloads, or writes. DESIGN.md, "Layout" (corpora) and "Command line".
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from overflow.errors import InputError
from overflow.measure import stdlib_docs
from overflow.tokens.regular_file import read_regular

#: The files a corpus is read from.
SUFFIXES = (".jsonl", ".md", ".txt")


@dataclass(frozen=True, slots=True)
class Document:
    """One text of a corpus, by an id that is its own there."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Corpus:
    """`language` is a BCP 47 tag (`und` when nobody said), `licence` an SPDX expression (`NOASSERTION` likewise)."""

    id: str
    language: str
    source: str
    licence: str
    records: tuple[Document, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of the records as JSON lines, ids and texts in order."""
        digest = hashlib.sha256()
        for record in self.records:
            digest.update(json.dumps([record.id, record.text]).encode("ascii") + b"\n")
        return digest.hexdigest()

    def subset(self, size: int) -> "Corpus":
        """`size` of the records, in the order they have here: evenly spread over the lengths, so as long as the whole.

        All of them when there are no more. Raises InputError for a size below 1.
        """
        if size < 1:
            raise InputError(f"a subset has at least 1 record, not {size}")
        total = len(self.records)
        if size >= total:
            return self
        by_length = sorted(range(total), key=lambda index: (len(self.records[index].text), index))
        # The middle of each of `size` equal slices.
        chosen = sorted(by_length[(2 * slice_ + 1) * total // (2 * size)] for slice_ in range(size))
        return replace(self, id=f"{self.id}/{size}", records=tuple(self.records[index] for index in chosen))


@cache
def _stdlib_docs() -> Corpus:
    documents = tuple(Document(name, text) for name, text in stdlib_docs.texts())
    return Corpus("stdlib-docs", "en", stdlib_docs.source(), "PSF-2.0", documents)


#: Every corpus that can be had by its id, and what builds it.
BUILDERS: dict[str, Callable[[], Corpus]] = {"stdlib-docs": _stdlib_docs}


def load(name: str) -> Corpus:
    """The corpus of that id; else the texts of a .txt or .md file (one record), a .jsonl file, or all in a folder.

    A .jsonl line is an object with a `text` and, if it has one, an `id`. Raises InputError for a name that is neither,
    a file that cannot be read, a text that is empty or not Unicode, a line without text, an id used twice.
    """
    builder = BUILDERS.get(name)
    if builder is not None:
        return builder()
    path = Path(name)
    try:
        is_folder, is_there = path.is_dir(), path.exists()
        files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    except OSError as error:
        raise InputError(f"cannot read {error.filename or name}: {error.strerror}") from error
    if is_folder:
        records = tuple(record for file in files for record in _file(file, file.relative_to(path).as_posix()))
    elif is_there:
        records = tuple(_file(path, path.name))
    else:
        raise InputError(f"{name!r} is no corpus and no file; corpora: {', '.join(BUILDERS)}")
    if not records:
        raise InputError(f"{name} holds no record; looked for {', '.join(SUFFIXES)}")
    twice = [identifier for identifier, uses in Counter(record.id for record in records).items() if uses > 1]
    if twice:
        raise InputError(f"{name}: the id {twice[0]!r} is used by more than one record")
    return Corpus(path.name, "und", name, "NOASSERTION", records)


def _file(path: Path, name: str) -> Iterator[Document]:
    """The records of one file; `name` is the id of a whole file, and starts the id of a line that has none."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path} is not one of {', '.join(SUFFIXES)}")
    try:
        text = read_regular(path).decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: byte {error.start} cannot be read") from error
    if path.suffix != ".jsonl":
        yield _document(name, text, str(path))
        return
    # Not splitlines: inside JSON text, U+2028 and U+0085 are characters.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield _line(line, f"{name}:{number}", f"{path}, line {number}")


def _line(line: str, default_id: str, where: str) -> Document:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not JSON ({error})") from error
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        raise InputError(f"{where}: not an object with a `text`")
    identifier = row.get("id", default_id)
    if not isinstance(identifier, (str, int)):
        raise InputError(f"{where}: its `id` is neither text nor a whole number")
    return _document(str(identifier), row["text"], where)


def _document(identifier: str, text: str, where: str) -> Document:
    if not text:
        raise InputError(f"{where}: the text is empty")
    try:
        f"{identifier}{text}".encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: not Unicode: a lone surrogate in the text or its id; remove or replace it"
        ) from error
    return Document(identifier, text)
