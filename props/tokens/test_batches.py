"""Requests are as full as both limits let them be, and never fuller: 100 texts, and less than 1 MiB of body.

No server runs here; that a request is one of these bodies is tested in test_http.
"""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overflow.errors import InputError
from overflow.tokens.batches import batches

MIB = 1024 * 1024


def body_of(texts: Sequence[str], **others: object) -> bytes:
    """The request as JSON is written without spaces, by the standard library alone."""
    return json.dumps({"texts": list(texts), **others}, ensure_ascii=False, separators=(",", ":")).encode()


def filling(size: int, texts: int) -> list[str]:
    """So many texts of which the one body has `size` bytes."""
    room = size - len(body_of([""] * texts))
    return ["x" * (room // texts)] * (texts - 1) + ["x" * (room - room // texts * (texts - 1))]


@given(
    st.lists(st.text(max_size=5), max_size=12),
    st.integers(1, 5),
    st.sampled_from([(b"}", {}), (b',"token_info":true}', {"token_info": True})]),
)
def test_each_body_is_the_json_of_the_next_texts(
    texts: list[str], most: int, ending: tuple[bytes, dict[str, object]]
) -> None:
    """All texts, in order, `max_texts` in each request but the last; what `tail` says of them is said in each."""
    tail, others = ending
    found = batches(texts, key="texts", tail=tail, max_texts=most)
    expected = [texts[at : at + most] for at in range(0, len(texts), most)]
    assert [list(batch.texts) for batch in found] == expected
    assert [batch.body for batch in found] == [body_of(each, **others) for each in expected]


@pytest.mark.parametrize("texts", [1, 2, 3, 5])
def test_a_body_of_one_mib_less_a_byte_is_one_request(texts: int) -> None:
    """However many texts it is of."""
    given_texts = filling(MIB - 1, texts)
    (batch,) = batches(given_texts, key="texts", tail=b"}")
    assert batch.body == body_of(given_texts)


@pytest.mark.parametrize("texts", [2, 3, 5])
def test_a_body_of_one_mib_is_two_requests(texts: int) -> None:
    """The server refuses one of this size; only the last text waits for the next request."""
    given_texts = filling(MIB, texts)
    assert [list(batch.texts) for batch in batches(given_texts, key="texts", tail=b"}")] == [
        given_texts[:-1],
        given_texts[-1:],
    ]


def test_the_size_is_counted_anew_in_each_request() -> None:
    """What went in the request before takes no room of the next."""
    full = filling(MIB - 1, 3)
    assert [list(batch.texts) for batch in batches(full * 3, key="texts", tail=b"}")] == [full] * 3


def test_a_text_that_no_request_carries_is_told_with_its_size() -> None:
    """Which text, how long it is, how large its request would be, how large one may be, and what to do."""
    with pytest.raises(InputError) as caught:
        batches(["a", "日" * 400_000], key="texts", tail=b"}")
    assert str(caught.value) == (
        "text 1 of 400000 characters makes a request of 1200014 bytes, and the server takes less than 1048576; "
        "send a part of it"
    )
