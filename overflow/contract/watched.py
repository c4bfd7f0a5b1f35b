"""A subject whose every failure is told apart from the harness's own, and of which a law uses only what it may.

What a subject raises becomes SubjectCrash, with the method that raised it: never a violation of a law, and never
mistaken for a defect of the harness, which is left to raise as it is. So does a call that takes too long. A law that
calls a method it neither requires nor asked for is such a defect.
"""

import functools
import traceback
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

from overflow.contract.adapter_kit import disk_is_full
from overflow.contract.conformity import require_conformity
from overflow.contract.gone import GoneError
from overflow.contract.signals import OverdueError, call_within
from overflow.contract.steps import Steps
from overflow.contract.subject import CAPABILITIES, Subject, SubjectDied, method_name

_CAPABILITY_OF = {method_name(capability): capability for capability in CAPABILITIES}


class SubjectCrash(Exception):
    """`method` of the subject raised `error`; `context` is that of a Violation: what led to it."""

    def __init__(self, method: str, error: BaseException) -> None:
        raised = str(error) if isinstance(error, OverdueError) else f"raised {type(error).__name__}: {error}"
        super().__init__(f"{method} {raised}{_where(error)}")
        self.method = method
        self.error = error
        self.context: dict[str, Any] = {}

    @property
    def unavailable(self) -> bool:
        """Whether the subject, or what it stands on, is gone: it ended, was given up, or its disk is full."""
        return isinstance(self.error, GoneError) or disk_is_full(self.error)


def _where(error: BaseException) -> str:
    """Where the subject's own code raised it; nothing when that was in another process, or the harness refused."""
    frames = [
        summary
        for (frame, _), summary in zip(
            traceback.walk_tb(error.__traceback__), traceback.extract_tb(error.__traceback__), strict=True
        )
        if not frame.f_globals.get("__name__", "").startswith("overflow.contract.")
    ]
    return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno}, in {frames[-1].name})" if frames else ""


def started(make: Callable[[], Subject], timeout: float) -> Subject:
    """A new subject, told how long each call of it may take; SubjectCrash when making it takes longer."""
    try:
        subject = call_within(timeout, make)
    except OverdueError as error:
        raise SubjectCrash("start", error) from error
    if _limits_itself(subject):
        subject.limit_calls(timeout)  # type: ignore[attr-defined]  # no method of the protocol: a process has it
    return subject


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
        self._place = place
        self._timeout = timeout
        self._may_die = False
        self._is_overdue = False

    def __getattr__(self, name: str) -> Any:
        capability = _CAPABILITY_OF.get(name)
        if capability is not None and capability not in self._allowed:
            raise LookupError(f"a law calls {name} and neither requires it nor asked whether it is offered")
        member = getattr(self._subject, name)
        if not callable(member):
            return member

        self._may_die = self._may_die or name == "kill_at"

        @functools.wraps(member)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._is_overdue and name == "close":
                return None  # What was given up holds whatever it held, and would only take as long again.
            step = self._steps.begin(self._place, name, args, kwargs)
            outcome: Any = None
            try:
                outcome = self._answer(name, functools.partial(member, *args, **kwargs))
            except BaseException as raised:
                outcome = raised
                raise
            finally:
                self._steps.end(step, outcome)
            return outcome

        return call

    def _answer(self, name: str, ask: Callable[[], Any]) -> Any:
        try:
            value = ask() if _limits_itself(self._subject) else call_within(self._timeout, ask)
            require_conformity(name, value)
        except SubjectDied as died:
            if self._may_die:
                raise
            raise SubjectCrash(name, died) from died
        except KeyboardInterrupt as interrupt:
            raise KeyboardInterrupt(f"the subject's {name} was running") from interrupt
        except (Exception, SystemExit) as error:
            self._is_overdue = isinstance(error, OverdueError)
            raise SubjectCrash(name, error) from error
        return value
