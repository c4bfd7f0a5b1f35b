"""Health names each kind of damage, and only what is damaged; repair mends it, bounded, and touches nothing else."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from overflow.store import Health, Ref, Scope
from overflow.store.errors import DamagedStoreError
from overflow.store.health import FINDINGS
from overflow.store.repair import RUN_LIMIT
from overflow.tokens.synthetic import SyntheticWindow
from props.store.conftest import DIMENSIONS, Bench, Unsynced

LONG = "one two three four five six seven eight nine. "
SAME_LENGTH = "One two three four five six seven eight nine. "
VICTIM = Ref("mem", 1)
CALM = Health((), {})

#: SQL that damages memory 1 behind the triggers, what health then names, and whether its nodes are missing.
DAMAGE = {
    "a node deleted": (
        "DELETE FROM record_nodes WHERE parent_kind = 'mem' AND parent_id = 1 AND node_index = 1",
        {"edited_nodes"},
        True,
    ),
    "a start moved": (
        "UPDATE record_nodes SET start_char = start_char + 1 WHERE parent_kind = 'mem' AND parent_id = 1",
        {"edited_nodes"},
        True,
    ),
    "a vector removed": (
        "UPDATE record_nodes SET embedding = NULL WHERE parent_kind = 'mem' AND parent_id = 1",
        {"edited_nodes"},
        True,
    ),
    "a vector changed": (
        "UPDATE record_nodes SET embedding = zeroblob(64) WHERE parent_kind = 'mem' AND parent_id = 1",
        {"edited_nodes"},
        True,
    ),
    "a count changed": (
        "UPDATE record_nodes SET token_count = 1 WHERE parent_kind = 'mem' AND parent_id = 1",
        {"edited_nodes"},
        True,
    ),
    "a count that is no number": (
        "UPDATE record_nodes SET token_count = 'x' WHERE parent_kind = 'mem' AND parent_id = 1",
        {"edited_nodes"},
        True,
    ),
    "a model claimed": (
        "UPDATE record_nodes SET embedding_model = 'y' WHERE parent_kind = 'mem' AND parent_id = 1",
        {"edited_nodes"},
        True,
    ),
    "a node added": (
        "INSERT INTO record_nodes SELECT parent_kind, parent_id, 99, start_char, end_char, token_count, window,"
        " embedding, embedding_model FROM record_nodes WHERE parent_kind = 'mem' AND parent_id = 1 AND node_index = 0",
        {"edited_nodes"},
        True,
    ),
    "nodes of a short record": (
        "INSERT INTO record_nodes VALUES ('mem', 2, 0, 0, 5, 2, 4, x'00', 'tiny-1')",
        {"edited_nodes", "needless_nodes"},
        False,
    ),
    "digests removed": ("DELETE FROM node_sets", {"edited_nodes"}, True),
    "all nodes removed": ("DELETE FROM record_nodes", set(), True),
    "another text of the same length": (
        f"UPDATE memories SET content = '{SAME_LENGTH}' WHERE id = 1",
        {"stale_nodes", "stale_vectors", "stale_index", "missing_triggers"},
        True,
    ),
    "a text that fits": (
        "UPDATE memories SET content = 'short' WHERE id = 1",
        {"stale_nodes", "stale_vectors", "stale_index", "needless_nodes", "missing_triggers"},
        False,
    ),
    "a record deleted": (
        "DELETE FROM memories WHERE id = 1",
        {"orphan_rows", "stale_index", "missing_triggers"},
        False,
    ),
    "nodes of nothing": (
        "INSERT INTO record_nodes VALUES ('note', 7, 0, 0, 5, 2, 4, x'00', 'tiny-1')",
        {"orphan_rows"},
        False,
    ),
    "nodes of a kind that is no UTF-8": (
        "INSERT INTO record_nodes VALUES (CAST(x'ff' AS TEXT), 1, 0, 0, 5, 2, 4, x'00', 'tiny-1')",
        {"orphan_rows"},
        False,
    ),
    "nodes of a kind that is a blob": (
        "INSERT INTO record_nodes VALUES (x'6d656d', 1, 0, 0, 5, 2, 4, x'00', 'tiny-1')",
        {"orphan_rows"},
        False,
    ),
    "nodes of an id that is no number": (
        "INSERT INTO record_nodes VALUES ('mem', 'abc', 0, 0, 5, 2, 4, x'00', 'tiny-1')",
        {"orphan_rows"},
        False,
    ),
    "digests of nothing": ("INSERT INTO node_sets VALUES ('mem', 9, 'x', 'y')", {"orphan_rows"}, False),
    "a vector's digest of nothing": ("INSERT INTO record_vectors VALUES ('mem', 9, 'x')", {"orphan_rows"}, False),
    "a task of nothing": ("INSERT INTO tasks (type, kind, id) VALUES ('nodes', 'mem', 9)", {"orphan_rows"}, False),
    "a task of no report": (
        "INSERT INTO tasks (type, kind, id, window) VALUES ('nodes', 'mem', 1, 4)",
        {"odd_tasks"},
        False,
    ),
    "a task of a window of none": (
        "INSERT INTO tasks (type, kind, id, token_count, window, window_end_char) VALUES ('nodes', 'mem', 1, 9, 0, 4)",
        {"odd_tasks"},
        False,
    ),
    "a task of attempts that are no number": (
        "INSERT INTO tasks (type, kind, id, attempts) VALUES ('nodes', 'mem', 1, 'abc')",
        {"odd_tasks"},
        False,
    ),
    "a task that is never due": (
        "INSERT INTO tasks (type, kind, id, due_at) VALUES ('nodes', 'mem', 1, 9e999)",
        {"odd_tasks"},
        False,
    ),
    "a task leased for ever": (
        "INSERT INTO tasks (type, kind, id, lease_until) VALUES ('nodes', 'mem', 1, x'ff')",
        {"odd_tasks"},
        False,
    ),
    "a task of work that is none": (
        "INSERT INTO tasks (type, kind, id) VALUES (x'00', 'mem', 1)",
        {"odd_tasks"},
        False,
    ),
    "a failure of nothing": (
        "INSERT INTO failures VALUES ('nodes', 'mem', 9, 1, 0, 'x')",
        {"orphan_rows"},
        False,
    ),
    "an index emptied inside": ("DELETE FROM memories_fts_data WHERE id > 10", {"damaged_index"}, False),
    "an index without its structure": ("DELETE FROM memories_fts_data", {"damaged_index"}, False),
    "an index overwritten inside": (
        "UPDATE episodes_fts_data SET block = zeroblob(4) WHERE id > 10",
        {"damaged_index"},
        False,
    ),
    "an index of another text": (
        "UPDATE memories_fts_content SET c0 = 'ghosts' WHERE id = 1",
        {"damaged_index"},
        False,
    ),
    "an index without sizes": ("DROP TABLE memories_fts_docsize", {"damaged_index"}, False),
    "an index without terms": ("DROP TABLE episodes_fts_idx", {"damaged_index"}, False),
    "a vector lost": ("UPDATE memories SET embedding = NULL WHERE id = 1", {"missing_vectors"}, False),
    "a vector of another model": (
        "UPDATE memories SET embedding_model = 'other' WHERE id = 1",
        {"missing_vectors"},
        False,
    ),
    "a vector of another length": (
        "UPDATE memories SET embedding = zeroblob(32) WHERE id = 1",
        {"missing_vectors"},
        False,
    ),
    "a vector of no numbers": (
        "UPDATE memories SET embedding = CAST(x'0000c07f' || zeroblob(60) AS BLOB) WHERE id = 1",
        {"missing_vectors"},
        False,
    ),
    "a vector cut short": ("UPDATE memories SET embedding = x'0011' WHERE id = 1", {"missing_vectors"}, False),
    "an index entry lost": ("DELETE FROM memories_fts WHERE rowid = 1", {"stale_index"}, False),
    "an index entry of nothing": ("INSERT INTO memories_fts (rowid, text) VALUES (8, 'ghost')", {"stale_index"}, False),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_each_kind_of_damage_is_named_and_mended(bench: Bench, damage: str) -> None:
    """What no trigger saw is found by its name; one repair mends it; no other record's rows change."""
    _, expected, missing = DAMAGE[damage]
    store, raw = bench.open(), bench.raw()
    for put in (store.store, store.archive_episode):
        for text in (LONG, "short one"):
            put(text, Scope())
    store.drain()
    assert store.check_health() == CALM
    others = _others(raw)
    texts = raw.execute("SELECT kind, id, text, locked, updated_at FROM records WHERE NOT (kind = 'mem' AND id = 1)")
    before = texts.fetchall()
    _damage(raw, damage)
    health = store.check_health()
    assert set(health.findings) == expected
    affected = {ref for refs in health.findings.values() for ref in refs}
    if damage in ("digests removed", "all nodes removed"):
        assert set(health.missing_nodes) == {Ref("ep", 1), Ref("mem", 1)}
    else:
        assert health.missing_nodes == ((VICTIM,) if missing else ())
        strangers = {Ref("note", 7), Ref("mem", 9), Ref("mem", 8), Ref("\ufffd", 1), Ref(b"mem", 1), Ref("mem", "abc")}
        assert not affected - strangers - {VICTIM, Ref("mem", 2)}
    assert store.check_health() == health, "looking changes nothing"
    repaired = store.repair()
    assert repaired.built == len(health.missing_nodes)
    assert store.check_health() == CALM
    assert _others(raw) == others or damage in ("digests removed", "all nodes removed")
    assert (
        raw.execute(
            "SELECT kind, id, text, locked, updated_at FROM records WHERE NOT (kind = 'mem' AND id = 1)"
        ).fetchall()
        == before
    )


