"""What a trigger cannot see must still hold or be found: raw SQL on the tables of section 1, past the subject.

After each kind of tampering a stale node set is either gone or named by the health check; repair mends what it names,
and nothing happens to any other record.
"""

import random
from collections.abc import Callable

from overflow.contract.laws.facts import (
    TABLES,
    check_built,
    check_fresh,
    delete_by_sql,
    refs_of,
    repair_all,
    set_text,
    stored_text,
    was_embedded,
)
from overflow.contract.laws.law import expect, law
from overflow.contract.subject import Node, Ref, Subject
from overflow.contract.world import World

_RAW = "store nodes text refs execute design_schema health repair"


@law(
    "tampered-parent",
    "a parent changed behind the triggers is found",
    source="Overflow Tree, section 4",
    requires=_RAW,
    evidence=("parents changed behind the triggers",),
)
def tampered_parent(world: World) -> None:
    """REPLACE INTO, UPDATE OR REPLACE, a changed id, a change or a delete without triggers: gone at once, or named.

    Once repaired, the store is kept by its triggers again.
    """
    rng = random.Random(world.scenario.seed)
    subject = world.open()
    refs = refs_of(world.fill(subject))
    world.settle(subject)
    before = {ref: world.nodes(subject, ref) for ref in refs}
    divided = [ref for ref in refs if before[ref]]
    if not divided:
        return
    victim = rng.choice(divided)
    mark = world.mark()
    old = stored_text(subject, victim, "tampered-parent")
    how, now = rng.choice(_PARENT_TAMPERINGS)(subject, victim, rng, refs)
    world.evidence["parents changed behind the triggers"] += subject.text(victim) != old
    survivors = [ref for ref in subject.refs() if ref != now and ref in before]

    def others_kept(after: str) -> None:
        for ref in survivors:
            got = subject.nodes(ref)
            title = "nothing happens to another record's nodes"
            expect(got == before[ref], "tampered-parent", title, expected=before[ref], got=got, record=ref, after=after)

    others_kept(how)
    text = subject.text(now)
    embedded = world.embedded_since(mark)
    stale = [
        n
        for n in subject.nodes(now)
        if text is None or (n.embedding is not None and not was_embedded(text[n.start : n.end], text, embedded))
    ]
    orphans = [] if now == victim or subject.text(victim) is not None else subject.nodes(victim)
    if stale or orphans:
        named = subject.health().named_for_nodes()
        title = "a stale node set is gone or named by health"
        got = sorted(named)
        expect(bool(named & {now, victim}), "tampered-parent", title, expected=now, got=got, after=how, text=repr(text))
    world.settle(subject)
    repair_all(subject)
    check_fresh(world, subject, now, mark, "tampered-parent", f"{how}, and repair")
    if subject.text(victim) is None:
        check_fresh(world, subject, victim, mark, "tampered-parent", f"{how}, and repair")
    check_built(world, subject, subject.refs(), "tampered-parent", f"{how}, and repair")
    others_kept(f"{how}, and repair")
    if text is not None:
        mark = world.mark()
        set_text(subject, now, _other_text(subject, now, rng), "tampered-parent")
        check_fresh(world, subject, now, mark, "tampered-parent", f"{how}, repair, and a change by SQL")


Tampering = Callable[[Subject, Ref, random.Random, list[Ref]], tuple[str, Ref]]


def _other_text(subject: Subject, ref: Ref, rng: random.Random) -> str:
    """The stored text with one character changed: the same length, so that offsets alone cannot tell."""
    text = subject.text(ref)
    assert text
    at = rng.randrange(len(text))
    return text[:at] + ("x" if text[at] != "x" else "y") + text[at + 1 :]


def _copy_columns(subject: Subject, table: str, column: str) -> str:
    """The columns of a record other than its id and its text, as a list in SQL."""
    names = [str(row[1]) for row in subject.execute(f"PRAGMA table_info({table})")]
    return ", ".join(name for name in names if name not in ("id", column))


def _replace_into(subject: Subject, ref: Ref, rng: random.Random, _: list[Ref]) -> tuple[str, Ref]:
    table, column = TABLES[ref.kind]
    rest = _copy_columns(subject, table, column)
    subject.execute(
        f"REPLACE INTO {table} (id, {column}, {rest}) SELECT id, ?, {rest} FROM {table} WHERE id = ?",
        (_other_text(subject, ref, rng), ref.id),
    )
    return "REPLACE INTO of the same id", ref


