"""The corpus column of `overflow check`: every law once over real texts, with a real model behind the scripted server.

Vectors are cached on disk, so only the first run waits for the model; meanwhile progress counts the texts embedded.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType

from rich.progress import Progress

from overflow.contract.laws import Law
from overflow.contract.results import CorpusResult
from overflow.contract.runner import Runner
from overflow.contract.scenario import LENGTH_LIMIT, Record, Scenario
from overflow.embedding.cache import CachedEmbedder
from overflow.embedding.embedder import Vectors
from overflow.embedding.memory import RememberedWindow, remembered
from overflow.embedding.spec import Model, opened_model
from overflow.errors import InputError, UnavailableError
from overflow.measure.corpus import BUILDERS, Corpus, load

#: Records taken of a corpus of ours when a full window costs the model a second and not a millisecond.
_SLOW_MODEL_RECORDS = 48

#: Texts embedded at once, between two looks at the progress.
_BATCH = 8

#: How many records give a query from their head, and one from their tail.
_QUERIED = 6


class RealText(AbstractContextManager["RealText"]):
    """The records of a corpus and a model; made once, used for each law, and a context manager, which closes both."""

    def __init__(self, corpus: str, spec: str, seed: int, progress: Progress) -> None:
        texts = load(corpus)
        # Whoever names documents of their own is told of each of them.
        self._corpus = texts.subset(_SLOW_MODEL_RECORDS) if spec == "e5" and corpus in BUILDERS else texts
        with ExitStack() as opened:
            model = opened.enter_context(opened_model(spec))
            self._scenario = _scenario(self._corpus, model, seed)
            self._documents = _ids(self._corpus)
            self._opened = opened.pop_all()
        self._cached = CachedEmbedder(model)
        self._progress = progress
        self._task = progress.add_task(f"texts embedded by {spec}", total=None)
        self._model = remembered(self._vectors)
        self._is_embedded = False
        self.title = f"on {self._corpus.id}, {spec}"
        self.description = {
            "id": self._corpus.id,
            "sha256": self._corpus.digest,
            "records": len(self._corpus.records),
            "window": spec,
            "model": model.identity(),
        }

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def check(self, law: Law, runner: Runner) -> CorpusResult:
        """Run one law over the corpus, on the runner's subject: where that is gone, it is gone for both."""
        if not self._is_embedded:
            self._embed_ahead()
            self._is_embedded = True
        return runner.check_corpus(law, self._scenario, self._model, self._documents)

    def _embed_ahead(self) -> None:
        """Embed what a subject will most likely ask for: the time limit of its calls is not for a slow model."""
        texts = {record.text for record in self._scenario.records} | set(self._scenario.queries)
        for text in list(texts):
            texts |= {text[start:end] for start, end, _ in self._scenario.spans(text) or ()}
        ordered = sorted(texts)
        for place in range(0, len(ordered), _BATCH):
            self._model(ordered[place : place + _BATCH])

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        vectors = self._cached.embed(texts).vectors
        self._progress.advance(self._task, len(texts))
        return vectors


def _ids(corpus: Corpus) -> dict[str, str]:
    """The id of each text as it is stored; of equal texts every id."""
    ids: dict[str, str] = {}
    for document in corpus.records:
        text = document.text[:LENGTH_LIMIT]
        ids[text] = f"{ids[text]}, {document.id}" if text in ids else document.id
    return ids


def _scenario(corpus: Corpus, model: Model, seed: int) -> Scenario:
    """The corpus as one scenario: queries from heads and tails of its longest records, in Japanese, and nothing."""
    # A longer document would be stored only in part, and checked for that by the law of the limit alone.
    documents = [document.text[:LENGTH_LIMIT] for document in corpus.records]
    if not documents:
        raise InputError(f"the corpus {corpus.id} has no records")
    records = tuple(Record(text, "ep" if place % 4 == 3 else "mem") for place, text in enumerate(documents))
    longest = sorted(documents, key=len)[-_QUERIED:]
    queries = [text[-80:] for text in longest] + [text[:80] for text in longest] + ["請求データベースの版", ""]
    edits = (longest[0], documents[0])
    window = RememberedWindow(model.window)
    if window.measure(documents[:1]) == [None]:
        raise UnavailableError(f"{window.name} reports no tokens, so nothing is known of the corpus {corpus.id}")
    scenario = Scenario(window, records, tuple(queries), edits, seed, model.identity() or "unknown")
    if not any(scenario.runs_past(text) for text in sorted(documents, key=len, reverse=True)):
        raise InputError(
            f"the corpus {corpus.id} has no record that runs past the window of {window.name}, and so proves nothing;"
            " give longer texts or a smaller --window"
        )
    return scenario
