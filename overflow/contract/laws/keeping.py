"""What everything else stands on: the text that was given is the text that is stored.

Nodes are spans of the stored text, so a store that shortens what it is given can keep every other law, and lose what is
long all the same. Overflow Tree, sections 1 and 7.
"""

from overflow.contract.laws.facts import stored_text
from overflow.contract.laws.law import expect, law
from overflow.contract.scenario import LENGTH_LIMIT
from overflow.contract.subject import Ref, Subject
from overflow.contract.world import World


@law(
    "whole",
    "a record is stored whole",
    source="Overflow Tree, sections 1 and 7",
    requires="store text nodes",
)
def stored_whole(world: World) -> None:
    """What was stored, and what a record was updated to, is there to the last character; nodes change nothing in it."""
    subject = world.open()
    given = {world.write(subject, record).ref: record.text for record in world.scenario.records}
    for ref, text in given.items():
        _check(world, subject, ref, text, "storing it")
    if world.offers("update"):
        changed = [ref for ref in given if world.can_update(ref)]
        for ref, text in zip(changed, world.scenario.texts, strict=False):
            subject.update(ref, text)
            given[ref] = text
            _check(world, subject, ref, text, "updating it")
    world.settle(subject)
    for ref, text in given.items():
        world.nodes(subject, ref)
        _check(world, subject, ref, text, "building nodes")


def _check(world: World, subject: Subject, ref: Ref, given: str, after: str) -> None:
    expected = given[:LENGTH_LIMIT] if world.offers("length_limit") else given
    got = stored_text(subject, ref, "whole")
    title = "the stored text is the text that was given"
    context = {"record": ref, "after": after, "length": len(expected), "stored length": len(got)}
    expect(got == expected, "whole", title, expected=repr(expected), got=repr(got), **context)
