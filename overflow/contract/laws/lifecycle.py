"""Invariant 6 and section 4: nodes stay true to their parent, whatever changes it and whenever.

Stale nodes are recognised past the subject: a node present now must have been made from the text stored now, so its
span must be among the texts that were sent to be embedded since the change.
"""

import random
from dataclasses import dataclass
from functools import partial

from overflow.contract.laws.facts import (
    check_answers,
    check_fresh,
    delete_by_sql,
    left_to_settle,
    refs_of,
    set_text,
    stored_text,
)
from overflow.contract.laws.law import expect, law
from overflow.contract.subject import Ref, Subject
from overflow.contract.world import World
from overflow.embedding.script import Reply, Request


@law(
    "6",
    "no stale node survives",
    source="Overflow Tree, section 5.6",
    requires="store nodes text update delete",
)
def no_stale_node(world: World) -> None:
    """After a delete or a text change of a record, by the subject or by raw SQL, no node of the old text is left."""
    scenario = world.scenario
    rng = random.Random(scenario.seed)
    subject = world.open()
    stored = refs_of(world.fill(subject))
    world.settle(subject)
    for ref in stored:
        world.nodes(subject, ref)
    for ref, text in zip(rng.sample(stored, min(2, len(stored))), scenario.texts, strict=False):
        mark = world.mark()
        after = _change(world, subject, ref, text, rng)
        if after is None:
            continue
        if subject.text(ref) is None:
            left = subject.nodes(ref)
            expect(not left, "6", "nodes outlived their record", expected=[], got=left, record=ref, after=after)
        check_fresh(world, subject, ref, mark, "6", after)
        world.settle(subject)
        check_fresh(world, subject, ref, mark, "6", f"{after}, and draining the queue")
    newest = world.write(subject, scenario.records[-1]).ref
    title = "an id is never used again"
    expect(newest not in stored, "6", title, expected="a new id", got=newest, records=stored)


def _change(world: World, subject: Subject, ref: Ref, text: str, rng: random.Random) -> str | None:
    """Change or delete one record; says how, or None where the text would stay the same."""
    old = subject.text(ref)
    assert old is not None
    ways = ["update"] * 3 * world.can_update(ref) + ["delete"]
    if world.can_write_sql():
        ways += ["SQL update", "SQL delete"] + ["SQL update of one character"] * 3
    way = rng.choice(ways)
    if way == "delete":
        subject.delete(ref)
        left = subject.text(ref)
        expect(left is None, "6", "a deleted record is gone", expected=None, got=repr(left), record=ref)
    elif way == "SQL delete":
        delete_by_sql(subject, ref, "6")
    else:
        if way == "SQL update of one character":
            at = rng.randrange(len(old))
            text = old[:at] + ("x" if old[at] != "x" else "y") + old[at + 1 :]
        if text == old:
            return None
        if way == "update":
            subject.update(ref, text)
            title = "an updated record holds its new text"
            got = subject.text(ref)
            expect(got == text, "6", title, expected=repr(text), got=repr(got), record=ref)
        else:
            set_text(subject, ref, text, "6")
    return way


@law(
    "rewrite",
    "rewriting the same text keeps nodes",
    source="Overflow Tree, section 4",
    requires="store nodes text update",
)
def same_text_keeps_nodes(world: World) -> None:
    """A write that leaves the text as it was is no change of it: the nodes stay, to the byte."""
    subject = world.open()
    stored = refs_of(world.fill(subject))
    world.settle(subject)
    for ref in stored:
        before = world.nodes(subject, ref)
        if not world.can_update(ref):
            continue
        text = stored_text(subject, ref, "rewrite")
        subject.update(ref, text)
        got = subject.nodes(ref)
        title = "a rewrite of the same text keeps the nodes"
        expect(got == before, "rewrite", title, expected=before, got=got, record=ref, text=repr(text))


@law(
    "swap",
    "a build never writes nodes of a text that is gone",
    source="Overflow Tree, sections 4 and 5.6",
    requires="store nodes text update delete",
    evidence=("races",),
    occasion="builds left to settle",
)
def compare_and_swap(world: World) -> None:
    """While a build waits for the embedding server the record changes or goes: nothing of the old text is written."""
    scenario = world.scenario
    rng = random.Random(scenario.seed)
    subject = world.open()
    stored = refs_of(world.fill(subject))
    waiting = left_to_settle(world, subject, stored, "swap")
    if not waiting:
        return
    texts = {ref: stored_text(subject, ref, "swap") for ref in waiting}
    new, wait = scenario.texts[0], rng.choice((0, 0, 1, 2))
    race: _Race | None = None
    seen = 0

    def meanwhile(request: Request) -> Reply | None:
        nonlocal seen, race
        if race is not None or request.path != "/embed":
            return None
        # Only a part of a record that waits is posted for a build of its nodes; which builds come first is not ours.
        building = [ref for ref in waiting if any(text in texts[ref] and text != texts[ref] for text in request.texts)]
        seen += bool(building)
        if not building or seen <= wait:
            return None
        victim = rng.choice(building)
        can_update = world.can_update(victim) and new != texts[victim]
        race = _Race(victim, rng.choice(("update", "delete") if can_update else ("delete",)), world.mark())
        with world.second_handle() as other:
            write = partial(other.delete, victim) if race.action == "delete" else partial(other.update, victim, new)
            check_answers("swap", f"{race.action}, while a build waits for the embedding server,", write)
        return None

    with world.meanwhile(meanwhile):
        world.settle(subject)
    for ref in stored:
        world.nodes(subject, ref)
    if race is None:
        return
    world.evidence["races"] += 1
    old = texts[race.victim]
    world.has_divided(subject, race.victim)  # the write came between the embedding of two nodes
    if race.action == "delete":
        left = subject.nodes(race.victim)
        title = "a build wrote nodes of a deleted record"
        expect(not left, "swap", title, expected=[], got=left, text=repr(old), window=scenario.window.name)
    else:
        after = f"update to {new!r} while its nodes were built"
        check_fresh(world, subject, race.victim, race.mark, "swap", after)
        # A store that queued the new text for the next time has its nodes only now.
        world.settle(subject)
        check_fresh(world, subject, race.victim, race.mark, "swap", f"{after}, and draining the queue again")


@dataclass(frozen=True)
class _Race:
    """A write to `victim` while a build of its nodes waited; `mark` is that moment."""

    victim: Ref
    action: str
    mark: int
