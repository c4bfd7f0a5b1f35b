"""Writes: what is stored, what a write answers, what it refuses, and that it asks the embedding server once."""

import sqlite3
import sys
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overflow.errors import InputError
from overflow.store import Health, Nodes, Ref, Scope, Stored
from overflow.store.errors import LockedRecordError, NoMoreIdsError, UnknownRecordError
from overflow.store.records import LENGTH_LIMIT, is_time
from overflow.tokens.synthetic import SyntheticWindow
from props.store.conftest import Bench, on_a_bench

SHORT = "a short one"
LONG = "one two three four five six seven eight nine. "
OTHER = "other words that run well past the window too. "

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


@on_a_bench
@given(text=texts, episode=st.booleans())
def test_a_text_is_stored_to_the_byte(bench: Bench, text: str, episode: bool) -> None:
    """What is read is what was written, NUL and every other character included."""
    store, raw = bench.fresh()
    ref = (store.archive_episode if episode else store.store)(text, Scope()).ref
    assert store.contents(ref, Scope()) == text
    stored = raw.execute("SELECT CAST(text AS BLOB), typeof(text) FROM records").fetchall()
    assert stored == [(text.encode(), "text")]


@pytest.mark.parametrize("put", ["store", "archive_episode"])
def test_a_write_makes_one_request(bench: Bench, put: str) -> None:
    """Vector and report come in one answer; counting and building are the queue's."""
    store = bench.open()
    for text in (SHORT, LONG, LONG * 300):
        bench.embedder.embedded.clear()
        getattr(store, put)(text, Scope())
        assert [len(texts) for texts in bench.embedder.embedded] == [1]
    assert bench.embedder.measured == []


@on_a_bench
@given(
    text=st.sampled_from((SHORT, LONG)),
    queue=st.booleans(),
    known=st.booleans(),
    how=st.sampled_from(("store", "archive", "update")),
)
def test_status_is_queued_exactly_when_a_build_is_owed(
    bench: Bench, text: str, queue: bool, known: bool, how: str
) -> None:
    """It runs past the window, the queue is on and tokens are known: then, and only then, a task waits."""
    store, raw = bench.fresh(queue=queue)
    before = store.store("x", Scope()).ref
    if not known:
        bench.embedder.window = bench.unknown
    put = {"store": store.store, "archive": store.archive_episode, "update": lambda text, _: store.update(before, text)}
    stored = put[how](text, Scope())
    expected = queue and known and text == LONG
    assert stored.nodes == (Nodes("queued") if expected else None)
    tasks = raw.execute("SELECT type, kind, id FROM tasks").fetchall()
    assert tasks == ([("nodes", stored.ref.kind, stored.ref.id)] if expected else [])


def test_a_record_is_stored_while_embeddings_are_away(bench: Bench) -> None:
    """Without a vector and without a status; words find it, and repair embeds it later."""
    store = bench.open()
    bench.embedder.away = True
    stored = store.store(LONG + "zebra", Scope())
    assert stored.nodes is None
    assert [hit.ref for hit in store.recall("zebra", Scope(), 5)] == [stored.ref]
    assert store.contents(stored.ref, Scope(), 0) is None
    bench.embedder.away = False
    health = store.check_health()
    assert health.findings["missing_vectors"] == (stored.ref,) == health.missing_nodes
    repaired = store.repair()
    assert (repaired.built, repaired.embedded) == (1, 1)
    health = store.check_health()
    assert (health.missing_nodes, health.findings) == ((), {})


