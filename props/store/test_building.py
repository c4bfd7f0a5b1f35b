"""What a build writes: the division's own spans, each with its own vector, at the cost of DESIGN.md,
"Linear cost".
"""

import pydoc_data.topics
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from overflow.contract.strategies import long_texts, windows
from overflow.division import Cost, TokensUnknownError, WindowTooSmallError, divide
from overflow.embedding.embedder import Embedded
from overflow.embedding.wordllama import WordllamaEmbedder
from overflow.store import Drained, MemoryStore, Ref, Scope
from overflow.store.building import Job, prepare
from overflow.store.model import Model
from overflow.store.records import LENGTH_LIMIT, Text
from overflow.tokens.report import TokenReport, TokenWindow
from overflow.tokens.synthetic import KINDS, SyntheticWindow
from props.store.conftest import Bench, on_a_bench

UNSAFE = tuple(name for name, kind in KINDS.items() if not kind.prefix_safe)
ROWS = (
    "SELECT start_char, end_char, token_count, window, embedding, embedding_model FROM record_nodes ORDER BY node_index"
)


@on_a_bench
@given(data=st.data())
def test_nodes_are_the_division_s_spans_with_their_own_vectors(bench: Bench, data: st.DataObject) -> None:
    """Every row is a span that `divide` gives with the same window, embedded alone; nothing else is written."""
    window = data.draw(windows())
    text = data.draw(long_texts(window, 6))
    store, raw = bench.fresh()
    bench.embedder.window, bench.embedder.prefix_safe = window, window.prefix_safe
    ref = store.store(text, Scope()).ref
    before = raw.execute("SELECT * FROM memories").fetchall()
    store.drain()
    try:
        spans = divide(text, window).spans
    except WindowTooSmallError:
        spans = ()
    vectors = bench.embedder.vectors([text[span.start : span.end] for span in spans])
    expected = [
        (span.start, span.end, span.token_count, span.window, vector.astype("<f4").tobytes(), "tiny-1")
        for span, vector in zip(spans, vectors, strict=True)
    ]
    assert raw.execute(ROWS).fetchall() == expected
    assert raw.execute("SELECT * FROM memories").fetchall() == before
    assert [store.contents(ref, Scope(), index) for index in range(len(spans))] == [
        text[span.start : span.end] for span in spans
    ]
    assert store.contents(ref, Scope(), len(spans)) is None


@on_a_bench
@given(case=windows(kinds=UNSAFE).flatmap(lambda window: st.tuples(st.just(window), long_texts(window, 3))))
@example(case=(SyntheticWindow("halves", 10), "a " * 20))
def test_a_text_is_divided_alike_however_it_came(bench: Bench, case: tuple[TokenWindow, str]) -> None:
    """Invariant 5, where a prefix does not tell and the embedder is believed: stored, set by raw SQL, or repaired.

    What fits has no nodes, though a stretch of it alone may run past the window.
    """
    window, text = case
    store, raw = bench.fresh()
    bench.embedder.window = window
    store.store(text, Scope())
    store.drain()
    stored = raw.execute(ROWS).fetchall()
    raw.execute("UPDATE memories SET content = 'x'")
    raw.execute("UPDATE memories SET content = ?", (text,))
    store.drain()
    assert raw.execute(ROWS).fetchall() == stored
    raw.execute("DELETE FROM record_nodes")
    store.repair()
    assert raw.execute(ROWS).fetchall() == stored
    (report,) = window.measure([text])
    assert report is not None
    assert report.truncated or stored == []


@pytest.mark.parametrize("how", ["grown", "raw"])
def test_a_text_that_fits_is_not_divided_by_a_stretch_of_it(bench: Bench, how: str) -> None:
    """98 characters are 49 tokens of `halves`, and 97 of them are 97: also when the window grew while it waited."""
    text = "ab. " * 24 + "ab"
    store, raw = bench.open(), bench.raw()
    bench.embedder.window = SyntheticWindow("halves", 6)
    ref = store.store(text if how == "grown" else "x", Scope()).ref
    bench.embedder.window = SyntheticWindow("halves", 50)
    if how == "raw":
        raw.execute("UPDATE memories SET content = ?", (text,))
    assert raw.execute("SELECT id FROM tasks").fetchall() == [(ref.id,)]
    store.drain()
    assert raw.execute("SELECT id FROM tasks").fetchall() == raw.execute(ROWS).fetchall() == []


@pytest.mark.parametrize("how", ["stored", "raw"])
def test_what_is_known_of_a_text_spares_the_sample_of_it(bench: Bench, how: str) -> None:
    """A report on the whole tells how dense its tokens are: the first stretch that is probed holds a whole window."""
    bench.embedder.window = SyntheticWindow("words", 100)
    store, raw = bench.open(), bench.raw()
    text = "word " * 400
    store.store(text if how == "stored" else "x", Scope())
    if how == "raw":
        raw.execute("UPDATE memories SET content = ?", (text,))
    assert store.drain().built == 1
    (probe,) = next(texts for texts in bench.embedder.measured if texts != [text])
    (report,) = bench.embedder.window.measure([probe])
    assert report is not None
    assert report.count >= report.window


