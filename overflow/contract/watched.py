"""A subject whose every failure is told apart from the harness's own.

What a subject raises becomes SubjectCrash, with the method that raised it: never a violation of a law, and never
mistaken for a defect of the harness, which is left to raise as it is.
"""

import functools
from typing import Any

from overflow.contract.subject import Subject


class SubjectCrash(Exception):
    """`method` of the subject raised `error`."""

    def __init__(self, method: str, error: Exception) -> None:
        super().__init__(f"{method} raised {type(error).__name__}: {error}")
        self.method = method
        self.error = error


class Watched:
    """A subject with every method's exceptions wrapped; attributes that are no methods are handed on."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._subject, name)
        if not callable(member):
            return member

        @functools.wraps(member)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return member(*args, **kwargs)
            except Exception as error:
                raise SubjectCrash(name, error) from error

        return call
