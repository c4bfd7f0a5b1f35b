"""What the laws ask of whom: claims are required where they are used, and every case of the design is drawn."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, NoReturn

import httpx
import pytest
from hypothesis import Phase

from overflow.contract.evidence import PROFILES
from overflow.contract.laws import all_laws
from overflow.contract.results import Result
from overflow.contract.runner import Runner
from overflow.contract.subject import Health, Node, Ref, Scope, Stored, Subject, SubjectDied
from overflow.embedding.wordllama import wordllama_vectors
from overflow.errors import UnavailableError
from overflow.subjects.reference import Reference

LAWS = {law.id: law for law in all_laws()}
#: Finding a failure is asked here, not making it small.
QUICK = replace(PROFILES["quick"], phases=(Phase.explicit, Phase.generate))


def result(subject: type[Subject], law_id: str, seed: int = 0, examples: int = QUICK.examples) -> Result:
    with Runner(subject, wordllama_vectors) as runner:
        return runner.check(LAWS[law_id], replace(QUICK, examples=examples), seed)


class DividesAtOnce(Reference):
    """A write answers when its nodes are built: nothing is left to the queue."""

    def store(self, text: str, scope: Scope) -> Stored:
        return self._divided(super().store(text, scope))

    def archive_episode(self, text: str, scope: Scope) -> Stored:
        return self._divided(super().archive_episode(text, scope))

    def _divided(self, stored: Stored) -> Stored:
        self.settle()
        return Stored(stored.ref, None)


@pytest.mark.parametrize("law_id", ["swap", "pending", "status"])
def test_builds_of_a_write_cannot_be_raced(law_id: str) -> None:
    """A store that divides in its write is not failed for want of waiting builds: it is skipped, with the reason."""
    found = result(DividesAtOnce, law_id)
    assert found.status == "skipped", found
    assert "no builds left to settle" in (found.reason or "")


class OtherTables:
    """The reference behind other names: raw SQL reaches a database that has none of the design's tables."""

    name, version = "other", "1"
    design_schema = False

    def __init__(self) -> None:
        self._store = Reference()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> NoReturn:  # noqa: ARG002 - the protocol's
        raise sqlite3.OperationalError("no such table")


@pytest.mark.parametrize("law_id", ["2", "5", "6", "interleavings"])
def test_store_with_other_tables_is_asked_without_sql(law_id: str) -> None:
    """Raw SQL is written only where the tables are claimed to be the design's; elsewhere the laws hold without it."""
    found = result(OtherTables, law_id)  # type: ignore[arg-type]  # what it lacks it takes from the reference
    assert found.status == "holds", found


@pytest.mark.parametrize("law_id", ["tampered-parent", "tampered-nodes", "bad-row"])
def test_tampering_needs_the_design_s_tables(law_id: str) -> None:
    """A law that is about those tables alone is skipped, and says which claim it misses."""
    found = result(OtherTables, law_id)  # type: ignore[arg-type]
    assert (found.status, found.reason) == ("skipped", "the subject lacks design_schema")


class Unlimited(Reference):
    """Stores what is longer than the limit whole, as far as anybody can see."""

    def store(self, text: str, scope: Scope) -> Stored:
        stored = super().store(text, scope)
        self._whole = {stored.ref: text}
        return stored

    def text(self, ref: Ref) -> str | None:
        return self._whole.get(ref) or super().text(ref)


class WithoutLimit(Unlimited):
    length_limit = False


def test_length_limit_is_a_claim() -> None:
    """A store that keeps no limit is not failed for it: section 7 decides the limit apart."""
    found = result(WithoutLimit, "limit")
    assert (found.status, found.reason) == ("skipped", "the subject lacks length_limit")


def test_limit_names_the_record() -> None:
    """Red in all its phases, shrinking too, without a warning of Hypothesis about the length of its texts."""
    with Runner(Unlimited, wordllama_vectors) as runner:
        found = runner.check(LAWS["limit"], PROFILES["quick"], 0)
    assert found.status == "violated"
    assert found.counterexample is not None
    assert found.counterexample["record"] == "Ref(kind='mem', id=1)"


