"""A subject that never answers, and a run that is ended by a signal: one clear line, and nothing left behind."""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, NoReturn

import pytest

from overflow.contract import signals
from overflow.contract.evidence import PROFILES
from overflow.contract.laws import all_laws
from overflow.contract.runner import Runner
from overflow.contract.signals import OverdueError, call_within, interruptions
from overflow.contract.stdio import StdioSubject, command_maker
from overflow.contract.steps import Steps
from overflow.contract.subject import Hit, Scope, Stored
from overflow.contract.watched import Watched, started
from overflow.embedding.wordllama import wordllama_vectors
from overflow.errors import UnavailableError
from overflow.subjects.reference import Reference

HERE = Path(__file__).parent
LAWS = {law.id: law for law in all_laws()}
QUICK = PROFILES["quick"]


def never() -> NoReturn:
    threading.Event().wait()
    raise AssertionError


class Hangs(Reference):
    """Blocks in its write, and takes any failure for a reason to go on."""

    calls = 0
    made: ClassVar[list[Reference]] = []

    def open(self, directory: str, embedding_url: str) -> None:
        super().open(directory, embedding_url)
        Hangs.made.append(self)

    def store(self, text: str, scope: Scope) -> Stored:
        Hangs.calls += 1
        try:
            never()
        except Exception:  # noqa: BLE001 - as some subjects do
            return super().store(text, scope)

    def close(self) -> None:
        if Hangs.calls:
            never()
        super().close()


class Stubborn(Hangs):
    """Swallows what no subject should, once."""

    def store(self, text: str, scope: Scope) -> Stored:  # noqa: ARG002 - the protocol's parameters
        try:
            never()
        except BaseException:  # noqa: BLE001
            never()


class HangsInRecall(Hangs):
    store = Reference.store

    def recall(self, query: str, scope: Scope, limit: int) -> list[Hit]:  # noqa: ARG002 - the protocol's parameters
        never()


@pytest.mark.parametrize(
    ("kind", "law_id", "method"),
    [(Hangs, "3", "store"), (Stubborn, "3", "store"), (HangsInRecall, "pending", "recall")],
)
def test_subject_that_does_not_answer_is_gone(kind: type[Reference], law_id: str, method: str) -> None:
    """Not a violation, asked once, and no later law waits for it again; the line names the method and the limit."""
    Hangs.calls = 0
    with Runner(kind, wordllama_vectors, timeout=3.0) as runner:
        first = runner.check(LAWS[law_id], QUICK, 0)
        second = runner.check(LAWS["4"], QUICK, 0)
    assert (first.status, first.error) == ("violated", True)
    assert (first.reason or "").startswith(f"the subject's {method} did not answer within 3 s")
    assert runner.gone is not None
    assert (second.status, second.examples) == ("skipped", 0)
    assert Hangs.calls <= 1
    for given_up in Hangs.made:
        Reference.close(given_up)


class HangsInOpen(Reference):
    def open(self, directory: str, embedding_url: str) -> None:  # noqa: ARG002 - the protocol's parameters
        never()


class HangsWhenMade(Reference):
    def __init__(self) -> None:
        never()


@pytest.mark.parametrize(("kind", "method"), [(HangsInOpen, "open"), (HangsWhenMade, "start")])
def test_subject_that_does_not_open_is_not_available(kind: type[Reference], method: str) -> None:
    """A subject that does not open within its time is exit 3's, before any law."""
    with (
        pytest.raises(UnavailableError, match=rf"the subject's {method} did not answer within 0.2 s"),
        Runner(kind, wordllama_vectors, timeout=0.2),
    ):
        pass


def test_child_obeys_the_limit_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same number bounds a call of a process, also of one that `open` starts anew."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))
    echo = started(command_maker(f"{sys.executable} -m overflow.contract.stdio echo_subject:Echo"), 77.0)
    assert isinstance(echo, StdioSubject)
    assert echo._child.timeout == 77.0
    echo.close()
    echo.open("", "")
    assert echo._child.timeout == 77.0
    echo.close()


def test_alarm_puts_back_what_it_found() -> None:
    """A call bounds calls of its own, and whoever set an alarm before still has it."""

    def outer() -> float:
        with pytest.raises(OverdueError, match=r"within 0.05 s"):
            call_within(0.05, never)
        return signal.getitimer(signal.ITIMER_REAL)[0]

    before = signal.getsignal(signal.SIGALRM)
    assert 0 < call_within(300, outer) <= 300
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_calls_of_other_threads_are_not_bounded_here() -> None:
    """Signals are the main thread's: elsewhere a call is simply made."""
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(call_within(1e-9, lambda: 7)))
    thread.start()
    thread.join()
    assert answers == [7]