#: What brings about the kinds of finding that are no damage of one record, or that no repair mends.
OTHERWISE: dict[str, Callable[[Bench, sqlite3.Connection], object]] = {
    "other_model": lambda bench, _: setattr(bench.embedder, "name", "tiny-2"),
    "other_window": lambda bench, _: setattr(bench.embedder, "window", SyntheticWindow("words", 5)),
    "other_vectors": lambda bench, _: setattr(
        bench.embedder, "vectors", lambda texts: np.ones((len(texts), DIMENSIONS + 1), np.float32)
    ),
    "missing_tables": lambda _, raw: raw.execute("DROP TABLE tasks"),
    "unreadable_text": lambda _, raw: raw.execute("UPDATE memories SET content = x'ff'"),
    "empty_text": lambda _, raw: raw.execute("UPDATE memories SET content = ''"),
    "odd_columns": lambda _, raw: raw.execute("UPDATE memories SET agent = x'00'"),
    "unknown_tokens": lambda bench, raw: (
        raw.execute("DELETE FROM record_nodes"),
        setattr(bench.embedder, "window", bench.unknown),
    ),
    "undividable": lambda bench, raw: (
        raw.execute("UPDATE memories SET content = '漢字'"),
        setattr(bench.embedder, "window", SyntheticWindow("triples", 2)),
    ),
}
#: Of each kind that damage brings about, one that does.
BY_DAMAGE = {kind: damage for damage, (_, kinds, _) in DAMAGE.items() for kind in kinds}


