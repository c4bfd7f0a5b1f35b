"""A corpus: named real texts to check and to measure on, with where they come from and a digest of what they are.

It reads, and never changes a text, downloads, or writes. DESIGN.md, "Layout" (corpora) and "Command line".
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from overflow.errors import InputError
from overflow.measure import stdlib_docs
from overflow.measure.records import Record, read_records
from overflow.nearest import did_you_mean

#: How many bad sources one line names.
_NAMED = 10


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
    """The corpus of that id; else the records of a file or a folder, as `read_records` reads them.

    A record's id is its own, else its place in the folder. Raises InputError for a name that is neither, for sources
    that cannot be read and texts that are empty (all of them, in one line), and for an id used twice.
    """
    builder = BUILDERS.get(name)
    if builder is not None:
        return builder()
    path = Path(name)
    try:
        base = path if path.is_dir() else path.parent
        is_there = path.exists()
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from error
    if not is_there:
        near = did_you_mean(name, BUILDERS)
        raise InputError(f"{name!r} is no corpus and no file; {near}corpora: {', '.join(BUILDERS)}")
    documents: list[Document] = []
    refused: list[str] = []
    for record in read_records([name]):
        try:
            documents.append(_document(record, base))
        except InputError as error:
            refused.append(str(error))
    if refused:
        more = f"; and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
        raise InputError("; ".join(refused[:_NAMED]) + more)
    if not documents:
        raise InputError(f"{name} holds no record")
    twice = [identifier for identifier, uses in Counter(document.id for document in documents).items() if uses > 1]
    if twice:
        raise InputError(f"{name}: the id {twice[0]!r} is used by more than one record")
    return Corpus(path.name, "und", name, "NOASSERTION", tuple(documents))


def _document(record: Record | InputError, base: Path) -> Document:
    if isinstance(record, InputError):
        raise record
    if not record.text:
        raise InputError(f"{record.where}: the text is empty")
    if record.own_id is not None:
        return Document(str(record.own_id), record.text)
    return Document(Path(record.where).relative_to(base).as_posix(), record.text)
