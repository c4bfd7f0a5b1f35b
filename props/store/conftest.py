"""A tiny embedder and a store over it, for the white-box tests of the reference store.

The embedder is in process and deterministic, counts what it is asked, and fails when it is told to. Nothing here knows
a law of the store.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from overflow.embedding.embedder import Embedded, Vectors
from overflow.embedding.unit import unit_rows
from overflow.errors import UnavailableError
from overflow.store import MemoryStore
from overflow.tokens.report import TokenReport, TokenWindow
from overflow.tokens.synthetic import SyntheticWindow, UnknownWindow

#: For a property of whole stores: `bench` lasts all its examples, and each asks for a store of its own.
on_a_bench = settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])

DIMENSIONS = 16


@dataclass
class TinyEmbedder:
    """A window of 4 words, believed to be prefix-safe as a server's is.

    `refuse` is asked of each request's kind and texts; one it refuses fails all of it.
    """

    window: TokenWindow = field(default_factory=lambda: SyntheticWindow("words", 4))
    prefix_safe: bool = True
    name: str | None = "tiny-1"
    away: bool = False
    unnamed: bool = False
    refuse: Callable[[str, str], bool] = lambda _what, _text: False
    before: Callable[[str, Sequence[str]], None] = lambda _what, _texts: None
    embedded: list[list[str]] = field(default_factory=list)
    measured: list[list[str]] = field(default_factory=list)

    def identity(self) -> str | None:
        self._answer("identity", [])
        if self.unnamed:
            raise UnavailableError("the tiny embedder does not say its name now")
        return self.name

    def embed(self, texts: Sequence[str]) -> Embedded:
        self.embedded.append(list(texts))
        self._answer("embed", texts)
        reports = self.window.measure(texts)
        heads = [text if r is None else text[: r.window_end_char] for text, r in zip(texts, reports, strict=True)]
        return Embedded(self.vectors(heads), reports)

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        self.measured.append(list(texts))
        self._answer("measure", texts)
        return self.window.measure(texts)

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """How often each character occurs, characters folded into DIMENSIONS; unit length, zero for an empty text."""
        rows = np.zeros((len(texts), DIMENSIONS), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for character in text:
                row[ord(character) % DIMENSIONS] += 1
        return unit_rows(rows)

    def _answer(self, what: str, texts: Sequence[str]) -> None:
        self.before(what, texts)
        if self.away or any(self.refuse(what, text) for text in texts):
            raise UnavailableError("the tiny embedder is away")


@dataclass
class Clock:
    """Seconds that pass only when told."""

    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


class Unsynced(sqlite3.Connection):
    """A connection that never waits for the disk: a process may die between two statements, but no power fails."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        return super().execute(sql.replace("synchronous = NORMAL", "synchronous = OFF"), parameters)


class Bench:
    """Opens stores and raw connections on paths of one directory, and closes all of them."""

    def __init__(self, directory: Path, opened: ExitStack) -> None:
        self.directory = directory
        self.clock = Clock()
        self.embedder = TinyEmbedder()
        self.unknown = UnknownWindow()
        self._opened = opened
        self._fresh = 0

    def path(self, name: str) -> str:
        return str(self.directory / name)

    def fresh(self, **options: object) -> tuple[MemoryStore, sqlite3.Connection]:
        """A new store with a new embedder and clock, and a connection past it: one Hypothesis example's."""
        self._opened.close()
        self.embedder, self.clock = TinyEmbedder(), Clock()
        name = self.fresh_name()
        return self.open(name, **options), self.raw(name)

    def fresh_name(self) -> str:
        self._fresh += 1
        return f"{self._fresh}.db"

    def open(self, name: str = "a.db", **options: object) -> MemoryStore:
        settings: dict[str, Any] = {"clock": self.clock, "factory": Unsynced} | options
        embedder = settings.pop("embedder", self.embedder)
        return self._opened.enter_context(MemoryStore(self.path(name), embedder, **settings))

    def raw(self, name: str = "a.db") -> sqlite3.Connection:
        connection = sqlite3.connect(self.path(name), isolation_level=None)
        connection.execute("PRAGMA synchronous = OFF")
        self._opened.callback(connection.close)
        return connection

    def texts_of_nodes(self, raw: sqlite3.Connection) -> str:
        """The texts of all nodes of memories, joined in order."""
        rows = raw.execute(
            "SELECT content, start_char, end_char FROM record_nodes JOIN memories ON id = parent_id"
            " ORDER BY id, node_index"
        )
        return "".join(text[start:end] for text, start, end in rows)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Stores in a folder of this test's own."""
    with ExitStack() as opened:
        yield Bench(tmp_path, opened)
