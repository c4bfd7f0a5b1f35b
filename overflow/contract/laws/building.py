"""Section 3: when nodes are built, what the answer of a write says of it, and what a reader gets meanwhile."""

from functools import partial

from overflow.contract.laws.facts import (
    check_answers,
    check_built,
    check_quote,
    left_to_settle,
    refs_of,
    repair_all,
    set_text,
    stored_text,
)
from overflow.contract.laws.law import expect, law
from overflow.contract.subject import Ref, Subject
from overflow.contract.world import FAULT, TOKENS_UNKNOWN, TokensUnknown, World
from overflow.embedding.script import Reply, Request


@law(
    "status",
    "nodes.status is accurate",
    source="Overflow Tree, sections 3 and 8",
    requires="store nodes text configure",
    occasion="builds left to settle",
)
def status_accurate(world: World) -> None:
    """A write answers `queued` exactly when the record runs past the window, the queue is on and tokens are known.

    A store that divides as it writes queues nothing, and must not say that it does. What changed, also by raw SQL, is
    queued anew. A text written again queues nothing where its nodes are there; where none could be built so far, they
    are in the end, or health names the record.
    """
    subject = world.open("on")
    stored = world.fill(subject)
    waits = bool(left_to_settle(world, subject, refs_of(stored), "status"))
    at_once = not waits and any(world.nodes(subject, each.ref) for each in stored)
    for each in stored:
        text = stored_text(subject, each.ref, "status")
        long = world.scenario.runs_past(text)
        if long and not waits and not at_once:
            continue  # No record here can be divided, so which kind of store it is does not show.
        expected = "queued" if long and waits else None
        context = {"record": each.ref, "text": repr(text), "window": world.scenario.window.name}
        title = "a write says queued exactly when its record runs past the window"
        if long and not waits:
            title = "nothing was left to build, and the write says queued"
        expect(each.nodes == expected, "status", title, expected=expected, got=each.nodes, **context)
    world.settle(subject)
    check_built(world, subject, refs_of(stored), "status", "every queued build")
    for each in stored:
        nodes = world.nodes(subject, each.ref)
        if nodes and world.can_update(each.ref):
            answer = subject.update(each.ref, stored_text(subject, each.ref, "status"))
            title = "a text written again whose nodes are there queues nothing"
            expect(answer.nodes is None, "status", title, expected=None, got=answer.nodes, record=each.ref)
    by_sql = world.scenario.seed % 2 == 0 and world.can_write_sql()
    for each, text in zip(stored, world.scenario.texts, strict=False):
        if waits and by_sql:
            set_text(subject, each.ref, text, "status")
        elif waits and world.can_update(each.ref) and subject.text(each.ref) != text:
            answer = subject.update(each.ref, text)
            expected = "queued" if world.scenario.runs_past(text) else None
            context = {"record": each.ref, "text": repr(text), "window": world.scenario.window.name}
            title = "an update says queued exactly when its new text runs past the window"
            expect(answer.nodes == expected, "status", title, expected=expected, got=answer.nodes, **context)
    if waits:
        world.settle(subject)
        check_built(world, subject, refs_of(stored), "status", "changes of the texts, and draining the queue")

    off = world.open("off", queue=False)
    unbuilt = world.fill(off)
    for each in unbuilt:
        title = "nothing is queued while the queue is off"
        expect(each.nodes is None, "status", title, expected=None, got=each.nodes, record=each.ref)
        world.settle(off)
        got = off.nodes(each.ref)
        expect(not got, "status", "nothing is built while the queue is off", expected=[], got=got, record=each.ref)

    off.configure(queue=True)
    _check_rewritten(world, off, refs_of(unbuilt), "storing with the queue off")

    with world.tokens_unknown(TOKENS_UNKNOWN[world.scenario.seed % 2]):
        unknown = world.fill(subject)
        for each in unknown:
            title = "nothing is queued while tokens are unknown"
            expect(each.nodes is None, "status", title, expected=None, got=each.nodes, record=each.ref)
    _check_rewritten(world, subject, refs_of(unknown), "storing with tokens unknown")


def _check_rewritten(world: World, subject: Subject, refs: list[Ref], after: str) -> None:
    """What the update of a record to its own text says of nodes that could not be built so far comes true."""
    texts = {ref: stored_text(subject, ref, "status") for ref in refs if world.can_update(ref)}
    said = {ref: subject.update(ref, text).nodes for ref, text in texts.items()}
    world.settle(subject)
    named = subject.health().named_for_nodes() if said and world.offers("health") else None
    for ref, nodes in said.items():
        text = texts[ref]
        context = {"record": ref, "after": after, "text": repr(text), "window": world.scenario.window.name}
        if not world.scenario.runs_past(text):
            title = "a text written again that fits queues nothing"
            expect(nodes is None, "status", title, expected=None, got=nodes, **context)
        elif world.scenario.divides(text) and not world.nodes(subject, ref):
            title = "what an update says is queued is built"
            expect(nodes is None, "status", title, expected="nodes", got=[], **context)
            title = "a text written again has nodes in the end, or health names it"
            got = sorted(named or ())
            expect(named is None or ref in named, "status", title, expected=f"{ref} named", got=got, **context)