@settings(on_a_bench, max_examples=15)
@given(extra=st.integers(-2, 50), unit=st.sampled_from(("a", "é", "漢", "🙂", "\0")))
def test_a_longer_text_is_cut_at_the_limit(bench: Bench, extra: int, unit: str) -> None:
    """Section 7: the limit stays at 16,000 code points, and what is stored is what everything is true of."""
    store, _ = bench.fresh()
    text = unit * (LENGTH_LIMIT + extra)
    ref = store.store(text, Scope()).ref
    assert store.contents(ref, Scope()) == text[:LENGTH_LIMIT]
    assert bench.embedder.embedded[0] == [text[:LENGTH_LIMIT]]
    assert store.update(ref, text).ref == ref
    assert store.contents(ref, Scope()) == text[:LENGTH_LIMIT]
    assert bench.embedder.embedded[1:] in ([], [[text[:LENGTH_LIMIT]]]), "the same text again is the same text"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "^the text is empty; give at least one character$"),
        ("a\ud800b", "lone surrogate"),
        ("\udfff", "lone surrogate"),
    ],
)
def test_a_text_that_is_none_is_refused(bench: Bench, text: str, says: str) -> None:
    """Empty text and lone surrogates are an input error for each write and read, and nothing is stored."""
    store = bench.open()
    ref = store.store(SHORT, Scope()).ref
    for write in (lambda: store.store(text, Scope()), lambda: store.update(ref, text)):
        with pytest.raises(InputError, match=says):
            write()
    if text:
        for read in (lambda: store.recall(text, Scope(), 1), lambda: store.quote(ref, text, Scope())):
            with pytest.raises(InputError, match=says):
                read()
    assert bench.raw().execute("SELECT id, content FROM memories").fetchall() == [(1, SHORT)]


def test_a_scope_that_is_no_text_is_refused() -> None:
    """An axis is Unicode as a text is."""
    with pytest.raises(InputError, match="lone surrogate"):
        Scope("agent", "\ud800")


def test_the_same_text_again_keeps_nodes_and_vector(bench: Bench) -> None:
    """A rewrite of the same text is no change of it: section 4, "changing a memory's content"."""
    store, raw = bench.open(), bench.raw()
    ref = store.store(LONG, Scope()).ref
    store.drain()
    state = "SELECT * FROM record_nodes", "SELECT * FROM node_sets", "SELECT embedding FROM memories"
    before = [raw.execute(sql).fetchall() for sql in state]
    asked = len(bench.embedder.embedded)
    bench.clock.now += 5
    assert store.update(ref, LONG) == Stored(ref, None)
    assert [raw.execute(sql).fetchall() for sql in state] == before
    assert len(bench.embedder.embedded) == asked
    assert raw.execute("SELECT updated_at FROM memories").fetchone() == (bench.clock.now,)


def test_the_same_text_again_says_queued_while_a_build_waits(bench: Bench) -> None:
    """The answer tells what is true of the record, not what this call did."""
    store = bench.open()
    ref = store.store(LONG, Scope()).ref
    assert store.update(ref, LONG).nodes == Nodes("queued")


def test_the_same_text_again_is_measured_where_a_trigger_queued_it(bench: Bench) -> None:
    """A trigger queues what it cannot measure: an update with that text tells that it fits."""
    store, raw = bench.open(), bench.raw()
    ref = store.store(LONG, Scope()).ref
    raw.execute("UPDATE memories SET content = ?", (SHORT,))
    assert store.update(ref, SHORT).nodes is None
    assert raw.execute("SELECT * FROM tasks").fetchall() == []
    assert store.check_health() == Health((), {})


@pytest.mark.parametrize("kept_from", ["server", "queue"])
def test_the_same_text_again_gets_what_the_record_lacks(bench: Bench, kept_from: str) -> None:
    """Section 3: a long record is queued by a write of it, whatever kept the first one from it."""
    store, raw = bench.open(queue=kept_from != "queue"), bench.raw()
    bench.embedder.away = kept_from == "server"
    ref = store.store(LONG, Scope()).ref
    bench.embedder.away, store.queue = False, True
    assert store.update(ref, LONG).nodes == Nodes("queued")
    assert raw.execute("SELECT embedding NOTNULL FROM memories").fetchall() == [(1,)]
    assert store.drain().built == 1
    assert bench.texts_of_nodes(raw) == LONG
    assert store.check_health() == Health((), {})


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE memories SET embedding = NULL",
        "UPDATE memories SET embedding_model = 'other'",
        "UPDATE record_vectors SET text_sha256 = 'of another text'",
    ],
)
def test_the_same_text_again_keeps_nodes_while_it_gets_a_vector(bench: Bench, damage: str) -> None:
    """Nodes that are current stay, and nothing is queued for them."""
    store, raw = bench.open(), bench.raw()
    ref = store.store(LONG, Scope()).ref
    store.drain()
    before = raw.execute("SELECT rowid, * FROM record_nodes").fetchall()
    raw.execute(damage)
    assert store.update(ref, LONG) == Stored(ref, None)
    assert store.check_health() == Health((), {})
    assert raw.execute("SELECT rowid, * FROM record_nodes").fetchall() == before
    assert raw.execute("SELECT embedding NOTNULL FROM memories").fetchall() == [(1,)]
    assert raw.execute("SELECT * FROM tasks").fetchall() == []


