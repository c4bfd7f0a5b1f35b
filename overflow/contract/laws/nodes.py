"""Invariants 2 to 5 and section 2's rule: what a node set is, and that making one touches nothing else."""

from overflow.contract.laws.facts import check_partition, refs_of, repair_all, stored_text
from overflow.contract.laws.law import expect, law
from overflow.contract.strategies import local_windows, scenarios
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
    subject.execute("DELETE FROM record_nodes")
    unmodified("deleting nodes")
    repair_all(subject)
    unmodified("rebuilding nodes")


@law("3", "every node fits its window", source="Overflow Tree, section 5.3", requires="store nodes text")
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
)
def division_deterministic(world: World) -> None:
    """The same text, tokenizer and window give the same nodes: elsewhere, in another order and company, and rebuilt."""
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
        _same_division(world, first, ref, second, twin, "storing in another order and company")
    if not (world.can_write_sql() and world.offers("repair")):
        return
    before = {ref: _division(world, first, ref) for ref in refs}
    first.execute("DELETE FROM record_nodes")
    repair_all(first)
    for ref in refs:
        got = _division(world, first, ref)
        context = {"record": ref, "text": repr(first.text(ref)), "window": world.scenario.window.name}
        title = "the same text divides into the same nodes"
        expect(got == before[ref], "5", title, expected=before[ref], got=got, after="a rebuild", **context)


def _same_division(world: World, left: Subject, ref: Ref, right: Subject, twin: Ref, after: str) -> None:
    expected, got = _division(world, left, ref), _division(world, right, twin)
    context = {"record": ref, "text": repr(left.text(ref)), "window": world.scenario.window.name, "after": after}
    expect(got == expected, "5", "the same text divides into the same nodes", expected=expected, got=got, **context)


def _division(world: World, subject: Subject, ref: Ref) -> list[tuple[int, int, int]]:
    return [(node.start, node.end, node.token_count) for node in world.nodes(subject, ref)]


@law(
    "rule",
    "division follows the rule",
    source="Overflow Tree, section 2",
    requires="store nodes text design_rule",
    scenarios=lambda: scenarios(window=local_windows()),
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
    """Only a record whose text runs past the window is divided; the other is its own only span."""
    subject = world.open()
    refs = refs_of(world.fill(subject))
    for step in ("settle", "repair"):
        if world.offers(step):
            getattr(subject, step)()
        for ref in refs:
            text = stored_text(subject, ref, "fits")
            got = [(n.start, n.end) for n in world.nodes(subject, ref)]
            fits = not world.scenario.runs_past(text)
            context = {"record": ref, "text": repr(text), "window": world.scenario.window.name}
            title = "a record that fits has no nodes"
            expect(not (fits and got), "fits", title, expected=[], got=got, **context)
