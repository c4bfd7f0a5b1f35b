"""Recall and what is quoted: order, scope, safety of any query, and that no read touches a node or writes anything."""

import sqlite3
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from overflow.contract.strategies import FRAGMENTS
from overflow.store import Hit, Item, Quote, Ref, Scope, reconstruct
from overflow.store.database import Database
from overflow.store.reconstruct import PREVIEW
from overflow.store.search import RRF_K
from props.store.conftest import Bench, on_a_bench

LONG = "one two three four five six seven eight nine. "
HERE, THERE = Scope(), Scope("agent", "other project", "")

texts = st.one_of(
    st.lists(st.sampled_from(FRAGMENTS["mixed"]), min_size=1, max_size=4).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
)
queries = st.one_of(
    texts, st.sampled_from(("", " ", '"', '""" OR (', "a* NEAR/2 -b", "\0", "'; DROP TABLE memories; --", "%_\\"))
)


@on_a_bench
@given(stored=st.lists(texts, min_size=1, max_size=6), query=queries, limit=st.integers(-1, 8))
def test_recall_is_a_prefix_of_one_total_order(bench: Bench, stored: list[str], query: str, limit: int) -> None:
    """Any query is answered; scores never rise, equal ones are in order of kind and id, and a limit only cuts."""
    store, _ = bench.fresh()
    for number, text in enumerate(stored):
        (store.store if number % 2 else store.archive_episode)(text, HERE if number % 3 else THERE)
    every = store.recall(query, HERE, 100)
    assert every == sorted(every, key=lambda hit: (-hit.score, hit.ref))
    assert len({hit.ref for hit in every}) == len(every)
    assert store.recall(query, HERE, limit) == every[: max(limit, 0)]
    assert [(item.ref, item.score) for item in store.reconstruct(query, HERE, limit)] == [
        (hit.ref, hit.score) for hit in every[: max(limit, 0)]
    ]
    assert (every == []) == (query == "" or len(stored) == 1), "every record of the scope has a vector"


@on_a_bench
@given(stored=st.lists(texts, min_size=1, max_size=5), query=texts)
def test_recall_fuses_the_two_arms_by_reciprocal_rank(bench: Bench, stored: list[str], query: str) -> None:
    """Stated anew: each arm's ranks, counted from 1, add 1 / (60 + rank)."""
    store, _ = bench.fresh()
    refs = [store.store(text, HERE).ref for text in stored]
    found = {hit.ref: hit.score for hit in store.recall(query, HERE, 100)}
    bench.embedder.away = True
    words = [hit.ref for hit in store.recall(query, HERE, 100)]
    heads = [bench.embedder.window.measure([text])[0].window_end_char for text in (query, *stored)]
    vectors = bench.embedder.vectors([t[:end] for t, end in zip((query, *stored), heads, strict=True)]).astype(float)
    lengths = np.linalg.norm(vectors, axis=1)
    cosines = vectors[1:] @ vectors[0] / np.where(lengths[1:] * lengths[0] > 0, lengths[1:] * lengths[0], 1)
    for ref, cosine in zip(refs, cosines, strict=True):
        better = int((cosines > cosine + 1e-9).sum())
        equal = int((np.abs(cosines - cosine) <= 1e-9).sum())
        lexical = 1 / (RRF_K + 1 + words.index(ref)) if ref in words else 0
        lowest, highest = (1 / (RRF_K + 1 + better + ties) for ties in (equal - 1, 0))
        assert lowest - 1e-12 <= found[ref] - lexical <= highest + 1e-12


def test_records_of_equal_score_are_in_order_of_kind_and_id(bench: Bench) -> None:
    """First by words and second by vector is as good as the other way round; then the id decides."""
    store, raw = bench.open(), bench.raw()
    store.store("the query word, and much else that is not asked for", HERE)
    store.store("query word", HERE)
    near, far = (bench.embedder.vectors([text])[0].astype("<f4").tobytes() for text in ("query word", "#%)"))
    raw.execute("UPDATE memories SET embedding = CASE id WHEN 1 THEN ? ELSE ? END", (near, far))
    hits = store.recall("query word", HERE, 5)
    assert [hit.ref.id for hit in hits] == [1, 2]
    assert hits[0].score == hits[1].score == 1 / (RRF_K + 1) + 1 / (RRF_K + 2)


#: Of so few characters that two often share three in a row, and no four; " is a mark of the index's own language.
alike = st.text('abA" ', min_size=3, max_size=8)


@on_a_bench
@given(stored=st.lists(st.one_of(alike, texts), min_size=1, max_size=5), query=st.one_of(alike, texts))
@example(stored=["abcx", "xbcd", "abx"], query="abcd")
def test_words_find_every_record_that_holds_a_trigram_of_the_query(bench: Bench, stored: list[str], query: str) -> None:
    """The lexical arm alone, against plain search for the query's runs of 3 characters; NUL counts as white space."""
    store, _ = bench.fresh()
    refs = [store.store(text, HERE).ref for text in stored]
    bench.embedder.away = True
    runs = query.replace("\0", " ").split()
    trigrams = {run[at : at + 3] for run in runs for at in range(len(run) - 2)}
    found = {hit.ref for hit in store.recall(query, HERE, 100)}
    must = {
        ref
        for ref, text in zip(refs, stored, strict=True)
        if any(wanted in text.replace("\0", " ") for wanted in trigrams or runs)
    }
    may = {
        ref
        for ref, text in zip(refs, stored, strict=True)
        if any(_folded(wanted) in _folded(text.replace("\0", " ")) for wanted in trigrams or runs)
    }
    assert must <= found
    if query.isascii() and all(map(str.isascii, stored)):
        assert found == may


