"""Wrappers that break a subject in one way each, to show that the laws bite on it.

A saboteur lies in what the subject answers, or tampers with its database, and leaves everything else alone; it works
on any subject with the capabilities it needs. `expected` are the laws that must go red, and no others. DESIGN.md,
principle 4.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from overflow.contract.scenario import LENGTH_LIMIT
from overflow.contract.subject import (
    Health,
    Hit,
    Item,
    Node,
    Quote,
    Ref,
    Repaired,
    Scope,
    Stored,
    Subject,
    capabilities,
)
from overflow.contract.world import SubjectFactory
from overflow.errors import InputError
from overflow.tokens.http import HttpWindow


class Sabotaged:
    """A subject behind a saboteur: everything not overridden goes to the subject itself."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.name = subject.name
        self.version = subject.version
        self.capabilities = capabilities(subject)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.subject, name)

    def open(self, directory: str, embedding_url: str) -> None:
        self.directory, self.embedding_url = directory, embedding_url
        self.subject.open(directory, embedding_url)

    def runs_past(self, text: str) -> bool | None:
        """Whether `text` runs past the window; None when the server does not say."""
        with HttpWindow(self.embedding_url) as window:
            report = window.measure([text])[0]
        return None if report is None else report.truncated


@dataclass(frozen=True)
class Saboteur:
    """`breaks` says what it does, in a line; `expected` are the ids of the laws that must go red."""

    name: str
    breaks: str
    expected: frozenset[str]
    wrap: Callable[[Subject], Any]


SABOTEURS: dict[str, Saboteur] = {}


def saboteur(name: str, expected: str) -> Callable[[type[Sabotaged]], type[Sabotaged]]:
    def register(wrapper: type[Sabotaged]) -> type[Sabotaged]:
        breaks = (wrapper.__doc__ or "").strip().splitlines()[0]
        SABOTEURS[name] = Saboteur(name, breaks, frozenset(expected.split()), wrapper)
        return wrapper

    return register


def sabotaged(name: str, factory: SubjectFactory) -> SubjectFactory:
    """A factory of subjects broken by the saboteur `name`; raises InputError for a name that is none."""
    if name not in SABOTEURS:
        raise InputError(f"no saboteur is called {name!r}; there are {', '.join(SABOTEURS)}")
    chosen = SABOTEURS[name]
    return lambda: chosen.wrap(factory())


@saboteur("admit-nodes", "1")
class AdmitNodes(Sabotaged):
    """Records with nodes come first in recall, as if their nodes were candidates."""

    def recall(self, query: str, scope: Scope, limit: int) -> list[Hit]:
        hits = self.subject.recall(query, scope, limit)
        return sorted(hits, key=lambda hit: not self.subject.nodes(hit.ref))


@saboteur("score-nodes", "1")
class ScoreNodes(Sabotaged):
    """A record's score grows with the number of its nodes, and the order stays."""

    def recall(self, query: str, scope: Scope, limit: int) -> list[Hit]:
        hits = self.subject.recall(query, scope, limit)
        return [replace(hit, score=hit.score + 1e-9 * len(self.subject.nodes(hit.ref))) for hit in hits]


@saboteur("reconstruct-by-nodes", "1")
class ReconstructByNodes(Sabotaged):
    """Reconstruct leaves out a record that has nodes."""

    def reconstruct(self, query: str, scope: Scope, limit: int) -> list[Item]:
        return [item for item in self.subject.reconstruct(query, scope, limit) if not self.subject.nodes(item.ref)]


@saboteur("touch-record", "2 locked")
class TouchRecord(Sabotaged):
    """Building nodes leaves a mark in the record."""

    def record_bytes(self, ref: Ref) -> bytes | None:
        stored = self.subject.record_bytes(ref)
        return stored + b" touched" if stored is not None and self.subject.nodes(ref) else stored


