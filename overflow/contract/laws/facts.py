"""What several laws ask of a subject's node rows. Each is stated from the design and reads past the subject."""

import unicodedata
from collections.abc import Callable
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TypeVar

from overflow.contract.laws.law import expect
from overflow.contract.subject import Node, Quote, Ref, Stored, Subject
from overflow.contract.watched import SubjectCrash
from overflow.contract.world import ROUNDS, World

T = TypeVar("T")

#: How many of the texts that were posted a counterexample shows.
_NEAREST = 3

#: Where section 1 keeps a record's text.
TABLES = {"mem": ("memories", "content"), "ep": ("episodes", "summary")}


def stored_text(subject: Subject, ref: Ref, law_id: str) -> str:
    """The stored text of a record that must be there."""
    text = subject.text(ref)
    expect(text is not None, law_id, "a stored record is gone", expected="its text", got=None, record=ref)
    assert text is not None
    return text


def check_partition(law_id: str, text: str, nodes: list[Node], ref: Ref, window: str) -> None:
    """Section 5, invariant 4, for a record that has nodes."""
    edges = [(n.start, n.end) for n in nodes]
    context = {"record": ref, "text": repr(text), "window": window, "nodes": edges}
    indices = [n.index for n in nodes]
    numbers = list(range(len(nodes)))
    expect(indices == numbers, law_id, "node_index runs 0, 1, 2, ...", expected=numbers, got=indices, **context)
    first = edges[0][0]
    expect(first == 0, law_id, "the first node starts at 0", expected=0, got=first, **context)
    for (_, end), (start, _) in pairwise(edges):
        title = "each node starts where the previous ended"
        expect(start == end, law_id, title, expected=end, got=start, **context)
    last = edges[-1][1]
    title = "the last node ends at the parent's length"
    expect(last == len(text), law_id, title, expected=len(text), got=last, **context)
    empty = [edge for edge in edges if edge[0] >= edge[1]]
    expect(not empty, law_id, "every node has at least one character", expected=[], got=empty, **context)


def check_fresh(world: World, subject: Subject, ref: Ref, mark: int, law_id: str, after: str) -> None:
    """Every node with a vector was made from the text stored now: its span was sent to be embedded since `mark`."""
    nodes = world.nodes(subject, ref)
    if not nodes:
        return
    text = subject.text(ref)
    context = {"record": ref, "after": after, "window": world.scenario.window.name}
    got = [(n.start, n.end) for n in nodes]
    expect(text is not None, law_id, "nodes outlived their record", expected=[], got=got, **context)
    assert text is not None
    # A set that is whole may be made of vectors that the subject kept for equal texts.
    whole = got[0][0] == 0 and got[-1][1] == len(text) and all(a[1] == b[0] for a, b in pairwise(got))
    embedded = world.embedded_since(0 if whole else mark)
    stale = [
        (n.start, n.end)
        for n in nodes
        if n.embedding is not None and not was_embedded(text[n.start : n.end], text, embedded)
    ]
    if stale:
        span = text[slice(*stale[0])]
        posted = nearest(span, embedded)
        context |= {"nodes": got, "span": repr(span), "nearest posted": posted or "nothing was posted since"}
    title = "stale nodes: their spans were never sent to be embedded"
    expect(not stale, law_id, title, expected="no stale nodes", got={"stale nodes": stale}, text=repr(text), **context)


def nearest(span: str, posted: set[str]) -> list[str]:
    """The texts most like `span`, at most three, the likest first; case, width and white space tell the least apart.

    Texts are held to each other by the characters they have: in linear time, for a text may be a whole record.
    """
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(_folded(span))
    likeness: dict[str, float] = {}
    for each in posted:
        matcher.set_seq1(_folded(each))
        likeness[each] = matcher.quick_ratio()
    return sorted(posted, key=lambda each: (-likeness[each], each))[:_NEAREST]


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def was_embedded(span: str, whole: str, embedded: set[str]) -> bool:
    """Whether `span` was embedded, as it is or after a prompt prefix; as the end of its own record does not count."""
    return span in embedded or any(each.endswith(span) and each != whole for each in embedded)


