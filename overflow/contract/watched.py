"""A subject whose every failure is told apart from the harness's own, and of which a law uses only what it may.

What a subject raises, whatever its type, becomes SubjectCrash, with the method that raised it: never a violation of a
law, and never mistaken for a defect of the harness, which is left to raise as it is. So does a call that takes too
long. A law that calls a method it neither requires nor asked for is such a defect. DESIGN.md, principle 4.
"""

import functools
import os
from collections.abc import Callable, Container
from typing import Any, TypeVar

from overflow.contract import told
from overflow.contract.adapter_kit import disk_is_full
from overflow.contract.conformity import require_conformity
from overflow.contract.gone import GoneError
from overflow.contract.signals import OverdueError, call_within, end_if_asked, interruptions
from overflow.contract.steps import Steps
from overflow.contract.subject import CAPABILITIES, Subject, SubjectDied, method_name
from overflow.errors import HarnessError

T = TypeVar("T")

_CAPABILITY_OF = {method_name(capability): capability for capability in CAPABILITIES}
_METHODS = {"open", "close", *_CAPABILITY_OF}


class SubjectCrash(Exception):
    """`method` of a subject of `module` raised `error`; `context` is that of a Violation: what led to it."""

    def __init__(self, method: str, error: BaseException, module: str | None = None) -> None:
        said = told.message(error)
        raised = said if isinstance(error, OverdueError) else f"raised {type(error).__name__}: {said}"
        super().__init__(f"{method} {raised}{told.where(error, module)}")
        self.method = method
        self.error = error
        self.context: dict[str, Any] = {}

    @property
    def unavailable(self) -> bool:
        """Whether the subject, or what it stands on, is gone: it ended, was given up, or its disk is full."""
        return isinstance(self.error, GoneError) or disk_is_full(self.error)


def answer(name: str, ask: Callable[[], T], module: str | None = None) -> T:
    """What `ask`, the subject's `name`, returns; SubjectCrash for whatever it raises.

    Raises KeyboardInterrupt, which says what was running, when a signal asked for an end meanwhile: no matter what the
    subject made of it. A child process that the subject forked and that comes back here ends at once.
    """
    if name != "close":  # What was opened is closed, above all when the run ends.
        end_if_asked()
    process, asked_to_end = os.getpid(), interruptions()
    error: BaseException | None = None
    try:
        value = ask()
    except BaseException as raised:  # noqa: BLE001 - it is foreign code, and raises what it likes
        error = raised
    if os.getpid() != process:
        os._exit(1)  # Two processes would go on with one run.
    if interruptions() > asked_to_end:
        raise KeyboardInterrupt(f"the subject's {name} was running") from error
    if error is not None:
        raise SubjectCrash(name, error, module) from error
    return value


def started(make: Callable[[], Subject], timeout: float) -> Subject:
    """A new subject, told how long each call of it may take; SubjectCrash when making it takes longer, or fails."""

    def start() -> Subject:
        subject = call_within(timeout, make, "start")
        if _limits_itself(subject):
            subject.limit_calls(timeout)  # type: ignore[attr-defined]  # no method of the protocol: a process has it
        return subject

    try:
        return answer("start", start)
    except SubjectCrash as crash:
        if isinstance(crash.error, HarnessError) and not isinstance(crash.error, OverdueError):
            raise crash.error from None  # It is none, or cannot be started, and says so itself.
        raise


def _limits_itself(subject: Subject) -> bool:
    """A process has a limit of its own, which holds in a thread that no alarm reaches, and keeps its last words."""
    return hasattr(subject, "limit_calls")


class Watched:
    """A subject with every method's exceptions wrapped, of which the capabilities in `allowed` may be called.

    Its calls are kept in `steps` under `place`, the name of its directory; `timeout` bounds each of them (seconds).
    """

    def __init__(self, subject: Subject, allowed: Container[str], steps: Steps, place: str, timeout: float) -> None:
        self._subject = subject
        self._allowed = allowed
        self._steps = steps
        self.place = place
        self._timeout = timeout
        self._may_die = False
        self._is_overdue = False

    def __getattr__(self, name: str) -> Any:
        capability = _CAPABILITY_OF.get(name)
        if capability is not None and capability not in self._allowed:
            raise LookupError(f"a law calls {name} and neither requires it nor asked whether it is offered")
        member = self._answer(name, lambda: getattr(self._subject, name))
        if name not in _METHODS:
            return member

        self._may_die = self._may_die or name == "kill_at"

        def call(*args: Any, **kwargs: Any) -> Any:
            if self._is_overdue and name == "close":
                return None  # What was given up holds whatever it held, and would only take as long again.
            step = self._steps.begin(self.place, name, args, kwargs)
            outcome: Any = None
            try:
                outcome = self._answer(name, functools.partial(_conforming, name, member, *args, **kwargs))
            except BaseException as raised:
                outcome = raised
                raise
            finally:
                self._steps.end(step, outcome)
            return outcome

        return call

    def _answer(self, name: str, ask: Callable[[], Any]) -> Any:
        def bounded() -> Any:
            return ask() if _limits_itself(self._subject) else call_within(self._timeout, ask, name)

        try:
            return answer(name, bounded, type(self._subject).__module__)
        except SubjectCrash as crash:
            if self._may_die and isinstance(crash.error, SubjectDied):
                raise crash.error from None
            self._is_overdue = isinstance(crash.error, OverdueError)
            raise


def _conforming(name: str, member: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    value = member(*args, **kwargs)
    require_conformity(name, value)
    return value
