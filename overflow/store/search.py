"""Recall: a lexical arm and a vector arm over whole records, fused by reciprocal rank.

It never reads a node and never writes: that retrieval is unchanged by nodes holds by construction. Overflow Tree,
section 0 and invariant 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from overflow.embedding.embedder import Vectors
from overflow.store.database import Database
from overflow.store.errors import DAMAGED_INDEX, DamagedStoreError
from overflow.store.records import Ref, Scope, scope_values
from overflow.store.short_runs import ShortRuns
from overflow.store.vectors import cosines, unpack

#: Reciprocal rank fusion: rank r adds 1 / (RRF_K + r). Cormack, Clarke and Büttcher 2009.
RRF_K = 60
#: Trigrams of a query that are searched for, the first ones: bounds the cost of a query that is a page long.
MAX_TERMS = 256

# CROSS JOIN keeps the full-text index the outer loop: the planner would otherwise go through the scope's records and
# search the whole index again for each.
_LEXICAL = (
    "SELECT 'mem', m.id, bm25(memories_fts) FROM memories_fts CROSS JOIN memories m ON m.id = memories_fts.rowid"
    " WHERE memories_fts MATCH :terms AND m.agent = :agent AND m.project = :project AND m.channel = :channel",
    "SELECT 'ep', e.id, bm25(episodes_fts) FROM episodes_fts CROSS JOIN episodes e ON e.id = episodes_fts.rowid"
    " WHERE episodes_fts MATCH :terms AND e.agent = :agent AND e.project = :project AND e.channel = :channel",
)
_TEXTS = (
    "SELECT 'mem', m.id, lower(coalesce(f.text, '')) FROM memories_fts f JOIN memories m ON m.id = f.rowid"
    " WHERE m.agent = ? AND m.project = ? AND m.channel = ?",
    "SELECT 'ep', e.id, lower(coalesce(f.text, '')) FROM episodes_fts f JOIN episodes e ON e.id = f.rowid"
    " WHERE e.agent = ? AND e.project = ? AND e.channel = ?",
)
_VECTORS = (
    "SELECT kind, id, embedding FROM records WHERE agent = ? AND project = ? AND channel = ?"
    " AND embedding_model = ? AND typeof(embedding) = 'blob' AND length(embedding) = ?"
)


@dataclass(frozen=True, slots=True)
class Hit:
    """A recalled record; a higher score is better."""

    ref: Ref
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class QueryVector:
    """A query as its model sees it: `vector` of shape (dimensions,), and the model's window, None if unknown."""

    vector: Vectors
    model: str
    window: int | None


def recall(database: Database, query: str, vector: QueryVector | None, scope: Scope, limit: int) -> list[Hit]:
    """The best `limit` records of `scope` for `query`; without a vector, by the lexical arm alone.

    An empty query finds nothing. Equal scores are in order of kind and id.
    """
    runs = query.replace("\0", " ").split()
    with database.snapshot():
        arms = [_lexical(database, runs, scope)]
        if vector is not None:
            arms.append(_nearest(database, vector, scope))
    scores: dict[Ref, float] = {}
    for arm in arms:
        for rank, ref in enumerate(arm, 1):
            scores[ref] = scores.get(ref, 0.0) + 1 / (RRF_K + rank)
    hits = sorted((Hit(ref, score) for ref, score in scores.items()), key=lambda hit: (-hit.score, hit.ref))
    return hits[: max(limit, 0)]


def _lexical(database: Database, runs: list[str], scope: Scope) -> list[Ref]:
    """Best first: by bm25 over the trigrams of the query.

    A query without any run of 3 characters, such as 東京, has no trigram: then a record counts by how many of the runs
    it contains, ASCII letters alike in both cases.
    """
    trigrams = list(dict.fromkeys(run[at : at + 3] for run in runs for at in range(len(run) - 2)))[:MAX_TERMS]
    if trigrams:
        return _ranked(_by_trigrams(database, trigrams, scope))
    return _ranked(_by_containing(database, dict.fromkeys(runs[:MAX_TERMS]), scope))


def _by_trigrams(database: Database, trigrams: list[str], scope: Scope) -> dict[Ref, float]:
    terms = " OR ".join('"' + trigram.replace('"', '""') + '"' for trigram in trigrams)
    values = {"terms": terms, "agent": scope.agent, "project": scope.project, "channel": scope.channel}
    found = [row for statement in _LEXICAL for row in database.rows(statement, values)]
    # SQLite has NULL for what is no number, here 0 / 0: the index has lost how long its texts are.
    if any(bm25 is None for _, _, bm25 in found):
        raise DamagedStoreError(f"{database.path} {DAMAGED_INDEX}")
    # bm25 is the better the lower.
    return {Ref(kind, i): -bm25 for kind, i, bm25 in found}


def _by_containing(database: Database, runs: Iterable[str], scope: Scope) -> dict[Ref, float]:
    # As SQLite's lower() has it: ASCII letters alone.
    wanted = ShortRuns([run.encode().lower().decode() for run in runs])
    return {
        Ref(kind, identifier): count
        for statement in _TEXTS
        for kind, identifier, text in database.stream(statement, scope_values(scope))
        if (count := wanted.held_by(text))
    }


def _nearest(database: Database, query: QueryVector, scope: Scope) -> list[Ref]:
    """Best first: by the cosine of the records' own vectors, those of the query's model."""
    rows = database.rows(_VECTORS, (*scope_values(scope), query.model, 4 * len(query.vector)))
    if not rows:
        return []
    scores = cosines(query.vector, unpack([stored for *_, stored in rows]))
    return _ranked({Ref(kind, i): score for (kind, i, _), score in zip(rows, scores, strict=True)})


def _ranked(scores: dict[Ref, float]) -> list[Ref]:
    return sorted(scores, key=lambda ref: (-scores[ref], ref))
