"""What is not as it should be: long records without current nodes, and every other finding by its name.

It changes nothing, measures only what has no current nodes, and one bad row stops nothing else. Overflow Tree, section
3; DESIGN.md, "The reference store": what a trigger cannot see must still hold or be found.
"""

from dataclasses import dataclass, field

from overflow.store import failures, node_set, queue, schema
from overflow.store.database import Database
from overflow.store.errors import DamagedStoreError, ReadOnlyStoreError, StoreBusyError
from overflow.store.model import Model, Shape
from overflow.store.node_set import Verdict, verdict
from overflow.store.records import Ref, Text, is_time, refs_of
from overflow.store.vectors import usable
from overflow.tokens.report import TokenReport

#: Texts measured at a time: the most one request carries.
_BATCH = 100

#: Every kind of finding. Those marked * stay until their cause goes: repair cannot mend a record, a window or a server.
FINDINGS = (
    "edited_nodes",  # rows changed by hand, or no partition of the text
    "stale_nodes",  # made of another text
    "other_model",  # made by another model
    "other_window",  # cut against another window
    "other_vectors",  # nodes whose vectors differ in length, have not the model's, or are not finite
    "needless_nodes",  # of a record that fits
    "odd_tasks",  # a task with a value that the queue never writes: it is built all the same
    "orphan_rows",  # nodes, digests, tasks or failures of a record that is not there
    "missing_vectors",  # a record without a finite vector of the current model, of its length
    "stale_vectors",  # made of another text
    "stale_index",  # the lexical index holds another text, or a record that is not there
    "damaged_index",  # the lexical index contradicts itself
    "missing_triggers",  # a trigger is missing, or is another
    "missing_tables",  # a table or view is missing, and nothing else was looked at
    "unreadable_text",  # * a BLOB, or no UTF-8: read with U+FFFD
    "empty_text",  # * or NULL: the store takes none, so that an export leaves it out
    "odd_columns",  # * an axis that is no text in UTF-8 (NULL is none), or a time that is no finite number
    "unknown_tokens",  # * nobody can say whether the record fits
    "undividable",  # * no character of it fits the window
)

_RECORDS = "SELECT kind, id FROM records ORDER BY kind, id"
_RECORD = (
    "SELECT coalesce(CAST(r.text AS BLOB), x''), typeof(r.text), r.embedding_model, r.embedding, v.text_sha256,"
    " r.created_at, r.updated_at, typeof(r.agent) = 'text' AND typeof(r.project) = 'text'"
    " AND typeof(r.channel) = 'text', CAST(r.agent AS BLOB), CAST(r.project AS BLOB), CAST(r.channel AS BLOB)"
    " FROM records r LEFT JOIN record_vectors v ON v.parent_kind = r.kind AND v.parent_id = r.id"
    " WHERE r.kind = ? AND r.id = ?"
)
ORPHANS = (
    "SELECT parent_kind, parent_id FROM record_nodes UNION SELECT parent_kind, parent_id FROM node_sets"
    " UNION SELECT parent_kind, parent_id FROM record_vectors UNION SELECT parent_kind, parent_id FROM failures"
    " UNION SELECT kind, id FROM tasks"
    " EXCEPT SELECT kind, id FROM records ORDER BY 1, 2"
)
_STALE_INDEX = (
    "SELECT s.kind, s.id FROM searchable s LEFT JOIN memories_fts f ON f.rowid = s.id"
    " WHERE s.kind = 'mem' AND f.text IS NOT s.text"
    " UNION SELECT s.kind, s.id FROM searchable s LEFT JOIN episodes_fts f ON f.rowid = s.id"
    " WHERE s.kind = 'ep' AND f.text IS NOT s.text"
    " UNION SELECT 'mem', rowid FROM memories_fts WHERE rowid NOT IN (SELECT id FROM memories)"
    " UNION SELECT 'ep', rowid FROM episodes_fts WHERE rowid NOT IN (SELECT id FROM episodes) ORDER BY 1, 2"
)


_CHECK_INDEX = (
    "INSERT INTO memories_fts (memories_fts) VALUES ('integrity-check')",
    "INSERT INTO episodes_fts (episodes_fts) VALUES ('integrity-check')",
)


@dataclass(frozen=True, slots=True)
class Health:
    """`missing_nodes` are long records without current nodes; `findings` has the kinds of FINDINGS that were found.

    A finding about no record has an empty tuple.
    """

    missing_nodes: tuple[Ref, ...]
    findings: dict[str, tuple[Ref, ...]]


@dataclass(frozen=True, slots=True)
class Examination:
    """A health check with what its repair needs: the digests of the texts that were found wanting, the reports on what
    is missing, and the model's name and shape it was held against. It holds no text."""

    health: Health
    digests: dict[Ref, str]
    reports: dict[Ref, TokenReport]
    name: str | None
    shape: Shape