@saboteur("infer-token-count", "3 rule interleavings")
class InferTokenCount(Sabotaged):
    """A node's token count is inferred from its length, and not counted on its own span."""

    def nodes(self, ref: Ref) -> list[Node]:
        return [replace(node, token_count=max(1, (node.end - node.start) // 2)) for node in self.subject.nodes(ref)]


@saboteur("leave-gap", "3 4 6 rule quote isolation")
class LeaveGap(Sabotaged):
    """The second node starts one character late."""

    def nodes(self, ref: Ref) -> list[Node]:
        return [replace(n, start=n.start + 1) if n.index == 1 else n for n in self.subject.nodes(ref)]


@saboteur("divide-by-place", "5")
class DivideByPlace(Sabotaged):
    """Where a node ends depends on the directory that the store lies in."""

    def nodes(self, ref: Ref) -> list[Node]:
        nodes = self.subject.nodes(ref)
        if self.directory.endswith("b") and len(nodes) > 1 and nodes[0].end > 1:
            edge = nodes[0].end - 1
            nodes[:2] = [replace(nodes[0], end=edge), replace(nodes[1], start=edge)]
        return nodes


@saboteur("keep-after-delete", "6")
class KeepAfterDelete(Sabotaged):
    """A deleted record's nodes stay."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._kept: dict[Ref, list[Node]] = {}

    def delete(self, ref: Ref) -> None:
        self._kept[ref] = self.subject.nodes(ref)
        self.subject.delete(ref)

    def nodes(self, ref: Ref) -> list[Node]:
        return self._kept.get(ref) or self.subject.nodes(ref)


@saboteur("keep-after-update", "4 6")
class KeepAfterUpdate(Sabotaged):
    """An updated record keeps the nodes of its old text until new ones are built."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._kept: dict[Ref, list[Node]] = {}

    def update(self, ref: Ref, text: str) -> Stored:
        self._kept[ref] = self.subject.nodes(ref)
        return self.subject.update(ref, text)

    def nodes(self, ref: Ref) -> list[Node]:
        return self.subject.nodes(ref) or self._kept.get(ref, [])


@saboteur("always-queued", "status")
class AlwaysQueued(Sabotaged):
    """Every write answers that nodes were queued."""

    def store(self, text: str, scope: Scope) -> Stored:
        return replace(self.subject.store(text, scope), nodes="queued")


@saboteur("unknown-is-fits", "unknown")
class BuildOnUnknown(Sabotaged):
    """A record whose tokens are unknown gets nodes at a guess."""

    def nodes(self, ref: Ref) -> list[Node]:
        nodes, text = self.subject.nodes(ref), self.subject.text(ref)
        if nodes or not text or len(text) < 2 or self.runs_past(text) is not None:
            return nodes
        half = len(text) // 2
        return [Node(0, 0, half, 1, 1, b"", ""), Node(1, half, len(text), 1, 1, b"", "")]


@saboteur("node-for-everything", "fits")
class NodeForEverything(Sabotaged):
    """A record that fits gets one node, the whole of it."""

    def nodes(self, ref: Ref) -> list[Node]:
        nodes, text = self.subject.nodes(ref), self.subject.text(ref)
        if nodes or not text or self.runs_past(text) is not False:
            return nodes
        with HttpWindow(self.embedding_url) as window:
            report = window.measure([text])[0]
        assert report is not None
        return [Node(0, 0, len(text), report.count, report.window, b"", "")]


@saboteur("fail-while-pending", "pending")
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


@saboteur("quote-last-node", "quote")
class QuoteLastNode(Sabotaged):
    """A long record is quoted by its last node, whatever is asked."""

    def quote(self, ref: Ref, query: str, scope: Scope) -> Quote | None:
        quote, nodes = self.subject.quote(ref, query, scope), self.subject.nodes(ref)
        if quote is None or quote.node is None or not nodes:
            return quote
        last, text = nodes[-1], self.subject.text(ref) or ""
        return Quote(ref, last.start, last.end, text[last.start : last.end], last.index)


@saboteur("repair-once", "repair repair-bound unknown")
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


@saboteur("repair-everything-at-once", "repair-bound")
class RepairAtOnce(Sabotaged):
    """One run of repair builds as many records as are missing."""

    def repair(self) -> Repaired:
        first = self.subject.repair()
        second = self.subject.repair()
        return Repaired(first.built + second.built, second.failed)


@saboteur("skip-locked", "locked")
class SkipLocked(Sabotaged):
    """A locked record gets no nodes."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._locked: set[Ref] = set()

    def lock(self, ref: Ref, locked: bool) -> None:
        self._locked.add(ref) if locked else self._locked.discard(ref)
        self.subject.lock(ref, locked)

    def nodes(self, ref: Ref) -> list[Node]:
        return [] if ref in self._locked else self.subject.nodes(ref)


@saboteur("forget-model", "model")
class ForgetModel(Sabotaged):
    """Nodes do not say which model made them."""

    def nodes(self, ref: Ref) -> list[Node]:
        return [replace(node, model="model") for node in self.subject.nodes(ref)]


@saboteur("export-nodes", "export")
class ExportNodes(Sabotaged):
    """An export grows with the nodes that were built."""

    def export(self, path: str) -> None:
        self.subject.export(path)
        nodes = sum(len(self.subject.nodes(ref)) for ref in self.subject.refs())
        with open(path, "ab") as file:  # noqa: PTH123 - the subject wrote it, this appends
            file.write(b"\n" * nodes)


@saboteur("node-to-anybody", "isolation")
class NodeToAnybody(Sabotaged):
    """A node can be read by its number from any scope."""

    def contents(self, ref: Ref, scope: Scope, node: int | None = None) -> str | None:
        text = self.subject.text(ref)
        found = [n for n in self.subject.nodes(ref) if n.index == node]
        if node is None or text is None or not found:
            return self.subject.contents(ref, scope, node)
        return text[found[0].start : found[0].end]


@saboteur("rewrite-drops-nodes", "rewrite")
class RewriteDropsNodes(Sabotaged):
    """Writing the same text again deletes the nodes."""

    def update(self, ref: Ref, text: str) -> Stored:
        stored = self.subject.update(ref, text)
        self.subject.execute("DELETE FROM record_nodes WHERE parent_kind = ? AND parent_id = ?", (ref.kind, ref.id))
        return stored


@saboteur("write-old-text", "swap")
class WriteOldText(Sabotaged):
    """A record that changed while the queue ran keeps the nodes of the text it had before."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._stale: dict[Ref, list[Node]] = {}

    def settle(self) -> None:
        before = {ref: self.subject.text(ref) or "" for ref in self.subject.refs()}
        self.subject.settle()
        for ref, old in before.items():
            if self.subject.text(ref) != old:
                self._stale[ref] = [Node(0, 0, len(old), 1, 1, b"", ""), Node(1, len(old), len(old) + 1, 1, 1, b"", "")]

    def nodes(self, ref: Ref) -> list[Node]:
        return self._stale.get(ref) or self.subject.nodes(ref)


@saboteur("no-limit", "limit")
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


@saboteur("merge-nodes", "3 6 rule quote isolation swap model tampered-parent")
class MergeNodes(Sabotaged):
    """The first two nodes are one: cut without being measured again."""

    def nodes(self, ref: Ref) -> list[Node]:
        nodes = self.subject.nodes(ref)
        if len(nodes) < 3:
            return nodes
        merged = [replace(nodes[0], end=nodes[1].end), *nodes[2:]]
        return [replace(node, index=index) for index, node in enumerate(merged)]


@saboteur("blind-health", "tampered-parent tampered-nodes repair model grown-window")
class BlindHealth(Sabotaged):
    """The health check finds nothing."""

    def health(self) -> Health:
        return Health((), {})


@saboteur("stop-at-bad-row", "bad-row")
class StopAtBadRow(Sabotaged):
    """One row that is no text keeps repair from building anything."""

    def repair(self) -> Repaired:
        for table, column in (("memories", "content"), ("episodes", "summary")):
            if self.subject.execute(f"SELECT 1 FROM {table} WHERE typeof({column}) <> 'text' LIMIT 1"):
                return Repaired(0, 1)
        return self.subject.repair()


@saboteur("keep-needless-nodes", "grown-window")
class KeepNeedlessNodes(Sabotaged):
    """A record that fits a grown window keeps its nodes."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._seen: dict[Ref, tuple[str | None, list[Node]]] = {}

    def nodes(self, ref: Ref) -> list[Node]:
        text, nodes = self.subject.text(ref), self.subject.nodes(ref)
        if nodes:
            self._seen[ref] = (text, nodes)
        seen_text, seen = self._seen.get(ref, (None, []))
        return nodes or (seen if seen_text == text else [])