class NeedsIdentity(Reference):
    """Takes it for granted that the model has a name."""

    def store(self, text: str, scope: Scope) -> Stored:
        if self._client.identity() is None:
            raise KeyError("fingerprint")
        return super().store(text, scope)


def test_model_without_identity_is_drawn() -> None:
    """DESIGN.md, principle 5: a model identity can be absent."""
    assert "KeyError" in (result(NeedsIdentity, "3").reason or "")


class NeedsCountTokens(Reference):
    """Takes it for granted that the server can be asked for tokens."""

    def store(self, text: str, scope: Scope) -> Stored:
        if httpx.post(self._client.url + "/count_tokens", json={"texts": [text]}).status_code == 404:
            raise KeyError("token_info")
        return super().store(text, scope)


@pytest.mark.parametrize("law_id", ["unknown", "status"])
def test_server_without_count_tokens_is_drawn(law_id: str) -> None:
    """CEmbedding before 0.8.0 has no such route, and unknown is not fits."""
    assert "KeyError" in (result(NeedsCountTokens, law_id).reason or "")


class NeedsServer(Reference):
    """Loses what is written while the embedding server fails."""

    def store(self, text: str, scope: Scope) -> Stored:
        try:
            self._client.embed([text])
        except UnavailableError as error:
            raise RuntimeError("cannot embed it") from error
        return super().store(text, scope)


def test_write_while_the_server_fails_keeps_the_record() -> None:
    """A server that fails reports no tokens, and that loses no record (section 2)."""
    found = result(NeedsServer, "unknown")
    assert (found.status, found.error) == ("violated", False)
    assert found.reason == "a write while the embedding server fails answers"


class ForgetsEpisodes(Reference):
    """Drops an episode's nodes when the same text is written again."""

    def update(self, ref: Ref, text: str) -> Stored:
        stored = super().update(ref, text)
        if ref.kind == "ep":
            self.execute("DELETE FROM record_nodes WHERE parent_kind = 'ep' AND parent_id = ?", (ref.id,))
        return stored


def test_episodes_are_rewritten_too() -> None:
    """Section 4 speaks of memories and of episodes."""
    found = result(ForgetsEpisodes, "rewrite")
    assert (found.status, found.reason) == ("violated", "a rewrite of the same text keeps the nodes")


class KeepsOldEpisodes(Reference):
    """An episode that changed while the queue ran has a node of its old text."""

    def open(self, directory: str, embedding_url: str) -> None:
        super().open(directory, embedding_url)
        self._stale: set[Ref] = set()

    def settle(self) -> None:
        before = {ref: self.text(ref) for ref in self.refs() if ref.kind == "ep"}
        super().settle()
        self._stale = {ref for ref, text in before.items() if self.text(ref) != text}

    def nodes(self, ref: Ref) -> list[Node]:
        return [Node(0, 0, 1, 1, 1, b"", "")] if ref in self._stale else super().nodes(ref)


def test_episodes_are_raced_too() -> None:
    """Section 4 speaks of memories and of episodes, so a build of either may be overtaken."""
    found = result(KeepsOldEpisodes, "swap")
    assert (found.status, found.error) == ("violated", False)
    assert found.counterexample is not None


class SetBySQL(Reference):
    """Knows which records' texts were set by raw SQL."""

    def open(self, directory: str, embedding_url: str) -> None:
        super().open(directory, embedding_url)
        self._set: set[Any] = set()

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[list[Any]]:
        if sql.startswith("UPDATE"):
            self._set.add(parameters[-1])
        return super().execute(sql, parameters)


class DividesWhatSQLSet(SetBySQL):
    """Divides a record although it fits, when SQL set its text."""

    def nodes(self, ref: Ref) -> list[Node]:
        return super().nodes(ref) or [Node(0, 0, 1, 1, 1, b"", "")] * (ref.id in self._set)


