"""What a saboteur is: a wrapper that breaks a subject in one way, to show that the laws bite on it.

A saboteur lies in what the subject answers, or tampers with its database, and leaves everything else alone; it works
on any subject with the capabilities it needs. DESIGN.md, principle 4.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from overflow.contract.subject import Subject, capabilities
from overflow.contract.world import SubjectFactory
from overflow.errors import InputError, UnavailableError
from overflow.tokens.http import HttpWindow


class Sabotaged:
    """A subject behind a saboteur: everything not overridden goes to the subject itself."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.name = subject.name
        self.version = subject.version
        self.capabilities = capabilities(subject)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.subject, name)

    def open(self, directory: str, embedding_url: str) -> None:
        self.directory, self.embedding_url = directory, embedding_url
        self.subject.open(directory, embedding_url)

    def runs_past(self, text: str) -> bool | None:
        """Whether `text` runs past the window; None when the server does not say, or does not answer."""
        try:
            with HttpWindow(self.embedding_url) as window:
                report = window.measure([text])[0]
        except UnavailableError:
            return None
        return None if report is None else report.truncated


@dataclass(frozen=True)
class Saboteur:
    """`breaks` says what it does, in a line; `requires` are the capabilities without which its laws cannot notice it.

    What a law of it requires itself goes without saying. `titles` has the laws that must go red, and of the six no
    others, each with the titles that its violation may have: which of several, the examples decide.
    """

    name: str
    breaks: str
    titles: Mapping[str, tuple[str, ...]]
    requires: frozenset[str]
    wrap: Callable[[Subject], Any]

    @property
    def expected(self) -> frozenset[str]:
        """The laws that must go red."""
        return frozenset(self.titles)


SABOTEURS: dict[str, Saboteur] = {}


def saboteur(
    name: str, titles: Mapping[str, str | tuple[str, ...]], *, requires: str = ""
) -> Callable[[type[Sabotaged]], type[Sabotaged]]:
    """Register a saboteur; `requires` names capabilities, separated by spaces."""

    def register(wrapper: type[Sabotaged]) -> type[Sabotaged]:
        breaks = (wrapper.__doc__ or "").strip().splitlines()[0]
        several = {law: (each,) if isinstance(each, str) else each for law, each in titles.items()}
        SABOTEURS[name] = Saboteur(name, breaks, several, frozenset(requires.split()), wrapper)
        return wrapper

    return register


def sabotaged(name: str, factory: SubjectFactory) -> SubjectFactory:
    """A factory of subjects broken by the saboteur `name`; raises InputError for a name that is none."""
    if name not in SABOTEURS:
        raise InputError(f"no saboteur is called {name!r}; there are {', '.join(SABOTEURS)}")
    chosen = SABOTEURS[name]
    return lambda: chosen.wrap(factory())