def examine(database: Database, model: Model) -> Examination:
    """One health check. A server that is away makes tokens unknown, and no error.

    While another connection writes, or the file cannot be written, it does not look for an index that contradicts
    itself: SQLite answers that to a writer alone. Everything else is looked at without waiting for anyone.
    """
    scan = _Scan(model, model.refresh(), model.shape())
    if schema.missing_tables(database):
        return scan.examination({"missing_tables": ()})
    for kind, identifier in database.rows(_RECORDS):
        scan.record(database, Ref(kind, identifier))
    scan.measure()
    orphans = refs_of(database.rows(ORPHANS))
    undividable = {ref for ref in failures.undividable(database) if ref in scan.missing}
    scan.add(
        "undividable", *sorted(undividable | {ref for ref in scan.missing if scan.reports[ref].window_end_char == 0})
    )
    scan.add("odd_tasks", *queue.odd(database))
    scan.add("orphan_rows", *orphans)
    is_damaged = any(_is_damaged(database, check) for check in _CHECK_INDEX)
    if not is_damaged:
        try:
            scan.add("stale_index", *refs_of(database.rows(_STALE_INDEX)))
        except DamagedStoreError:
            is_damaged = True
    findings = {kind: tuple(scan.findings[kind]) for kind in FINDINGS if kind in scan.findings}
    if is_damaged:
        findings["damaged_index"] = ()
    if schema.faulty_triggers(database):
        findings["missing_triggers"] = ()
    return scan.examination(findings)


def _is_damaged(database: Database, check: str) -> bool:
    """Whether a lexical index contradicts itself, as FTS5 says; False where that cannot be asked."""
    try:
        # FTS5 takes the question as an INSERT, which changes nothing and needs the write lock all the same. One
        # transaction an index, so that writers get a turn between the two.
        with database.transaction_now():
            database.write(check)
    except DamagedStoreError:
        return True
    except (ReadOnlyStoreError, StoreBusyError):
        pass
    return False


@dataclass(slots=True)
class _Scan:
    model: Model
    name: str | None
    shape: Shape
    digests: dict[Ref, str] = field(default_factory=dict)
    reports: dict[Ref, TokenReport] = field(default_factory=dict)
    missing: list[Ref] = field(default_factory=list)
    findings: dict[str, list[Ref]] = field(default_factory=dict)
    unmeasured: dict[Ref, Text] = field(default_factory=dict)
    divided: set[Ref] = field(default_factory=set)

    def examination(self, findings: dict[str, tuple[Ref, ...]]) -> Examination:
        return Examination(Health(tuple(self.missing), findings), self.digests, self.reports, self.name, self.shape)

    def add(self, kind: str, *refs: Ref) -> None:
        if refs:
            self.findings.setdefault(kind, []).extend(refs)

    def record(self, database: Database, ref: Ref) -> None:
        """What can be said of one record without measuring it; its text is kept until a batch of them is measured."""
        row = database.row(_RECORD, (ref.kind, ref.id))
        if row is None:
            return  # Deleted since the list was read.
        raw, text_type, vector_model, vector, vector_sha256, created_at, updated_at, are_texts, *axes = row
        text = Text(raw, text_type == "text")
        if not are_texts or not all(Text(axis).readable for axis in axes) or not is_time(created_at, updated_at):
            self.add("odd_columns", ref)
        if not raw:
            self.add("empty_text", ref)
            return  # Nothing to embed and nothing to divide.
        if not text.readable:
            self.add("unreadable_text", ref)
        if not usable([vector], self.shape.dimensions) or (self.name is not None and vector_model != self.name):
            self.want("missing_vectors", ref, text)
        elif vector_sha256 is not None and vector_sha256 != text.sha256:
            self.want("stale_vectors", ref, text)
        nodes, shape = node_set.read(database, ref), self.shape
        found = verdict(text, nodes, model=self.name, window=shape.window, dimensions=shape.dimensions)
        if found is Verdict.CURRENT:
            return
        if found is not Verdict.ABSENT:
            self.divided.add(ref)
            self.want(found.value, ref, text)
        self.unmeasured[ref] = text
        if len(self.unmeasured) == _BATCH:
            self.measure()

    def want(self, kind: str, ref: Ref, text: Text) -> None:
        self.digests[ref] = text.sha256
        self.add(kind, ref)

    def measure(self) -> None:
        """Which of the records without current nodes, read since the last batch, run past the window."""
        batch, self.unmeasured = self.unmeasured, {}
        if self.shape.window is None:
            self.add("unknown_tokens", *batch)
            return
        reports = self.model.measure_each([text.value for text in batch.values()])
        for (ref, text), report in zip(batch.items(), reports, strict=True):
            if not isinstance(report, TokenReport):
                self.add("unknown_tokens", ref)
            elif report.truncated:
                self.missing.append(ref)
                self.digests[ref], self.reports[ref] = text.sha256, report
            elif ref in self.divided:
                self.add("needless_nodes", ref)
