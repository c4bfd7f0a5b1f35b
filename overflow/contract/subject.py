"""What a subject, the system under test, offers: the protocol, its values, and its capabilities.

A subject is any class with some of the methods below (or a process that serves them, see `stdio`). A method it lacks is
a missing capability: the laws that need it are reported as skipped, never as passed. Nothing here knows a subject of
its own. DESIGN.md, "Subject protocol".

The embedding side is the harness's: `open` receives the URL of a server of the CEmbedding contract, and a subject that
embeds does it there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Kind = Literal["mem", "ep"]


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """One stored record: a memory (`mem`) or an episode (`ep`) by its id."""

    kind: Kind
    id: int


@dataclass(frozen=True, slots=True)
class Scope:
    """The isolation axes a record is stored under; a read in one scope never sees another's records."""

    agent: str = "agent"
    project: str = ""
    channel: str = ""

    def __str__(self) -> str:
        """The axes that are not empty, named."""
        axes = {"agent": self.agent, "project": self.project, "channel": self.channel}
        return ", ".join(f"{axis} {name!r}" for axis, name in axes.items() if name) or "no scope"


@dataclass(frozen=True, slots=True)
class Stored:
    """The answer to a write: where the text went, and `nodes.status` of the answer (None when it said nothing)."""

    ref: Ref
    nodes: str | None


@dataclass(frozen=True, slots=True)
class Hit:
    """One recalled record. Scores are compared for equality only."""

    ref: Ref
    score: float


@dataclass(frozen=True, slots=True)
class Quote:
    """The part of a record shown to a reader: `text` is the record's text from `start` to `end` (code points).

    `node` is the node's index, None when the record was quoted from its start.
    """

    ref: Ref
    start: int
    end: int
    text: str
    node: int | None


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a reconstruction: a record, its score, and its claims as quoted."""

    ref: Ref
    score: float
    quotes: tuple[Quote, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """One row of the node table, read past the subject; offsets in code points, end exclusive."""

    index: int
    start: int
    end: int
    token_count: int
    window: int
    embedding: bytes | None
    model: str


@dataclass(frozen=True, slots=True)
class Health:
    """What the subject's health check names: long records without current nodes, and every other finding by its kind.

    `findings` maps a kind to the records it names. A kind about no record maps to an empty tuple. A kind is about nodes
    when its name has `node` or `orphan` in it, as in `stale_nodes` and `orphan_rows`: a stale node set is not found by
    one that speaks of a vector or of an index.
    """

    missing_nodes: tuple[Ref, ...]
    findings: Mapping[str, tuple[Ref, ...]]

    def named_for_nodes(self) -> set[Ref]:
        """The records named for their nodes, by whatever kind."""
        return set(self.missing_nodes).union(*(refs for kind, refs in self.findings.items() if is_about_nodes(kind)))


def is_about_nodes(kind: str) -> bool:
    """Whether a finding of that kind tells of a record's nodes."""
    return "node" in kind or "orphan" in kind


@dataclass(frozen=True, slots=True)
class Repaired:
    """One repair run: how many records got nodes, and how many builds failed."""

    built: int
    failed: int


class Subject(Protocol):
    """The methods a subject may offer. Each is one capability, named as the method is (`import_` is `import`)."""

    name: str
    version: str

    def open(self, directory: str, embedding_url: str) -> None:
        """Open (or create) the store inside `directory`. The same directory may be opened again, or by two at once."""

    def close(self) -> None: ...

    def store(self, text: str, scope: Scope) -> Stored: ...

    def archive_episode(self, text: str, scope: Scope) -> Stored: ...

    def update(self, ref: Ref, text: str) -> Stored: ...

    def delete(self, ref: Ref) -> None: ...

    def lock(self, ref: Ref, locked: bool) -> None: ...

    def settle(self) -> None:
        """Run the queue until nothing is due."""

    def health(self) -> Health: ...

    def repair(self) -> Repaired:
        """One run of the health check's repair."""

    def recall(self, query: str, scope: Scope, limit: int) -> list[Hit]: ...

    def reconstruct(self, query: str, scope: Scope, limit: int) -> list[Item]: ...

    def quote(self, ref: Ref, query: str, scope: Scope) -> Quote | None:
        """The part of one record a reader is shown for `query`; None when the scope does not hold the record."""

    def contents(self, ref: Ref, scope: Scope, node: int | None = None) -> str | None:
        """A record's text, or one node's; None when the scope does not hold it."""

    def export(self, path: str) -> None: ...

    def import_(self, path: str) -> None: ...

    def nodes(self, ref: Ref) -> list[Node]:
        """The node rows of a record, in index order, read from the database and not through the subject."""

    def text(self, ref: Ref) -> str | None:
        """The stored text, read from the database; None when there is no such record."""

    def refs(self) -> list[Ref]:
        """Every stored record, read from the database."""

    def record_bytes(self, ref: Ref) -> bytes | None:
        """Everything stored of the record itself (not of its nodes) as one comparable value, read from the database."""

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[list[Any]]:
        """Raw SQL on the subject's database, past the subject, committed at once; rows of a query."""

    def configure(self, *, queue: bool | None = None, model: str | None = None) -> None:
        """Turn the task queue on or off; or say that the model behind the embedding URL is now another one."""

    def kill_at(self, statement: int) -> None:
        """Die, as by SIGKILL, right before the `statement`-th SQL statement from now (1 is the next)."""


class SubjectDied(BaseException):
    """The subject's process is gone in the middle of a call. No handler of the subject's own may catch it."""


#: Every method whose absence is a missing capability. `open` and `close` are asked of everybody.
CAPABILITIES = (
    "store",
    "archive_episode",
    "update",
    "delete",
    "lock",
    "settle",
    "health",
    "repair",
    "recall",
    "reconstruct",
    "quote",
    "contents",
    "export",
    "import",
    "nodes",
    "text",
    "refs",
    "record_bytes",
    "execute",
    "configure",
    "kill_at",
)


#: Claims a subject makes of itself by an attribute that is true. `design_rule`: it divides by the rule of section 2 as
#: DESIGN.md reads it, so its nodes are compared with the rule's and not only with the invariants. `design_schema`: what
#: `execute` reaches are the tables of section 1, so a law may write there behind the subject's back. `length_limit`: it
#: keeps the limit of section 7. `updates_episodes`: `update` takes an episode as well as a memory.
CLAIMS = ("design_rule", "design_schema", "length_limit", "updates_episodes")


def capabilities(subject: object) -> frozenset[str]:
    """The capabilities `subject` offers: what it declares in `capabilities`, else the methods it has and its claims."""
    declared = getattr(subject, "capabilities", None)
    if declared is not None:
        return frozenset(declared)
    methods = {name for name in CAPABILITIES if callable(getattr(subject, method_name(name), None))}
    return frozenset(methods | {claim for claim in CLAIMS if getattr(subject, claim, False)})


def method_name(capability: str) -> str:
    """The Python method of a capability: `import` is a keyword, so its method is `import_`."""
    return "import_" if capability == "import" else capability
