"""Nodes made from texts, without a lock and without a write: division and embedding of many records side by side.

What it makes is a proposal; `write` keeps it only if the record still holds the text it was made of. Overflow Tree,
sections 2 and 3: "divided and embedded before the write lock is taken".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from overflow.division import Ask, Cost, Density, Division, Span, Steps, TokensUnknownError, division
from overflow.errors import HarnessError, UnavailableError
from overflow.store import node_set
from overflow.store.database import Database
from overflow.store.model import Embedding, Model
from overflow.store.node_set import NodeRow
from overflow.store.records import Ref, Text, text_of
from overflow.store.vectors import pack, usable
from overflow.tokens.report import TokenReport

#: Records divided side by side: one request carries a text of each, so this bounds what one request takes to embed.
WIDTH = 25


@dataclass(frozen=True, slots=True)
class Job:
    """A record to build nodes for. `report` is an earlier one on the whole text, if known: it saves measuring that."""

    ref: Ref
    text: Text
    report: TokenReport | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a job came to. A record that fits has no rows."""

    ref: Ref
    text: Text
    model: str
    rows: tuple[NodeRow, ...]


Outcome = Prepared | HarnessError


def prepare(model: Model, jobs: Sequence[Job]) -> list[Outcome]:
    """The nodes of each job, or why it has none; one record's failure is its own. Without jobs nothing is asked.

    Whoever asks has refreshed the model, to see which records need nodes.
    """
    if not jobs:
        return []
    try:
        name = model.name()
    except HarnessError as error:
        return [error] * len(jobs)
    builds = [_Build(job) for job in jobs]
    for first in range(0, len(builds), WIDTH):
        _run(model, builds[first : first + WIDTH])
    # The server may have become another model's while it embedded; `write` asks for the name as it is now.
    model.refresh()
    return [build.outcome(name) for build in builds]


def write(database: Database, prepared: Prepared, model: Model) -> bool:
    """Keep what was prepared; False when the record is gone, or holds another text, or the model is another now.

    Call it inside a transaction.
    """
    if text_of(database, prepared.ref) != prepared.text or not model.is_still(prepared.model):
        return False
    node_set.replace(database, prepared.ref, prepared.text, prepared.rows)
    return True


def _steps(job: Job, prefix_safe: bool) -> Steps[tuple[Span, ...]]:
    """The division of a job, the same whoever asks for it: what is probed next depends on the report it starts from.

    That is one on the whole text, so that what fits is not divided because a stretch of it, measured alone, does not.
    """
    text, report = job.text.value, job.report
    if not text or not prefix_safe:
        return (yield from division(text, prefix_safe=prefix_safe)).spans
    if report is None:
        (report,) = yield Ask(None, text)
        if report is None:
            raise TokensUnknownError(Cost(1, 1, len(text)))
        if not report.truncated:
            return ()
    steps = division(text, prefix_safe=True, density=Density.of(text, report))
    reports = yield next(steps)
    if job.report is not None and any(each is not None and each.window != report.window for each in reports):
        # The window is another since the record was stored.
        return (yield from _steps(replace(job, report=None), prefix_safe))
    try:
        while True:
            reports = yield steps.send(reports)
    except StopIteration as stop:
        divided: Division = stop.value
        return divided.spans


@dataclass(slots=True)
class _Build:
    job: Job
    steps: Steps[tuple[Span, ...]] = field(init=False)
    ask: Ask | None = None
    embedded: dict[str, bytes] = field(default_factory=dict)
    result: tuple[Span, ...] | HarnessError | None = None

    def start(self, prefix_safe: bool) -> None:
        self.steps = _steps(self.job, prefix_safe)
        self.advance(None)

    def advance(self, reports: list[TokenReport | None] | None) -> None:
        self.ask = None
        try:
            self.ask = next(self.steps) if reports is None else self.steps.send(reports)
        except StopIteration as stop:
            self.result = stop.value
        except HarnessError as error:
            self.result = error

    def receive(self, answers: list[tuple[str, Embedding | TokenReport | HarnessError | None]]) -> None:
        reports: list[TokenReport | None] = []
        for text, answer in answers:
            if isinstance(answer, HarnessError):
                self.ask, self.result = None, answer
                return
            if isinstance(answer, Embedding):
                self.embedded[text] = pack(answer.vector)
                answer = answer.report
            reports.append(answer)
        self.advance(reports)

    def spans(self) -> Iterator[tuple[Span, str]]:
        if isinstance(self.result, tuple):
            text = self.job.text.value
            yield from ((span, text[span.start : span.end]) for span in self.result)

    def outcome(self, model: str) -> Outcome:
        assert self.result is not None
        if isinstance(self.result, HarnessError):
            return self.result
        vectors = [(span, self.embedded[text]) for span, text in self.spans()]
        if vectors and not usable([vector for _, vector in vectors], None):
            return UnavailableError("the embedder's vectors changed their dimensions while the record was divided")
        rows = tuple(
            NodeRow(index, span.start, span.end, span.token_count, span.window, vector, model)
            for index, (span, vector) in enumerate(vectors)
        )
        return Prepared(self.job.ref, self.job.text, model, rows)


def _run(model: Model, builds: Sequence[_Build]) -> None:
    for build in builds:
        build.start(model.prefix_safe)
    while running := [(build, build.ask) for build in builds if build.ask is not None]:
        embedded = iter(model.embed_each([ask.span for _, ask in running if ask.span is not None]))
        measured = iter(model.measure_each([ask.probe for _, ask in running if ask.probe is not None]))
        for build, ask in running:
            answers: list[tuple[str, Embedding | TokenReport | HarnessError | None]] = []
            if ask.span is not None:
                answers.append((ask.span, next(embedded)))
            if ask.probe is not None:
                answers.append((ask.probe, next(measured)))
            build.receive(answers)
    _embed_rests(model, builds)


def _embed_rests(model: Model, builds: Sequence[_Build]) -> None:
    """The last node of a record is a rest that fits: it was measured as a probe, and is not embedded yet."""
    missing = [(build, span) for build in builds for _, span in build.spans() if span not in build.embedded]
    for (build, span), answer in zip(missing, model.embed_each([span for _, span in missing]), strict=True):
        if isinstance(answer, HarnessError):
            build.result = answer
        else:
            build.embedded[span] = pack(answer.vector)
