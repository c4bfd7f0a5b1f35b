"""Invariants 2 to 5 and section 2's rule: what a node set is, and that making one touches nothing else."""

from overflow.contract.laws.facts import (
    check_partition,
    delete_nodes_by_sql,
    refs_of,
    repair_all,
    set_text,
    stored_text,
)
from overflow.contract.laws.law import expect, law
from overflow.contract.strategies import contrary_windows, local_windows, scenarios
from overflow.contract.subject import Ref, Subject
from overflow.contract.world import World


@law(
    "2",
    "stored records are not modified",
    source="Overflow Tree, section 5.2",
    requires="store nodes record_bytes",
)
def records_unmodified(world: World) -> None:
    """Building, rebuilding and deleting nodes leave every byte of every record as it was."""
    subject = world.open()
    refs = refs_of(world.fill(subject))
    before = {ref: subject.record_bytes(ref) for ref in refs}

    def unmodified(after: str) -> None:
        for ref in refs:
            got = subject.record_bytes(ref)
            title = "a stored record is not modified"
            expect(got == before[ref], "2", title, expected=before[ref], got=got, record=ref, after=after)

    world.settle(subject)
    for ref in refs:
        world.nodes(subject, ref)
    unmodified("building nodes")
    if not (world.can_write_sql() and world.offers("repair")):
        return
    delete_nodes_by_sql(subject, "2")
    unmodified("deleting nodes")
    repair_all(subject)
    unmodified("rebuilding nodes")


@law(
    "3",
    "every node fits its window",
    source="Overflow Tree, section 5.3",
    requires="store nodes text",
    scenarios=lambda: scenarios(window=contrary_windows()),
)
def nodes_fit(world: World) -> None:
    """Every node's token count is at most its window, as counted on the node's own span by the harness itself."""
    subject = world.open()
    for ref in refs_of(world.fill(subject)):
        world.settle(subject)
        text = stored_text(subject, ref, "3")
        for node in world.nodes(subject, ref):
            span = text[node.start : node.end]
            report = world.scenario.report(span)
            context = {"record": ref, "node": node.index, "span": repr(span), "window": world.scenario.window.name}
            expect(
                not report.truncated,
                "3",
                "a node fits the window",
                expected=f"<= {report.window}",
                got=report.count,
                **context,
            )
            title = "token_count is the span's own count"
            expect(node.token_count == report.count, "3", title, expected=report.count, got=node.token_count, **context)
            title = "window is the window the span was cut against"
            expect(node.window == report.window, "3", title, expected=report.window, got=node.window, **context)


@law("4", "nodes partition their parent", source="Overflow Tree, section 5.4", requires="store nodes text")
def nodes_partition(world: World) -> None:
    """In index order the first node starts at 0, each where the previous ended, and the last ends at the length."""
    subject = world.open()
    refs = refs_of(world.fill(subject))

    def partitioned() -> None:
        for ref in refs:
            text = subject.text(ref)
            nodes = world.nodes(subject, ref)
            if nodes and text is not None:
                check_partition("4", text, nodes, ref, world.scenario.window.name)

    partitioned()
    world.settle(subject)
    partitioned()
    if world.offers("update"):
        for ref, text in zip([ref for ref in refs if world.can_update(ref)], world.scenario.texts, strict=False):
            subject.update(ref, text)
        partitioned()
        world.settle(subject)
        partitioned()


