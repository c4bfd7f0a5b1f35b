"""A server that changes under one name, or answers what cannot be stored: found, mended, and never in the way."""

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from overflow.embedding.embedder import Embedded
from overflow.errors import UnavailableError
from overflow.store import Drained, Health, Ref, Scope, node_set
from overflow.store.model import Embedding, Model
from overflow.tokens.report import TokenReport
from overflow.tokens.synthetic import SyntheticWindow
from props.store.conftest import Bench, TinyEmbedder

LONG = "one two three four five six seven eight nine. "
CALM = Health((), {})


@dataclass
class Changing(TinyEmbedder):
    """Its vectors have `dimensions` numbers, and from request `at` on `later`; a report's count is `count`, if set."""

    dimensions: int = 4
    later: int = 8
    at: float = float("inf")
    count: int | None = None
    fill: float | None = None

    def embed(self, texts: Sequence[str]) -> Embedded:
        embedded = super().embed(texts)
        size = self.later if len(self.embedded) >= self.at else self.dimensions
        rows = embedded.vectors[:, :size] if self.fill is None else np.full((len(texts), size), self.fill, np.float32)
        return Embedded(np.ascontiguousarray(rows), self._counted(embedded.reports))

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        return self._counted(super().measure(texts))

    def _counted(self, reports: list[TokenReport | None]) -> list[TokenReport | None]:
        if self.count is None:
            return reports
        return [None if each is None else TokenReport(self.count, each.window, True, 3) for each in reports]


def _sizes(raw: sqlite3.Connection) -> list[tuple[int]]:
    return raw.execute(
        "SELECT length(embedding) FROM record_nodes UNION SELECT length(embedding) FROM records WHERE embedding NOTNULL"
    ).fetchall()


def test_dimensions_that_changed_under_one_name_are_named_and_mended(bench: Bench) -> None:
    """Records and nodes whose vectors have not the model's length now are made anew, as another model's are."""
    embedder = Changing()
    store, raw = bench.open(embedder=embedder), bench.raw()
    refs = (store.store(LONG, Scope()).ref, store.store("short", Scope()).ref)
    store.drain()
    assert store.check_health() == CALM
    embedder.dimensions = 8
    assert store.quote(refs[0], "three", Scope()).node is None
    store.store(LONG + "more", Scope())
    store.drain()
    health = store.check_health()
    assert health == Health(refs[:1], {"other_vectors": refs[:1], "missing_vectors": refs})
    repaired = store.repair()
    assert (repaired.built, repaired.embedded) == (1, 2)
    assert store.check_health() == CALM
    assert _sizes(raw) == [(32,)]
    assert all(item.quotes[0].node is not None for item in store.reconstruct("three", Scope(), 5) if item.ref.id != 2)


@pytest.mark.parametrize("at", range(2, 8))
def test_a_build_whose_vectors_change_their_length_is_not_kept(bench: Bench, at: int) -> None:
    """No node set mixes two models, wherever the change falls, and the next repairs mend what is left."""
    embedder = Changing(at=at)
    store, raw = bench.open(embedder=embedder), bench.raw()
    store.store(LONG, Scope())
    store.drain()
    assert len(raw.execute("SELECT DISTINCT length(embedding) FROM record_nodes").fetchall()) <= 1
    for _ in range(3):
        store.repair()
    assert store.check_health() == CALM
    assert _sizes(raw) == [(32 if len(embedder.embedded) >= at else 16,)]


def test_a_build_whose_vectors_change_their_length_says_so(bench: Bench) -> None:
    """Its task is tried again, and holds what was wrong."""
    store, raw = bench.open(embedder=Changing(at=3)), bench.raw()
    store.store(LONG, Scope())
    assert store.drain() == Drained(built=0, failed=1)
    assert raw.execute("SELECT last_error FROM tasks").fetchall() == [
        ("the embedder's vectors changed their dimensions while the record was divided",)
    ]


def test_nodes_written_with_unequal_vectors_are_named_and_mended(bench: Bench) -> None:
    """As a build of an earlier version left them, with digests that agree."""
    store, raw = bench.open(), bench.raw()
    ref = store.store(LONG, Scope()).ref
    store.drain()
    for vector in (np.zeros(8, "<f4").tobytes(), np.full(16, np.nan, "<f4").tobytes()):
        raw.execute("UPDATE record_nodes SET embedding = ? WHERE node_index = 0", (vector,))
        rows = tuple(
            node_set.NodeRow(*row)
            for row in raw.execute(
                "SELECT node_index, start_char, end_char, token_count, window, embedding, embedding_model"
                " FROM record_nodes ORDER BY node_index"
            )
        )
        raw.execute("UPDATE node_sets SET nodes_sha256 = ?", (node_set.digest(rows),))
        assert store.check_health() == Health((ref,), {"other_vectors": (ref,)})
        assert store.quote(ref, "three", Scope()).node is None
        assert store.repair().built == 1
        assert store.check_health() == CALM


