"""Saboteurs of the node table: rows that are wrong, stale, missing or made where none may be."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from overflow.contract.saboteurs.saboteur import Sabotaged, saboteur
from overflow.contract.subject import Node, Ref, Repaired, Stored, Subject
from overflow.embedding.http import EmbeddingClient
from overflow.errors import UnavailableError
from overflow.tokens.http import HttpWindow

T = TypeVar("T")


@saboteur(
    "infer-token-count", {"3": "token_count is the span's own count", "rule": "nodes are cut where the rule cuts"}
)
class InferTokenCount(Sabotaged):
    """A node's token count is inferred from its length, and not counted on its own span."""

    def nodes(self, ref: Ref) -> list[Node]:
        return [replace(node, token_count=max(1, (node.end - node.start) // 2)) for node in self.subject.nodes(ref)]


@saboteur(
    "leave-gap",
    {
        "4": "each node starts where the previous ended",
        "interleavings": "each node starts where the previous ended",
        "isolation": "a record and its nodes are read in its own scope alone",
        "quote": "a quote spans the node it names",
        "rule": "nodes are cut where the rule cuts",
    },
)
class LeaveGap(Sabotaged):
    """The second node starts one character late."""

    def nodes(self, ref: Ref) -> list[Node]:
        nodes, text = self.subject.nodes(ref), self.subject.text(ref) or ""
        return [self._late(node, text) if node.index == 1 else node for node in nodes]

    def _late(self, node: Node, text: str) -> Node:
        """Counted anew, as a divider that leaves a gap would: what it must be caught for is the gap."""
        with HttpWindow(self.embedding_url) as window:
            (report,) = window.measure([text[node.start + 1 : node.end]])
        if report is None or report.truncated:
            return node
        return replace(node, start=node.start + 1, token_count=report.count)


@saboteur(
    "drop-last-node",
    {
        "4": "the last node ends at the parent's length",
        "interleavings": "the last node ends at the parent's length",
        "rule": "nodes are cut where the rule cuts",
    },
)
class DropLastNode(Sabotaged):
    """The last node of a long record is missing."""

    def nodes(self, ref: Ref) -> list[Node]:
        nodes = self.subject.nodes(ref)
        return nodes[:-1] if len(nodes) > 2 else nodes


@saboteur("divide-by-place", {"5": "the same text divides into the same nodes in another order and company"})
class DivideByPlace(Sabotaged):
    """Where a node ends depends on the directory that the store lies in."""

    def nodes(self, ref: Ref) -> list[Node]:
        nodes = self.subject.nodes(ref)
        if self.directory.endswith("b") and len(nodes) > 1 and nodes[0].end > 1:
            edge = nodes[0].end - 1
            nodes[:2] = [replace(nodes[0], end=edge), replace(nodes[1], start=edge)]
        return nodes


@saboteur("keep-after-delete", {"6": "nodes outlived their record"})
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


@saboteur(
    "keep-after-update",
    {
        "4": "the last node ends at the parent's length",
        "6": "stale nodes: their spans were never sent to be embedded",
        "interleavings": "the last node ends at the parent's length",
    },
    requires="update",
)
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


@saboteur("unknown-is-fits", {"unknown": "nothing is built while tokens are unknown"})
class BuildOnUnknown(Sabotaged):
    """A record whose tokens are unknown gets nodes at a guess."""

    def nodes(self, ref: Ref) -> list[Node]:
        nodes, text = self.subject.nodes(ref), self.subject.text(ref)
        if nodes or not text or len(text) < 2 or self.runs_past(text) is not None:
            return nodes
        half = len(text) // 2
        return [Node(0, 0, half, 1, 1, b"", ""), Node(1, half, len(text), 1, 1, b"", "")]


@saboteur(
    "node-for-everything",
    {
        "fits": "a record that fits has no nodes",
        "rule": "nodes are cut where the rule cuts",
        "grown-window": "a record has nodes exactly when it runs past the grown window",
        "status": "nothing is built while the queue is off",
    },
)
class NodeForEverything(Sabotaged):
    """A record that fits gets one node, the whole of it."""

    def nodes(self, ref: Ref) -> list[Node]:
        nodes, text = self.subject.nodes(ref), self.subject.text(ref)
        if nodes or not text or self.runs_past(text) is not False:
            return nodes
        # Embedded as a node is: what it must be caught for is that it is there, not that nothing made it.
        try:
            with EmbeddingClient(self.embedding_url) as client:
                embedded = client.embed([text])
        except UnavailableError:
            return nodes
        (report,) = embedded.reports
        assert report is not None
        return [Node(0, 0, len(text), report.count, report.window, embedded.vectors[0].tobytes(), "")]


@saboteur("skip-locked", {"locked": "a long record has no nodes"})
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


@saboteur("forget-model", {"model": "rebuilt nodes name the new model"})
class ForgetModel(Sabotaged):
    """Nodes do not say which model made them."""

    def nodes(self, ref: Ref) -> list[Node]:
        return [replace(node, model="model") for node in self.subject.nodes(ref)]


@saboteur(
    "write-old-text",
    {"swap": ("a build wrote nodes of a deleted record", "stale nodes: their spans were never sent to be embedded")},
    requires="refs",
)
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


@saboteur(
    "merge-nodes",
    {
        "3": ("a node fits the window", "token_count is the span's own count"),
        "6": "stale nodes: their spans were never sent to be embedded",
        "interleavings": "a stale node survived",
        "isolation": "a record and its nodes are read in its own scope alone",
        "model": "repair embeds every span with the new model",
        "quote": ("a long record is quoted by its most relevant node", "a quote spans the node it names"),
        "rule": "nodes are cut where the rule cuts",
        "swap": "stale nodes: their spans were never sent to be embedded",
        "tampered-parent": "stale nodes: their spans were never sent to be embedded",
    },
)
class MergeNodes(Sabotaged):
    """The first two nodes are one: cut without being measured again."""

    def nodes(self, ref: Ref) -> list[Node]:
        nodes = self.subject.nodes(ref)
        if len(nodes) < 3:
            return nodes
        merged = [replace(nodes[0], end=nodes[1].end), *nodes[2:]]
        return [replace(node, index=index) for index, node in enumerate(merged)]


@saboteur("keep-needless-nodes", {"grown-window": "a record has nodes exactly when it runs past the grown window"})
class KeepNeedlessNodes(Sabotaged):
    """A record that fits a grown window keeps its nodes."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._seen: dict[Ref, tuple[str | None, list[Node]]] = {}

    def nodes(self, ref: Ref) -> list[Node]:
        text, nodes = self.subject.text(ref), self.subject.nodes(ref)
        if nodes and text is not None:
            self._seen[ref] = (text, nodes)
        seen_text, seen = self._seen.get(ref, (None, []))
        return nodes or (seen if seen_text == text else [])


@saboteur(
    "divide-at-random",
    {
        "5": "the same text divides into the same nodes when they are rebuilt",
        "interleavings": "a stale node survived",
        "tampered-parent": "stale nodes: their spans were never sent to be embedded",
    },
    requires="execute design_schema refs repair",
)
class DivideAtRandom(Sabotaged):
    """Where a text is cut differs each time that its nodes are built."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._times: Counter[tuple[Ref, str]] = Counter()

    def settle(self) -> None:
        self._counting(self.subject.settle)

    def repair(self) -> Repaired:
        return self._counting(self.subject.repair)

    def nodes(self, ref: Ref) -> list[Node]:
        nodes = self.subject.nodes(ref)
        edge = nodes[0].end - self._times[ref, self.subject.text(ref) or ""] + 1 if len(nodes) > 1 else 0
        if edge < 1 or edge == nodes[0].end:
            return nodes
        return [replace(nodes[0], end=edge), replace(nodes[1], start=edge), *nodes[2:]]

    def _counting(self, build: Callable[[], T]) -> T:
        """The first time a text is cut as it should be: what is told apart is a rebuild."""
        without = [ref for ref in self.subject.refs() if not self.subject.nodes(ref)]
        built = build()
        self._times.update((ref, self.subject.text(ref) or "") for ref in without if self.subject.nodes(ref))
        return built
