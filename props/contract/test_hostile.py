"""Subjects that are clumsy or hostile: whatever they raise, return or remove is told in a line, and is no traceback."""

import asyncio
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import Phase
from hypothesis.errors import StopTest

from overflow.contract.child import Child
from overflow.contract.conformity import require_conformity
from overflow.contract.evidence import PROFILES
from overflow.contract.gone import GoneError
from overflow.contract.laws import all_laws
from overflow.contract.results import Result
from overflow.contract.runner import Runner
from overflow.contract.signals import OverdueError, call_within
from overflow.contract.stdio import SubjectError
from overflow.contract.steps import Steps
from overflow.contract.subject import Hit, Node, Ref, Scope, Stored, Subject
from overflow.contract.watched import SubjectCrash, Watched
from overflow.embedding.wordllama import wordllama_vectors
from overflow.errors import InputError, UnavailableError
from overflow.subjects.reference import Reference

LAWS = {law.id: law for law in all_laws()}
#: Finding a failure is asked here, not making it small.
QUICK = replace(PROFILES["quick"], phases=(Phase.explicit, Phase.generate))
#: Python makes no digits of it.
HUGE = 10**5000


class Panic(BaseException):
    """As pyo3's PanicException is."""


class Untellable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


def result(subject: Callable[[], Subject], law_id: str = "3") -> Result:
    with Runner(subject, wordllama_vectors) as runner:
        return runner.check(LAWS[law_id], QUICK, 0)


def storing(act: Callable[[], Any]) -> type[Reference]:
    """The reference, whose store does something else."""

    class Stores(Reference):
        def store(self, text: str, scope: Scope) -> Stored:  # noqa: ARG002 - the protocol's parameters
            stored: Stored = act()
            return stored

    return Stores


def raising(error: BaseException) -> Callable[[], Any]:
    def act() -> Any:
        raise error

    return act


@pytest.mark.parametrize(
    "error",
    [asyncio.CancelledError(), GeneratorExit(), StopTest(0), Panic("at the disco"), KeyboardInterrupt(), Untellable()],
    ids=lambda error: type(error).__name__,
)
def test_any_exception_of_a_subject_is_its_crash(error: BaseException) -> None:
    """The error of one law, named by its type: no handler of the harness or of Hypothesis takes it for its own."""
    found = result(storing(raising(error)))
    assert (found.status, found.error) == ("violated", True)
    assert (found.reason or "").startswith(f"the subject's store raised {type(error).__name__}: ")


@pytest.mark.parametrize(
    "error", [Panic("x"), KeyboardInterrupt(), Untellable()], ids=lambda error: type(error).__name__
)
@pytest.mark.parametrize("method", ["__init__", "open", "close", "name", "version", "capabilities"])
def test_a_subject_that_cannot_be_introduced_is_not_available(method: str, error: BaseException) -> None:
    """Also where an attribute is a property that raises; the line names the method and the type."""
    body = property(lambda _: raising(error)()) if method in ("name", "version", "capabilities") else None
    kind = type("Kind", (Reference,), {method: body or (lambda *_: raising(error)())})
    with pytest.raises(UnavailableError, match=type(error).__name__), Runner(kind, wordllama_vectors):
        pass


def test_a_method_that_cannot_be_looked_up_is_a_crash() -> None:
    """Whatever an attribute of the subject raises is an error of the law that asked for it."""

    class Looked:
        @property
        def store(self) -> Any:
            raise Panic

    with pytest.raises(SubjectCrash, match="store raised Panic"):
        Watched(Looked(), {"store"}, Steps(), "a", 60.0).store("", Scope())  # type: ignore[arg-type]


def test_an_interruption_that_a_subject_swallows_still_ends_the_run() -> None:
    """A person who wants an end gets it when the call returns, whatever the subject made of the signal."""

    class Deaf(Reference):
        def store(self, text: str, scope: Scope) -> Stored:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                return super().store(text, scope)
            raise AssertionError

    with pytest.raises(KeyboardInterrupt, match=r"law 3, every node fits its window; the subject's store was running$"):
        result(Deaf)


@pytest.mark.parametrize("after", [lambda: 1, raising(ValueError("aborted"))])
def test_what_a_subject_makes_of_the_alarm_is_too_late(after: Callable[[], Any]) -> None:
    """An answer after the time is none, and an exception that hides the alarm is no failure of its own."""

    def call() -> Any:
        try:
            threading.Event().wait()
        except BaseException:  # noqa: BLE001 - as some subjects do
            return after()

    with pytest.raises(OverdueError, match=r"did not answer within 0.05 s"):
        call_within(0.05, call)