@pytest.mark.parametrize("kind", FINDINGS)
def test_every_kind_of_finding_is_brought_about(bench: Bench, kind: str) -> None:
    """FINDINGS has no kind that health never names; none of them is there before."""
    store, raw = bench.open(), bench.raw()
    for put in (store.store, store.archive_episode):
        put(LONG, Scope())
    store.drain()
    assert store.check_health() == CALM
    if kind in OTHERWISE:
        OTHERWISE[kind](bench, raw)
    else:
        _damage(raw, BY_DAMAGE[kind])
    assert kind in store.check_health().findings


def test_no_kind_of_finding_is_unknown() -> None:
    """What the two tables bring about is what FINDINGS lists, each kind in one of them."""
    assert {*OTHERWISE, *BY_DAMAGE} == {*FINDINGS}
    assert not OTHERWISE.keys() & BY_DAMAGE.keys()


def _damage(raw: sqlite3.Connection, damage: str) -> None:
    sql, expected, _ = DAMAGE[damage]
    if "missing_triggers" in expected:
        for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            raw.execute(f"DROP TRIGGER {name}")
    raw.execute(sql)


@pytest.mark.parametrize("value", [b"\xff\xfe" + LONG.encode(), b"caf\xe9 " * 6])
@pytest.mark.parametrize("as_text", [True, False])
def test_an_unreadable_row_is_named_read_with_replacements_and_never_mended(
    bench: Bench, value: bytes, as_text: bool
) -> None:
    """Invariant 2: its nodes are those of the text as it is read; the row stays as it is, and so does the finding."""
    store, raw = bench.open(), bench.raw()
    bad, good = store.store("x", Scope()).ref, store.store(LONG, Scope()).ref
    raw.execute(f"UPDATE memories SET content = {'CAST(? AS TEXT)' if as_text else '?'} WHERE id = 1", (value,))
    store.drain()
    store.repair()
    text = value.decode("utf-8", "replace")
    assert store.contents(bad, Scope()) == text
    assert store.contents(bad, Scope(), 0) == text[: len(store.contents(bad, Scope(), 0))] != ""
    assert store.contents(good, Scope(), 0) == "one two three "
    assert store.recall("one two", Scope(), 1)[0].ref == good
    health = store.check_health()
    assert health == Health((), {"unreadable_text": (bad,)})
    raw.text_factory = bytes
    stored = raw.execute("SELECT content, typeof(content) FROM memories WHERE id = 1").fetchone()
    assert stored == (value, b"text" if as_text else b"blob")