def left_to_settle(world: World, subject: Subject, refs: list[Ref], law_id: str) -> list[Ref]:
    """The records whose nodes a write left to be built later; none of a subject that divides as it writes."""
    left = [
        ref
        for ref in refs
        if not world.nodes(subject, ref) and world.scenario.divides(stored_text(subject, ref, law_id))
    ]
    world.evidence["builds left to settle"] += len(left)
    return left


def check_built(world: World, subject: Subject, refs: list[Ref], law_id: str, after: str) -> None:
    """Every record that runs past the window, and can be divided, has nodes."""
    for ref in refs:
        text = stored_text(subject, ref, law_id)
        nodes = world.nodes(subject, ref)
        if world.scenario.divides(text):
            context = {"record": ref, "after": after, "text": repr(text), "window": world.scenario.window.name}
            expect(bool(nodes), law_id, "a long record has no nodes", expected="nodes", got=[], **context)


def check_answers(law_id: str, what: str, ask: Callable[[], T], **context: object) -> T:
    """What `ask` returns; one that raises is a violation of a law that promises an answer.

    A subject that is gone breaks no promise: that stays its crash.
    """
    try:
        return ask()
    except SubjectCrash as crash:
        if crash.unavailable:
            raise
        expect(False, law_id, f"{what} answers", expected="an answer", got=str(crash), **context)
        raise


def check_quote(subject: Subject, quote: Quote, law_id: str, after: str, *, from_start: bool) -> None:
    """A quote is a piece of the stored text; `from_start` says that no node may be behind it."""
    text = stored_text(subject, quote.ref, law_id)
    context = {"record": quote.ref, "after": after}
    piece = text[quote.start : quote.end]
    title = "a quote is the record's own text at its offsets"
    expect(quote.text == piece, law_id, title, expected=repr(piece), got=repr(quote.text), **context)
    if from_start:
        title = "a record without current nodes is quoted from its start"
        got = (quote.start, quote.node)
        expect(got == (0, None), law_id, title, expected=(0, None), got=got, **context)


def set_text(subject: Subject, ref: Ref, text: str, law_id: str) -> None:
    """Change a record's text by raw SQL, past the subject, where the tables are those of section 1."""
    table, column = TABLES[ref.kind]
    subject.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (text, ref.id))
    got = subject.text(ref)
    title = "a text set by execute is stored, as design_schema claims"
    expect(got == text, law_id, title, expected=repr(text), got=repr(got), record=ref)


def delete_by_sql(subject: Subject, ref: Ref, law_id: str) -> None:
    """Delete a record by raw SQL, where the tables are those of section 1."""
    subject.execute(f"DELETE FROM {TABLES[ref.kind][0]} WHERE id = ?", (ref.id,))
    got = subject.text(ref)
    title = "a record deleted by execute is gone, as design_schema claims"
    expect(got is None, law_id, title, expected=None, got=repr(got), record=ref)


def delete_nodes_by_sql(subject: Subject, law_id: str) -> None:
    """Delete every node row by raw SQL, where the tables are those of section 1."""
    subject.execute("DELETE FROM record_nodes")
    left = subject.execute("SELECT parent_kind, parent_id, node_index FROM record_nodes")
    title = "node rows deleted by execute are gone, as design_schema claims"
    expect(not left, law_id, title, expected=[], got=left)


def repair_all(subject: Subject) -> int:
    """Repair until a run builds nothing; returns the runs used (ROUNDS when it never stopped building)."""
    for run in range(ROUNDS):
        if subject.repair().built == 0:
            return run
    return ROUNDS


def refs_of(stored: list[Stored]) -> list[Ref]:
    return [each.ref for each in stored]