def test_the_same_text_again_asks_nobody_where_nothing_is_known_to_lack(bench: Bench) -> None:
    """Also of a store that has learnt no name yet: what is not known is not compared."""
    with bench.open() as store:
        ref = store.store(LONG, Scope()).ref
        store.drain()
    asked: list[str] = []
    bench.embedder.before = lambda what, _texts: asked.append(what)
    assert bench.open().update(ref, LONG).nodes is None
    assert asked == []


def test_the_same_bytes_that_were_no_text_are_another_text(bench: Bench) -> None:
    """A BLOB that another program wrote becomes a text, and gets its vector and its nodes."""
    store, raw = bench.open(), bench.raw()
    ref = store.store(LONG, Scope()).ref
    raw.execute("UPDATE memories SET content = CAST(content AS BLOB)")
    store.repair()
    assert store.check_health() == Health((), {"unreadable_text": (ref,)})
    assert store.update(ref, LONG).nodes == Nodes("queued")
    assert store.drain().built == 1
    assert store.check_health() == Health((), {})


def test_the_same_text_again_takes_no_build_away_while_the_server_is_away(bench: Bench) -> None:
    """What is known of a waiting record stays known: it is queued, and is built when the server is back."""
    store = bench.open()
    ref = store.store(LONG, Scope()).ref
    bench.embedder.away = True
    assert store.update(ref, LONG) == Stored(ref, Nodes("queued"))
    bench.embedder.away = False
    assert store.drain().built == 1


@pytest.mark.parametrize("change", ["model", "model of the nodes", "window"])
def test_the_same_text_again_is_queued_where_its_nodes_are_of_another_model(bench: Bench, change: str) -> None:
    """Or cut against another window, as far as the answer to its vector tells."""
    store, raw = bench.open(), bench.raw()
    ref = store.store(LONG, Scope()).ref
    store.drain()
    if change == "window":
        bench.embedder.window = SyntheticWindow("words", 5)
    else:
        bench.embedder.name = "tiny-2"
        store.refresh_model()
    has_vector = change == "model of the nodes"
    raw.execute(f"UPDATE memories SET {'embedding_model = ' + repr('tiny-2') if has_vector else 'embedding = NULL'}")
    assert store.update(ref, LONG) == Stored(ref, Nodes("queued"))
    assert store.drain().built == 1
    assert store.check_health() == Health((), {})


@pytest.mark.parametrize("put", ["store", "archive_episode"])
def test_a_store_without_ids_left_says_so(bench: Bench, put: str) -> None:
    """Nothing is full: AUTOINCREMENT gives no id twice, and after the largest there is none."""
    store, raw = bench.open(), bench.raw()
    getattr(store, put)(SHORT, Scope())
    raw.execute("UPDATE sqlite_sequence SET seq = ? WHERE name IN ('memories', 'episodes')", (2**63 - 1,))
    with pytest.raises(NoMoreIdsError, match="has given its last id; import an export into a new store"):
        getattr(store, put)(SHORT, Scope())
    assert raw.execute("SELECT count(*) FROM records").fetchone() == (1,)


def test_an_update_replaces_text_and_vector_and_queues_anew(bench: Bench) -> None:
    """Section 4: a changed text deletes its nodes, and the record is queued for new ones."""
    store, raw = bench.open(), bench.raw()
    ref = store.store(LONG, Scope()).ref
    store.drain()
    assert store.update(ref, OTHER).nodes == Nodes("queued")
    assert raw.execute("SELECT count(*) FROM record_nodes").fetchone() == (0,)
    vector = np.frombuffer(raw.execute("SELECT embedding FROM memories").fetchone()[0], "<f4")
    head = OTHER[: bench.embedder.window.measure([OTHER])[0].window_end_char]
    assert np.array_equal(vector, bench.embedder.vectors([head])[0])
    store.drain()
    assert bench.texts_of_nodes(raw) == OTHER


