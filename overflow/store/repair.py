"""The health check's repair: one bounded run that mends what can be mended, and converges over runs.

It never modifies a record's text or lock, so it covers locked records; a missing vector is filled in. Overflow Tree,
section 3: "One run builds at most 50 records, divided and embedded before the write lock is taken".
"""

from dataclasses import dataclass

from overflow.division import TokensUnknownError
from overflow.errors import HarnessError
from overflow.store import building, failures, node_set, queue, schema
from overflow.store.building import Job, Prepared
from overflow.store.database import Database
from overflow.store.health import ORPHANS, Examination, examine
from overflow.store.model import Embedding, Model
from overflow.store.node_set import Verdict, verdict
from overflow.store.records import Ref, Text, set_vector, text_of
from overflow.store.vectors import pack

#: Records one run builds, and records one run embeds.
RUN_LIMIT = 50

_SWEEP = tuple(
    f"DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM records r WHERE r.kind = {kind} AND r.id = {identifier})"
    for table, kind, identifier in (
        *((table, "parent_kind", "parent_id") for table in ("record_nodes", "node_sets", "record_vectors", "failures")),
        ("tasks", "tasks.kind", "tasks.id"),
    )
)
_REINDEX = {
    "mem": (
        "DELETE FROM memories_fts WHERE rowid = ?",
        "INSERT INTO memories_fts (rowid, text) SELECT id, text FROM searchable WHERE kind = 'mem' AND id = ?",
    ),
    "ep": (
        "DELETE FROM episodes_fts WHERE rowid = ?",
        "INSERT INTO episodes_fts (rowid, text) SELECT id, text FROM searchable WHERE kind = 'ep' AND id = ?",
    ),
}


@dataclass(frozen=True, slots=True)
class Repaired:
    """One run: records that got nodes, builds that failed, records (or orphans) that lost their rows, vectors and index
    entries renewed.
    """

    built: int
    failed: int
    removed: int
    embedded: int
    indexed: int


def repair(database: Database, model: Model) -> Repaired:
    """One run of the repair."""
    schema.ensure(database)
    found = examine(database, model)
    removed = _remove(database, found)
    indexed = _reindex(database, found)
    built, failed = _build(database, model, found)
    embedded = _embed(database, model, found)
    return Repaired(built, failed, removed, embedded, indexed)


def _remove(database: Database, found: Examination) -> int:
    """Node sets that nothing will replace, or that must not stay until something does."""
    findings = found.health.findings
    named = {ref for kind in ("edited_nodes", "stale_nodes", "needless_nodes") for ref in findings.get(kind, ())}
    orphans, odd_tasks = "orphan_rows" in findings, "odd_tasks" in findings
    if not named and not orphans and not odd_tasks:
        return 0
    removed = 0
    with database.transaction():
        for ref in sorted(named):
            # Looked at again under the lock: a worker may have built it anew.
            text = _text_as_found(database, ref, found)
            if text is not None and not _is_current(database, ref, text, found):
                node_set.remove(database, ref)
                removed += 1
        if odd_tasks:
            removed += queue.remove_odd(database)
        if orphans:
            # By what they are and not by their names, which come out of the database as U+FFFD where they are no UTF-8.
            removed += len(database.rows(ORPHANS))
            for statement in _SWEEP:
                database.write(statement)
    return removed


def _text_as_found(database: Database, ref: Ref, found: Examination) -> Text | None:
    """The record's text; None when it is another than health found, or gone."""
    text = text_of(database, ref)
    return text if text is not None and text.sha256 == found.digests[ref] else None


def _is_current(database: Database, ref: Ref, text: Text, found: Examination) -> bool:
    nodes, shape = node_set.read(database, ref), found.shape
    now = verdict(text, nodes, model=found.name, window=shape.window, dimensions=shape.dimensions)
    return now is Verdict.CURRENT


def _reindex(database: Database, found: Examination) -> int:
    if "damaged_index" in found.health.findings:
        return schema.make_indexes_anew(database)
    refs = found.health.findings.get("stale_index", ())
    if refs:
        with database.transaction():
            for ref in refs:
                for statement in _REINDEX[ref.kind]:
                    database.write(statement, (ref.id,))
    return len(refs)


def _build(database: Database, model: Model, found: Examination) -> tuple[int, int]:
    chosen = failures.least_failed(database, "nodes", found.health.missing_nodes, RUN_LIMIT)
    texts = {ref: text for ref in chosen if (text := _text_as_found(database, ref, found)) is not None}
    jobs = [Job(ref, text, found.reports[ref]) for ref, text in texts.items()]
    built = failed = 0
    for job, outcome in zip(jobs, building.prepare(model, jobs), strict=True):
        with database.transaction():
            if isinstance(outcome, Prepared):
                if building.write(database, outcome, model):
                    failures.clear(database, "nodes", job.ref)
                    built += bool(outcome.rows)
            else:
                failed += 1
                _note(database, "nodes", job.ref, job.text, outcome)
    return built, failed


def _embed(database: Database, model: Model, found: Examination) -> int:
    findings = found.health.findings
    named = {*findings.get("missing_vectors", ()), *findings.get("stale_vectors", ())}
    chosen = failures.least_failed(database, "vector", named, RUN_LIMIT)
    texts = {ref: text for ref in chosen if (text := _text_as_found(database, ref, found)) is not None}
    name, answers = model.embed_named([text.value for text in texts.values()])
    if name is None:
        return 0
    embedded = 0
    for (ref, text), answer in zip(texts.items(), answers, strict=True):
        with database.transaction():
            if not isinstance(answer, Embedding):
                _note(database, "vector", ref, text, answer)
            elif set_vector(database, ref, text, pack(answer.vector), name):
                failures.clear(database, "vector", ref)
                embedded += 1
    return embedded


def _note(database: Database, work: failures.Work, ref: Ref, text: Text, error: HarnessError) -> None:
    """Count a failure against the record it was of, unless its text is another now or tokens became unknown."""
    if text_of(database, ref) == text and not isinstance(error, TokensUnknownError):
        failures.note(database, work, ref, error)
