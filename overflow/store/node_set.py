"""The nodes of one record as rows, and the one function that says whether they may be used.

Reader, builder and health all ask `verdict`; nothing else decides that a node set is current. Overflow Tree, sections
1, 4 and 5.4.
"""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from overflow.store.database import Database
from overflow.store.records import Ref, Text
from overflow.store.vectors import usable


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One row of record_nodes; offsets in code points, end exclusive. Edited by hand, a value may be of any type."""

    index: int
    start: int
    end: int
    token_count: int
    window: int
    embedding: bytes | None
    model: str


@dataclass(frozen=True, slots=True)
class NodeSet:
    """A record's rows in index order, with the digests noted when they were written (None when none were)."""

    rows: tuple[NodeRow, ...]
    text_sha256: str | None
    nodes_sha256: str | None


class Verdict(StrEnum):
    """What a node set is; the values are the names of health's findings."""

    CURRENT = "current"
    ABSENT = "absent"
    EDITED = "edited_nodes"
    STALE = "stale_nodes"
    OTHER_MODEL = "other_model"
    OTHER_WINDOW = "other_window"
    OTHER_VECTORS = "other_vectors"


_ROWS = (
    "SELECT node_index, start_char, end_char, token_count, window, embedding, embedding_model FROM record_nodes"
    " WHERE parent_kind = ? AND parent_id = ? ORDER BY node_index"
)
_DIGESTS = "SELECT text_sha256, nodes_sha256 FROM node_sets WHERE parent_kind = ? AND parent_id = ?"
_INSERT = (
    "INSERT INTO record_nodes (parent_kind, parent_id, node_index, start_char, end_char, token_count, window,"
    " embedding, embedding_model) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_DIGESTS = "INSERT INTO node_sets (parent_kind, parent_id, text_sha256, nodes_sha256) VALUES (?, ?, ?, ?)"
_DELETE = (
    "DELETE FROM record_nodes WHERE parent_kind = ? AND parent_id = ?",
    "DELETE FROM node_sets WHERE parent_kind = ? AND parent_id = ?",
)


def read(database: Database, ref: Ref) -> NodeSet:
    """The record's node set, without rows when it has none."""
    rows = tuple(NodeRow(*row) for row in database.rows(_ROWS, (ref.kind, ref.id)))
    text_sha256, nodes_sha256 = database.row(_DIGESTS, (ref.kind, ref.id)) or (None, None)
    return NodeSet(rows, text_sha256, nodes_sha256)


def replace(database: Database, ref: Ref, text: Text, rows: tuple[NodeRow, ...]) -> None:
    """Put `rows`, made of `text`, in the place of what is there; call it inside a transaction."""
    remove(database, ref)
    for row in rows:
        edges = (row.index, row.start, row.end, row.token_count, row.window)
        database.write(_INSERT, (ref.kind, ref.id, *edges, row.embedding, row.model))
    if rows:
        database.write(_INSERT_DIGESTS, (ref.kind, ref.id, text.sha256, digest(rows)))


def remove(database: Database, ref: Ref) -> None:
    """Delete the record's nodes; call it inside a transaction."""
    for statement in _DELETE:
        database.write(statement, (ref.kind, ref.id))


def verdict(
    text: Text, found: NodeSet, *, model: str | None, window: int | None, dimensions: int | None = None
) -> Verdict:
    """Whether `found` may be used for a record that holds `text`.

    `model` is the current identity ('' for a model that states none), `window` its size and `dimensions` how many
    numbers its vectors have; what is None is not known now and not compared.
    """
    if not found.rows:
        return Verdict.ABSENT
    if digest(found.rows) != found.nodes_sha256:
        return Verdict.EDITED
    if text.sha256 != found.text_sha256:
        return Verdict.STALE
    if not _whole(found.rows, len(text.value)):
        return Verdict.EDITED
    if model is not None and any(row.model != model for row in found.rows):
        return Verdict.OTHER_MODEL
    if window is not None and any(row.window != window for row in found.rows):
        return Verdict.OTHER_WINDOW
    if not usable([row.embedding for row in found.rows], dimensions):
        return Verdict.OTHER_VECTORS
    return Verdict.CURRENT


def digest(rows: tuple[NodeRow, ...]) -> str:
    """The SHA-256 of every value of every row, types told apart."""
    return sha256(repr(rows).encode()).hexdigest()


def _whole(rows: tuple[NodeRow, ...], length: int) -> bool:
    """Invariant 4, and a vector for every node."""
    edges = [0, *(row.end for row in rows)]
    partition = [(row.index, row.start) for row in rows] == list(enumerate(edges[:-1])) and edges[-1] == length
    return partition and all(row.start < row.end and row.embedding is not None for row in rows)
