"""Export, import and the length limit: sections 4 and 7."""

from hypothesis import strategies as st

from overflow.contract.laws.facts import check_built, refs_of, repair_all, stored_text
from overflow.contract.laws.law import expect, law
from overflow.contract.scenario import LENGTH_LIMIT, Record, Scenario
from overflow.contract.strategies import limit_texts, queries_of
from overflow.contract.subject import Ref, Subject
from overflow.contract.watched import SubjectCrash
from overflow.contract.world import World
from overflow.tokens.synthetic import SyntheticWindow


@law(
    "export",
    "nodes are not exported, an import rebuilds them",
    source="Overflow Tree, section 4",
    requires="store nodes text export import refs",
)
def export_without_nodes(world: World) -> None:
    """An export is the same with and without nodes; importing it gives the same records, and nodes are rebuilt."""
    subject = world.open("source")
    stored = refs_of(world.fill(subject))
    if world.offers("lock"):
        for ref in stored[world.scenario.seed % 2 :: 2]:
            subject.lock(ref, True)
    before, after = world.path("before.export"), world.path("after.export")
    subject.export(str(before))
    world.settle(subject)
    for ref in stored:
        world.nodes(subject, ref)
    subject.export(str(after))
    title = "an export holds no nodes: it is the same file before and after they are built"
    got = after.read_bytes()
    expect(got == before.read_bytes(), "export", title, expected=before.read_bytes(), got=got)

    target = world.open("target")
    target.import_(str(after))
    refs = target.refs()
    expected = sorted(stored_text(subject, ref, "export") for ref in stored)
    texts = sorted(stored_text(target, ref, "export") for ref in refs)
    expect(texts == expected, "export", "an import holds the exported texts", expected=expected, got=texts)
    for ref in refs:
        got_nodes = target.nodes(ref)
        expect(not got_nodes, "export", "an import carries no nodes", expected=[], got=got_nodes, record=ref)
    world.settle(target)
    if world.offers("repair"):
        repair_all(target)
    check_built(world, target, refs, "export", "an import, and draining the queue")
    had, has = (sorted(_kept(world, store, ref) for ref in of) for store, of in ((subject, stored), (target, refs)))
    title = "an imported record is of the kind, the scope and the lock that were exported"
    expect(has == had, "export", title, expected=had, got=has)


def _kept(world: World, subject: Subject, ref: Ref) -> tuple[str, str, list[str], bool]:
    """What an import must keep of a record: its text, kind, the scopes it is read in, and whether it refuses a delete.

    Unless it does, it is deleted.
    """
    scopes = sorted({record.scope for record in world.scenario.records}, key=repr) if world.offers("contents") else []
    read_in = [str(scope) for scope in scopes if subject.contents(ref, scope) is not None]
    text, refuses = stored_text(subject, ref, "export"), False
    if world.offers("lock") and world.offers("delete"):
        try:
            subject.delete(ref)
        except SubjectCrash as crash:
            if crash.unavailable:
                raise
            refuses = True
    return text, ref.kind, read_in, refuses


@st.composite
def _at_the_limit(draw: st.DrawFn) -> Scenario:
    size = draw(st.integers(800, 3_000))
    # Not by words: a Japanese or Chinese text is a single one, and would not run past its window.
    window = SyntheticWindow(draw(st.sampled_from(("chars", "visible"))), 2 * size)
    records = tuple(Record(draw(limit_texts()), kind) for kind in draw(st.sampled_from((("mem",), ("mem", "ep")))))
    return Scenario(window, records, queries_of([r.text for r in records]), ("x", "y"))


@law(
    "limit",
    "the length limit stays",
    source="Overflow Tree, section 7",
    requires="store nodes text length_limit",
    scenarios=_at_the_limit,
    share=1 / 10,
    on_corpus=False,
)
def length_limit(world: World) -> None:
    """At most 16,000 characters of a record are stored, and what is stored is divided."""
    subject = world.open()
    refs = refs_of(world.fill(subject))
    world.settle(subject)
    for ref, record in zip(refs, world.scenario.records, strict=True):
        text = stored_text(subject, ref, "limit")
        got = (len(text), record.text.startswith(text))
        expected = (min(len(record.text), LENGTH_LIMIT), True)
        title = "a record is stored up to the limit and no further"
        expect(got == expected, "limit", title, expected=expected, got=got, record=ref, length=len(record.text))
    check_built(world, subject, refs, "limit", "draining the queue")
