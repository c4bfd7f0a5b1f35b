"""What is not as it should be: long records without current nodes, and every other finding by its name.

It changes nothing, measures only what has no current nodes, and one bad row stops nothing else. Overflow Tree, section
3; issue 2, "What a trigger cannot see must still hold or be found".
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from overflow.store import failures, node_set, schema
from overflow.store.database import Database
from overflow.store.model import Model
from overflow.store.node_set import Verdict, verdict
from overflow.store.records import Ref, Text, refs_of
from overflow.tokens.report import TokenReport

#: Texts measured at a time: the most one request carries.
_BATCH = 100

#: Every kind of finding. Those marked * stay until their cause goes: repair cannot mend a record, a window or a server.
FINDINGS = (
    "edited_nodes",  # rows changed by hand, or no partition of the text
    "stale_nodes",  # made of another text
    "other_model",  # made by another model
    "other_window",  # cut against another window
    "needless_nodes",  # of a record that fits
    "orphan_nodes",  # of a record that is not there
    "missing_vectors",  # a record without a vector of the current model
    "stale_vectors",  # made of another text
    "stale_index",  # the lexical index holds another text, or a record that is not there
    "missing_triggers",  # a trigger is missing, or is another
    "unreadable_text",  # * a BLOB, or no UTF-8: read with U+FFFD
    "unknown_tokens",  # * nobody can say whether the record fits
    "undividable",  # * no character of it fits the window
)

_RECORDS = "SELECT kind, id FROM records ORDER BY kind, id"
_RECORD = (
    "SELECT CAST(r.text AS BLOB), typeof(r.text), r.embedding_model, typeof(r.embedding), length(r.embedding),"
    " v.text_sha256 FROM records r LEFT JOIN record_vectors v ON v.parent_kind = r.kind AND v.parent_id = r.id"
    " WHERE r.kind = ? AND r.id = ?"
)
_ORPHANS = (
    "SELECT parent_kind, parent_id FROM record_nodes UNION SELECT parent_kind, parent_id FROM node_sets"
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


@dataclass(frozen=True, slots=True)
class Health:
    """`missing_nodes` are long records without current nodes; `findings` has the kinds of FINDINGS that were found.

    A finding about no record has an empty tuple.
    """

    missing_nodes: tuple[Ref, ...]
    findings: dict[str, tuple[Ref, ...]]


@dataclass(frozen=True, slots=True)
class Examination:
    """A health check with what its repair needs: the texts as they were read, the reports on what is missing, and
    the model's name and window it was held against."""

    health: Health
    texts: dict[Ref, Text]
    reports: dict[Ref, TokenReport]
    name: str | None
    window: int | None


def examine(database: Database, model: Model) -> Examination:
    """One health check. A server that is away makes tokens unknown, and no error."""
    model.refresh()
    scan = _Scan(model.known_name(), model.window())
    for kind, identifier in database.rows(_RECORDS):
        scan.record(database, Ref(kind, identifier))
    if scan.window is None:
        scan.unknown()
    else:
        scan.measure(model)
    orphans = refs_of(database.rows(_ORPHANS))
    stale_index = refs_of(database.rows(_STALE_INDEX))
    undividable = {ref for ref in failures.undividable(database) if ref in scan.missing}
    scan.add(
        "undividable", *sorted(undividable | {ref for ref in scan.missing if scan.reports[ref].window_end_char == 0})
    )
    scan.add("orphan_nodes", *orphans)
    scan.add("stale_index", *stale_index)
    findings = {kind: tuple(scan.findings[kind]) for kind in FINDINGS if kind in scan.findings}
    if schema.faulty_triggers(database):
        findings["missing_triggers"] = ()
    return Examination(Health(tuple(scan.missing), findings), scan.texts, scan.reports, scan.name, scan.window)


@dataclass(slots=True)
class _Scan:
    name: str | None
    window: int | None
    texts: dict[Ref, Text] = field(default_factory=dict)
    reports: dict[Ref, TokenReport] = field(default_factory=dict)
    missing: list[Ref] = field(default_factory=list)
    findings: dict[str, list[Ref]] = field(default_factory=dict)
    unmeasured: list[Ref] = field(default_factory=list)
    divided: set[Ref] = field(default_factory=set)

    def add(self, kind: str, *refs: Ref) -> None:
        if refs:
            self.findings.setdefault(kind, []).extend(refs)

    def record(self, database: Database, ref: Ref) -> None:
        """What can be said of one record without measuring it."""
        row = database.row(_RECORD, (ref.kind, ref.id))
        if row is None:
            return  # Deleted since the list was read.
        raw, text_type, vector_model, vector_type, vector_size, vector_sha256 = row
        text = self.texts[ref] = Text(raw, text_type == "text")
        if not text.readable:
            self.add("unreadable_text", ref)
        if not raw:
            return  # Nothing to embed and nothing to divide.
        whole = vector_type == "blob" and vector_size > 0 and vector_size % 4 == 0
        if not whole or (self.name is not None and vector_model != self.name):
            self.add("missing_vectors", ref)
        elif vector_sha256 is not None and vector_sha256 != text.sha256:
            self.add("stale_vectors", ref)
        found = verdict(text, node_set.read(database, ref), model=self.name, window=self.window)
        if found is Verdict.CURRENT:
            return
        if found is not Verdict.ABSENT:
            self.divided.add(ref)
            self.add(found.value, ref)
        self.unmeasured.append(ref)

    def unknown(self) -> None:
        self.add("unknown_tokens", *self.unmeasured)

    def measure(self, model: Model) -> None:
        """Which of the records without current nodes run past the window."""
        for batch in _batches(self.unmeasured):
            for ref, report in zip(batch, model.measure_each([self.texts[ref].value for ref in batch]), strict=True):
                if not isinstance(report, TokenReport):
                    self.add("unknown_tokens", ref)
                elif report.truncated:
                    self.missing.append(ref)
                    self.reports[ref] = report
                elif ref in self.divided:
                    self.add("needless_nodes", ref)


def _batches(refs: list[Ref]) -> Iterator[list[Ref]]:
    for first in range(0, len(refs), _BATCH):
        yield refs[first : first + _BATCH]
