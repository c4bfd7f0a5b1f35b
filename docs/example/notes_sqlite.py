"""A small memory store on SQLite as a subject: what an adapter looks like whose store divides at once, in its write.

Take it as a start. It has no repair: what it cannot embed while the server is down stays stored, and without vectors.

    cd docs/example
    overflow check --subject notes_sqlite:Notes
"""

import sqlite3
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from overflow.contract.subject import Hit, Node, Ref, Scope, Stored

SCHEMA = """
CREATE TABLE IF NOT EXISTS notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- an id is never used again, or a node could come to mean another note
    agent TEXT, project TEXT, channel TEXT, text TEXT, vector BLOB
);
CREATE TABLE IF NOT EXISTS pieces (
    note INTEGER REFERENCES notes ON DELETE CASCADE,
    piece INTEGER, start INTEGER, "end" INTEGER, tokens INTEGER, window INTEGER, vector BLOB, model TEXT,
    PRIMARY KEY (note, piece)
);
"""

#: A token report: `count` and `window` in tokens, `truncated`, and `window_end_char`, a position in the text.
Report = dict[str, Any]
#: A piece of a text: where it starts and ends, and its own report.
Piece = tuple[int, int, Report]


def divide(text: str, count: Callable[[str], Report | None]) -> list[Piece]:
    """The pieces of `text`; none for a text that fits, that cannot be divided, or whose tokens are unknown."""
    pieces: list[Piece] = []
    start = 0
    while start < len(text):
        end = len(text)
        report = count(text[start:end])
        while report is not None and report["truncated"]:
            # Cut where the window closes, or shorter. A cut text is another text, and may count more than it did as a
            # part of the whole, so it is counted again on its own, and shrinks until it fits.
            end = start + min(report["window_end_char"], end - start - 1)
            if end == start:
                return []  # Not one character fits.
            report = count(text[start:end])
        if report is None:
            return []  # Unknown is not "fits".
        pieces.append((start, end, report))
        start = end
    return pieces if len(pieces) > 1 else []


class Notes:
    name, version = "notes-sqlite", "1"

    def open(self, directory: str, embedding_url: str) -> None:
        self._db = sqlite3.connect(Path(directory) / "notes.db")
        self._db.execute("PRAGMA foreign_keys = ON")  # else nothing cascades
        self._db.executescript(SCHEMA)
        self._server = httpx.Client(base_url=embedding_url)
        self._divides = True

    def close(self) -> None:
        self._server.close()
        self._db.close()

    def configure(self, *, queue: bool | None = None, model: str | None = None) -> None:  # noqa: ARG002 - asked anew
        """There is no queue: with it off, nothing is divided."""
        if queue is not None:
            self._divides = queue

    def store(self, text: str, scope: Scope) -> Stored:
        vector, nodes = self._derived(text)
        columns = (scope.agent, scope.project, scope.channel, text, vector)
        with self._db:  # one transaction: nobody sees a note with the nodes of another text
            insert = "INSERT INTO notes (agent, project, channel, text, vector) VALUES (?, ?, ?, ?, ?) RETURNING id"
            (note,) = self._db.execute(insert, columns).fetchone()
            self._replace(note, nodes)
        return Stored(Ref("mem", note), nodes=None)

    def update(self, ref: Ref, text: str) -> Stored:
        vector, nodes = self._derived(text)
        with self._db:
            self._db.execute("UPDATE notes SET text = ?, vector = ? WHERE id = ?", (text, vector, ref.id))
            self._replace(ref.id, nodes)
        return Stored(ref, nodes=None)

    def delete(self, ref: Ref) -> None:
        with self._db:
            self._db.execute("DELETE FROM notes WHERE id = ?", (ref.id,))

    def recall(self, query: str, scope: Scope, limit: int) -> list[Hit]:
        """By the notes' own vectors, so that nodes change nothing; notes of one score in the order of their ids."""
        (wanted,) = self._embed([query])
        rows = self._db.execute(
            "SELECT id, vector FROM notes WHERE agent = ? AND project = ? AND channel = ? AND vector IS NOT NULL",
            (scope.agent, scope.project, scope.channel),
        )
        scores = {note: sum(a * b for a, b in zip(wanted, array("f", vector), strict=True)) for note, vector in rows}
        best = sorted(scores, key=lambda note: (-scores[note], note))[:limit]
        return [Hit(Ref("mem", note), scores[note]) for note in best]

    # What follows reads the database, past the store: it is what a check believes.

    def nodes(self, ref: Ref) -> list[Node]:
        columns = 'piece, start, "end", tokens, window, vector, model'
        rows = self._db.execute(f"SELECT {columns} FROM pieces WHERE note = ? ORDER BY piece", (ref.id,))
        return [Node(*row) for row in rows]

    def text(self, ref: Ref) -> str | None:
        row = self._db.execute("SELECT text FROM notes WHERE id = ?", (ref.id,)).fetchone()
        return None if row is None else row[0]

    def refs(self) -> list[Ref]:
        return [Ref("mem", note) for (note,) in self._db.execute("SELECT id FROM notes")]

    def record_bytes(self, ref: Ref) -> bytes | None:
        row = self._db.execute("SELECT * FROM notes WHERE id = ?", (ref.id,)).fetchone()
        return None if row is None else repr(row).encode()

    # The embedding side. A failing server costs the vectors, never the note.

    def _derived(self, text: str) -> tuple[bytes | None, list[tuple[Any, ...]]]:
        """What is made of a text: its own vector, and the rows of its nodes."""
        try:
            (whole,) = self._embed([text])
            pieces = divide(text, self._count) if self._divides else []
            vectors = self._embed([text[start:end] for start, end, _ in pieces])
            model = self._model()
        except httpx.HTTPError:
            return None, []
        rows = [
            (index, start, end, report["count"], report["window"], vector.tobytes(), model)
            for index, ((start, end, report), vector) in enumerate(zip(pieces, vectors, strict=True))
        ]
        return whole.tobytes(), rows

    def _replace(self, note: int, nodes: list[tuple[Any, ...]]) -> None:
        self._db.execute("DELETE FROM pieces WHERE note = ?", (note,))
        self._db.executemany("INSERT INTO pieces VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [(note, *row) for row in nodes])

    def _count(self, text: str) -> Report | None:
        answer = self._server.post("/count_tokens", json={"texts": [text]})
        if answer.status_code == 404:  # an older server: it does not know
            return None
        reports: list[Report] | None = answer.raise_for_status().json()["token_info"]
        return reports[0] if reports else None

    def _embed(self, texts: list[str]) -> list["array[float]"]:
        vectors: list[array[float]] = []
        for first in range(0, len(texts), 100):  # no more at once
            answer = self._server.post("/embed", json={"texts": texts[first : first + 100]}).raise_for_status()
            vectors += [array("f", vector) for vector in answer.json()["embeddings"]]
        return vectors

    def _model(self) -> str:
        answer = self._server.get("/capabilities")
        return "" if answer.status_code == 404 else answer.raise_for_status().json()["fingerprint"]
