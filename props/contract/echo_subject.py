"""A subject for the tests of the stdio protocol: it answers every method from its arguments, and fails on request.

It stores nothing but what a test needs to see again after a kill. DESIGN.md, "Subject protocol".
"""

# ruff: noqa: ARG002 - the names of the parameters are the protocol's

import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from overflow.contract.subject import Health, Hit, Item, Node, Quote, Ref, Repaired, Scope, Stored, SubjectDied

print("a module that prints when it is imported")


class Echo:
    """Answers with what it was given, so that a value changed on its way is seen."""

    name, version = "echo", "1.2"

    def open(self, directory: str, embedding_url: str) -> None:
        self._directory = Path(directory)
        self._url = embedding_url

    def close(self) -> None: ...

    def store(self, text: str, scope: Scope) -> Stored:
        return Stored(Ref("mem", len(text)), text + repr(scope))

    def archive_episode(self, text: str, scope: Scope) -> Stored:
        return Stored(Ref("ep", len(text + scope.agent)), None)

    def update(self, ref: Ref, text: str) -> Stored:
        return Stored(ref, text)

    def delete(self, ref: Ref) -> None: ...

    def lock(self, ref: Ref, locked: bool) -> None:
        if locked:
            raise sqlite3.IntegrityError(f"{ref.kind} {ref.id} is\nlocked")

    def settle(self) -> None: ...

    def health(self) -> Health:
        return Health((Ref("mem", 1), Ref("ep", 2)), {"gap": (Ref("mem", 3),), "stale index": ()})

    def repair(self) -> Repaired:
        return Repaired(2, 1)

    def recall(self, query: str, scope: Scope, limit: int) -> list[Hit]:
        return [Hit(Ref("mem", index), 1 / (3 + index)) for index in range(limit)]

    def reconstruct(self, query: str, scope: Scope, limit: int) -> list[Item]:
        return [Item(Ref("ep", limit), 0.1, (Quote(Ref("ep", limit), 0, len(query), query, None),))]

    def quote(self, ref: Ref, query: str, scope: Scope) -> Quote | None:
        return Quote(ref, 1, 1 + len(query), query, 4) if query else None

    def contents(self, ref: Ref, scope: Scope, node: int | None = None) -> str | None:
        return None if node is None else f"{ref.id}/{node}"

    def export(self, path: str) -> None:
        self._directory.joinpath(path).write_text("exported")

    def import_(self, path: str) -> None:
        self._directory.joinpath(path).read_text()

    def nodes(self, ref: Ref) -> list[Node]:
        return [Node(0, 0, 5, 3, 8, b"\x00\xff\x80", "m"), Node(1, 5, 9, 2, 8, None, "")]

    def text(self, ref: Ref) -> str | None:
        return self._url if ref.id else None

    def refs(self) -> list[Ref]:
        return [Ref("ep", 1), Ref("mem", 1)]

    def record_bytes(self, ref: Ref) -> bytes | None:
        return bytes(range(256)) if ref.id else None

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[list[Any]]:
        return [[sql, *parameters], []]

    def configure(self, *, queue: bool | None = None, model: str | None = None) -> None:
        if model == "unknown":
            raise KeyError(queue)

    def kill_at(self, statement: int) -> None: ...


class Noisy(Echo):
    """Writes where the protocol is spoken, in Python and below it, and reads where it is heard."""

    def settle(self) -> None:
        print("printed")
        os.write(1, b"written below Python\n")
        sys.stderr.write("x" * 1_000_000)
        assert sys.stdin.read() == ""


class Fragile(Echo):
    """Ends, or never answers, in the middle of a call."""

    def text(self, ref: Ref) -> NoReturn:
        print("about to\nend badly", file=sys.stderr)
        os._exit(7)

    def refs(self) -> NoReturn:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    def settle(self) -> None:
        threading.Event().wait()


class Mortal(Echo):
    """Runs one SQL statement a call of `execute`, one when it closes, and dies when `kill_at` said so."""

    _left = 0

    def close(self) -> None:
        self.execute("COMMIT")

    def kill_at(self, statement: int) -> None:
        self._left = statement

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[list[Any]]:
        self._left -= 1
        if self._left == 0:
            raise SubjectDied
        return []


class Refusing(Echo):
    """Does not open."""

    def open(self, directory: str, embedding_url: str) -> NoReturn:
        raise PermissionError(f"{directory} is read-only")


class Holding(Echo):
    """Holds the pipe `alive` of its directory open for as long as its process runs."""

    def open(self, directory: str, embedding_url: str) -> None:
        super().open(directory, embedding_url)
        self._held = Path(directory, "alive").open("wb")  # noqa: SIM115 - held on purpose


class Pipeline:
    """What a plain ingestion pipeline offers: documents in, chunks out."""

    name, version = "pipeline", "0"

    def open(self, directory: str, embedding_url: str) -> None: ...

    def close(self) -> None: ...

    def store(self, text: str, scope: Scope) -> Stored:
        return Stored(Ref("mem", 1), None)

    def nodes(self, ref: Ref) -> list[Node]:
        return []


class Ill(Pipeline):
    """Answers against the protocol."""

    def store(self, text: str, scope: Scope) -> Any:
        return "stored"

    def nodes(self, ref: Ref) -> Any:
        return [Node(0, 0, "5", 1, 8, None, "m")]  # type: ignore[arg-type]