@law(
    "5",
    "division is deterministic",
    source="Overflow Tree, section 5.5",
    requires="store nodes text",
    scenarios=lambda: scenarios(window=contrary_windows()),
)
def division_deterministic(world: World) -> None:
    """The same text, tokenizer and window give the same nodes.

    Elsewhere, in another order and company, and rebuilt: by repair, and after raw SQL set another text and this one
    again, when nobody has measured it.
    """
    first = world.open("a")
    second = world.open("b")
    records = world.scenario.records
    refs = refs_of(world.fill(first))
    world.settle(first)
    twins: list[Ref] = []
    for record in reversed(records):
        twins.append(world.write(second, record).ref)
        world.settle(second)
    for ref, twin in zip(refs, reversed(twins), strict=True):
        text = stored_text(first, ref, "5")
        title = "the same text divides into the same nodes in another order and company"
        _same_division(world, text, _division(world, first, ref), _division(world, second, twin), title)
    if not (world.can_write_sql() and world.offers("repair")):
        return
    before = {ref: _division(world, first, ref) for ref in refs}
    delete_nodes_by_sql(first, "5")
    repair_all(first)
    texts = {ref: stored_text(first, ref, "5") for ref in refs}
    title = "the same text divides into the same nodes when they are rebuilt"
    for ref, text in texts.items():
        _same_division(world, text, before[ref], _division(world, first, ref), title)
    for ref, text in texts.items():
        set_text(first, ref, next(other for other in (*world.scenario.texts, text + "x") if other != text), "5")
        set_text(first, ref, text, "5")
    world.settle(first)
    repair_all(first)
    title = "the same text divides into the same nodes when it is set again by SQL"
    for ref, text in texts.items():
        _same_division(world, text, before[ref], _division(world, first, ref), title)


def _same_division(
    world: World, text: str, expected: list[tuple[int, int, int]], got: list[tuple[int, int, int]], title: str
) -> None:
    context = {"text": repr(text), "window": world.scenario.window.name}
    expect(got == expected, "5", title, expected=expected, got=got, **context)


def _division(world: World, subject: Subject, ref: Ref) -> list[tuple[int, int, int]]:
    return [(node.start, node.end, node.token_count) for node in world.nodes(subject, ref)]


@law(
    "rule",
    "division follows the rule",
    source="Overflow Tree, section 2",
    requires="store nodes text design_rule",
    scenarios=lambda: scenarios(window=local_windows(), usual=10),
)
def division_follows_the_rule(world: World) -> None:
    """The nodes are those of the rule of section 2, as its slow statement cuts them."""
    subject = world.open()
    refs = refs_of(world.fill(subject))
    world.settle(subject)
    for ref in refs:
        text = stored_text(subject, ref, "rule")
        expected = world.scenario.spans(text) or []
        got = _division(world, subject, ref)
        context = {"record": ref, "text": repr(text), "window": world.scenario.window.name}
        expect(got == expected, "rule", "nodes are cut where the rule cuts", expected=expected, got=got, **context)


@law("fits", "a record that fits has no nodes", source="Overflow Tree, section 2", requires="store nodes text")
def fitting_records_have_no_nodes(world: World) -> None:
    """Only a record whose text runs past the window is divided; the other is its own only span.

    Also one whose text was set by raw SQL, so that no write measured it.
    """
    subject = world.open()
    refs = refs_of(world.fill(subject))
    _fitting_have_none(world, subject, refs, "storing it")
    if not world.can_write_sql():
        return
    for text in world.scenario.texts:
        fitting = text[: world.scenario.report(text).window_end_char] or text
        for ref in refs:
            # As long as what it replaces, where that fits too: the length alone does not tell that a text changed.
            as_long = fitting.ljust(len(stored_text(subject, ref, "fits")))
            set_text(subject, ref, fitting if world.scenario.runs_past(as_long) else as_long, "fits")
        _fitting_have_none(world, subject, refs, "setting its text by SQL")


def _fitting_have_none(world: World, subject: Subject, refs: list[Ref], after: str) -> None:
    for step in ("settle", "repair"):
        if world.offers(step):
            getattr(subject, step)()
        for ref in refs:
            text = stored_text(subject, ref, "fits")
            got = [(n.start, n.end) for n in world.nodes(subject, ref)]
            fits = not world.scenario.runs_past(text)
            context = {"record": ref, "after": after, "text": repr(text), "window": world.scenario.window.name}
            expect(not (fits and got), "fits", "a record that fits has no nodes", expected=[], got=got, **context)
