"""What one example lives in: a scripted embedding server, and subjects opened in fresh directories.

It hands a law subjects and facts seen past them: whether records really divided, and which texts the subject sent to be
embedded. It never judges. DESIGN.md, principles 3 and 4.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import cast

from overflow.contract.scenario import Record, Scenario
from overflow.contract.subject import Node, Ref, Stored, Subject, capabilities
from overflow.contract.watched import Watched
from overflow.embedding.script import Hook, Reply, Request, Script
from overflow.embedding.server import ScriptedServer
from overflow.tokens.synthetic import SyntheticWindow

SubjectFactory = Callable[[], Subject]

#: The answer of a server that fails: what a build or a read may meet at any time.
FAULT = Reply(503, b'{"error": "scripted fault"}')

#: How often a law asks again for repair or settling before it says that it does not converge.
ROUNDS = 40


class World(AbstractContextManager["World"]):
    """One example's surroundings; closes every subject it opened."""

    def __init__(self, factory: SubjectFactory, server: ScriptedServer, script: Script, scenario: Scenario, root: Path):
        self._factory = factory
        self._root = root
        self._opened: list[Subject] = []
        self.capabilities: frozenset[str] = frozenset()
        self.server = server
        self.scenario = scenario
        #: The texts seen to have been divided, by the database or by what was embedded.
        self.divided: set[str] = set()
        self.evidence: Counter[str] = Counter()
        server.script = script
        server.reset()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.script.hook = None
        for subject in self._opened:
            subject.close()

    def open(self, name: str = "a", *, queue: bool | None = None) -> Subject:
        """A subject on the directory `name` of this example; the same name again opens the same store once more."""
        directory = self._root / name
        directory.mkdir(parents=True, exist_ok=True)
        made = self._factory()
        subject = cast(Subject, Watched(made))
        subject.open(str(directory), self.server.url)
        self._opened.append(subject)
        self.capabilities = capabilities(made)
        if queue is not None:
            subject.configure(queue=queue)
        return subject

    def abandon(self, subject: Subject) -> None:
        """Close a subject before its example ends; it may be dead already."""
        self._opened.remove(subject)
        subject.close()

    @contextmanager
    def second_handle(self, name: str = "a") -> Iterator[Subject]:
        """Another subject on the same store, for what happens while the first is busy; closed at once."""
        subject = cast(Subject, Watched(self._factory()))
        subject.open(str(self._root / name), self.server.url)
        try:
            yield subject
        finally:
            subject.close()

    def offers(self, capability: str) -> bool:
        return capability in self.capabilities

    def path(self, name: str) -> Path:
        return self._root / name

    def write(self, subject: Subject, record: Record) -> Stored:
        put = subject.store if record.kind == "mem" else subject.archive_episode
        return put(record.text, record.scope)

    def fill(self, subject: Subject) -> list[Stored]:
        """Store the scenario's records, in order."""
        return [self.write(subject, record) for record in self.scenario.records]

    def grow_window(self, factor: int) -> Scenario:
        """From now on the server's window is `factor` times as long, under another identity; the scenario under it."""
        window = self.scenario.window
        if not isinstance(window, SyntheticWindow):
            raise TypeError(f"only a synthetic window can grow, not {window.name}")
        grown = SyntheticWindow(window.kind, window.window * factor, special_tokens=window.special_tokens)
        scenario = replace(self.scenario, window=grown, identity=f"{self.scenario.identity} x{factor}")
        self.server.script.window = scenario.window
        self.server.script.identity = scenario.identity
        return scenario

    def nodes(self, subject: Subject, ref: Ref) -> list[Node]:
        """The record's nodes, read from the database; remembers that something divided."""
        nodes = subject.nodes(ref)
        if len(nodes) > 1:
            self.divided.add(subject.text(ref) or "")
        return nodes

    def embedded_since(self, mark: int) -> set[str]:
        """Every text posted to be embedded since `mark`."""
        return {text for request in self.server.requests()[mark:] if request.path == "/embed" for text in request.texts}

    def mark(self) -> int:
        """Now, as `embedded_since` takes it."""
        return len(self.server.requests())

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

        self.server.script.hook = guarded
        try:
            yield
        finally:
            self.server.script.hook = None
            if raised:
                raise raised[0]
