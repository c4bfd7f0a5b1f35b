"""Invariant 1, and what a reader is shown: sections 5.1, 4 (isolation) and 6 (the most relevant node).

Two stores live through one history; only one of them has nodes. Whatever path lets a node into a ranking shows as a
difference of ids, order or scores.
"""

import random
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from overflow.contract.laws.facts import check_quote, refs_of, stored_text
from overflow.contract.laws.law import expect, law
from overflow.contract.scenario import Scenario
from overflow.contract.strategies import scenarios
from overflow.contract.subject import Hit, Item, Ref, Scope, Subject
from overflow.contract.world import World

_LIMITS = (1, 3, 10)
_BUILT = "building nodes"


@st.composite
def _shared_scopes(draw: st.DrawFn) -> Scenario:
    """Several records, one that divides stored first; often one more before it, of equal score: what of it is embedded.

    A ranking of one record cannot change, and only records of equal score show by what a tie is broken.
    """
    scenario = draw(scenarios(min_records=3, max_records=6))
    if draw(st.booleans()):
        return scenario
    long = scenario.records[0]
    head = replace(long, text=long.text[: scenario.report(long.text).window_end_char] or long.text)
    return replace(scenario, records=(head, *scenario.records))


@law(
    "1",
    "retrieval unchanged",
    source="Overflow Tree, section 5.1",
    requires="store recall nodes text configure",
    scenarios=_shared_scopes,
    evidence=("hits",),
)
def retrieval_unchanged(world: World) -> None:
    """Recall and reconstruct return the same records in the same order with or without nodes."""
    scenario = world.scenario
    rng = random.Random(scenario.seed)
    with_nodes, without = world.open("with"), world.open("without", queue=False)
    stored = world.fill(with_nodes)
    twins = world.fill(without)
    world.settle(with_nodes)
    for each in stored:
        world.nodes(with_nodes, each.ref)
    refs = refs_of(stored)
    _compare(world, rng, refs, with_nodes, without, _BUILT)

    changed = rng.randrange(len(stored))
    if world.can_update(refs[changed]) and rng.random() < 0.5:
        with_nodes.update(stored[changed].ref, scenario.texts[0])
        without.update(twins[changed].ref, scenario.texts[0])
        _compare(world, rng, refs, with_nodes, without, "a change of one record, its nodes pending")
        world.settle(with_nodes)
    elif world.offers("delete"):
        with_nodes.delete(stored[changed].ref)
        without.delete(twins[changed].ref)
    _compare(world, rng, refs, with_nodes, without, "a change of one record")


def _compare(world: World, rng: random.Random, refs: list[Ref], left: Subject, right: Subject, after: str) -> None:
    twins = [ref for ref in refs if world.scenario.runs_past(right.text(ref) or "") and right.nodes(ref)]
    title = "the store whose queue is off builds no nodes, or there is nothing to compare with"
    expect(not twins, "1", title, expected=[], got=twins, after=after)
    queries = world.scenario.queries if after == _BUILT else rng.sample(world.scenario.queries, 2)
    for query in queries:
        scope = rng.choice(world.scenario.records).scope
        limit = rng.choice(_LIMITS)
        for read in ("recall", "reconstruct") if world.offers("reconstruct") else ("recall",):
            got, expected = (_ranking(getattr(subject, read)(query, scope, limit)) for subject in (left, right))
            world.evidence["hits"] += len(expected)
            title = f"{read} returns at most as many records as it was asked for"
            expect(len(got) <= limit, "1", title, expected=f"<= {limit}", got=len(got), query=repr(query), scope=scope)
            title = f"{read} returns the same records, order and scores with or without nodes"
            if got != expected:
                nodes = {f"{ref.kind} {ref.id}": [(n.start, n.end) for n in left.nodes(ref)] for ref in refs}
                context = {"query": repr(query), "scope": scope, "limit": limit, "after": after, "nodes": nodes}
                expect(False, "1", title, expected=expected, got=got, **context)


def _ranking(hits: list[Hit] | list[Item]) -> list[tuple[str, int, float]]:
    return [(hit.ref.kind, hit.ref.id, hit.score) for hit in hits]


