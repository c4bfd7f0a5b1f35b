"""What one example lives in: a scripted embedding server, and subjects opened in fresh directories.

It hands a law subjects and facts seen past them: whether records really divided, and which texts the subject sent to be
embedded. It never judges. DESIGN.md, principles 3 and 4.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Literal, cast, get_args

from overflow.contract.scenario import Record, Scenario
from overflow.contract.steps import Steps
from overflow.contract.subject import Node, Ref, Stored, Subject
from overflow.contract.watched import Watched, started
from overflow.embedding.script import Hook, Reply, Request
from overflow.embedding.server import ScriptedServer
from overflow.tokens.synthetic import SyntheticWindow

SubjectFactory = Callable[[], Subject]

#: The answer of a server that fails: what a build or a read may meet at any time.
FAULT = Reply(503, b'{"error": "scripted fault"}')

#: The two ways in which a server does not know: it says so, or it is older than the question.
TokensUnknown = Literal["token_info: null", "404 to /count_tokens"]
TOKENS_UNKNOWN: tuple[TokensUnknown, ...] = get_args(TokensUnknown)
_NO_ROUTE = Reply(404, b"404: Not Found", (("Content-Type", "text/plain; charset=utf-8"),))

#: How often a law asks again for repair or settling before it says that it does not converge.
ROUNDS = 40


class World(AbstractContextManager["World"]):
    """One example's surroundings; closes every subject it opened.

    A law may call what it `requires`, and what it asked for with `offers`; `capabilities` are the subject's. `timeout`
    bounds each call (seconds).
    """

    def __init__(
        self,
        factory: SubjectFactory,
        server: ScriptedServer,
        scenario: Scenario,
        root: Path,
        capabilities: frozenset[str],
        requires: frozenset[str],
        timeout: float,
    ):
        self._factory = factory
        self._root = root
        self._capabilities = capabilities
        self._allowed = set(requires)
        self._timeout = timeout
        self._opened: dict[Subject, ExitStack] = {}
        self.server = server
        self.scenario = scenario
        self.steps = Steps()
        #: The records seen to have been divided, by the database or by what was embedded, each with its store's name.
        self.divided: set[tuple[str, Ref]] = set()
        #: How often what a law is about really happened, by its name.
        self.evidence: Counter[str] = Counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.script.hook = None
        with ExitStack() as closing:
            for opened in self._opened.values():
                closing.enter_context(opened)

    def offers(self, capability: str) -> bool:
        """Whether the subject offers what a law does not require but would use."""
        offered = capability in self._capabilities
        if offered:
            self._allowed.add(capability)
        return offered

    def open(self, name: str = "a", *, queue: bool | None = None) -> Subject:
        """A subject on the directory `name` of this example; the same name again opens the same store once more."""
        (self._root / name).mkdir(parents=True, exist_ok=True)
        opened = ExitStack()
        subject = opened.enter_context(self._handle(name))
        self._opened[subject] = opened
        if queue is not None:
            subject.configure(queue=queue)
        return subject

    def abandon(self, subject: Subject) -> None:
        """Close a subject before its example ends; it may be dead already."""
        self._opened.pop(subject).close()

    @contextmanager
    def second_handle(self, name: str = "a") -> Iterator[Subject]:
        """Another subject on the same store, for what happens while the first is busy; closed at once."""
        self.steps.note("by another handle (of a program: another process), from its open to its close:")
        with self._handle(name) as other:
            yield other

    @contextmanager
    def _handle(self, name: str) -> Iterator[Subject]:
        made = started(self._factory, self._timeout)
        subject = cast(Subject, Watched(made, self._allowed, self.steps, name, self._timeout))
        subject.open(str(self._root / name), self.server.url)
        try:
            yield subject
        finally:
            subject.close()

    def path(self, name: str) -> Path:
        return self._root / name

    def write(self, subject: Subject, record: Record) -> Stored:
        """Store one record; an episode as a memory where the subject has no episodes."""
        episode = record.kind == "ep" and self.offers("archive_episode")
        return (subject.archive_episode if episode else subject.store)(record.text, record.scope)

    def fill(self, subject: Subject) -> list[Stored]:
        """Store the scenario's records, in order."""
        return [self.write(subject, record) for record in self.scenario.records]

    def settle(self, subject: Subject) -> None:
        """Let the subject finish what it queued; nothing to do for one that has no queue."""
        if self.offers("settle"):
            subject.settle()

    def can_write_sql(self) -> bool:
        """Whether raw SQL on the tables of section 1 reaches the subject's records and nodes."""
        return self.offers("design_schema") and self.offers("execute")

    def can_update(self, ref: Ref) -> bool:
        """Whether `update` takes that record."""
        return self.offers("update") and (ref.kind == "mem" or self.offers("updates_episodes"))

    def grow_window(self, factor: int, *, renamed: bool) -> Scenario:
        """From now on the server's window is `factor` times as long; `renamed` says whether its identity tells so.

        Returns the scenario under the new window.
        """
        self.steps.note(f"the server's window grows to {factor} times as long" + ", under another name" * renamed)
        window = self.scenario.window
        if not isinstance(window, SyntheticWindow):
            raise TypeError(f"only a synthetic window can grow, not {window.name}")
        grown = SyntheticWindow(window.kind, window.window * factor, special_tokens=window.special_tokens)
        identity = f"{self.scenario.identity or 'model'} x{factor}" if renamed else self.scenario.identity
        scenario = replace(self.scenario, window=grown, identity=identity)
        self.server.script.window = scenario.window
        self.server.script.identity = scenario.identity
        return scenario

    def nodes(self, subject: Subject, ref: Ref) -> list[Node]:
        """The record's nodes, read from the database; remembers that something divided."""
        nodes = subject.nodes(ref)
        if len(nodes) > 1:
            self.has_divided(subject, ref)
        return nodes

    def has_divided(self, subject: Subject, ref: Ref) -> None:
        """Remember that this record was divided."""
        self.divided.add((cast(Watched, subject).place, ref))

    @property
    def most_divided(self) -> int:
        """How many records were divided in the store that divided most; records, for their texts may be equal."""
        return max(Counter(place for place, _ in self.divided).values(), default=0)

    def embedded_since(self, mark: int) -> set[str]:
        """Every text posted to be embedded since `mark`."""
        return {text for request in self.server.requests()[mark:] if request.path == "/embed" for text in request.texts}

    def mark(self) -> int:
        """Now, as `embedded_since` takes it."""
        return len(self.server.requests())

    @contextmanager
    def tokens_unknown(self, form: TokensUnknown) -> Iterator[None]:
        """While the block runs, the server does not report tokens, in that form."""
        self.steps.note(f"the server does not report tokens ({form})")
        self.server.script.window = None
        with self.meanwhile(lambda request: _NO_ROUTE if form == f"404 to {request.path}" else None):
            try:
                yield
            finally:
                self.server.script.window = self.scenario.window
        self.steps.note("the server reports tokens")

    @contextmanager
    def failing(self, after: int) -> Iterator[None]:
        """While the block runs, the server fails from its `after`-th request on."""
        served = 0

        def fail(_: Request) -> Reply | None:
            nonlocal served
            served += 1
            self.evidence["requests failed"] += served > after
            return FAULT if served > after else None

        self.steps.note(f"the server answers {after} requests, and fails")
        with self.meanwhile(fail):
            yield
        self.steps.note("the server answers again")

    @contextmanager
    def meanwhile(self, hook: Hook) -> Iterator[None]:
        """While the block runs, `hook` sees every request before it is answered; what it raises is raised here."""
        raised: list[Exception] = []

        def guarded(request: Request) -> Reply | None:
            try:
                return hook(request)
            except Exception as error:  # noqa: BLE001 - carried out of the server's thread, whatever it is
                raised.append(error)
                return FAULT

        outer, self.server.script.hook = self.server.script.hook, guarded
        try:
            yield
        finally:
            self.server.script.hook = outer
            if raised:
                raise raised[0]