class Interrupting(Reference):
    number = signal.SIGINT

    def store(self, text: str, scope: Scope) -> Stored:
        signal.raise_signal(self.number)
        return super().store(text, scope)


class Terminating(Interrupting):
    number = signal.SIGTERM


class HangingUp(Interrupting):
    number = signal.SIGHUP


@pytest.fixture
def heard() -> Iterator[None]:
    """Whoever runs the tests may ignore SIGHUP, as nohup does, and a child process then does too."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("kind", [Interrupting, Terminating, HangingUp])
def test_interrupted_run_says_what_was_running(kind: type[Interrupting]) -> None:
    """Law and call are in the text of the KeyboardInterrupt, and the handlers are put back."""
    before = signal.getsignal(kind.number)
    with (
        pytest.raises(KeyboardInterrupt, match=r"^law 3, every node fits its window; the subject's store was running$"),
        Runner(kind, wordllama_vectors) as runner,
    ):
        runner.check(LAWS["3"], QUICK, 0)
    assert signal.getsignal(kind.number) is before


def test_a_signal_that_was_lost_ends_the_run_at_its_next_example(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception that is raised inside a finalizer or a callback is dropped: only the count tells of the signal."""
    asked: list[int] = []

    def example() -> None:
        asked.append(1)
        monkeypatch.setattr(signals, "_interruptions", interruptions() + 1)

    with pytest.raises(KeyboardInterrupt), Runner(Reference, wordllama_vectors, on_example=example) as runner:
        runner.check(LAWS["3"], QUICK, 0)
    assert len(asked) == 1


def test_a_signal_that_was_lost_ends_the_next_call_and_lets_it_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Within an example it is the subject's next call that ends, before it begins; what was opened is still closed."""
    called: list[str] = []

    class Called:
        def settle(self) -> None:
            called.append("settle")

        def close(self) -> None:
            called.append("close")

    with Runner(Reference, wordllama_vectors):
        watched = Watched(Called(), {"settle"}, Steps(), "a", 60.0)  # type: ignore[arg-type]
        monkeypatch.setattr(signals, "_interruptions", interruptions() + 1)
        with pytest.raises(KeyboardInterrupt):
            watched.settle()
        watched.close()
    assert called == ["close"]


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_run_that_is_ended_leaves_no_child(number: signal.Signals, tmp_path: Path) -> None:
    """A child stuck in a call, and what it started, end with the run; each holds the pipe open while it lives."""
    os.mkfifo(tmp_path / "alive")
    held = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    (tmp_path / "stuck.py").write_text(
        "import os, sys, threading\n"
        "from overflow.subjects.reference import Reference\n"
        "class Stuck(Reference):\n"
        "    def store(self, text, scope):\n"
        f"        os.write(os.open({str(tmp_path / 'alive')!r}, os.O_WRONLY), b'x')\n"
        "        threading.Event().wait()\n"
    )
    (tmp_path / "run.py").write_text(
        "import sys\n"
        "from overflow.contract.laws import all_laws\n"
        "from overflow.contract.evidence import PROFILES\n"
        "from overflow.contract.runner import Runner\n"
        "from overflow.contract.stdio import command_maker\n"
        "from overflow.embedding.wordllama import wordllama_vectors\n"
        "try:\n"
        "    with Runner(command_maker(sys.argv[1]), wordllama_vectors) as runner:\n"
        "        runner.check({law.id: law for law in all_laws()}['3'], PROFILES['quick'], 0)\n"
        "except KeyboardInterrupt as interrupt:\n"
        "    sys.exit(str(interrupt))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    command = f"sh -c '{sys.executable} -m overflow.contract.stdio stuck:Stuck; true'"
    run = subprocess.Popen([sys.executable, tmp_path / "run.py", command], stderr=subprocess.PIPE, env=environment)
    assert select.select([held], [], [], 60)[0] == [held]
    assert os.read(held, 1) == b"x"
    run.send_signal(number)
    _, said = run.communicate(timeout=60)
    assert said.decode().strip() == "law 3, every node fits its window; the subject's store was running"
    assert select.select([held], [], [], 30)[0] == [held]
    assert os.read(held, 1) == b""
    os.close(held)