def test_a_window_that_changed_while_a_record_waited_costs_one_more_look(bench: Bench) -> None:
    """DESIGN.md, "Linear cost", also then: the text is measured once more, and what follows by stretches of it."""
    bench.embedder.window = SyntheticWindow("words", 100)
    store = bench.open()
    text = "word " * 1_500
    store.store(text, Scope())
    bench.embedder.window = SyntheticWindow("words", 90)
    assert store.drain().built == 1
    assert sum(len(each) for texts in bench.embedder.measured for each in texts) <= 3 * len(text)


def test_a_last_node_that_is_refused_fails_its_record_alone(bench: Bench) -> None:
    """It is embedded when the others are, by itself: what refuses it is told, and the other record is built."""
    store, raw = bench.open(), bench.raw()
    for text in ("one two three four poison", "one two three four five"):
        store.store(text, Scope())
    bench.embedder.refuse = lambda what, text: what == "embed" and text.endswith("poison")
    assert store.drain() == Drained(built=1, failed=1)
    assert raw.execute("SELECT DISTINCT parent_id FROM record_nodes").fetchall() == [(2,)]
    assert raw.execute("SELECT id, last_error FROM tasks").fetchall() == [(1, "the tiny embedder is away")]


def test_unknown_tokens_tell_what_asking_cost(bench: Bench) -> None:
    """One request, of the whole text: as of every division."""
    bench.embedder.window = bench.unknown
    (outcome,) = prepare(Model(bench.embedder), [Job(Ref("mem", 1), Text(b"some words"), None)])
    assert isinstance(outcome, TokensUnknownError)
    assert outcome.cost == Cost(1, 1, len("some words"))


@on_a_bench
@given(names=st.tuples(*[st.sampled_from((None, "tiny-1", "tiny-2"))] * 2))
def test_nodes_of_another_model_are_missing_and_made_anew(bench: Bench, names: tuple[str | None, str | None]) -> None:
    """An absent identity is a value of its own: '' in the table, equal to itself, different from every name."""
    store, raw = bench.fresh()
    bench.embedder.name = names[0]
    ref = store.store("one two three four five six", Scope()).ref
    store.drain()
    bench.embedder.name = names[1]
    store.refresh_model()
    same = names[0] == names[1]
    assert (store.quote(ref, "six", Scope()).node is None) == (not same)
    assert (store.contents(ref, Scope(), 0) is None) == (not same)
    assert store.check_health().missing_nodes == (() if same else (ref,))
    assert store.repair().built == (not same)
    models = raw.execute("SELECT DISTINCT embedding_model FROM record_nodes UNION SELECT embedding_model FROM memories")
    assert models.fetchall() == [(names[1] or "",)]
    assert store.quote(ref, "six", Scope()).node is not None


class CountingEmbedder:
    """A real model that counts what it is asked, in characters and requests."""

    def __init__(self) -> None:
        self._model = WordllamaEmbedder()
        self.prefix_safe = self._model.prefix_safe
        self.characters, self.requests = Counter[str](), Counter[str]()

    def identity(self) -> str:
        return self._model.identity()

    def embed(self, texts: Sequence[str]) -> Embedded:
        return self._model.embed(self._counted("embed", texts))

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        return self._model.measure(self._counted("measure", texts))

    def _counted(self, what: str, texts: Sequence[str]) -> Sequence[str]:
        self.characters[what] += sum(map(len, texts))
        self.requests[what] += 1
        return texts


PROSE = " ".join(" ".join(topic.split()) for topic in pydoc_data.topics.topics.values())


@pytest.mark.parametrize("start", [0, 100_000, 200_000, 300_000])
def test_a_build_measures_at_most_1_6_characters_for_each(bench: Bench, start: int) -> None:
    """Spans get their count with their vector, so that only what follows is measured: DESIGN.md, "Linear
    cost"."""
    text = PROSE[start : start + LENGTH_LIMIT]
    embedder = CountingEmbedder()
    with MemoryStore(bench.path("a.db"), embedder) as store:
        ref = store.store(text, Scope()).ref
        assert embedder.characters == {"embed": LENGTH_LIMIT}
        assert store.drain().built == 1
        nodes = _count(bench, ref)
    assert nodes >= 5
    assert embedder.characters["measure"] <= 1.6 * LENGTH_LIMIT
    assert embedder.characters["embed"] <= 2.1 * LENGTH_LIMIT
    assert embedder.requests["measure"] <= 1.1 * nodes + 2


def test_a_backlog_shares_its_requests(bench: Bench) -> None:
    """Repair divides records side by side: 50 of them take at most 0.15 requests a node."""
    embedder = CountingEmbedder()
    with MemoryStore(bench.path("a.db"), embedder, queue=False) as store:
        for number in range(50):
            store.store(PROSE[4_000 * number :][:LENGTH_LIMIT], Scope())
        embedder.requests.clear()
        assert store.repair().built == 50
        nodes = bench.raw().execute("SELECT count(*) FROM record_nodes").fetchone()[0]
        assert nodes > 250
        assert embedder.requests.total() <= 0.15 * nodes


def _count(bench: Bench, ref: Ref) -> int:
    sql = "SELECT count(*) FROM record_nodes WHERE parent_kind = ? AND parent_id = ?"
    return bench.raw().execute(sql, (ref.kind, ref.id)).fetchone()[0]
