"""Plain faults of a store that the laws must notice, each by the violation that names it; and what is no fault."""

from dataclasses import replace

import pytest
from hypothesis import Phase

from overflow.contract.evidence import PROFILES
from overflow.contract.laws import all_laws
from overflow.contract.laws.facts import was_embedded
from overflow.contract.results import Result
from overflow.contract.runner import Runner
from overflow.contract.subject import Node, Ref, Scope, Stored, Subject
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
        return replace(super().update(ref, text), nodes="queued")


@pytest.mark.parametrize(
    ("subject", "law_id", "title"),
    [
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