def _changed_id(subject: Subject, ref: Ref, _: random.Random, refs: list[Ref]) -> tuple[str, Ref]:
    table, _column = TABLES[ref.kind]
    moved = Ref(ref.kind, max(each.id for each in refs) + 1_000)
    subject.execute(f"UPDATE {table} SET id = ? WHERE id = ?", (moved.id, ref.id))
    return "a changed id", moved


def _update_or_replace(subject: Subject, ref: Ref, rng: random.Random, refs: list[Ref]) -> tuple[str, Ref]:
    """Another record takes the victim's id, so the victim goes without a DELETE."""
    others = [each for each in refs if each.kind == ref.kind and each != ref]
    if not others:
        return _replace_into(subject, ref, rng, refs)
    table, _column = TABLES[ref.kind]
    subject.execute(f"UPDATE OR REPLACE {table} SET id = ? WHERE id = ?", (ref.id, rng.choice(others).id))
    return "UPDATE OR REPLACE of the id by another record", ref


def _without_triggers(subject: Subject, ref: Ref, rng: random.Random, _: list[Ref]) -> tuple[str, Ref]:
    text = _other_text(subject, ref, rng)
    _drop_triggers(subject)
    set_text(subject, ref, text, "tampered-parent")
    return "a change of the same length while the triggers were missing", ref


def _deleted_without_triggers(subject: Subject, ref: Ref, _rng: random.Random, _: list[Ref]) -> tuple[str, Ref]:
    _drop_triggers(subject)
    delete_by_sql(subject, ref, "tampered-parent")
    return "a delete while the triggers were missing", ref


def _drop_triggers(subject: Subject) -> None:
    for (name,) in subject.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND sql LIKE '%record_nodes%'"
    ):
        quoted = str(name).replace('"', '""')
        subject.execute(f'DROP TRIGGER "{quoted}"')


_PARENT_TAMPERINGS: tuple[Tampering, ...] = (
    _replace_into,
    _changed_id,
    _update_or_replace,
    _without_triggers,
    _deleted_without_triggers,
)


@law(
    "tampered-nodes",
    "a node table edited by hand is found and mended",
    source="Overflow Tree, section 3",
    requires=_RAW,
    evidence=("node rows edited",),
)
def tampered_nodes(world: World) -> None:
    """A node row missing, moved, or changed in any column: health names the record, and repair makes the set whole."""
    rng = random.Random(world.scenario.seed)
    subject = world.open()
    stored = world.fill(subject)
    refs = refs_of(stored)
    world.settle(subject)
    before = {ref: world.nodes(subject, ref) for ref in refs}
    divided = [ref for ref in refs if before[ref]]
    if not divided:
        return
    victim = rng.choice(divided)
    how = _edit(subject, victim, before[victim], rng)
    if how is None:
        return
    world.evidence["node rows edited"] += 1
    named = subject.health().named_for_nodes()
    title = "health names a record whose node rows were edited"
    expect(victim in named, "tampered-nodes", title, expected=victim, got=sorted(named), after=how)
    repair_all(subject)
    for ref in refs:
        got = _comparable(subject.nodes(ref))
        expected = _comparable(before[ref])
        title = "repair makes an edited node set whole again and touches no other"
        expect(got == expected, "tampered-nodes", title, expected=expected, got=got, record=ref, after=how)


def _edit(subject: Subject, victim: Ref, before: list[Node], rng: random.Random) -> str | None:
    """Edit one of a record's node rows; says how, or None when no edit showed. Without vectors some change nothing."""
    node = rng.choice(before)
    for how, sql in rng.sample(_NODE_EDITS, len(_NODE_EDITS)):
        subject.execute(sql, (victim.kind, victim.id, node.index))
        if subject.nodes(victim) != before:
            return how
    return None