class DividesOtherwiseWhatSQLSet(SetBySQL):
    def nodes(self, ref: Ref) -> list[Node]:
        return super().nodes(ref)[: -1 if ref.id in self._set else None]


@pytest.mark.parametrize(
    ("kind", "law_id", "title"),
    [
        (DividesWhatSQLSet, "fits", "a record that fits has no nodes"),
        (DividesOtherwiseWhatSQLSet, "5", "the same text divides into the same nodes when it is set again by SQL"),
    ],
)
def test_texts_set_by_sql_are_divided_like_any_other(kind: type[Subject], law_id: str, title: str) -> None:
    """They come through a trigger and the queue, and nobody measured them in a write."""
    found = result(kind, law_id)
    assert (found.status, found.error, found.reason) == ("violated", False, title)


class FindsEverythingButNodes(Reference):
    """Health that speaks of vectors and of the index of a record, and never of its nodes."""

    def health(self) -> Health:
        kinds = ("missing_vectors", "stale_vectors", "stale_index")
        found = super().health().findings
        return Health((), {kind: found[kind] for kind in kinds if kind in found})


@pytest.mark.parametrize("law_id", ["tampered-parent", "tampered-nodes", "grown-window"])
def test_a_stale_vector_is_no_finding_about_nodes(law_id: str) -> None:
    """Only a kind with node or orphan in its name tells of nodes (docs/subjects.md)."""
    found = result(FindsEverythingButNodes, law_id)
    assert (found.status, found.error) == ("violated", False)
    assert "health" in (found.reason or "")


class LosesKilled(Reference):
    """Loses its first record whenever it was killed during a build."""

    def settle(self) -> None:
        self._mortal(super().settle)

    def repair(self) -> Any:
        return self._mortal(super().repair)

    def _mortal(self, build: Any) -> Any:
        try:
            return build()
        except SubjectDied:
            self.execute("DELETE FROM memories WHERE id = (SELECT min(id) FROM memories)")
            raise


class LosesOnAnOperation(Reference):
    """Loses its first record in one operation of another handle, while a build of this one waits."""

    operation = ""
    building: ClassVar[set[str]] = set()

    def settle(self) -> None:
        self._build(super().settle)

    def repair(self) -> Any:
        return self._build(super().repair)

    def _build(self, build: Any) -> Any:
        self.building.add("now")
        try:
            return build()
        finally:
            self.building.clear()

    def _met(self, operation: str) -> None:
        if self.building and operation == self.operation:
            super().execute("DELETE FROM memories WHERE id = (SELECT min(id) FROM memories)")

    def archive_episode(self, text: str, scope: Scope) -> Stored:
        self._met("archive")
        return super().archive_episode(text, scope)

    def lock(self, ref: Ref, locked: bool) -> None:
        super().lock(ref, locked)  # First: what is lost must not be what it is asked of.
        self._met("lock" if locked else "unlock")

    def configure(self, *, queue: bool | None = None, model: str | None = None) -> None:
        self._met("queue" if model is None else "model")
        super().configure(queue=queue, model=model)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[list[Any]]:
        if sql.startswith("UPDATE"):
            self._met("SQL")
        return super().execute(sql, parameters)


@pytest.mark.parametrize("operation", ["archive", "lock", "unlock", "queue", "model", "SQL"])
def test_any_operation_may_come_inside_a_build(operation: str) -> None:
    """Not only writes: what may be asked at all may be asked while a build waits."""
    kind = type("Loses", (LosesOnAnOperation,), {"operation": operation})
    assert result(kind, "interleavings", examples=300).reason == "the stored records are those written"


@pytest.mark.parametrize("seed", range(3))
def test_every_quick_run_kills_a_build(seed: int) -> None:
    """What only a kill shows is found with any seed, also by the few examples of profile quick."""
    found = result(LosesKilled, "interleavings", seed)
    assert found.status == "violated"
    assert found.reason == "a killed operation happened wholly or not at all"