@pytest.mark.parametrize("recall", [None, 7])
def test_a_declared_capability_needs_its_method(recall: object) -> None:
    """Bad usage that names the class and the capability, and not a failure of every law that asks it."""
    kind = type("Boaster", (Reference,), {"capabilities": ("store", "recall"), "recall": recall})
    says = r"^Boaster declares the capability 'recall', and has no method 'recall'$"
    with pytest.raises(InputError, match=says), Runner(kind, wordllama_vectors):
        pass


@pytest.mark.parametrize(
    ("method", "value"),
    [
        ("store", Stored(Ref("mem", HUGE), None)),
        ("store", Stored(Ref("mem", -HUGE), None)),
        ("nodes", [Node(0, 0, HUGE, 1, 1, b"", "m")]),
        ("recall", [Hit(Ref("mem", 1), HUGE)]),
        ("execute", [[HUGE]]),
    ],
)
def test_numbers_without_digits_are_refused(method: str, value: Any) -> None:
    """They could be neither shown nor written to JSON."""
    with pytest.raises(TypeError, match=f"^{method} returned \\(a [A-Za-z]+ that cannot be shown"):
        require_conformity(method, value)


def test_a_record_named_by_a_number_without_digits_is_a_crash() -> None:
    """A number that Python makes no digits of is no answer (docs/subjects.md)."""
    found = result(storing(lambda: Stored(Ref("mem", HUGE), None)))
    assert (found.status, found.error) == ("violated", True)
    assert "store raised TypeError: store returned" in (found.reason or "")


class Tidy(Reference):
    """Removes its directory when it is closed."""

    def open(self, directory: str, embedding_url: str) -> None:
        super().open(directory, embedding_url)
        self._removed = Path(directory)

    def close(self) -> None:
        super().close()
        shutil.rmtree(self._removed)


class Tidier(Tidy):
    """Removes the one above it too: the run's own, at its introduction; never one outside of `within`."""

    within: ClassVar[Path]
    introduced: ClassVar[bool]

    def close(self) -> None:
        super().close()
        if not Tidier.introduced:
            assert self._removed.parent.is_relative_to(self.within)
            shutil.rmtree(self._removed.parent)
        Tidier.introduced = True


@pytest.mark.parametrize("kind", [Tidy, Tidier])
def test_a_subject_may_remove_its_directory(
    kind: type[Reference], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other example's is lost with it."""
    (tmp_path / "runs").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "runs"))
    monkeypatch.setattr(Tidier, "within", tmp_path / "runs", raising=False)
    monkeypatch.setattr(Tidier, "introduced", False, raising=False)
    assert result(kind).status == "holds"


LONG = "x" * 10_000_000


def test_a_long_message_is_told_by_its_ends() -> None:
    """What a subject says is shortened, and never hides the rest of the report."""
    found = result(storing(raising(ValueError("begin" + LONG + "end"))))
    assert found.reason is not None
    assert len(found.reason) < 1_000
    assert "ValueError: begin" in found.reason
    assert "(10000008 characters)" in found.reason
    assert "xend" in found.reason
    assert len(str(SubjectError("notes", "store", "KeyError", LONG, LONG))) < 2_000


def test_long_last_words_are_told_by_their_ends() -> None:
    """What a process wrote to stderr before it ended, here a line of 10 MB."""
    child = Child([sys.executable, "-c", "import sys; sys.stderr.write('y' * 10_000_000); sys.exit(4)"], 60.0)
    with pytest.raises(GoneError, match="ended with status 4") as ended:
        child.exchange(b"\n")
    assert len(str(ended.value)) < 1_000


def test_a_crash_names_the_line_of_the_subject_and_the_deepest() -> None:
    """A library's own line does not tell which of the subject's calls failed."""

    class Sleepy:
        def settle(self) -> None:
            shutil.copytree("/nowhere", "/nowhere else")

    line = Sleepy.settle.__code__.co_firstlineno + 1
    where = rf"\(test_hostile.py:{line}, in settle; deepest shutil.py:\d+, in copytree\)$"
    with pytest.raises(SubjectCrash, match=where):
        Watched(Sleepy(), {"settle"}, Steps(), "a", 60.0).settle()  # type: ignore[arg-type]


def test_a_crash_in_the_subject_itself_names_one_line() -> None:
    """Where the deepest line is the subject's own it is told once."""

    class Plain:
        def settle(self) -> None:
            time.sleep(-1)

    line = Plain.settle.__code__.co_firstlineno + 1
    with pytest.raises(SubjectCrash, match=rf" \(test_hostile.py:{line}, in settle\)$"):
        Watched(Plain(), {"settle"}, Steps(), "a", 60.0).settle()  # type: ignore[arg-type]