def test_a_record_without_text_has_nothing_to_embed_or_divide(bench: Bench) -> None:
    """The store refuses one, another program may have written it: it is named, and the server is never asked of it."""
    store, raw = bench.open(), bench.raw()
    raw.execute("INSERT INTO memories (agent, content) VALUES ('agent', '')")
    assert store.check_health() == Health((), {"empty_text": (VICTIM,)})
    store.repair()
    assert "" not in [text for texts in bench.embedder.embedded + bench.embedder.measured for text in texts]
    assert store.contents(VICTIM, Scope()) == ""


def test_a_window_that_grew_or_shrank_is_found_without_another_name(bench: Bench) -> None:
    """The window itself tells: what fits now has needless nodes, what does not is cut anew."""
    store, raw = bench.open(), bench.raw()
    short, long = store.store(LONG, Scope()).ref, store.store(LONG * 5, Scope()).ref
    store.drain()
    bench.embedder.window = SyntheticWindow("words", 9)
    health = store.check_health()
    assert health == Health((long,), {"other_window": (short, long), "needless_nodes": (short,)})
    assert store.quote(long, "nine", Scope()).node is None, "nodes cut against another window are not quoted"
    repaired = store.repair()
    assert (repaired.built, repaired.removed) == (1, 1)
    assert store.check_health() == CALM
    assert raw.execute("SELECT DISTINCT parent_id, window FROM record_nodes").fetchall() == [(long.id, 9)]
    bench.embedder.window = SyntheticWindow("words", 2)
    assert store.check_health().missing_nodes == (short, long)
    assert store.repair().built == 2
    assert store.check_health() == CALM


def test_unknown_tokens_are_named_and_nothing_is_claimed(bench: Bench) -> None:
    """Unknown is not "fits", and not "missing" either: section 2, and DESIGN.md, principle 5."""
    store = bench.open(queue=False)
    refs = tuple(store.store(text, Scope()).ref for text in (LONG, "short"))
    bench.embedder.window = bench.unknown
    assert store.check_health() == Health((), {"unknown_tokens": refs})
    assert store.repair().built == 0
    bench.embedder.away = True
    assert store.check_health() == Health((), {"unknown_tokens": refs}), "a server that is away is no error"


def test_one_text_the_server_refuses_leaves_the_others_checked(bench: Bench) -> None:
    """One bad text stops nothing else: it alone is unknown, and the others are checked and built."""
    store = bench.open(queue=False)
    refs = [store.store(f"{LONG}{word}", Scope()).ref for word in ("a", "poison", "b")]
    bench.embedder.refuse = lambda _, text: "poison" in text
    assert store.check_health() == Health((refs[0], refs[2]), {"unknown_tokens": (refs[1],)})
    assert store.repair().built == 2


def test_records_whose_nodes_are_current_are_not_measured(bench: Bench) -> None:
    """A check of a divided store costs the one text that tells the window and the dimensions."""
    store = bench.open()
    for number in range(5):
        store.store(f"{LONG}{number}", Scope())
    store.drain()
    bench.embedder.measured.clear()
    bench.embedder.embedded.clear()
    assert store.check_health() == CALM
    assert [len(texts) for texts in bench.embedder.embedded] == [1]
    assert bench.embedder.measured == []


def test_texts_are_measured_as_many_at_a_time_as_a_request_carries(bench: Bench) -> None:
    """100 of them, and then the rest."""
    store, raw = bench.open(), bench.raw()
    raw.executemany("INSERT INTO memories (agent, content) VALUES ('agent', ?)", [(f"w{n}",) for n in range(150)])
    store.check_health()
    assert [len(texts) for texts in bench.embedder.measured] == [100, 50]