def _folded(text: str) -> str:
    return text.lower()


@pytest.mark.parametrize("query", ["\U0010ffff", "\U0010ffff\U0010fffe", "\x01"])
def test_the_outermost_characters_are_found_too(bench: Bench, query: str) -> None:
    """The last there are, and the first that is not NUL."""
    store = bench.open()
    bench.embedder.away = True
    refs = [store.store(text, HERE).ref for text in (f"a{query}b", "\U0010fffd\x02")]
    assert [hit.ref for hit in store.recall(query, HERE, 5)] == refs[:1]


@pytest.mark.parametrize("query", ["東京", "tokyo", "東", "OK"])
def test_a_query_below_three_characters_is_found_too(bench: Bench, query: str) -> None:
    """東京 has no trigram; and what stands behind a NUL is found as what stands before it."""
    store = bench.open()
    bench.embedder.away = True
    refs = [store.store(text, HERE).ref for text in ("彼女は\0東京に住む Tokyo ok", "京都", "nothing of it")]
    assert [hit.ref for hit in store.recall(query, HERE, 5)] == refs[:1]


@on_a_bench
@given(
    stored=st.lists(st.text("aAb東京é😀 \0", min_size=1, max_size=8), min_size=1, max_size=5),
    runs=st.lists(st.text("aAb東京é😀", min_size=1, max_size=2), min_size=1, max_size=6),
)
def test_short_runs_rank_by_how_many_of_them_a_record_holds(bench: Bench, stored: list[str], runs: list[str]) -> None:
    """Against plain search: ASCII letters alike in both cases, each different run once."""
    store, _ = bench.fresh()
    refs = [store.store(text, HERE).ref for text in stored]
    bench.embedder.away = True
    wanted = {run.encode().lower().decode() for run in runs}
    held = {
        ref: sum(run in text.replace("\0", " ").encode().lower().decode() for run in wanted)
        for ref, text in zip(refs, stored, strict=True)
    }
    found = [hit.ref for hit in store.recall(" ".join(runs), HERE, 100)]
    assert found == sorted((ref for ref in refs if held[ref]), key=lambda ref: (-held[ref], ref))