@pytest.mark.parametrize("change", ["dimensions", "window"])
def test_a_model_of_another_shape_gives_its_own_name_to_what_is_stored(bench: Bench, change: str) -> None:
    """The identity is asked again only when an answer's dimensions or window are others: one request a store else."""
    embedder = Changing()
    store, raw = bench.open(embedder=embedder), bench.raw()
    asked = []
    embedder.before = lambda what, _texts: asked.append(what)
    for _ in range(3):
        store.store("short", Scope())
    assert asked == ["identity", "embed", "embed", "embed"]
    embedder.name = "tiny-2"
    if change == "dimensions":
        embedder.dimensions = 8
    else:
        embedder.window = SyntheticWindow("words", 9)
    store.store("short", Scope())
    names = "SELECT embedding_model FROM memories ORDER BY id"
    assert [name for (name,) in raw.execute(names)] == ["tiny-1", "tiny-1", "tiny-1", "tiny-2"]
    assert asked[4:] == ["embed", "identity"]
    assert store.check_health().findings["missing_vectors"] == tuple(Ref("mem", number) for number in (1, 2, 3))


def test_a_vector_keeps_the_name_it_was_asked_under(bench: Bench) -> None:
    """Another thread learns a new name while a text is embedded: the answer on its way is the older model's."""
    store, raw = bench.open(), bench.raw()
    store.store("first", Scope())

    def renamed(what: str, _texts: Sequence[str]) -> None:
        if what == "embed":
            bench.embedder.before = lambda *_: None
            bench.embedder.name = "tiny-2"
            other = threading.Thread(target=store.refresh_model)
            other.start()
            other.join()

    bench.embedder.before = renamed
    second = store.store("second", Scope()).ref
    assert raw.execute("SELECT embedding_model FROM memories WHERE id = 2").fetchall() == [("tiny-1",)]
    assert second in store.check_health().findings["missing_vectors"]


@pytest.mark.parametrize("look", ["check_health", "drain", "repair"])
def test_a_model_of_the_same_shape_is_known_from_the_next_look_on(bench: Bench, look: str) -> None:
    """Nothing in an answer tells it apart: until then its vectors have the older name, and are found by it."""
    store, raw = bench.open(), bench.raw()
    store.store("first", Scope())
    bench.embedder.name = "tiny-2"
    second = store.store("second", Scope()).ref
    getattr(store, look)()
    store.store("third", Scope())
    names = [name for (name,) in raw.execute("SELECT embedding_model FROM memories ORDER BY id")]
    assert names[2] == "tiny-2"
    assert names[1] == ("tiny-2" if look == "repair" else "tiny-1")
    assert second in store.check_health().findings.get("missing_vectors", ()) or look == "repair"
    store.repair()
    assert store.check_health() == CALM


def test_a_stored_text_is_sliced_without_the_server(bench: Bench) -> None:
    """A node of a record is a part of its text: to show it nobody is asked, so a server that hangs delays nothing."""
    store, raw = bench.open(), bench.raw()
    ref = store.store(LONG, Scope()).ref
    store.drain()
    (end,) = raw.execute("SELECT end_char FROM record_nodes WHERE node_index = 0").fetchone()
    asked: list[str] = []
    bench.embedder.before = lambda what, _texts: asked.append(what)
    bench.embedder.away = True
    assert store.contents(ref, Scope(), 0) == LONG[:end]
    assert bench.open().contents(ref, Scope(), 0) == LONG[:end], "nor by a store that has learnt no name yet"
    assert asked == []
    raw.execute("UPDATE record_nodes SET end_char = end_char - 1 WHERE node_index = 0")
    assert store.contents(ref, Scope(), 0) is None, "edited"


@pytest.mark.parametrize("look", ["check_health", "drain", "quote", "recall", "contents", "store"])
def test_a_server_that_hangs_is_asked_for_its_identity_once(bench: Bench, look: str) -> None:
    """Each question costs a time-out: who has just not learnt the name does not ask for it again."""
    store = bench.open()
    ref = store.store(LONG, Scope()).ref
    looks = {
        "quote": lambda: store.quote(ref, "nine", Scope()),
        "recall": lambda: store.recall("nine", Scope(), 1),
        "contents": lambda: store.contents(ref, Scope(), 0),
        "store": lambda: store.store("more", Scope()),
    }
    asked: list[str] = []
    bench.embedder.before = lambda what, _texts: asked.append(what)
    bench.embedder.unnamed = True
    looks.get(look, getattr(store, look))()
    assert asked.count("identity") <= (2 if look == "drain" else 1), asked


def test_a_model_that_states_no_name_is_stored_under_none(bench: Bench) -> None:
    """'' in the table, from the first record on."""
    store, raw = bench.open(), bench.raw()
    bench.embedder.name = None
    store.store("short", Scope())
    assert raw.execute("SELECT embedding_model FROM memories").fetchall() == [("",)]


