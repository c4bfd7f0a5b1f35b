"""Plain faults of a store that the laws must notice, each by the violation that names it; and what is no fault."""

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase

from overflow.contract.evidence import PROFILES
from overflow.contract.laws import all_laws
from overflow.contract.laws.facts import nearest, was_embedded
from overflow.contract.results import Result
from overflow.contract.runner import Runner
from overflow.contract.subject import Health, Node, Ref, Scope, Stored, Subject, capabilities
from overflow.embedding.embedder import Embedded
from overflow.embedding.wordllama import wordllama_vectors
from overflow.subjects.reference import Reference

LAWS = {law.id: law for law in all_laws()}
QUICK = replace(PROFILES["quick"], phases=(Phase.explicit, Phase.generate))


def result(subject: type[Subject], law_id: str) -> Result:
    with Runner(subject, wordllama_vectors) as runner:
        return runner.check(LAWS[law_id], QUICK, 0)


class StoresTheHead(Reference):
    """Keeps the first thirty characters, and is true to them ever after."""

    def store(self, text: str, scope: Scope) -> Stored:
        return super().store(text[:30], scope)


class IgnoresUpdates(Reference):
    def update(self, ref: Ref, text: str) -> Stored:  # noqa: ARG002 - the protocol's
        return Stored(ref, None)


class IgnoresDeletes(Reference):
    def delete(self, ref: Ref) -> None:
        """Nothing."""


class UpdatesSayNothing(Reference):
    def update(self, ref: Ref, text: str) -> Stored:
        return replace(super().update(ref, text), nodes=None)


class UpdatesSayQueued(Reference):
    def update(self, ref: Ref, text: str) -> Stored:
        changed = text != self.text(ref)
        stored = super().update(ref, text)
        return replace(stored, nodes="queued") if changed else stored


class QueuesWhatIsBuilt(Reference):
    """An update says queued of every long record, also where the nodes of that text are there."""

    def update(self, ref: Ref, text: str) -> Stored:
        same = text == self.text(ref) and bool(self.nodes(ref))
        stored = super().update(ref, text)
        return replace(stored, nodes="queued") if same else stored


class ForgetsUnbuilt(Reference):
    """An update to the same text does nothing, and health names no record."""

    def update(self, ref: Ref, text: str) -> Stored:
        return Stored(ref, None) if text == self.text(ref) else super().update(ref, text)

    def health(self) -> Health:
        return Health((), {})


class PromisesUnbuilt(ForgetsUnbuilt):
    """The same, and says that it is queued."""

    def update(self, ref: Ref, text: str) -> Stored:
        unbuilt = text == self.text(ref) and ref in Reference.health(self).missing_nodes
        stored = super().update(ref, text)
        return replace(stored, nodes="queued") if unbuilt else stored


class BuiltAndQueued(Reference):
    """Divides in its write, and says that it will."""

    def store(self, text: str, scope: Scope) -> Stored:
        stored = super().store(text, scope)
        self.settle()
        return stored


class IgnoresRawSQL(Reference):
    """Its `execute` reads, and writes nothing."""

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[list[Any]]:
        return super().execute(sql, parameters) if sql.startswith(("SELECT", "PRAGMA")) else []


@pytest.mark.parametrize("law_id", ["2", "5", "6", "fits", "status", "interleavings", "tampered-parent", "bad-row"])
def test_raw_sql_that_writes_nothing_proves_nothing(law_id: str) -> None:
    """A law that writes past the subject does not hold where nothing was written: the claim is told to be false."""
    found = result(IgnoresRawSQL, law_id)
    assert (found.status, found.error) == ("violated", False), found
    if law_id != "bad-row":
        assert "by execute" in (found.reason or "") or "behind the triggers: 0" in (found.reason or "")


def test_node_rows_that_nobody_edited_prove_nothing() -> None:
    """DESIGN.md, principle 4: what a law is about must have happened."""
    found = result(IgnoresRawSQL, "tampered-nodes")
    assert found.status == "violated"
    assert "node rows edited: 0 in" in (found.reason or "")


@pytest.mark.parametrize(
    ("subject", "law_id", "title"),
    [
        (QueuesWhatIsBuilt, "status", "a text written again whose nodes are there queues nothing"),
        (ForgetsUnbuilt, "status", "a text written again has nodes in the end, or health names it"),
        (PromisesUnbuilt, "status", "what an update says is queued is built"),
        (BuiltAndQueued, "status", "nothing was left to build, and the write says queued"),
        (StoresTheHead, "whole", "the stored text is the text that was given"),
        (IgnoresUpdates, "whole", "the stored text is the text that was given"),
        (IgnoresUpdates, "6", "an updated record holds its new text"),
        (IgnoresDeletes, "6", "a deleted record is gone"),
        (UpdatesSayNothing, "status", "an update says queued"),
        (UpdatesSayQueued, "status", "an update says queued"),
    ],
)
def test_a_plain_fault_is_noticed_for_its_own_reason(subject: type[Subject], law_id: str, title: str) -> None:
    """The law that the fault breaks is violated, and says what is broken."""
    found = result(subject, law_id)
    assert (found.status, found.error) == ("violated", False), found
    assert title in (found.reason or "")


