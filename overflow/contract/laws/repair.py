"""Section 3, the health check and its repair: it converges, it is bounded, and nothing keeps another record out."""

import random

from hypothesis import strategies as st

from overflow.contract.laws.facts import check_built, check_quote, refs_of, repair_all, stored_text, was_embedded
from overflow.contract.laws.law import expect, law
from overflow.contract.scenario import Record, Scenario
from overflow.contract.subject import Ref, Subject
from overflow.contract.world import FAULT, ROUNDS, World
from overflow.embedding.script import Reply, Request
from overflow.tokens.synthetic import SyntheticWindow

#: Section 3: "One run builds at most 50 records".
RUN_LIMIT = 50


def check_missing(world: World, subject: Subject, refs: list[Ref], law_id: str, after: str) -> None:
    """`missing_nodes` names exactly the long records that have no nodes now."""
    expected = sorted(
        ref
        for ref in refs
        if world.scenario.divides(stored_text(subject, ref, law_id)) and not world.nodes(subject, ref)
    )
    got = sorted(ref for ref in subject.health().missing_nodes if not _undividable(world, subject.text(ref) or ""))
    title = "missing_nodes names the long records without nodes, and no others"
    expect(got == expected, law_id, title, expected=expected, got=got, after=after, window=world.scenario.window.name)


def _undividable(world: World, text: str) -> bool:
    """A record that is too long and yet cannot be divided may be named or not."""
    return world.scenario.runs_past(text) and not world.scenario.divides(text)


@law(
    "repair",
    "repair converges",
    source="Overflow Tree, section 3",
    requires="store nodes text health repair configure",
)
def repair_converges(world: World) -> None:
    """Repair builds what the health check names, past a record whose builds always fail, until nothing is missing."""
    subject = world.open(queue=False)
    stored = world.fill(subject)
    refs = refs_of(stored)
    check_missing(world, subject, refs, "repair", "storing with the queue off")
    rng = random.Random(world.scenario.seed)
    poisoned = rng.choice(refs)
    poison = stored_text(subject, poisoned, "repair")
    others = [stored_text(subject, ref, "repair") for ref in refs if ref != poisoned]

    def fail(request: Request) -> Reply | None:
        mine = any(text and text in poison and not any(text in other for other in others) for text in request.texts)
        return FAULT if mine and request.path == "/embed" else None

    with world.meanwhile(fail):
        runs = repair_all(subject)
    expect(runs < ROUNDS, "repair", "repair stops when it builds nothing", expected=f"< {ROUNDS} runs", got=runs)
    kept_out = [ref for ref in refs if ref != poisoned]
    check_built(world, subject, kept_out, "repair", "repair, while one record's builds always fail")
    repair_all(subject)
    check_built(world, subject, refs, "repair", "repair, once nothing fails")
    check_missing(world, subject, refs, "repair", "repair")


def _backlogs() -> st.SearchStrategy[Scenario]:
    """A little more than one run's worth of the smallest records that divide."""

    def scenario(extra: int, window: int, seed: int) -> Scenario:
        records = tuple(Record(f"{'w ' * window}{n}") for n in range(RUN_LIMIT + extra))
        return Scenario(SyntheticWindow("words", window), records, ("w",), ("w", "w"), seed)

    return st.builds(scenario, st.integers(1, 8), st.integers(1, 2), st.integers(0, 9))


@law(
    "repair-bound",
    "one repair run builds at most 50 records",
    source="Overflow Tree, section 3",
    requires="store nodes text health repair configure",
    scenarios=_backlogs,
    share=1 / 30,
    on_corpus=False,
)
def repair_bounded(world: World) -> None:
    """One run builds at most 50 records, and a larger backlog converges over successive runs."""
    subject = world.open(queue=False)
    refs = refs_of(world.fill(subject))
    without = len(refs)
    while without:
        built = subject.repair().built
        left = sum(not world.nodes(subject, ref) for ref in refs)
        title = "one run builds at most 50 records"
        expect(without - left <= RUN_LIMIT, "repair-bound", title, expected=f"<= {RUN_LIMIT}", got=without - left)
        title = "a run of repair says how many records got nodes"
        expect(built == without - left, "repair-bound", title, expected=without - left, got=built)
        title = "a backlog larger than one run converges"
        expect(left < without, "repair-bound", title, expected=f"< {without} left", got=left)
        without = left


@law(
    "locked",
    "locked records get nodes too",
    source="Overflow Tree, section 3",
    requires="store nodes text repair lock record_bytes configure",
)
def locked_records_covered(world: World) -> None:
    """Repair adds nodes to a locked record and leaves it locked and unmodified."""
    subject = world.open(queue=False)
    refs = refs_of(world.fill(subject))
    for ref in refs:
        subject.lock(ref, True)
    before = {ref: subject.record_bytes(ref) for ref in refs}
    repair_all(subject)
    check_built(world, subject, refs, "locked", "repair of locked records")
    for ref in refs:
        got = subject.record_bytes(ref)
        title = "repair leaves a locked record as it was"
        expect(got == before[ref], "locked", title, expected=before[ref], got=got, record=ref)


@law(
    "model",
    "nodes of another model are rebuilt",
    source="Overflow Tree, section 4",
    requires="store nodes text health repair configure quote",
)
def other_model_rebuilt(world: World) -> None:
    """Nodes of another model count as missing: not quoted from, named by health, and made anew by repair."""
    subject = world.open()
    stored = world.fill(subject)
    refs = refs_of(stored)
    world.settle(subject)
    old = {ref: world.nodes(subject, ref) for ref in refs}
    world.server.script.identity = "model-2"
    subject.configure(model="model-2")
    for each, record in zip(stored, world.scenario.records, strict=True):
        quote = subject.quote(each.ref, record.text[-40:], record.scope)
        if quote is not None:
            check_quote(subject, quote, "model", "a change of the model", from_start=True)
    expected = sorted(ref for ref in refs if old[ref])
    got = sorted(ref for ref in subject.health().missing_nodes if not _undividable(world, subject.text(ref) or ""))
    title = "nodes of another model count as missing, and nothing else does"
    expect(got == expected, "model", title, expected=expected, got=got, window=world.scenario.window.name)
    mark = world.mark()
    repair_all(subject)
    check_built(world, subject, refs, "model", "a change of the model, and repair")
    embedded = world.embedded_since(mark)
    for ref in expected:
        text = stored_text(subject, ref, "model")
        nodes = world.nodes(subject, ref)
        kept = [n.index for n in nodes if not was_embedded(text[n.start : n.end], text, embedded)]
        title = "repair embeds every span with the new model"
        expect(not kept, "model", title, expected=[], got=kept, record=ref, text=repr(text))
        before, now = {n.model for n in old[ref]}, {n.model for n in nodes}
        title = "rebuilt nodes name the new model"
        expect(len(now) == 1 and now != before, "model", title, expected=f"one, not {before}", got=now, record=ref)
