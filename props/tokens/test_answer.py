"""What a server answered is a JSON value, or one line that tells a person which address said what.

No server runs here; that every client says these lines is tested in test_http.
"""

import json
from collections.abc import Callable

import pytest

from overflow.errors import UnavailableError
from overflow.tokens.answer import Answer, json_list, json_object

Reader = Callable[[Answer, str], object]
READERS = pytest.mark.parametrize("read", [json_object, json_list])


def refusal(status: int, body: bytes) -> str:
    with pytest.raises(UnavailableError) as caught:
        json_object(Answer(status, body), "there")
    return str(caught.value)


@READERS
@pytest.mark.parametrize(
    ("status", "body", "line"),
    [
        (200, b"Welcome", "there answered something that is not JSON: Welcome"),
        (200, b"3", "there answered JSON that is not {shape}"),
        (200, b"null", "there answered JSON that is not {shape}"),
        (401, b"no", "there refused the bearer token (401); set OVERFLOW_TOKEN to the server's token"),
        (413, b"too much", "there refused the request as too large (413): too much"),
        (413, b"", "there refused the request as too large (413)"),
        (300, b"choose", "there redirects (300); give the address it redirects to"),
        (399, b"", "there redirects (399); give the address it redirects to"),
        (299, b"", "there answered 299"),
        (400, b"", "there answered 400"),
        (500, b" \r\n\t ", "there answered 500"),
        (500, b"out of memory", "there answered 500: out of memory"),
    ],
)
def test_an_answer_that_is_of_no_use_is_one_line(read: Reader, status: int, body: bytes, line: str) -> None:
    """The address, the status, what the server said if it said anything, and what to do where that is known."""
    with pytest.raises(UnavailableError) as caught:
        read(Answer(status, body), "there")
    assert str(caught.value) == line.format(shape="an object" if read is json_object else "a list")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": "disk full", "code": 7}', "disk full"),
        (b'{"error": 7}', '{"error": 7}'),
        (b'["error"]', '["error"]'),
        (b"<html>\r\n  <p>Gone\n", "<html> <p>Gone"),
        ("plötzlich weg".encode(), "plötzlich weg"),
        (b"bad \xff byte", "bad \ufffd byte"),
        (b"red \x1b[31m\x00!", "red  [31m !"),
        (b"[" * 100_000, "[" * 117 + "..."),
    ],
)
def test_what_the_server_said_is_repeated_as_printable_text(body: bytes, said: str) -> None:
    """The `error` of an object, else the body; a run of white space becomes a space, as does a control character."""
    assert refusal(500, body) == f"there answered 500: {said}"


@pytest.mark.parametrize("length", [119, 120, 121, 5000])
def test_at_most_120_characters_are_repeated(length: int) -> None:
    """A longer text ends in dots, which count."""
    text = ("0123456789" * 500)[:length]
    said = text if length <= 120 else f"{text[:117]}..."
    assert len(said) <= 120
    assert refusal(500, text.encode()) == f"there answered 500: {said}"
    assert refusal(500, json.dumps({"error": text}).encode()) == f"there answered 500: {said}"


def test_no_more_is_read_of_a_page_than_its_first_2000_bytes() -> None:
    """A page of megabytes is not split into words for a line of 120 characters."""
    assert refusal(500, b" " * 1999 + b"xy") == "there answered 500: x"


def test_a_json_value_is_given_as_it_is() -> None:
    """An object or a list of a 200 answer."""
    assert json_object(Answer(200, b'{"a": [1]}'), "there") == {"a": [1]}
    assert json_list(Answer(200, b'[{"a": 1}]'), "there") == [{"a": 1}]
