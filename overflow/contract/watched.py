"""A subject whose every failure is told apart from the harness's own, and of which a law uses only what it may.

What a subject raises becomes SubjectCrash, with the method that raised it: never a violation of a law, and never
mistaken for a defect of the harness, which is left to raise as it is. A law that calls a method it neither requires nor
asked for is such a defect.
"""

import functools
from collections.abc import Container
from typing import Any

from overflow.contract.conformity import require_conformity
from overflow.contract.subject import CAPABILITIES, Subject, SubjectDied, method_name
from overflow.errors import HarnessError, UnavailableError

_CAPABILITY_OF = {method_name(capability): capability for capability in CAPABILITIES}


class SubjectCrash(Exception):
    """`method` of the subject raised `error`; `scenario` is the example it happened in, as text, once known."""

    def __init__(self, method: str, error: BaseException) -> None:
        super().__init__(f"{method} raised {type(error).__name__}: {error}")
        self.method = method
        self.error = error
        self.scenario: str | None = None

    @property
    def unavailable(self) -> bool:
        """Whether the subject, or what it stands on, is gone: a process that ended, a full disk."""
        return isinstance(self.error, HarnessError) and self.error.exit_code == UnavailableError.exit_code


class Watched:
    """A subject with every method's exceptions wrapped, of which the capabilities in `allowed` may be called."""

    def __init__(self, subject: Subject, allowed: Container[str]) -> None:
        self._subject = subject
        self._allowed = allowed
        self._may_die = False

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
            try:
                value = member(*args, **kwargs)
                require_conformity(name, value)
            except SubjectDied as died:
                if self._may_die:
                    raise
                raise SubjectCrash(name, died) from died
            except (Exception, SystemExit) as error:
                raise SubjectCrash(name, error) from error
            return value

        return call