class NodesWithoutVectors(Reference):
    """Its node table keeps no vectors, which the protocol allows."""

    def nodes(self, ref: Ref) -> list[Node]:
        return [replace(node, embedding=None) for node in super().nodes(ref)]


def test_nodes_without_vectors_are_not_called_stale() -> None:
    """What was never embedded cannot be told by what was sent to be embedded."""
    assert result(NodesWithoutVectors, "6").status == "holds"


class Embeds(Reference):
    """Embeds something else than a text, and counts the text itself."""

    def posted(self, text: str) -> str:
        raise NotImplementedError

    def open(self, directory: str, embedding_url: str) -> None:
        super().open(directory, embedding_url)
        client, embed = self._client, self._client.embed

        def embed_posted(texts: Sequence[str]) -> Embedded:
            return Embedded(embed([self.posted(text) for text in texts]).vectors, client.measure(texts))

        client.embed = embed_posted  # type: ignore[method-assign]


class Prompted(Embeds):
    """Puts a prompt before whatever it embeds, as its model wants."""

    def posted(self, text: str) -> str:
        return f"passage: {text}"


@pytest.mark.parametrize("law_id", ["6", "model", "tampered-parent"])
def test_a_prompt_before_a_span_is_allowed(law_id: str) -> None:
    """docs/subjects.md: the text of every node is posted with the prompt prefix before it that the model wants."""
    found = result(Prompted, law_id)
    assert found.status == "holds", found


class EmbedsTheHead(Embeds):
    """Embeds the first eight characters of a text."""

    def posted(self, text: str) -> str:
        return text[:8]


class EmbedsLowerCase(Embeds):
    def posted(self, text: str) -> str:
        return text.lower()


def test_a_stale_node_is_told_with_what_was_posted_for_it() -> None:
    """The box calls it stale, beside all nodes of its record, and shows what was sent in its place."""
    found = result(EmbedsTheHead, "6")
    assert found.counterexample is not None, found
    shown = found.counterexample
    assert shown["title"] == "stale nodes: their spans were never sent to be embedded"
    assert shown["expected"] == "no stale nodes"
    stale = ast.literal_eval(shown["got"])["stale nodes"]
    assert stale
    assert set(stale) <= set(ast.literal_eval(shown["nodes"]))
    span, (first, *_) = (ast.literal_eval(shown[label]) for label in ("span", "nearest posted"))
    assert span.startswith(first)
    assert len(first) < len(span)


def test_a_span_posted_in_lower_case_is_shown_as_it_was_posted() -> None:
    """What was posted differs from the span by its case alone, and stands first."""
    found = result(EmbedsLowerCase, "6")
    assert found.counterexample is not None, found
    span = ast.literal_eval(found.counterexample["span"])
    assert ast.literal_eval(found.counterexample["nearest posted"])[0] == span.lower()


@pytest.mark.parametrize(
    "posted", ["the ﬁrst node ", "the first node", "The  First\nNode ", "the first no", "passage: The First Node "]
)
def test_the_likest_text_that_was_posted_stands_first(posted: str) -> None:
    """Case, white space, normalisation, a shorter end and a prompt each leave it the likest."""
    others = {"another record altogether", "The invoice of May", "", "12345"}
    assert nearest("The First Node ", {posted, *others})[0] == posted


def test_three_of_what_was_posted_are_shown() -> None:
    """Of many the likest; of none, none."""
    assert nearest("ab", {"ab!", "ab!!", "ab!!!", "zz", "yy"}) == ["ab!", "ab!!", "ab!!!"]
    assert nearest("ab", set()) == []


class WithoutRepair(Reference):
    """A queue, and nothing that mends what failed: a failed build waits for its next turn."""

    capabilities = capabilities(Reference()) - {"repair"}


class DropsWhatFailed(WithoutRepair):
    """The same, and a build that failed once is never begun again."""

    _dropped: frozenset[Ref] = frozenset()

    def settle(self) -> None:
        waiting = [ref for ref in self.refs() if not self.nodes(ref)]
        super().settle()
        self._dropped |= {ref for ref in waiting if not self.nodes(ref)}

    def nodes(self, ref: Ref) -> list[Node]:
        return [] if ref in self._dropped else super().nodes(ref)


@pytest.mark.parametrize("subject", [WithoutRepair, DropsWhatFailed])
def test_a_failed_build_needs_no_repair_to_have_been_pending(subject: type[Subject]) -> None:
    """Section 3 retries a failed build in the repair: without one it is read, and its build shows that it divides."""
    found = result(subject, "pending")
    assert (found.status, found.reason) == ("holds", None)
    assert 2 * found.divided >= found.examples


@pytest.mark.parametrize(
    ("embedded", "expected"),
    [
        ({"its end"}, True),
        ({"passage: its end"}, True),
        ({"a record and its end"}, False),
        ({"its end and more"}, False),
        (set(), False),
    ],
)
def test_a_span_was_embedded_as_it_is_or_after_a_prompt(embedded: set[str], expected: bool) -> None:
    """The end of the whole record is no embedding of the span, and nothing else stands in for it."""
    assert was_embedded("its end", "a record and its end", embedded) is expected