def test_one_run_builds_at_most_50_and_runs_converge(bench: Bench) -> None:
    """Section 3: one run builds at most 50 records, locked ones too, and a backlog converges over runs."""
    store, raw = bench.open(queue=False), bench.raw()
    refs = [store.store(f"{LONG}{number}", Scope()).ref for number in range(RUN_LIMIT + 7)]
    for ref in refs:
        store.lock(ref, True)
    assert [store.repair().built for _ in range(3)] == [50, 7, 0]
    assert store.check_health() == CALM
    assert raw.execute("SELECT count(DISTINCT parent_id) FROM record_nodes").fetchone() == (len(refs),)


@pytest.mark.parametrize("poisoned", [set(range(60)), set(range(0, 120, 2)), set(range(3, 113))])
def test_records_that_always_fail_keep_no_other_out(bench: Bench, poisoned: set[int]) -> None:
    """More failing records than one run takes, standing first: the others are built all the same."""
    store, raw = bench.open(queue=False), bench.raw()
    bench.embedder.window = SyntheticWindow("words", 2)
    raw.execute("BEGIN")
    for number in range(120):
        text = f"a b c{' poison' if number in poisoned else ''} {number}"
        raw.execute("INSERT INTO memories (agent, content) VALUES ('agent', ?)", (text,))
    raw.execute("COMMIT")
    bench.embedder.refuse = lambda what, text: what == "embed" and "poison" in text
    assert len(store.check_health().missing_nodes) == 120
    for _ in range(8):
        store.repair()
    left = {ref.id - 1 for ref in store.check_health().missing_nodes}
    assert left == poisoned
    bench.embedder.refuse = lambda *_: False
    while store.repair().built:
        pass
    while store.repair().embedded:
        pass
    assert store.check_health() == CALM
    assert raw.execute("SELECT count(*) FROM failures").fetchone() == (0,)


def test_who_never_failed_comes_before_who_failed_once(bench: Bench) -> None:
    """A record behind as many that fail as one run takes waits for one run, and no longer."""
    store = bench.open(queue=False)
    for number in range(RUN_LIMIT):
        store.store(f"{LONG}poison {number}", Scope())
    store.store(LONG, Scope())
    bench.embedder.refuse = lambda what, text: what == "embed" and "poison" in text
    assert [store.repair().built for _ in range(2)] == [0, 1]


def test_repair_embeds_at_most_50_vectors_a_run(bench: Bench) -> None:
    """Missing vectors converge over runs as nodes do."""
    store = bench.open()
    bench.embedder.away = True
    for number in range(RUN_LIMIT + 3):
        store.store(f"w{number}", Scope())
    bench.embedder.away = False
    assert [store.repair().embedded for _ in range(3)] == [50, 3, 0]
    assert store.check_health() == CALM


def test_a_record_changed_while_repair_builds_is_left_to_the_next_run(bench: Bench) -> None:
    """Nodes are never written for a text that is no longer stored."""
    store, raw = bench.open(queue=False), bench.raw()
    ref = store.store(LONG, Scope()).ref
    seen = []

    def change(what: str, texts: Sequence[str]) -> None:
        if what == "embed" and texts[0] in LONG and not seen:
            seen.append(what)
            raw.execute("UPDATE memories SET content = ?", (SAME_LENGTH,))

    bench.embedder.before = change
    assert store.repair().built == 0
    assert raw.execute("SELECT * FROM record_nodes").fetchall() == []
    assert store.check_health().missing_nodes == (ref,)
    assert store.repair().built == 1
    assert bench.texts_of_nodes(raw) == SAME_LENGTH


def test_a_record_changed_while_repair_embeds_is_left_to_the_next_run(bench: Bench) -> None:
    """A vector is never stored for a text that is no longer there, and never counted."""
    store, raw = bench.open(), bench.raw()
    bench.embedder.away = True
    ref = store.store("old words", Scope()).ref
    bench.embedder.away = False
    bench.embedder.before = lambda what, texts: (
        raw.execute("UPDATE memories SET content = 'new words'") if what == "embed" and texts == ["old words"] else None
    )
    assert store.repair().embedded == 0
    assert store.check_health().findings == {"missing_vectors": (ref,)}
    assert store.repair().embedded == 1