_WHERE = " WHERE parent_kind = ? AND parent_id = ? AND node_index = ?"
_NODE_EDITS = (
    ("a node deleted", f"DELETE FROM record_nodes{_WHERE}"),
    ("a start moved", f"UPDATE record_nodes SET start_char = start_char + 1{_WHERE}"),
    ("an end moved", f"UPDATE record_nodes SET end_char = end_char - 1{_WHERE}"),
    ("an end beyond the text", f"UPDATE record_nodes SET end_char = end_char + 9{_WHERE}"),
    ("an embedding removed", f"UPDATE record_nodes SET embedding = NULL{_WHERE}"),
    ("a token count changed", f"UPDATE record_nodes SET token_count = token_count + 1{_WHERE}"),
    ("a window changed", f"UPDATE record_nodes SET window = window + 1{_WHERE}"),
    ("another embedding", f"UPDATE record_nodes SET embedding = zeroblob(length(embedding)){_WHERE}"),
    ("another model", f"UPDATE record_nodes SET embedding_model = embedding_model || 'x'{_WHERE}"),
    ("an index moved", f"UPDATE record_nodes SET node_index = node_index + 1000{_WHERE}"),
)


def _comparable(nodes: list[Node]) -> list[tuple[int, int, int, int, int, str]]:
    return [(n.index, n.start, n.end, n.token_count, n.window, n.model) for n in nodes]


@law(
    "bad-row",
    "one unreadable row stops nothing else",
    source="Overflow Tree, section 3",
    requires="store nodes text execute design_schema health repair recall configure",
)
def one_bad_row(world: World) -> None:
    """A record whose text is not valid UTF-8, or a BLOB, keeps no other record from being read, found or built."""
    rng = random.Random(world.scenario.seed)
    subject = world.open(queue=False)
    scenario = world.scenario
    # Before the others: what ends at it never comes to them.
    bad = world.write(subject, scenario.records[0]).ref
    refs = refs_of(world.fill(subject))
    found = {query: subject.recall(query, scenario.records[0].scope, 10) for query in scenario.queries}
    table, column = TABLES[bad.kind]
    how, value = rng.choice(
        (
            ("a BLOB as text", "x'61ff62'"),
            ("invalid UTF-8", "CAST(x'61ff6220e38182ff' AS TEXT)"),
            ("a NUL in the text", "'a' || char(0) || 'b'"),
        )
    )
    subject.execute(f"UPDATE {table} SET {column} = {value} WHERE id = ?", (bad.id,))
    repair_all(subject)
    check_built(world, subject, refs, "bad-row", f"{how} in another row, and repair")
    for query, before in found.items():
        expected = {hit.ref for hit in before} - {bad}
        got = {hit.ref for hit in subject.recall(query, scenario.records[0].scope, 10)}
        title = "records beside an unreadable one are found as before"
        expect(
            got >= expected, "bad-row", title, expected=sorted(expected), got=sorted(got), query=repr(query), row=how
        )
    if how != "a NUL in the text":  # A character as any other.
        named = {kind for kind, named in subject.health().findings.items() if bad in named}
        expect(
            bool(named), "bad-row", "health names an unreadable row", expected=f"{bad} in a finding", got=named, row=how
        )


@law(
    "grown-window",
    "a record that now fits loses its nodes",
    source="Overflow Tree, section 2",
    requires="store nodes text health repair configure",
    on_corpus=False,
)
def grown_window(world: World) -> None:
    """When the window grows, nodes cut against the old one are named by health, and repair leaves what fits whole."""
    scenario = world.scenario
    subject = world.open()
    refs = refs_of(world.fill(subject))
    world.settle(subject)
    had = sorted(ref for ref in refs if world.nodes(subject, ref))
    grown = world.grow_window(4, renamed=scenario.seed % 2 == 0)
    subject.configure(model=grown.identity or "")
    named = subject.health().named_for_nodes()
    title = "nodes cut against another window are named by health"
    got = sorted(named & set(had))
    expect(got == had, "grown-window", title, expected=had, got=got, windows=(scenario.window.name, grown.window.name))
    repair_all(subject)
    for ref in refs:
        text = stored_text(subject, ref, "grown-window")
        nodes = subject.nodes(ref)
        expected = bool(grown.divides(text))
        title = "a record has nodes exactly when it runs past the grown window"
        expect(bool(nodes) == expected, "grown-window", title, expected=expected, got=len(nodes), text=repr(text))
        wrong = [n.window for n in nodes if n.window != grown.report(text).window]
        expect(not wrong, "grown-window", "nodes are cut against the grown window", expected=[], got=wrong)
