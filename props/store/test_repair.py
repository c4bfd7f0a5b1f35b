"""Repair counts what it did, takes away what must not stay, and leaves what changed while it looked to the next run."""

import sqlite3
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from overflow.store import Health, Repaired, Scope
from overflow.store.repair import RUN_LIMIT
from props.store.conftest import DIMENSIONS, Bench, TinyEmbedder

LONG = "one two three four five six seven eight nine. "
SAME_LENGTH = "One two three four five six seven eight nine. "
CALM = Health((), {})
#: What a check asks of the server when it wants its shape alone.
PROBE = "Does the embedding server answer?"
NOTHING = Repaired(built=0, failed=0, removed=0, embedded=0, indexed=0)


def test_where_nothing_is_wrong_nothing_is_done(bench: Bench) -> None:
    """And nothing is counted."""
    store = bench.open()
    store.store(LONG, Scope())
    store.drain()
    assert store.repair() == NOTHING


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE record_nodes SET token_count = 1",
        f"UPDATE memories SET content = replace(content, '{LONG[0]}', '{SAME_LENGTH[0]}')",
        "UPDATE memories SET content = 'short' || id",
    ],
    ids=["edited", "stale", "needless"],
)
def test_nodes_that_must_not_stay_go_whether_or_not_others_come(bench: Bench, damage: str) -> None:
    """While the server refuses what a build asks: they are counted by record, and nothing is quoted from them."""
    store, raw = bench.open(), bench.raw()
    refs = [store.store(f"{LONG}{number}", Scope()).ref for number in range(3)]
    store.drain()
    for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        raw.execute(f"DROP TRIGGER {name}")
    raw.execute(damage)
    bench.embedder.refuse = lambda what, text: what == "embed" and text != PROBE
    assert store.repair().removed == len(refs)
    assert raw.execute("SELECT * FROM record_nodes").fetchall() == []
    bench.embedder.refuse = lambda *_: False
    store.repair()
    assert store.check_health() == CALM


def test_what_is_removed_is_counted_together(bench: Bench) -> None:
    """Records whose nodes were edited, odd tasks, and the records that orphans are of."""
    store, raw = bench.open(), bench.raw()
    for number in range(2):
        store.store(f"{LONG}{number}", Scope())
    store.drain()
    raw.execute("UPDATE record_nodes SET token_count = 1")
    raw.execute("INSERT INTO tasks (type, kind, id, window) VALUES ('nodes', 'mem', 1, 4), ('nodes', 'mem', 2, 4)")
    raw.execute("INSERT INTO node_sets VALUES ('mem', 8, 'x', 'y'), ('mem', 9, 'x', 'y')")
    raw.execute("INSERT INTO record_vectors VALUES ('mem', 9, 'x')")
    assert store.repair() == Repaired(built=2, failed=0, removed=6, embedded=0, indexed=0)
    assert store.check_health() == CALM


def test_a_text_that_was_checked_is_not_measured_again(bench: Bench) -> None:
    """The report that told that it is long serves its division too."""
    store = bench.open(queue=False)
    store.store(LONG, Scope())
    assert store.repair().built == 1
    assert bench.embedder.measured.count([LONG]) == 1


@pytest.mark.parametrize("change", [f"UPDATE memories SET content = '{SAME_LENGTH}'", "DELETE FROM memories"])
def test_what_changed_while_repair_looked_is_left_to_the_next_run(bench: Bench, change: str) -> None:
    """The report was of another text, and so was the finding: neither nodes nor a vector are made of it."""
    store, raw = bench.open(queue=False), bench.raw()
    store.store(LONG, Scope())
    raw.execute("UPDATE memories SET embedding = NULL")

    def act(what: str, texts: Sequence[str]) -> None:
        if what == "measure" and texts == [LONG]:
            raw.execute(change)

    bench.embedder.before = act
    assert store.repair() == NOTHING
    assert (store.repair().built, store.check_health()) == (int(change.startswith("UPDATE")), CALM)


