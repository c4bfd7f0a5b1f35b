"""Where something is asked of many texts and fewer answers come, nobody knows whose they are: that is an error.

An embedder that drops some breaks its protocol: a fault of its program, which no store can mend. Whoever asked stops.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from overflow.embedding.embedder import Embedded
from overflow.store import MemoryStore, Scope, building, search
from overflow.store.model import Model
from overflow.tokens.report import TokenReport
from props.store.conftest import Bench, TinyEmbedder

LONG = "one two three four five six seven eight nine. "


@dataclass
class Losing(TinyEmbedder):
    """Asked for `loses`, it answers all texts but the last, where there are several and all end with `end`."""

    loses: str = ""
    end: str = ""

    def embed(self, texts: Sequence[str]) -> Embedded:
        answered, kept = super().embed(texts), self._kept("embed", texts)
        return Embedded(answered.vectors[:kept], answered.reports[:kept])

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        return super().measure(texts)[: self._kept("measure", texts)]

    def _kept(self, what: str, texts: Sequence[str]) -> int:
        loses = what == self.loses and len(texts) > 1 and all(text.endswith(self.end) for text in texts)
        return len(texts) - loses


@pytest.mark.parametrize(("vectors", "reports"), [(1, 2), (2, 1)])
def test_a_vector_without_a_report_is_no_answer(bench: Bench, vectors: int, reports: int) -> None:
    """Nor is a report without a vector."""
    whole = bench.embedder.embed(["a", "b"])
    lost = Embedded(whole.vectors[:vectors], whole.reports[:reports])
    bench.embedder.embed = lambda _texts: lost  # type: ignore[method-assign]
    with pytest.raises(ValueError, match=r"shorter|longer"):
        Model(bench.embedder).embed_each(["a", "b"])


def _import(store: MemoryStore, bench: Bench) -> None:
    store.export(bench.path("export.jsonl"))
    store.import_(bench.path("export.jsonl"))


#: Who asks of several texts at once, for what, and the texts.
ASKING: dict[str, tuple[Callable[[MemoryStore, Bench], object], str, str]] = {
    "an import": (_import, "embed", "short"),
    "a health check": (lambda store, _bench: store.check_health(), "measure", "short"),
    "a build of last nodes": (lambda store, _bench: store.drain(), "embed", "one two three four the rest"),
    "a repair of vectors": (lambda store, _bench: store.repair(), "embed", "without a vector"),
}


@pytest.mark.parametrize("who", ASKING)
def test_too_few_answers_are_not_passed_over(bench: Bench, who: str) -> None:
    """By whoever asks of several texts at once."""
    ask, what, text = ASKING[who]
    embedder = Losing()
    store = bench.open(embedder=embedder)
    embedder.away = text == "without a vector"
    for number in range(2):
        store.store(f"{number} {text}", Scope())
    embedder.away = False
    embedder.loses, embedder.end = what, text[-8:]
    with pytest.raises(ValueError, match=r"shorter|longer"):
        ask(store, bench)


@pytest.mark.parametrize("who", ["drain", "repair"])
def test_a_build_without_an_outcome_is_not_passed_over(bench: Bench, monkeypatch: pytest.MonkeyPatch, who: str) -> None:
    """By the queue, and by the repair of the health check."""
    store = bench.open()
    for number in range(2):
        store.store(f"{LONG}{number}", Scope())
    whole = building.prepare
    monkeypatch.setattr(building, "prepare", lambda *asked: whole(*asked)[:-1])
    with pytest.raises(ValueError, match=r"shorter|longer"):
        getattr(store, who)()


def test_a_record_without_a_score_is_not_passed_over(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the vector arm of recall."""
    store = bench.open()
    for number in range(2):
        store.store(f"{number} short", Scope())
    whole: Callable[..., list[Any]] = search.cosines
    monkeypatch.setattr(search, "cosines", lambda *asked: whole(*asked)[:-1])
    with pytest.raises(ValueError, match=r"shorter|longer"):
        store.recall("short", Scope(), 5)
