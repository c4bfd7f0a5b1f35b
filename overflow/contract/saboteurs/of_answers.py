"""Saboteurs of what a subject answers and does: rankings, writes, quotes, repair, export, health."""

from dataclasses import replace

from overflow.contract.laws.facts import TABLES
from overflow.contract.saboteurs.saboteur import Sabotaged, saboteur
from overflow.contract.scenario import LENGTH_LIMIT
from overflow.contract.subject import Health, Hit, Item, Quote, Ref, Repaired, Scope, Stored, Subject, is_about_nodes


@saboteur("admit-nodes", {"1": "recall returns the same records, order and scores with or without nodes"})
class AdmitNodes(Sabotaged):
    """Records with nodes come first in recall, as if their nodes were candidates."""

    def recall(self, query: str, scope: Scope, limit: int) -> list[Hit]:
        hits = self.subject.recall(query, scope, limit)
        return sorted(hits, key=lambda hit: not self.subject.nodes(hit.ref))


@saboteur("score-nodes", {"1": "recall returns the same records, order and scores with or without nodes"})
class ScoreNodes(Sabotaged):
    """A record's score grows with the number of its nodes, and the order stays."""

    def recall(self, query: str, scope: Scope, limit: int) -> list[Hit]:
        hits = self.subject.recall(query, scope, limit)
        return [replace(hit, score=hit.score + 1e-9 * len(self.subject.nodes(hit.ref))) for hit in hits]


@saboteur(
    "reconstruct-by-nodes",
    {"1": "reconstruct returns the same records, order and scores with or without nodes"},
    requires="reconstruct",
)
class ReconstructByNodes(Sabotaged):
    """Reconstruct leaves out a record that has nodes."""

    def reconstruct(self, query: str, scope: Scope, limit: int) -> list[Item]:
        return [item for item in self.subject.reconstruct(query, scope, limit) if not self.subject.nodes(item.ref)]


@saboteur(
    "touch-record",
    {
        "2": "a stored record is not modified",
        "export": "an export holds no nodes: it is the same file before and after they are built",
        "locked": "repair leaves a locked record as it was",
    },
    requires="execute design_schema refs settle",
)
class TouchRecord(Sabotaged):
    """Building nodes leaves a mark in the record's row: when it was updated."""

    def settle(self) -> None:
        self.subject.settle()
        self._touch()

    def repair(self) -> Repaired:
        repaired = self.subject.repair()
        self._touch()
        return repaired

    def _touch(self) -> None:
        for ref in self.subject.refs():
            if self.subject.nodes(ref):
                self.subject.execute(
                    f"UPDATE {TABLES[ref.kind][0]} SET updated_at = updated_at + 1 WHERE id = ?", (ref.id,)
                )


@saboteur("always-queued", {"status": "a write says queued exactly when its record runs past the window"})
class AlwaysQueued(Sabotaged):
    """A memory that fits is answered with queued too."""

    def store(self, text: str, scope: Scope) -> Stored:
        stored = self.subject.store(text, scope)
        return replace(stored, nodes="queued") if self.runs_past(text) is False else stored


@saboteur("fail-while-pending", {"pending": "quote answers"}, requires="quote")
class FailWhilePending(Sabotaged):
    """Quoting a long record fails until the queue was drained."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._drained = False

    def settle(self) -> None:
        self.subject.settle()
        self._drained = True

    def quote(self, ref: Ref, query: str, scope: Scope) -> Quote | None:
        text = self.subject.text(ref)
        if text and not self._drained and self.runs_past(text):
            raise RuntimeError(f"the nodes of {ref} are not ready")
        return self.subject.quote(ref, query, scope)


@saboteur("quote-last-node", {"quote": "a long record is quoted by its most relevant node"})
class QuoteLastNode(Sabotaged):
    """A long record is quoted by its last node, whatever is asked."""

    def quote(self, ref: Ref, query: str, scope: Scope) -> Quote | None:
        quote, nodes = self.subject.quote(ref, query, scope), self.subject.nodes(ref)
        if quote is None or quote.node is None or not nodes:
            return quote
        last, text = nodes[-1], self.subject.text(ref) or ""
        return Quote(ref, last.start, last.end, text[last.start : last.end], last.index)


@saboteur(
    "repair-once",
    {
        "repair": "a long record has no nodes",
        "repair-bound": "a backlog larger than one run converges",
        "unknown": "a long record has no nodes",
    },
)
class RepairOnce(Sabotaged):
    """Only the first run of repair does anything."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._ran = False

    def repair(self) -> Repaired:
        if self._ran:
            return Repaired(0, 0)
        self._ran = True
        return self.subject.repair()


