"""Raw SQL on the records, past the store: triggers keep nodes, index, vector and queue true to the text. Section 4."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overflow.store import Ref, Scope
from props.store.conftest import Bench, on_a_bench

LONG = "one two three four five six seven eight nine. "
TEXTS = (LONG, LONG.upper(), "short", "a\0b zebra", "日本語の長い文 と 別の 文 が 続く よ ね", b"\xff\xfebytes", 17)

TABLES = {"mem": ("memories", "content"), "ep": ("episodes", "summary")}
STATEMENTS = (
    "INSERT INTO {table} ({text}) VALUES (:text)",
    "INSERT INTO {table} (id, {text}) VALUES (:id, :text) ON CONFLICT (id) DO UPDATE SET {text} = excluded.{text}",
    "REPLACE INTO {table} (id, {text}) VALUES (:id, :text)",
    "INSERT OR IGNORE INTO {table} (id, {text}) VALUES (:id, :text)",
    "UPDATE {table} SET {text} = :text WHERE id = :id",
    "UPDATE OR REPLACE {table} SET id = :other WHERE id = :id",
    "UPDATE OR REPLACE {table} SET rowid = :other, {text} = :text WHERE id = :id",
    "UPDATE OR IGNORE {table} SET id = :other, {text} = :text WHERE id = :id",
    "UPDATE {table} SET {text} = {text}, agent = 'moved' WHERE id = :id",
    "UPDATE {table} SET {text} = CAST({text} AS BLOB) WHERE id = :id",
    "DELETE FROM {table} WHERE id = :id",
    "DELETE FROM {table}",
)
#: A statement, the kind and id of the record it is about, another id, and a text.
Step = tuple[str, str, int, int, str | bytes | int]
steps = st.tuples(
    st.sampled_from(STATEMENTS),
    st.sampled_from(tuple(TABLES)),
    st.integers(1, 4),
    st.integers(1, 5),
    st.sampled_from(TEXTS),
)


@on_a_bench
@given(steps=st.lists(steps, min_size=1, max_size=6), recursive=st.booleans())
def test_whatever_sql_changes_a_record_its_nodes_go_and_its_index_follows(
    bench: Bench, steps: list[Step], recursive: bool
) -> None:
    """After each statement: nodes only of texts that are still stored under that id, and the index holds each text."""
    store, raw = bench.fresh()
    raw.execute(f"PRAGMA recursive_triggers = {recursive}")
    raw.text_factory = bytes
    for text in (LONG, LONG.upper(), "short"):
        store.store(text, Scope())
        store.archive_episode(text, Scope())
    store.drain()
    for statement, kind, identifier, other, text in steps:
        before, divided = _texts(raw), _divided(raw)
        table, column = TABLES[kind]
        raw.execute(statement.format(table=table, text=column), {"id": identifier, "other": other, "text": text})
        after = _texts(raw)
        still = {ref for ref in divided if after.get(ref) == before[ref]}
        assert _divided(raw) <= still
        if "REPLACE" not in statement:  # which may put another record, of the same text, in a record's place
            assert _divided(raw) == still, "the nodes of a record that did not change stay"
        assert _indexed(raw) == {ref: text.replace(b"\0", b" ") for ref, (text, _) in after.items()}
        tasks = {(k.decode(), i) for k, i in raw.execute("SELECT kind, id FROM tasks")}
        changed = {ref for ref in after if ref in before and after[ref] != before[ref]}
        assert tasks <= set(after), "a record that is gone waits for nothing"
        if statement.startswith("UPDATE") or not recursive:
            # Recursive triggers make a REPLACE INTO a delete and an insert, of which only health can tell.
            assert {ref for ref in changed if ref in divided or statement.startswith("UPDATE")} <= tasks
    for index in ("memories_fts", "episodes_fts"):
        raw.execute(f"INSERT INTO {index} ({index}) VALUES ('integrity-check')")
    store.drain()
    assert not {"orphan_rows", "edited_nodes", "stale_nodes", "stale_index"}.intersection(store.check_health().findings)
    store.repair()
    health = store.check_health()
    assert (health.missing_nodes, set(health.findings) - {"unreadable_text"}) == ((), set())


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_each_statement_takes_the_nodes_of_what_it_changes(bench: Bench, statement: str, kind: str) -> None:
    """The same as above for each statement alone, on the long record of each kind."""
    store, raw = bench.open(), bench.raw()
    raw.text_factory = bytes
    for text in (LONG, LONG.upper()):
        (store.store if kind == "mem" else store.archive_episode)(text, Scope())
    store.drain()
    before = _texts(raw)
    table, column = TABLES[kind]
    raw.execute(statement.format(table=table, text=column), {"id": 1, "other": 2, "text": "changed"})
    after = _texts(raw)
    assert _divided(raw) == {ref for ref in before if after.get(ref) == before[ref]}
    digests = raw.execute("SELECT parent_kind, parent_id FROM node_sets").fetchall()
    assert {(k.decode(), i) for k, i in digests} == _divided(raw)
    waiting = {(k.decode(), i) for k, i in raw.execute("SELECT kind, id FROM tasks")}
    assert waiting == {ref for ref in after if ref in before and after[ref] != before[ref]}


@pytest.mark.parametrize("kind", ["mem", "ep"])
def test_a_change_of_the_text_takes_the_vector_away(bench: Bench, kind: str) -> None:
    """The old text's vector would answer for the new one; health names what is left, and repair embeds it."""
    store, raw = bench.open(), bench.raw()
    ref = (store.store if kind == "mem" else store.archive_episode)("old words", Scope()).ref
    table, text = TABLES[kind]
    raw.execute(f"UPDATE {table} SET {text} = 'new words'")
    assert raw.execute(f"SELECT embedding, embedding_model FROM {table}").fetchone() == (None, None)
    assert store.check_health().findings == {"missing_vectors": (ref,)}
    raw.execute(
        f"REPLACE INTO {table} (id, agent, {text}, embedding, embedding_model) VALUES (1, 'agent', 'x', x'00', 'm')"
    )
    assert store.check_health().findings == {"missing_vectors": (ref,)}
    assert store.repair().embedded == 1
    assert store.check_health().findings == {}