@law(
    "quote",
    "the most relevant node is quoted",
    source="Overflow Tree, section 6",
    requires="store quote nodes text",
)
def most_relevant_node(world: World) -> None:
    """A query that is a node's own text is answered with that node, or with one whose vector is the same."""
    subject = world.open()
    stored = world.fill(subject)
    world.settle(subject)
    rng = random.Random(world.scenario.seed)
    for each, record in zip(stored, world.scenario.records, strict=True):
        nodes = world.nodes(subject, each.ref)
        text = stored_text(subject, each.ref, "quote")
        if not nodes:
            quote = subject.quote(each.ref, world.scenario.queries[0], record.scope)
            if quote is not None:
                check_quote(subject, quote, "quote", "building nodes", from_start=True)
            continue
        spans = [text[n.start : n.end] for n in nodes]
        asking = [span for span in spans if span.strip()]
        if not asking:
            continue
        wanted = rng.choice(asking)
        vectors = world.server.script.model([*spans, wanted])
        if not vectors[-1].any():
            continue
        best = {
            n.index
            for n, score in zip(nodes, vectors[:-1] @ vectors[-1], strict=True)
            if np.isclose(score, 1, atol=1e-4)
        }
        quote = subject.quote(each.ref, wanted, record.scope)
        context = {"record": each.ref, "text": repr(text), "query": repr(wanted), "window": world.scenario.window.name}
        title = "a record can be quoted in its own scope"
        expect(quote is not None, "quote", title, expected="a quote", got=None, **context)
        assert quote is not None
        title = "a long record is quoted by its most relevant node"
        expect(quote.node in best, "quote", title, expected=f"one of nodes {sorted(best)}", got=quote.node, **context)
        check_quote(subject, quote, "quote", "building nodes", from_start=False)
        named = [(node.start, node.end) for node in nodes if node.index == quote.node]
        got = [(quote.start, quote.end)]
        expect(got == named, "quote", "a quote spans the node it names", expected=named, got=got, **context)
        if world.offers("reconstruct"):
            items = subject.reconstruct(wanted, record.scope, 10)
            claims = [claim for item in items for claim in item.quotes if claim.ref == each.ref]
            wrong = [claim for claim in claims if claim != quote]
            expect(not wrong, "quote", "a claim is quoted as its record is", expected=quote, got=wrong, **context)


def _beside(scenario: Scenario) -> Scope:
    """A scope that differs from a record's in one axis alone: another name, or none where the record's has one."""
    scope = scenario.records[scenario.seed % len(scenario.records)].scope
    axis = ("agent", "project", "channel")[scenario.seed // 7 % 3]
    return replace(scope, **{axis: "" if axis != "agent" and getattr(scope, axis) else "stranger"})


@law(
    "isolation",
    "a node is read only through its parent's scope",
    source="Overflow Tree, section 4",
    requires="store recall contents nodes text",
)
def isolation(world: World) -> None:
    """No scope is shown a record of another, nor a node of one."""
    subject = world.open()
    stored = world.fill(subject)
    world.settle(subject)
    scopes = {record.scope for record in world.scenario.records}
    strangers = scopes | {_beside(world.scenario)}
    own = {each.ref: record.scope for each, record in zip(stored, world.scenario.records, strict=True)}
    for scope in sorted(strangers, key=repr):
        for query in world.scenario.queries:
            foreign = [hit.ref for hit in subject.recall(query, scope, 10) if own.get(hit.ref) != scope]
            if world.offers("reconstruct"):
                foreign += [item.ref for item in subject.reconstruct(query, scope, 10) if own.get(item.ref) != scope]
            title = "no record of another scope is recalled"
            expect(not foreign, "isolation", title, expected=[], got=foreign, scope=scope, query=repr(query))
        for ref in refs_of(stored):
            if own[ref] != scope and world.offers("quote"):
                quote = subject.quote(ref, world.scenario.queries[0], scope)
                title = "a record is quoted in its own scope alone"
                expect(quote is None, "isolation", title, expected=None, got=quote, record=ref, scope=scope)
            nodes = world.nodes(subject, ref)
            text = stored_text(subject, ref, "isolation")
            wanted = [(None, text), *((n.index, text[n.start : n.end]) for n in nodes)]
            for index, piece in wanted:
                got = subject.contents(ref, scope, index)
                expected = piece if own[ref] == scope else None
                title = "a record and its nodes are read in its own scope alone"
                shown = {"record": ref, "scope": scope, "node": index}
                expect(got == expected, "isolation", title, expected=repr(expected), got=repr(got), **shown)