@saboteur("repair-everything-at-once", {"repair-bound": "one run builds at most 50 records"})
class RepairAtOnce(Sabotaged):
    """One run of repair builds as many records as are missing."""

    def repair(self) -> Repaired:
        first = self.subject.repair()
        second = self.subject.repair()
        return Repaired(first.built + second.built, second.failed)


@saboteur(
    "export-nodes",
    {"export": "an export holds no nodes: it is the same file before and after they are built"},
    requires="settle",
)
class ExportNodes(Sabotaged):
    """An export grows with the nodes that were built."""

    def export(self, path: str) -> None:
        self.subject.export(path)
        nodes = sum(len(self.subject.nodes(ref)) for ref in self.subject.refs())
        with open(path, "ab") as file:  # noqa: PTH123 - the subject wrote it, this appends
            file.write(b"\n" * nodes)


@saboteur("node-to-anybody", {"isolation": "a record and its nodes are read in its own scope alone"})
class NodeToAnybody(Sabotaged):
    """A node can be read by its number from any scope."""

    def contents(self, ref: Ref, scope: Scope, node: int | None = None) -> str | None:
        text = self.subject.text(ref)
        found = [n for n in self.subject.nodes(ref) if n.index == node]
        if node is None or text is None or not found:
            return self.subject.contents(ref, scope, node)
        return text[found[0].start : found[0].end]


@saboteur(
    "rewrite-drops-nodes",
    {"rewrite": "a rewrite of the same text keeps the nodes", "status": "a long record has no nodes"},
    requires="execute design_schema",
)
class RewriteDropsNodes(Sabotaged):
    """Writing the same text again deletes the nodes."""

    def update(self, ref: Ref, text: str) -> Stored:
        stored = self.subject.update(ref, text)
        self.subject.execute("DELETE FROM record_nodes WHERE parent_kind = ? AND parent_id = ?", (ref.kind, ref.id))
        return stored


@saboteur("no-limit", {"limit": "a record is stored up to the limit and no further"})
class NoLimit(Sabotaged):
    """A text over the limit is stored whole."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._whole: dict[Ref, str] = {}

    def store(self, text: str, scope: Scope) -> Stored:
        stored = self.subject.store(text, scope)
        if len(text) > LENGTH_LIMIT:
            self._whole[stored.ref] = text
        return stored

    def text(self, ref: Ref) -> str | None:
        return self._whole.get(ref) or self.subject.text(ref)


@saboteur(
    "blind-health",
    {
        "bad-row": "health names an unreadable row",
        "grown-window": "nodes cut against another window are named by health",
        "model": "nodes of another model count as missing, and nothing else does",
        "repair": "missing_nodes names the long records without nodes, and no others",
        "tampered-nodes": "health names a record whose node rows were edited",
        "tampered-parent": "a stale node set is gone or named by health",
    },
)
class BlindHealth(Sabotaged):
    """The health check finds nothing."""

    def health(self) -> Health:
        return Health((), {})


@saboteur("stop-at-bad-row", {"bad-row": "a long record has no nodes"}, requires="execute design_schema")
class StopAtBadRow(Sabotaged):
    """One row that is no text keeps repair from building anything."""

    def repair(self) -> Repaired:
        for table, column in TABLES.values():
            if self.subject.execute(f"SELECT 1 FROM {table} WHERE typeof({column}) <> 'text' LIMIT 1"):
                return Repaired(0, 1)
        return self.subject.repair()


@saboteur(
    "health-without-nodes",
    {
        "tampered-parent": "a stale node set is gone or named by health",
        "tampered-nodes": "health names a record whose node rows were edited",
        "repair": "missing_nodes names the long records without nodes, and no others",
        "model": "nodes of another model count as missing, and nothing else does",
        "grown-window": "nodes cut against another window are named by health",
    },
)
class HealthWithoutNodes(Sabotaged):
    """The health check forgets what it found about nodes, and names the rest."""

    def health(self) -> Health:
        found = self.subject.health().findings
        return Health((), {kind: refs for kind, refs in found.items() if not is_about_nodes(kind)})


@saboteur("store-a-part", {"whole": "the stored text is the text that was given"})
class StoreAPart(Sabotaged):
    """The last character of a memory in another scope than the first is not stored."""

    def store(self, text: str, scope: Scope) -> Stored:
        shortened = len(text) > 1 and scope != Scope()
        return self.subject.store(text[:-1] if shortened else text, scope)
