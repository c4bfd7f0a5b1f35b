"""The corpus column's texts and model: whose records are taken, and whose vectors."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest
from rich.progress import Progress

from overflow.cli.real_text import RealText, _ids
from overflow.contract.laws import all_laws
from overflow.contract.oracle import divide_by_the_rule
from overflow.contract.runner import Runner
from overflow.contract.scenario import Scenario
from overflow.embedding.embedder import Vectors
from overflow.embedding.script import Script
from overflow.embedding.server import ScriptedServer
from overflow.embedding.wordllama import wordllama_vectors
from overflow.errors import UnavailableError
from overflow.measure.corpus import Corpus, Document
from overflow.tokens.synthetic import SyntheticWindow, UnknownWindow

RECORDS = 60


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    """A person's own documents: more than are taken of the built-in corpus for a slow model."""
    path = tmp_path / "mine.jsonl"
    lines = [json.dumps({"id": number, "text": f"note {number} " * 300}) for number in range(RECORDS)]
    path.write_text("\n".join(lines))
    return str(path)


@pytest.fixture
def script() -> Script:
    return Script(SyntheticWindow("words", 40), wordllama_vectors, identity="served-1")


@pytest.fixture
def server(script: Script) -> Iterator[ScriptedServer]:
    with ScriptedServer(script) as server:
        yield server


def test_each_record_of_a_persons_own_corpus_is_checked(corpus: str) -> None:
    """A slow model takes longer over them, and none is left out in silence."""
    with RealText(corpus, "e5", 0, Progress()) as texts:
        assert (texts.description["records"], texts.title) == (RECORDS, "on mine.jsonl, e5")


def test_a_slow_model_takes_a_named_part_of_the_built_in_corpus() -> None:
    """Its title says how many."""
    with RealText("stdlib-docs", "e5", 0, Progress()) as texts:
        assert (texts.description["records"], texts.title) == (48, "on stdlib-docs/48, e5")


def test_equal_documents_are_named_together() -> None:
    """A text that two documents have is told as both, a long one by what of it is stored."""
    documents = (Document("a.md", "a"), Document("b.md", "b" * 16_001), Document("c.md", "a"))
    assert _ids(Corpus("x", "und", "x", "NOASSERTION", documents)) == {"a": "a.md, c.md", "b" * 16_000: "b.md"}


def test_no_call_of_a_subject_waits_for_a_slow_model(corpus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records, queries and the rule's own nodes are embedded before the first law asks anything of the subject."""
    embedded: set[str] = set()

    def vectors(self: RealText, texts: Sequence[str]) -> Vectors:  # noqa: ARG001 - in place of a method
        embedded.update(texts)
        return wordllama_vectors(texts)

    class Asked:
        def check_corpus(self, _law: object, scenario: Scenario, *_: object) -> None:
            (record, *_) = scenario.records
            nodes = divide_by_the_rule(record.text, scenario.report)
            assert len(nodes) >= 2
            assert {record.text[start:end] for start, end, _ in nodes} <= embedded
            assert {each.text for each in scenario.records} | set(scenario.queries) <= embedded

    monkeypatch.setattr(RealText, "_vectors", vectors)
    with RealText(corpus, "wordllama", 0, Progress()) as texts:
        texts.check(all_laws()[0], cast(Runner, Asked()))
    assert embedded


def test_a_corpus_is_embedded_by_the_server_that_is_named(corpus: str, server: ScriptedServer) -> None:
    """The model of the column is the server's own."""
    with RealText(corpus, server.url, 0, Progress()) as texts:
        assert texts.description["model"] == "served-1"
        assert texts.description["window"] == server.url


def test_a_server_that_counts_no_tokens_says_nothing_of_a_corpus(
    corpus: str, script: Script, server: ScriptedServer
) -> None:
    """Unknown is not "fits": the server lacks what the check needs, the corpus is not to blame."""
    script.window = UnknownWindow()
    with pytest.raises(UnavailableError, match="reports no tokens"):
        RealText(corpus, server.url, 0, Progress())