@pytest.mark.parametrize("damage", ["a node deleted", "an index emptied inside", "an index without its structure"])
def test_a_check_waits_for_no_writer(bench: Bench, damage: str) -> None:
    """It is a read: what takes the write lock to be seen is left out while another has it, the rest is named."""
    _, expected, _ = DAMAGE[damage]
    store, raw = bench.open(), bench.raw()
    store.store(LONG, Scope())
    store.drain()
    _damage(raw, damage)
    raw.execute("BEGIN IMMEDIATE")
    assert set(store.check_health().findings) | {"damaged_index"} == expected | {"damaged_index"}
    raw.execute("COMMIT")
    assert set(store.check_health().findings) == expected


def test_a_check_holds_the_write_lock_for_one_index_at_a_time(bench: Bench) -> None:
    """Writers get a turn between two of its questions."""
    statements: list[str] = []

    class Traced(Unsynced):
        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            statements.append(sql)
            return super().execute(sql, parameters)

    store = bench.open(factory=Traced)
    statements.clear()
    assert store.check_health() == CALM
    begun = [at for at, sql in enumerate(statements) if sql == "BEGIN IMMEDIATE"]
    held = [statements[at : statements.index("COMMIT", at)] for at in begun]
    asked = [[sql for sql in each if "integrity-check" in sql] for each in held]
    assert [len(each) for each in asked] == [1, 1]


def test_repair_takes_no_nodes_that_were_built_anew_while_it_looked(bench: Bench) -> None:
    """Named as edited, then rebuilt by another handle before the lock is taken: there is nothing to take away."""
    store, other, raw = bench.open(), bench.open(embedder=type(bench.embedder)()), bench.raw()
    store.store(LONG, Scope())
    store.drain()
    raw.execute("UPDATE record_nodes SET token_count = 1")
    built = []
    bench.embedder.before = lambda what, texts: (
        built.append(other.repair().built) if what == "measure" and texts == [LONG] and not built else None
    )
    repaired = store.repair()
    assert built == [1]
    assert repaired.removed == 0
    assert store.check_health() == CALM


def test_no_lock_is_held_while_repair_divides_and_embeds(bench: Bench) -> None:
    """Section 3: "divided and embedded before the write lock is taken"."""
    store, raw = bench.open(queue=False), bench.raw()
    for number in range(3):
        store.store(f"{LONG}{number}", Scope())
    raw.execute("PRAGMA busy_timeout = 0")
    asked = []

    def write(what: str, _texts: Sequence[str]) -> None:
        raw.execute("INSERT INTO episodes (agent, summary) VALUES ('other', 'x')")
        asked.append(what)

    bench.embedder.before = write
    assert store.repair().built == 3
    assert {"embed", "measure"} <= set(asked)
    store.queue = True
    store.store(LONG, Scope())
    assert store.drain().built == 1


def _others(raw: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return raw.execute(
        "SELECT * FROM record_nodes WHERE NOT (parent_kind = 'mem' AND parent_id IN (1, 2, 9, 'abc')"
        " OR parent_kind NOT IN ('mem', 'ep'))"
        " ORDER BY parent_kind, parent_id, node_index"
    ).fetchall()


def test_a_write_into_a_damaged_index_is_a_named_error(bench: Bench) -> None:
    """Rows behind the index stand where the new record's must go: nothing is kept, and a repair mends it."""
    store, raw = bench.open(), bench.raw()
    store.store("a memory", Scope())
    raw.execute("UPDATE memories_fts_data SET block = x''")
    with pytest.raises(DamagedStoreError, match="run repair"):
        store.store("another memory", Scope())
    assert raw.execute("SELECT count(*) FROM memories").fetchone() == (1,)
    store.repair()
    assert store.check_health() == CALM
    assert store.store("another memory", Scope()).ref.id == 2


def test_a_recall_from_an_index_that_lost_its_sizes_is_a_named_error(bench: Bench) -> None:
    """A rank over a total length of 0 is no number to SQLite, and no order to anyone."""
    store, raw = bench.open(), bench.raw()
    store.store("a memory", Scope())
    raw.execute("UPDATE memories_fts_data SET block = x'0100' WHERE id = 1")
    raw.execute("UPDATE memories_fts_docsize SET sz = x'00'")
    with pytest.raises(DamagedStoreError, match="run repair"):
        store.recall("memory", Scope(), 5)
    store.repair()
    assert [hit.ref.id for hit in store.recall("memory", Scope(), 5)] == [1]