def test_many_short_runs_are_one_pass_over_the_texts(bench: Bench) -> None:
    """Their number is no factor: 256 runs took 256 passes."""
    statements = []

    class Traced(sqlite3.Connection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.set_trace_callback(statements.append)

    store = bench.open(factory=Traced)
    store.store("東京", HERE)
    bench.embedder.away = True
    statements.clear()
    store.recall(" ".join(chr(0x4E00 + number) * 2 for number in range(256)), HERE, 5)
    assert [sql.split()[1] for sql in statements if "lower(" in sql] == ["'mem',", "'ep',"]


def test_vectors_of_another_model_or_length_are_not_compared(bench: Bench) -> None:
    """They are no candidates of the vector arm, nor is what is no vector at all."""
    store, raw = bench.open(), bench.raw()
    store.store("zzz", HERE)
    store.store("zzz", HERE)
    raw.execute("UPDATE memories SET embedding_model = 'other' WHERE id = 1")
    raw.execute("UPDATE memories SET embedding = zeroblob(12) WHERE id = 2")
    assert store.recall("qqq", HERE, 5) == []
    raw.execute("UPDATE memories SET embedding = 'text', embedding_model = 'tiny-1'")
    assert store.recall("qqq", HERE, 5) == []


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_vector_of_no_numbers_ranks_last_and_breaks_nothing(bench: Bench, value: float) -> None:
    """The order stays total: a row edited by hand ranks behind every number."""
    store, raw = bench.open(), bench.raw()
    for text in ("zzz", "qqq", "zzz"):
        store.store(text, HERE)
    raw.execute("UPDATE memories SET embedding = ? WHERE id = 1", (np.full(16, value, "<f4").tobytes(),))
    assert [hit.ref.id for hit in store.recall("qqx", HERE, 5)] == [2, 3, 1]


def test_no_read_touches_a_node_or_writes(bench: Bench) -> None:
    """Retrieval is unchanged by nodes because recall never names their table: invariant 1, by construction."""
    statements = []

    class Traced(sqlite3.Connection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.set_trace_callback(statements.append)

    store = bench.open(factory=Traced)
    for text in (LONG, "short"):
        store.store(text, HERE)
    store.drain()
    raw = bench.raw()
    before = raw.execute("PRAGMA data_version").fetchone()
    statements.clear()
    store.recall("seven eight", HERE, 5)
    assert statements
    assert not [sql for sql in statements if "record_nodes" in sql or "node_sets" in sql]
    store.reconstruct("seven eight", HERE, 5)
    store.quote(Ref("mem", 1), "seven", HERE)
    store.contents(Ref("mem", 1), HERE, 0)
    store.check_health()
    # FTS5 takes a question as an INSERT.
    asked = [sql for sql in statements if "integrity-check" not in sql]
    assert not [sql for sql in asked if sql.split()[0] not in ("SELECT", "BEGIN", "COMMIT", "PRAGMA", "--")]
    assert raw.execute("PRAGMA data_version").fetchone() == before


def test_nodes_change_no_score(bench: Bench) -> None:
    """Invariant 1 on two stores with one history."""
    stores = [bench.open(f"{name}.db", queue=queue) for name, queue in (("with", True), ("without", False))]
    for store in stores:
        for number in range(12):
            (store.store if number % 2 else store.archive_episode)(LONG * (number + 1) + f"tail {number}", HERE)
        store.drain()
    assert bench.raw("with.db").execute("SELECT count(*) FROM record_nodes").fetchone()[0] > 50
    for query in ("tail 7", "one two", "日本語", "", "e"):
        answers = [
            (store.recall(query, HERE, 6), _without_quotes(store.reconstruct(query, HERE, 6))) for store in stores
        ]
        assert answers[0] == answers[1]


def _without_quotes(items: list[Item]) -> list[Hit]:
    return [Hit(item.ref, item.score) for item in items]


@on_a_bench
@given(words=st.lists(st.sampled_from("abcdefg"), min_size=5, max_size=30), query=st.text("abcdefg", max_size=4))
def test_the_most_relevant_node_is_quoted(bench: Bench, words: list[str], query: str) -> None:
    """The highest cosine of the query to a node's own vector, the lowest index of equal ones: section 6."""
    store, raw = bench.fresh()
    text = " ".join(words)
    ref = store.store(text, HERE).ref
    store.drain()
    spans = raw.execute("SELECT start_char, end_char FROM record_nodes ORDER BY node_index").fetchall()
    quote = store.quote(ref, query, HERE)
    if not query:
        assert (quote.start, quote.node) == (0, None)
        return
    vectors = bench.embedder.vectors([query, *(text[start:end] for start, end in spans)]).astype(float)
    scores = vectors[1:] @ vectors[0]
    best = int(np.flatnonzero(scores >= scores.max() - 1e-6)[0])
    chosen = scores[quote.node]
    assert chosen >= scores.max() - 1e-6
    if np.isclose(scores, chosen, atol=1e-6).sum() == (scores == chosen).sum():
        assert quote.node == best
    assert (quote.start, quote.end) == spans[quote.node]
    assert quote.text == text[quote.start : quote.end]
    (item,) = store.reconstruct(query, HERE, 1)
    assert item.quotes == (quote,)


def test_a_query_of_unknown_tokens_is_answered_as_any(bench: Bench) -> None:
    """What is not known is not compared: the nearest node is quoted."""
    store = bench.open()
    ref = store.store(LONG, HERE).ref
    store.drain()
    known = store.quote(ref, "nine", HERE)
    bench.embedder.window = bench.unknown
    assert store.quote(ref, "nine", HERE) == known
    assert [hit.ref for hit in store.recall("nine", HERE, 5)] == [ref]


def test_a_record_deleted_since_it_was_recalled_is_left_without_a_quote(bench: Bench) -> None:
    """Recall's order and scores stay what they were."""
    ref = bench.open().store("short", HERE).ref
    hits = [Hit(Ref("mem", 9), 2.0), Hit(ref, 1.0)]
    with closing(Database(bench.path("a.db"))) as database:
        items = reconstruct.reconstruct(database, hits, None, HERE)
    assert items == [Item(Ref("mem", 9), 2.0, ()), Item(ref, 1.0, (Quote(ref, 0, 5, "short", None),))]


def test_until_its_nodes_exist_a_record_is_quoted_from_its_start(bench: Bench) -> None:
    """Section 3; the same again while no query can be embedded."""
    store = bench.open()
    text = LONG * 40
    ref = store.store(text, HERE).ref
    pending = store.quote(ref, "nine", HERE)
    assert pending == Quote(ref, 0, PREVIEW, text[:PREVIEW], None)
    store.drain()
    shown = store.quote(ref, "nine", HERE)
    assert (shown.ref, shown.node is not None) == (ref, True)
    bench.embedder.away = True
    assert store.quote(ref, "nine", HERE) == pending


def test_a_node_is_read_only_in_its_record_s_scope(bench: Bench) -> None:
    """Section 4: it inherits the parent's isolation, whatever is known of it."""
    store = bench.open()
    ref = store.store(LONG, THERE).ref
    store.drain()
    assert store.contents(ref, THERE, 0) == "one two three "
    for scope in (HERE, Scope("another", "other project", ""), Scope("agent", "other project", "c")):
        assert store.contents(ref, scope) is None
        assert store.contents(ref, scope, 0) is None
        assert store.quote(ref, "one", scope) is None
        assert store.recall("one two", scope, 5) == []