def test_an_id_that_moves_takes_its_vector_along(bench: Bench) -> None:
    """The vector is of the text, which did not change."""
    store, raw = bench.open(), bench.raw()
    store.store("first words", Scope())
    store.store("second words", Scope())
    raw.execute("UPDATE OR REPLACE memories SET id = 2 WHERE id = 1")
    assert store.check_health().findings == {}
    assert store.recall("first words", Scope(), 5)[0].ref == Ref("mem", 2)


def test_an_id_is_never_used_again(bench: Bench) -> None:
    """AUTOINCREMENT: a node cannot come to point at another record."""
    store, raw = bench.open(), bench.raw()
    first = store.store(LONG, Scope()).ref
    store.delete(first)
    raw.execute("DELETE FROM memories")
    assert store.store(LONG, Scope()).ref.id == first.id + 1


def test_a_replaced_record_is_queued_for_new_nodes(bench: Bench) -> None:
    """REPLACE INTO is seen as an insert alone; the nodes it finds tell that there was a record."""
    store, raw = bench.open(), bench.raw()
    store.store(LONG, Scope())
    store.drain()
    raw.execute("REPLACE INTO memories (id, agent, content) VALUES (1, 'agent', ?)", (LONG.upper(),))
    assert store.drain().built == 1
    assert store.contents(Ref("mem", 1), Scope(), 0) == "ONE TWO THREE "


def _texts(raw: sqlite3.Connection) -> dict[tuple[str, int], tuple[bytes, bytes]]:
    rows = raw.execute("SELECT kind, id, CAST(text AS BLOB), typeof(text) FROM records")
    return {(kind.decode(), i): (text, type_) for kind, i, text, type_ in rows}


def _divided(raw: sqlite3.Connection) -> set[tuple[str, int]]:
    return {(kind.decode(), i) for kind, i in raw.execute("SELECT DISTINCT parent_kind, parent_id FROM record_nodes")}


def _indexed(raw: sqlite3.Connection) -> dict[tuple[str, int], bytes]:
    return {
        (kind, i): text
        for kind, table in (("mem", "memories_fts"), ("ep", "episodes_fts"))
        for i, text in raw.execute(f"SELECT rowid, CAST(text AS BLOB) FROM {table}")
    }
