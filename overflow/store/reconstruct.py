"""What a reader is shown of a record: its most relevant node, or its start while it has no current nodes.

It selects nothing: records come from recall, in its order and with its scores. Overflow Tree, sections 3 and 6.
"""

from dataclasses import dataclass

from overflow.store import node_set
from overflow.store.database import Database
from overflow.store.model import Shape
from overflow.store.node_set import NodeRow, Verdict, verdict
from overflow.store.records import Ref, Scope, Text, text_in_scope
from overflow.store.search import Hit, QueryVector
from overflow.store.vectors import cosines, unpack

#: How much is shown of a record without nodes: a length for display (code points), no stand-in for a window.
PREVIEW = 500


@dataclass(frozen=True, slots=True)
class Quote:
    """`text` is the record's from `start` to `end` (code points); `node` is None for a quote from the start."""

    ref: Ref
    start: int
    end: int
    text: str
    node: int | None


@dataclass(frozen=True, slots=True)
class Item:
    """A recalled record with its score and its claims as quoted; the reference takes a record as one claim."""

    ref: Ref
    score: float
    quotes: tuple[Quote, ...]


def reconstruct(database: Database, hits: list[Hit], query: QueryVector | None, scope: Scope) -> list[Item]:
    """The hits as items; one that was deleted since is left without a quote."""
    return [
        Item(hit.ref, hit.score, () if (found := quote(database, hit.ref, query, scope)) is None else (found,))
        for hit in hits
    ]


def quote(database: Database, ref: Ref, query: QueryVector | None, scope: Scope) -> Quote | None:
    """The part of one record to show for `query`; None when `scope` does not hold the record."""
    text = text_in_scope(database, ref, scope)
    if text is None:
        return None
    value = text.value
    node = None if query is None else _most_relevant(database, ref, text, query)
    if node is None:
        return Quote(ref, 0, min(PREVIEW, len(value)), value[:PREVIEW], None)
    return Quote(ref, node.start, node.end, value[node.start : node.end], node.index)


def contents(database: Database, ref: Ref, scope: Scope, node: int | None, model: str | None) -> str | None:
    """The record's text, or that of its node `node`; None when `scope` does not hold it, or it has no such node now.

    `model` is the identity as last learnt, None when it was not: to slice a stored text nobody is asked.
    """
    text = text_in_scope(database, ref, scope)
    if text is None or node is None:
        return None if text is None else text.value
    rows = _current(database, ref, text, model, Shape(None, None))
    return next((text.value[row.start : row.end] for row in rows if row.index == node), None)


def _most_relevant(database: Database, ref: Ref, text: Text, query: QueryVector) -> NodeRow | None:
    """The node nearest to the query, the lower index of equal ones; None when the node set is not current."""
    rows = _current(database, ref, text, query.model, Shape(len(query.vector), query.window))
    if not rows:
        return None
    scores = cosines(query.vector, unpack([row.embedding for row in rows if row.embedding is not None]))
    return rows[scores.index(max(scores))]


def _current(database: Database, ref: Ref, text: Text, model: str | None, shape: Shape) -> tuple[NodeRow, ...]:
    """The record's nodes; none when they are not those of its text by that model; what is None is not compared."""
    found = node_set.read(database, ref)
    # By the length too: under one name there may be two models, whose vectors cannot be compared.
    now = verdict(text, found, model=model, window=shape.window, dimensions=shape.dimensions)
    return found.rows if now is Verdict.CURRENT else ()