def test_a_vector_that_nobody_can_name_is_not_kept(bench: Bench) -> None:
    """Its length tells that the model is another, and the server does not say which."""
    embedder = Changing()
    store, raw = bench.open(embedder=embedder), bench.raw()
    store.store("first", Scope())
    embedder.dimensions, embedder.unnamed = 8, True
    store.store("second", Scope())
    assert raw.execute("SELECT length(embedding), embedding_model FROM memories").fetchall() == [
        (16, "tiny-1"),
        (None, None),
    ]


def test_a_model_that_cannot_be_named_gives_no_vector_and_says_why(bench: Bench) -> None:
    """Of each text, and without asking for one."""
    bench.embedder.unnamed = True
    name, answers = Model(bench.embedder).embed_named(["a", "b"])
    assert name is None
    assert [str(answer) for answer in answers] == ["the model's identity cannot be learnt now"] * 2
    assert bench.embedder.embedded == []


def test_a_model_that_changes_under_each_question_is_asked_twice(bench: Bench) -> None:
    """Then words alone answer."""
    store = bench.open()
    ref = store.store("short", Scope()).ref
    asked = len(bench.embedder.embedded)

    def rename(what: str, _texts: Sequence[str]) -> None:
        if what == "embed":
            bench.embedder.name = f"tiny after {len(bench.embedder.embedded)}"

    bench.embedder.before = rename
    assert [hit.ref for hit in store.recall("short", Scope(), 5)] == [ref]
    assert len(bench.embedder.embedded) - asked == 2


@pytest.mark.parametrize("later", [0, 1])
def test_a_read_never_compares_with_vectors_of_another_model(bench: Bench, later: int) -> None:
    """Section 4: nodes of another model are missing, from the first read on, though nothing else tells them apart.

    Also when the other model comes between the vector and the name: then the vector is asked for again.
    """
    store = bench.open()
    ref = store.store(LONG, Scope()).ref
    store.drain()
    assert store.quote(ref, "nine", Scope()).node is not None
    asked = []

    def swap(what: str, _texts: Sequence[str]) -> None:
        asked.append(what)
        if len(asked) > later:
            bench.embedder.name = "tiny-2"

    bench.embedder.before = swap
    assert store.quote(ref, "nine", Scope()).node is None
    assert (store.contents(ref, Scope(), 0), store.contents(ref, Scope())) == (None, LONG)
    bench.embedder.before = lambda *_: None
    store.repair()
    assert store.quote(ref, "nine", Scope()).node is not None


NO_VECTOR = "the embedder answered a vector that is empty or not finite"
TOO_MANY = "the embedder reported {} tokens, more than can be stored"


@pytest.mark.parametrize(
    ("vector", "report", "says"),
    [
        ([], None, NO_VECTOR),
        ([np.nan, 0], None, NO_VECTOR),
        ([0, -np.inf], None, NO_VECTOR),
        ([0], TokenReport(2**63, 4, True, 1), TOO_MANY.format(2**63)),
        ([0], TokenReport(1, 2**63, False, 1), TOO_MANY.format(1)),
        ([0], TokenReport(1, 4, False, 2**63), TOO_MANY.format(1)),
        ([0], TokenReport(2**63 - 1, 2**63 - 1, False, 2**63 - 1), None),
        ([0, 1], None, None),
    ],
)
def test_an_answer_that_cannot_be_stored_says_why(
    bench: Bench, vector: list[float], report: TokenReport | None, says: str | None
) -> None:
    """A vector of no numbers, and a count that SQLite cannot hold, in any of a report's three numbers."""
    answered = Embedded(np.array([vector], np.float32), [report])
    bench.embedder.embed = lambda _texts: answered  # type: ignore[method-assign]
    (answer,) = Model(bench.embedder).embed_each(["a"])
    assert (str(answer) if isinstance(answer, UnavailableError) else None) == says
    if says is None:
        assert isinstance(answer, Embedding)
        assert (answer.vector.tolist(), answer.report) == (vector, report)


@pytest.mark.parametrize("answer", [{"count": 2**63}, {"count": 10**30}, {"fill": np.nan}, {"fill": np.inf}])
def test_an_answer_that_cannot_be_stored_is_none(bench: Bench, answer: dict[str, float]) -> None:
    """As when the server is away: the record is kept without a vector, and mended when the answers are."""
    embedder = Changing(**answer)
    store, raw = bench.open(embedder=embedder), bench.raw()
    stored = store.store(LONG, Scope())
    assert stored.nodes is None
    store.recall("one", Scope(), 3)
    store.drain()
    assert "missing_vectors" in store.check_health().findings
    store.repair()
    assert raw.execute("SELECT count(*) FROM records WHERE embedding NOTNULL").fetchone() == (0,)
    embedder.count = embedder.fill = None
    for _ in range(2):
        store.repair()
    assert store.check_health() == CALM
