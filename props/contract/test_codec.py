"""The codec: every value of the protocol survives the wire, and nothing else gets through it."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overflow.contract import adapter_kit, codec
from overflow.contract.adapter_kit import serve
from overflow.contract.subject import CAPABILITIES, CLAIMS, Health, Hit, Item, Node, Quote, Ref, Repaired, Scope, Stored

text = st.text(st.characters(exclude_categories=["Cs"]))
whole = st.integers()
number = st.floats(allow_nan=False, allow_infinity=False)
refs = st.builds(Ref, st.sampled_from(["mem", "ep"]), whole)
quotes = st.builds(Quote, refs, whole, whole, text, st.none() | whole)
values = {
    Ref: refs,
    Scope: st.builds(Scope, text, text, text),
    Stored: st.builds(Stored, refs, st.none() | text),
    Hit: st.builds(Hit, refs, number),
    Quote: quotes,
    Item: st.builds(Item, refs, number, st.lists(quotes, max_size=3).map(tuple)),
    Node: st.builds(Node, whole, whole, whole, whole, whole, st.none() | st.binary(), text),
    Health: st.builds(
        Health,
        st.lists(refs, max_size=3).map(tuple),
        st.dictionaries(text | st.just("base64"), st.lists(refs, max_size=2).map(tuple), max_size=3),
    ),
    Repaired: st.builds(Repaired, whole, whole),
}
sql_values = st.none() | st.booleans() | whole | number | text | st.binary()


def over_the_wire(value: object) -> Any:
    line = adapter_kit.encode_line({"result": codec.encode(value, "it")})
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert line.isascii()
    return adapter_kit.decode_line(line)["result"]


@pytest.mark.parametrize("kind", values, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_a_value_is_the_same_after_the_wire(kind: type, data: st.DataObject) -> None:
    """decode(encode(value)) == value, for every type of the protocol, whatever text and bytes it holds."""
    value = data.draw(values[kind])
    assert codec.decode(kind, over_the_wire(value), "it") == value


@given(rows=st.lists(st.lists(sql_values, max_size=4), max_size=3))
def test_rows_of_a_query_keep_the_type_of_every_value(rows: list[list[Any]]) -> None:
    """A blob stays a blob, a text that looks like one stays a text, 1 and 1.0 and True stay apart."""
    answer = codec.decode_result("execute", over_the_wire(rows))
    assert answer == rows
    assert [[type(value) for value in row] for row in answer] == [[type(value) for value in row] for row in rows]


def test_a_scope_is_an_object_of_its_fields() -> None:
    """The one rule for a dataclass, by an example."""
    assert codec.encode(Stored(Ref("ep", 7), None), "it") == {"ref": {"kind": "ep", "id": 7}, "nodes": None}


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        ("store", None, "store result: expected an object, got None"),
        ("store", {"ref": {"kind": "mem", "id": 1}}, "store result: the field 'nodes' is missing"),
        ("store", {"ref": {"kind": "memo", "id": 1}, "nodes": None}, "store result.ref.kind: expected one of mem, ep"),
        ("store", {"ref": {"kind": "mem", "id": True}, "nodes": None}, "store result.ref.id: expected a whole number"),
        ("recall", [{"ref": {"kind": "mem", "id": 1}, "score": "1"}], "recall result[0].score: expected a finite"),
        ("recall", [{"ref": {"kind": "mem", "id": 1}, "score": 10**400}], "recall result[0].score: expected a finite"),
        ("recall", {}, "recall result: expected a list, got {}"),
        ("repair", {"built": 1, "failed": 0, "more": 2}, "repair result: unknown field 'more'; it has built, failed"),
        ("record_bytes", "AA==", "record_bytes result: expected bytes"),
        ("record_bytes", {"base64": "A"}, "record_bytes result: expected bytes"),
        ("text", "a\udc80", "text result: a lone surrogate at character 1"),
        ("execute", [[{"base64": 1}]], "execute result[0][0]: expected text, a number, bytes or null"),
        ("delete", {}, "delete result: expected null"),
        ("health", {"missing_nodes": [], "findings": {"gap": None}}, "health result.findings['gap']: expected a list"),
    ],
)
def test_a_malformed_answer_names_the_method_and_the_field(method: str, answer: object, message: str) -> None:
    """Decoding converts nothing: what is not as the protocol says is an error that a person can act on."""
    with pytest.raises(codec.MalformedError) as caught:
        codec.decode_result(method, answer)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"ref": {"kind": "mem", "id": 1}}, "lock: the field 'locked' is missing"),
        ({"ref": {"kind": "mem", "id": 1}, "locked": 1}, "lock.locked: expected true or false, got 1"),
        ({"ref": {"kind": "mem", "id": 1}, "locked": True, "x": 1}, "lock: unknown field 'x'; it has ref, locked"),
    ],
)
def test_malformed_parameters_name_the_method_and_the_field(params: dict[str, Any], message: str) -> None:
    """A call is read as strictly as an answer."""
    with pytest.raises(codec.MalformedError, match=message):
        codec.decode_params("lock", params)


def test_a_parameter_with_a_default_may_be_left_out() -> None:
    """`contents` without `node`, `configure` with nothing."""
    assert codec.decode_params("contents", {"ref": {"kind": "ep", "id": 1}, "scope": codec.encode(Scope(), "")}) == {
        "ref": Ref("ep", 1),
        "scope": Scope(),
    }
    assert codec.decode_params("configure", {}) == {}


@pytest.mark.parametrize(
    "value", ["\ud800", ["a", "\udfff"], {"\ud800": 1}, float("nan"), float("inf"), {1, 2}, {1: 2}]
)
def test_what_the_wire_cannot_carry_is_refused(value: object) -> None:
    """A lone surrogate, a number that is none, a foreign type: an error before anything is sent."""
    with pytest.raises(codec.MalformedError):
        codec.encode(value, "it")


def test_the_kit_knows_the_capabilities_of_the_protocol() -> None:
    """`adapter_kit` imports nothing of ours, so its lists are copies: they must be the same."""
    assert adapter_kit.CAPABILITIES == CAPABILITIES
    assert adapter_kit.CLAIMS == CLAIMS


def test_whatever_a_served_subject_raises_is_an_answer() -> None:
    """The kit ends for no exception of the subject's: also one past `Exception`, one without text, in a circle."""

    class Quiet(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    class Clumsy:
        name, version = "clumsy", "1"

        def open(self) -> None:
            raise GeneratorExit("the end")

        def close(self) -> None:
            raise Quiet

        def settle(self) -> None:
            first, second = OSError("first"), OSError("second")
            first.__cause__, second.__cause__ = second, first
            raise first

    asked = [json.dumps({"jsonrpc": "2.0", "id": n, "method": m}) for n, m in enumerate(("open", "close", "settle"))]
    answers = io.BytesIO()
    serve(Clumsy(), io.BytesIO("\n".join(asked).encode()), answers)
    said = [json.loads(line)["error"] for line in answers.getvalue().splitlines()]
    assert [each["message"] for each in said] == ["the end", "(it cannot be shown: RuntimeError)", "first"]
    assert not any("disk_full" in each["data"] for each in said)
