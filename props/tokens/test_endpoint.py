"""An address is checked before it is used, and a call is made again only where that does no harm and there is time.

No connection is opened here; that the transports ask for this, and do it, is tested in test_http.
"""

import httpx
import pytest

from overflow.errors import InputError, UnavailableError
from overflow.tokens.endpoint import Call, Endpoint

ONCE = Call("/embed", b"{}", repeatable=False)
AGAIN = Call("/count_tokens", b"{}", repeatable=True)
ANYTHING = "give one such as http://127.0.0.1:8401"


def endpoint(url: str = "http://there:8401", *, token: str = "", now: float = 100.0) -> Endpoint:
    """A call of 10 seconds, made again after 1 and then after 2 more, at a moment that stands still."""
    return Endpoint(url, token, 10.0, (1.0, 2.0), lambda: now)


@pytest.mark.parametrize(
    ("url", "address", "encrypted"),
    [
        ("http://127.0.0.1:8401", "http://127.0.0.1:8401/embed", False),
        ("http://there/", "http://there/embed", False),
        ("http://there/model//", "http://there/model/embed", False),
        ("https://there:65535/model", "https://there:65535/model/embed", True),
        ("HTTPS://there", "HTTPS://there/embed", True),
        ("http://https", "http://https/embed", False),
        ("http://[::1]:8401", "http://[::1]:8401/embed", False),
        ("http://bücher.example", "http://bücher.example/embed", False),
    ],
)
def test_a_call_is_made_behind_the_address(url: str, address: str, encrypted: bool) -> None:
    """Whatever slashes it ends with; encrypted as its scheme says."""
    assert endpoint(url).address(ONCE) == address
    assert endpoint(url).is_encrypted is encrypted


@pytest.mark.parametrize(
    "url",
    [
        "",
        "there:8401",
        "ftp://there",
        "file:///etc/passwd",
        "http://",
        "http:///path",
        "http://there?model=a",
        "http://there#a",
        "http://there /a",
        " http://there",
        "http://there:65536",
    ],
)
def test_what_is_no_address_of_a_server_is_refused(url: str) -> None:
    """Another scheme, no host, a query, a fragment, white space, a port there is not: the address, and an example."""
    with pytest.raises(InputError) as caught:
        endpoint(url)
    assert str(caught.value) == f"{url!r} is not the address of a server; {ANYTHING}"


@pytest.mark.parametrize("url", ["http://there:port", "http://a..b", f"http://{'a' * 64}", "http://xn--\xfc.a"])
def test_what_is_no_address_at_all_is_refused(url: str) -> None:
    """What is wrong with it stands in parentheses."""
    with pytest.raises(InputError) as caught:
        endpoint(url)
    assert str(caught.value).startswith(f"{url!r} is not an address (")
    assert str(caught.value).endswith(f"); {ANYTHING}")
    assert "None" not in str(caught.value)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    """The host is named, and where the token belongs."""
    with pytest.raises(InputError) as caught:
        endpoint("http://me:hunter2@there:8401")
    assert str(caught.value) == "the address of there holds a password; put the bearer token in OVERFLOW_TOKEN"


@pytest.mark.parametrize("token", ["a\nb", "töken", "a\x7f"])
def test_a_token_that_no_header_can_carry_is_refused_and_not_repeated(token: str) -> None:
    """Only printable ASCII goes into a header."""
    with pytest.raises(InputError) as caught:
        endpoint(token=token)
    assert str(caught.value) == "the bearer token in OVERFLOW_TOKEN holds a character that a header cannot carry"


def test_the_headers_ask_for_an_answer_as_it_is() -> None:
    """JSON is sent, nothing compressed is taken, and a token is sent where there is one."""
    common = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    assert endpoint().headers == common
    assert endpoint(token="s3cret").headers == {**common, "Authorization": "Bearer s3cret"}


def test_a_call_without_a_body_is_a_get() -> None:
    """With one, also an empty one, it is a POST."""
    assert [Call("/", body, repeatable=True).method for body in (None, b"", b"{}")] == ["GET", "POST", "POST"]


def test_a_deadline_is_a_moment_of_the_clock() -> None:
    """It lies as far off as a call may take, and what is left to it may be less than nothing."""
    assert endpoint(now=100.0).deadline() == 110.0
    assert endpoint(now=107.0).left(110.0) == 3.0
    assert endpoint(now=111.0).left(110.0) == -1.0


NEVER_ARRIVED = [httpx.ConnectError("refused"), httpx.ConnectTimeout("")]
LOST = [httpx.ReadError(""), httpx.WriteError(""), httpx.RemoteProtocolError(""), 502, 503, 504]
ANSWERED = [httpx.ReadTimeout(""), httpx.WriteTimeout(""), httpx.PoolTimeout(""), 200, 400, 404, 429, 500, 501, 505]


@pytest.mark.parametrize("failure", [*NEVER_ARRIVED, *LOST, *ANSWERED], ids=str)
def test_a_call_is_made_again_where_it_was_not_served_or_may_be_served_twice(failure: httpx.RequestError | int) -> None:
    """Never arrived: always. Lost or busy: a repeatable one. Answered, or out of time: never."""
    server, deadline = endpoint(), 110.0
    delays = [server.delay(call, 0, failure, deadline) for call in (ONCE, AGAIN)]
    assert delays == [1.0 if failure in NEVER_ARRIVED else None, None if failure in ANSWERED else 1.0]


@pytest.mark.parametrize(("attempt", "delay"), [(0, 1.0), (1, 2.0), (2, None), (3, None)])
def test_a_call_is_made_again_as_often_as_there_are_delays(attempt: int, delay: float | None) -> None:
    """Each attempt has its own."""
    assert endpoint().delay(AGAIN, attempt, 503, 110.0) == delay


@pytest.mark.parametrize(("left", "delay"), [(2.5, 2.0), (2.0, None), (1.5, None), (-1.0, None)])
def test_a_call_is_not_made_again_where_its_time_ends_before(left: float, delay: float | None) -> None:
    """A wait that takes all that is left leaves nothing to be answered in."""
    assert endpoint(now=100.0).delay(AGAIN, 1, 503, 100.0 + left) == delay


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            httpx.ConnectError("Connection\n refused"),
            "no server at {} (Connection refused); start it or correct the address",
        ),
        (httpx.ConnectTimeout(""), "no server at {} (ConnectTimeout); start it or correct the address"),
        (httpx.ReadTimeout("late"), "{} did not answer in time; give it more time or smaller texts"),
        (httpx.WriteTimeout(""), "{} did not answer in time; give it more time or smaller texts"),
        (httpx.PoolTimeout(""), "{} did not answer in time; give it more time or smaller texts"),
        (httpx.ReadError("reset by peer"), "{} broke off without an answer (reset by peer)"),
        (httpx.RemoteProtocolError(""), "{} broke off without an answer (RemoteProtocolError)"),
    ],
)
def test_a_call_that_came_to_nothing_is_one_line(error: httpx.RequestError, line: str) -> None:
    """The whole address, what the system says of it or the kind of failure, and what to do."""
    told = endpoint("http://there/model/").failure(ONCE, error)
    assert isinstance(told, UnavailableError)
    assert str(told) == line.format("http://there/model/embed")