@pytest.mark.parametrize("meanwhile", [OTHER, "another"])
def test_the_same_text_again_is_none_when_the_record_changes_meanwhile(bench: Bench, meanwhile: str) -> None:
    """What another program writes before the lock is taken is replaced, vector and status with it."""
    raw = sqlite3.connect(bench.path("a.db"), isolation_level=None, timeout=0)
    armed = []

    class Late(sqlite3.Connection):
        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            if sql == "BEGIN IMMEDIATE" and armed:
                armed.clear()
                raw.execute("UPDATE memories SET content = ?", (meanwhile,))
            return super().execute(sql, parameters)

    with closing(raw):
        store = bench.open(factory=Late)
        ref = store.store(SHORT, Scope()).ref
        armed.append(True)
        assert store.update(ref, SHORT).nodes is None
        assert armed == raw.execute("SELECT * FROM tasks").fetchall() == []
        assert raw.execute("SELECT content, embedding NOTNULL FROM memories").fetchall() == [(SHORT, 1)]
        assert store.check_health() == Health((), {})


def test_a_locked_record_refuses_update_and_delete_and_gets_nodes(bench: Bench) -> None:
    """A lock guards the record, and nodes are none of it: section 3."""
    store, raw = bench.open(), bench.raw()
    ref = store.store(LONG, Scope()).ref
    store.lock(ref, True)
    for refused in (
        lambda: store.update(ref, OTHER),
        lambda: store.update(ref, LONG),
        lambda: store.delete(ref),
    ):
        with pytest.raises(LockedRecordError, match="mem 1 is locked; unlock it first"):
            refused()
    assert store.drain().built == 1
    assert bench.texts_of_nodes(raw) == LONG
    store.lock(ref, False)
    store.delete(ref)
    assert raw.execute("SELECT count(*) FROM record_nodes").fetchone() == (0,)


def test_a_record_that_is_not_there_is_named(bench: Bench) -> None:
    """Update, delete and lock of nothing are one clear line each."""
    store = bench.open()
    for missing in (
        lambda: store.update(Ref("ep", 9), SHORT),
        lambda: store.delete(Ref("ep", 9)),
        lambda: store.lock(Ref("ep", 9), True),
    ):
        with pytest.raises(UnknownRecordError, match="there is no ep 9"):
            missing()


@pytest.mark.parametrize("identifier", [2**63, -(2**63) - 1, 10**30])
def test_an_id_that_no_record_can_have_is_named(bench: Bench, identifier: int) -> None:
    """SQLite's ids are of 64 bits; a larger one is unknown, and no error of its own. The outermost ones are ids."""
    store = bench.open()
    for missing in (
        lambda: store.update(Ref("mem", identifier), SHORT),
        lambda: store.delete(Ref("mem", identifier)),
        lambda: store.lock(Ref("mem", identifier), True),
        lambda: store.contents(Ref("mem", identifier), Scope()),
        lambda: store.quote(Ref("mem", identifier), SHORT, Scope()),
    ):
        with pytest.raises(UnknownRecordError, match=f"there is no mem {identifier}"):
            missing()
    assert [store.contents(Ref("mem", edge), Scope()) for edge in (2**63 - 1, -(2**63))] == [None, None]


def test_an_update_and_a_delete_meanwhile_leave_nothing_behind(bench: Bench) -> None:
    """The record goes while its new text is being embedded: the update fails, and nothing is stored."""
    store, raw = bench.open(), bench.raw()
    ref = store.store(LONG, Scope()).ref
    bench.embedder.before = lambda what, _: raw.execute("DELETE FROM memories") if what == "embed" else None
    with pytest.raises(UnknownRecordError):
        store.update(ref, OTHER)
    for table in ("memories", "tasks", "record_vectors", "memories_fts"):
        assert raw.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((value, True) for value in (0, -1, 1.5, sys.float_info.max, -sys.float_info.max)),
        *((value, False) for value in (float("inf"), float("-inf"), float("nan"), 10**400, "1", b"1", None)),
    ],
)
def test_a_time_is_a_finite_number(value: object, expected: bool) -> None:
    """Of seconds, as large as a float can be; several are times when each is."""
    assert is_time(value) is expected
    assert is_time(0, value) is is_time(value, 0) is expected
