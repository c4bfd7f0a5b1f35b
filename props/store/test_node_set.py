"""The one function that says whether a node set may be used, on sets of every shape, true digests included."""

from dataclasses import replace
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overflow.store.node_set import NodeRow, NodeSet, Verdict, digest, verdict
from overflow.store.records import Text

#: A text and a node set of it.
Made = tuple[Text, NodeSet]

texts = st.text("ab\u6f22", min_size=1, max_size=12)


@st.composite
def whole_sets(draw: st.DrawFn) -> Made:
    """A text, and a node set made of it as a build makes one."""
    text = draw(texts)
    cuts = draw(st.sets(st.integers(1, len(text) - 1))) if len(text) > 1 else set()
    edges = [0, *sorted(cuts), len(text)]
    rows = tuple(NodeRow(i, a, b, b - a, 9, b"\0\0\0\0", "m") for i, (a, b) in enumerate(pairwise(edges)))
    return Text(text.encode()), NodeSet(rows, Text(text.encode()).sha256, digest(rows))


@given(made=whole_sets(), model=st.sampled_from((None, "m", "n", "")), window=st.sampled_from((None, 9, 8)))
def test_a_whole_set_is_current_for_its_model_and_window(made: Made, model: str | None, window: int | None) -> None:
    """What is not known is not compared, and a nameless model ('') is another than a named one."""
    text, found = made
    expected = (
        Verdict.OTHER_MODEL if model not in (None, "m") else Verdict.OTHER_WINDOW if window == 8 else Verdict.CURRENT
    )
    assert verdict(text, found, model=model, window=window) is expected


@given(made=whole_sets(), other=texts)
def test_a_set_of_another_text_is_stale(made: Made, other: str) -> None:
    """Nodes are of one text: any other makes them stale, whatever its length."""
    text, found = made
    expected = Verdict.CURRENT if other.encode() == text.raw else Verdict.STALE
    assert verdict(Text(other.encode()), found, model=None, window=None) is expected


edits = st.sampled_from(("index", "start", "end", "embedding", "token_count", "model"))


@given(made=whole_sets(), data=st.data(), field=edits, resigned=st.booleans())
def test_an_edited_row_is_found_with_or_without_its_digest(
    made: Made, data: st.DataObject, field: str, resigned: bool
) -> None:
    """Without a new digest any change is; with one (a builder's defect) what is no partition, or lacks a vector, is."""
    text, found = made
    at = data.draw(st.integers(0, len(found.rows) - 1))
    value = {"embedding": None, "model": "n"}.get(field, getattr(found.rows[at], field, 0))
    changed = replace(found.rows[at], **{field: value + 1 if isinstance(value, int) else value})
    rows = (*found.rows[:at], changed, *found.rows[at + 1 :])
    edited = NodeSet(rows, found.text_sha256, digest(rows) if resigned else found.nodes_sha256)
    sound = resigned and field in ("token_count", "model")
    expected = Verdict.CURRENT if sound else Verdict.EDITED
    assert verdict(text, edited, model=None, window=None) is expected


@given(made=whole_sets(), lengths=st.lists(st.integers(0, 3), min_size=1, max_size=5))
def test_only_a_partition_into_characters_is_whole(made: Made, lengths: list[int]) -> None:
    """Spans that end early, late, or hold nothing are none, whatever their digest."""
    text, _ = made
    edges = [0, *accumulate(lengths)]
    rows = tuple(NodeRow(i, a, b, 1, 9, b"\0\0\0\0", "m") for i, (a, b) in enumerate(pairwise(edges)))
    whole = edges[-1] == len(text.value) and 0 not in lengths
    expected = Verdict.CURRENT if whole else Verdict.EDITED
    assert verdict(text, NodeSet(rows, text.sha256, digest(rows)), model=None, window=None) is expected


@pytest.mark.parametrize("lengths", [[0, 3], [1, 0, 2], [3, 0]])
def test_a_node_of_no_characters_is_no_node(lengths: list[int]) -> None:
    """First, between or last, though the others cover the text and the digest is a true one."""
    text, edges = Text(b"abc"), [0, *accumulate(lengths)]
    rows = tuple(NodeRow(i, a, b, 1, 9, b"\0\0\0\0", "m") for i, (a, b) in enumerate(pairwise(edges)))
    found = NodeSet(rows, text.sha256, digest(rows))
    assert verdict(text, found, model=None, window=None) is Verdict.EDITED


@given(made=whole_sets())
def test_rows_without_digests_were_not_written_by_a_build(made: Made) -> None:
    """They count as edited; digests without rows are no node set."""
    text, found = made
    assert verdict(text, NodeSet(found.rows, None, None), model=None, window=None) is Verdict.EDITED
    assert verdict(text, NodeSet((), found.text_sha256, found.nodes_sha256), model=None, window=None) is Verdict.ABSENT


def test_a_value_of_another_type_changes_the_digest() -> None:
    """Edited by hand, an offset can be text or a float; 1, '1' and 1.0 are told apart."""
    row = NodeRow(0, 0, 1, 1, 9, b"", "m")
    values = [replace(row, end=value) for value in (1, "1", 1.0, b"1")]
    assert len({digest((each,)) for each in values}) == 4