#: How the server of another handle differs from this one's.
OTHERS: dict[str, Callable[[TinyEmbedder], object]] = {
    "name": lambda embedder: setattr(embedder, "name", "tiny-2"),
    "dimensions": lambda embedder: setattr(
        embedder, "vectors", lambda texts: np.ones((len(texts), DIMENSIONS + 1), np.float32)
    ),
}


@pytest.mark.parametrize("other", OTHERS)
def test_nodes_that_another_model_built_anew_while_repair_looked_go(bench: Bench, other: str) -> None:
    """They are not current here: as if nobody had built them."""
    theirs = type(bench.embedder)()
    OTHERS[other](theirs)
    store, another, raw = bench.open(), bench.open(embedder=theirs), bench.raw()
    store.store(LONG, Scope())
    store.drain()
    raw.execute("UPDATE record_nodes SET token_count = 1")
    built: list[int] = []
    bench.embedder.before = lambda what, texts: (
        built.append(another.repair().built) if what == "measure" and texts == [LONG] and not built else None
    )
    assert (store.repair().removed, built) == (1, [1])
    store.repair()
    assert store.check_health() == CALM


@pytest.mark.parametrize("meanwhile", ["another text", "tokens become unknown"])
def test_a_build_that_fails_for_what_came_meanwhile_is_no_failure_of_the_record(bench: Bench, meanwhile: str) -> None:
    """It is not made to wait: nobody knows yet whether its text can be built."""
    store, raw = bench.open(queue=False), bench.raw()
    store.store(LONG, Scope())

    def act(what: str, texts: Sequence[str]) -> None:
        if what == "embed" and texts != [PROBE]:
            if meanwhile == "another text":
                raw.execute("UPDATE memories SET content = ?", (SAME_LENGTH,))
                bench.embedder.away = True
            else:
                bench.embedder.window = bench.unknown

    bench.embedder.before = act
    assert store.repair() == Repaired(built=0, failed=1, removed=0, embedded=0, indexed=0)
    assert _failures(raw) == []


def test_who_never_failed_is_embedded_before_who_failed_once(bench: Bench) -> None:
    """A record behind as many that fail as one run takes waits for one run, and no longer."""
    store, raw = bench.open(), bench.raw()
    texts = [*(f"poison {number}" for number in range(RUN_LIMIT)), "good"]
    raw.executemany("INSERT INTO memories (agent, content) VALUES ('agent', ?)", [(text,) for text in texts])
    bench.embedder.refuse = lambda what, text: what == "embed" and "poison" in text
    assert [store.repair().embedded for _ in range(2)] == [0, 1]


def test_while_the_model_has_no_name_nothing_is_embedded(bench: Bench) -> None:
    """And no record failed."""
    store, raw = bench.open(), bench.raw()
    raw.execute("INSERT INTO memories (agent, content) VALUES ('agent', 'short')")
    bench.embedder.unnamed = True
    assert store.repair() == NOTHING
    assert _failures(raw) == []


def test_a_failed_vector_is_noted_as_that(bench: Bench) -> None:
    """With what was wrong; it makes the record wait, and keeps nothing from its nodes."""
    store, raw = bench.open(queue=False), bench.raw()
    store.store(LONG, Scope())
    raw.execute("UPDATE memories SET embedding = NULL")
    bench.embedder.refuse = lambda what, text: what == "embed" and text == LONG
    assert store.repair() == Repaired(built=1, failed=0, removed=0, embedded=0, indexed=0)
    assert _failures(raw) == [("vector", 1, 0, "the tiny embedder is away")]
    bench.embedder.refuse = lambda *_: False
    assert store.repair() == Repaired(built=0, failed=0, removed=0, embedded=1, indexed=0)
    assert _failures(raw) == []


def _failures(raw: sqlite3.Connection) -> list[tuple[object, ...]]:
    return raw.execute("SELECT work, attempts, undividable, reason FROM failures").fetchall()
