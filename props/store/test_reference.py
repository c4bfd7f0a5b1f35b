"""The adapter: what it reads past the store agrees with the store, threads may share it, and it dies when told.

The contract itself is run on it in props/contract.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from overflow.contract.subject import CAPABILITIES, CLAIMS, Kind, Ref, Scope, SubjectDied, capabilities
from overflow.embedding.script import Script
from overflow.embedding.server import ScriptedServer
from overflow.embedding.wordllama import wordllama_vectors
from overflow.store.errors import NotAStoreError
from overflow.store.queue import BACK_OFF, BACK_OFF_FACTOR, MAX_ATTEMPTS
from overflow.subjects.reference import DATABASE, Reference
from overflow.tokens.synthetic import SyntheticWindow

LONG = "one two three four five six seven eight nine. "


class Place:
    """A scripted server and a directory, on which subjects are opened as often as asked."""

    def __init__(self, directory: Path, server: ScriptedServer, opened: ExitStack) -> None:
        self.directory, self.server, self._opened = directory, server, opened

    def open(self) -> Reference:
        subject = Reference()
        subject.open(str(self.directory), self.server.url)
        self._opened.callback(subject.close)
        return subject


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    script = Script(SyntheticWindow("words", 4), wordllama_vectors)
    with ScriptedServer(script) as server, ExitStack() as opened:
        yield Place(tmp_path, server, opened)


def test_it_offers_everything_the_protocol_knows() -> None:
    """The reference has every capability and makes every claim, so that no law is skipped on it."""
    assert capabilities(Reference()) == {*CAPABILITIES, *CLAIMS}


def test_what_is_read_past_the_store_agrees_with_it(place: Place) -> None:
    """The subject's own connection and the store tell the same of texts, nodes and records."""
    subject = place.open()
    memory, episode = subject.store(LONG, Scope()), subject.archive_episode(LONG.upper(), Scope())
    assert (memory.nodes, episode.nodes) == ("queued", "queued")
    before = subject.record_bytes(memory.ref)
    subject.settle()
    assert subject.refs() == [episode.ref, memory.ref]
    assert subject.record_bytes(memory.ref) == before
    for ref in subject.refs():
        text = subject.text(ref)
        assert text == subject.contents(ref, Scope())
        for node in subject.nodes(ref):
            assert text[node.start : node.end] == subject.contents(ref, Scope(), node.index)
    assert len(subject.nodes(memory.ref)) == 3
    assert (subject.text(Ref("mem", 9)), subject.record_bytes(Ref("mem", 9))) == (None, None)
    health = subject.health()
    assert (health.missing_nodes, health.findings) == ((), {})


@pytest.mark.parametrize(
    "change", ["locked = 1", "updated_at = 0", "content = CAST(content AS BLOB)", "embedding = x'00'"]
)
def test_every_byte_of_a_record_is_in_its_bytes(place: Place, change: str) -> None:
    """A change of any column, of a type alone too, shows in `record_bytes`."""
    subject = place.open()
    ref = subject.store("short", Scope()).ref
    before = subject.record_bytes(ref)
    subject.execute(f"UPDATE memories SET {change}")
    assert subject.record_bytes(ref) != before


def test_threads_share_a_subject_and_a_directory(place: Place) -> None:
    """Writers, builders and readers at once, on one handle and on a second one of the same directory."""
    handles = [place.open(), place.open()]
    failed = []

    def work(number: int) -> None:
        subject = handles[number % 2]
        try:
            for step in range(6):
                ref = subject.store(f"{LONG}{number} {step}", Scope()).ref
                subject.settle()
                assert subject.recall(f"{number} {step}", Scope(), 3)
                subject.update(ref, f"{LONG}{number} {step} again")
                assert subject.text(ref).endswith("again")
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    handles[0].settle()
    assert handles[1].health().missing_nodes == ()
    assert len(handles[0].refs()) == 24
    assert all(handles[1].nodes(ref) for ref in handles[0].refs())


@pytest.mark.parametrize("statement", range(1, 12))
def test_it_dies_before_the_chosen_statement_and_stays_dead(place: Place, statement: int) -> None:
    """What was stored before the kill is there for another process, and nothing is half there."""
    subject = place.open()
    kept = subject.store(LONG, Scope()).ref
    subject.kill_at(statement)

    def write() -> None:
        for _ in range(6):
            subject.store("more", Scope())

    with pytest.raises(SubjectDied):
        write()
    with pytest.raises(SubjectDied):
        subject.recall("more", Scope(), 1)
    other = place.open()
    assert kept in other.refs()
    assert all(text in (LONG, "more") for text in map(other.text, other.refs()))
    other.settle()
    assert other.nodes(kept)


def test_settling_waits_for_no_back_off_and_no_lease(place: Place) -> None:
    """`settle` drains what waits for its next attempt and what a dead process had claimed."""
    subject = place.open()
    ref = subject.store(LONG, Scope()).ref
    subject.execute("UPDATE tasks SET attempts = 1, lease_until = (SELECT created_at FROM memories) + 800")
    subject.settle()
    assert subject.nodes(ref)


def test_settling_waits_for_no_attempt_but_one(place: Place) -> None:
    """The longest back-off there is, that before the last attempt, is behind the clock of the next `settle`."""
    subject = place.open()
    ref = subject.store(LONG, Scope()).ref
    waits = BACK_OFF * BACK_OFF_FACTOR ** (MAX_ATTEMPTS - 2)
    subject.execute(
        "UPDATE tasks SET attempts = ?, due_at = (SELECT created_at FROM memories) + ?", (MAX_ATTEMPTS - 1, waits)
    )
    subject.settle()
    assert subject.nodes(ref)


def test_a_database_it_refuses_is_left_as_it_is(place: Place) -> None:
    """Somebody else's database is named, and not a byte of it changes."""
    path = place.directory / DATABASE
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
    before = path.read_bytes()
    with pytest.raises(NotAStoreError, match="has no table memories"):
        place.open()
    assert path.read_bytes() == before


def test_a_directory_it_cannot_open_is_named_and_leaves_nothing_open(place: Place) -> None:
    """A failed open is one clear line, and closes what it had opened."""
    (place.directory / DATABASE).write_bytes(b"not a database, but long enough to be taken for one" * 20)
    with pytest.raises(NotAStoreError, match="is not a SQLite database"):
        place.open()


@pytest.mark.parametrize("identifier", [0, 2**63 - 1, 2**63, -(2**63) - 1, 10**40])
@pytest.mark.parametrize("kind", ["mem", "ep"])
def test_what_is_read_past_the_store_of_no_record_is_nothing(place: Place, kind: Kind, identifier: int) -> None:
    """Also of an id that SQLite cannot hold."""
    subject, ref = place.open(), Ref(kind, identifier)
    subject.store(LONG, Scope())
    subject.settle()
    assert (subject.text(ref), subject.nodes(ref), subject.record_bytes(ref)) == (None, [], None)