@law(
    "unknown",
    "unknown is not fits",
    source="Overflow Tree, section 2",
    requires="store nodes text recall repair",
    evidence=(*(f"writes under {form}" for form in TOKENS_UNKNOWN), "requests failed"),
)
def unknown_builds_nothing(world: World) -> None:
    """While tokens cannot be reported nothing is built and every read works; once they can, repair builds the nodes.

    A server that fails in the middle of a write reports nothing either, and costs no record: nodes are made afterwards.
    """
    scenario = world.scenario
    first = scenario.seed % 2
    subject = world.open()
    refs: list[Ref] = []
    for turn, form in enumerate((TOKENS_UNKNOWN[first], TOKENS_UNKNOWN[1 - first])):
        with world.tokens_unknown(form):
            for record in scenario.records[turn::2]:
                refs.append(world.write(subject, record).ref)
                world.evidence[f"writes under {form}"] += 1
            world.settle(subject)
            repair_all(subject)
            for ref in refs:
                got = subject.nodes(ref)
                title = "nothing is built while tokens are unknown"
                expect(not got, "unknown", title, expected=[], got=got, record=ref, text=repr(subject.text(ref)))
            if turn:
                _read_everything(world, subject, "unknown", "storing with tokens unknown")
    with world.failing(scenario.seed % 3):
        write = partial(world.write, subject, scenario.records[0])
        refs.append(check_answers("unknown", "a write while the embedding server fails", write).ref)
        stored_text(subject, refs[-1], "unknown")
        _read_everything(world, subject, "unknown", "storing while the server fails")
    repair_all(subject)
    check_built(world, subject, refs, "unknown", "tokens became known, and repair")
    if scenario.seed % 2 and world.offers("configure"):
        _nodes_stay(world, subject, refs, TOKENS_UNKNOWN[first])


def _nodes_stay(world: World, subject: Subject, refs: list[Ref], form: TokensUnknown) -> None:
    """A record whose tokens became unknown, under another model too, was not found to fit: its nodes stay."""
    before = {ref: world.nodes(subject, ref) for ref in refs}
    with world.tokens_unknown(form):
        world.server.script.identity = "model-2"
        subject.configure(model="model-2")
        subject.repair()
    for ref in refs:
        got = subject.nodes(ref)
        title = "nodes stay while tokens are unknown"
        expect(got == before[ref], "unknown", title, expected=before[ref], got=got, record=ref)


@law(
    "pending",
    "pending nodes never fail a read",
    source="Overflow Tree, section 3",
    requires="store nodes text recall",
    evidence=("builds held while reading",),
    occasion="builds left to settle",
)
def pending_never_blocks(world: World) -> None:
    """Until its nodes exist a record is read and quoted from its start: before, during and after a failing build."""
    subject = world.open()
    refs = refs_of(world.fill(subject))
    left_to_settle(world, subject, refs, "pending")
    _read_everything(world, subject, "pending", "a write whose nodes are pending")
    whole = {record.text for record in world.scenario.records}
    held: list[int] = []

    def read_meanwhile(request: Request) -> Reply | None:
        if held or request.path != "/embed":
            return None
        # Whatever the divider, a node is a part of a record, and neither a record nor a query of this law.
        parts = set(request.texts) - whole - set(world.scenario.queries)
        stored = zip(refs, world.scenario.records, strict=True)
        divided = [ref for ref, record in stored if any(part in record.text for part in parts)]
        if not divided:
            return None
        held.append(1)
        # Its nodes may never come: only health and repair promise what becomes of a build that failed.
        world.has_divided(subject, divided[0])
        with world.second_handle() as reader:
            _read_everything(world, reader, "pending", "a build waiting for the embedding server")
        return FAULT

    with world.meanwhile(read_meanwhile):
        world.settle(subject)
    if world.offers("repair"):
        repair_all(subject)
        check_built(world, subject, refs, "pending", "a build that failed once, and repair")
    else:
        world.settle(subject)
    world.evidence["builds held while reading"] += len(held)
    for ref in refs:
        world.nodes(subject, ref)


def _read_everything(world: World, subject: Subject, law_id: str, after: str) -> None:
    """Every read answers, and what has no nodes yet is quoted from its start."""
    scopes = sorted({record.scope for record in world.scenario.records}, key=repr)
    for scope in scopes:
        for query in world.scenario.queries:
            context = {"query": repr(query), "scope": scope, "after": after}
            hits = check_answers(law_id, "recall", partial(subject.recall, query, scope, 10), **context)
            if world.offers("quote"):
                for hit in hits:
                    has_nodes = bool(subject.nodes(hit.ref))
                    read = partial(subject.quote, hit.ref, query, scope)
                    quote = check_answers(law_id, "quote", read, record=hit.ref, **context)
                    title = "a recalled record can be quoted"
                    expect(quote is not None, law_id, title, expected="a quote", got=None, record=hit.ref, after=after)
                    assert quote is not None
                    check_quote(subject, quote, law_id, after, from_start=not has_nodes)
            if world.offers("reconstruct"):
                read_items = partial(subject.reconstruct, query, scope, 10)
                for item in check_answers(law_id, "reconstruct", read_items, **context):
                    for claim in item.quotes:
                        check_quote(subject, claim, law_id, after, from_start=not subject.nodes(claim.ref))
            if world.offers("contents"):
                for hit in hits:
                    got = check_answers(law_id, "contents", partial(subject.contents, hit.ref, scope), **context)
                    expected = subject.text(hit.ref)
                    title = "a record's contents are its stored text"
                    expect(got == expected, law_id, title, expected=repr(expected), got=repr(got), after=after)
