"""One call as a transport makes it, blocking and awaited: what is sent, how long is waited, how much is taken in.

No connection is opened here; that real ones behave so is tested in test_http, and their time-outs in test_deadline.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator

import httpx
import pytest

from overflow.errors import UnavailableError
from overflow.tokens import transport as module
from overflow.tokens.answer import Answer
from overflow.tokens.endpoint import Call, Clock, Endpoint
from overflow.tokens.transport import AsyncTransport, Transport

CALL = Call("/embed", b"texts", repeatable=True)


class Answering(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body in these chunks, which knows how many were read and whether it was closed."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = list(chunks)
        self.closed = 0

    def __iter__(self) -> Iterator[bytes]:
        while self.chunks:
            yield self.chunks.pop(0)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk

    def close(self) -> None:
        self.closed += 1

    async def aclose(self) -> None:
        self.closed += 1


def said(status: int, *chunks: bytes) -> httpx.Response:
    return httpx.Response(status, stream=Answering(*chunks))


class Server(httpx.MockTransport):
    """Answers each request with the next of `answers`, and keeps what was asked, waited and closed."""

    def __init__(self, answers: list[httpx.Response | httpx.RequestError]) -> None:
        super().__init__(self.answer)
        self.answers = answers
        self.requests: list[httpx.Request] = []
        self.waited: list[float] = []
        self.tls: list[ssl.SSLContext | None] = []
        self.clocks: list[Clock] = []
        self.closed = 0

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, httpx.RequestError):
            raise answer
        return answer

    def close(self) -> None:
        self.closed += 1

    async def aclose(self) -> None:
        self.closed += 1


def blocking(endpoint: Endpoint, call: Call) -> Answer:
    transport = Transport(endpoint)
    try:
        return transport.call(call)
    finally:
        transport.close()


def awaited(endpoint: Endpoint, call: Call) -> Answer:
    async def ask() -> Answer:
        transport = AsyncTransport(endpoint)
        try:
            return await transport.call(call)
        finally:
            await transport.aclose()

    return asyncio.run(ask())


Ask = Callable[[Endpoint, Call], Answer]
BOTH = pytest.mark.parametrize("ask", [blocking, awaited])


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Server]:
    """Whatever is asked in the test is answered with these, and nothing is waited for."""

    def serving(*answers: httpx.Response | httpx.RequestError) -> Server:
        server = Server(list(answers))

        def opened(tls: ssl.SSLContext | None, clock: Clock) -> Server:
            server.tls.append(tls)
            server.clocks.append(clock)
            return server

        async def wait(seconds: float) -> None:
            server.waited.append(seconds)

        monkeypatch.setattr(module, "transport", opened)
        monkeypatch.setattr(module, "async_transport", opened)
        monkeypatch.setattr(module.time, "sleep", server.waited.append)
        monkeypatch.setattr(module.asyncio, "sleep", wait)
        return server

    return serving


def endpoint(url: str = "http://there:8401/", token: str = "") -> Endpoint:
    return Endpoint(url, token, 10.0, (0.25, 0.5), lambda: 100.0)


@BOTH
def test_a_request_is_the_call_with_the_endpoints_headers(serve: Callable[..., Server], ask: Ask) -> None:
    """Method, address, headers, body; each step may last until the deadline, as may the wait for a connection."""
    server = serve(said(200, b"{}"), said(404, b"gone"))
    assert ask(endpoint(token="s3cret"), CALL) == Answer(200, b"{}")
    assert ask(endpoint(), Call("/info", None, repeatable=True)) == Answer(404, b"gone")
    post, get = server.requests
    assert (post.method, str(post.url), post.content) == ("POST", "http://there:8401/embed", b"texts")
    assert (get.method, str(get.url), get.content) == ("GET", "http://there:8401/info", b"")
    assert post.headers["Authorization"] == "Bearer s3cret"
    assert "Authorization" not in get.headers
    assert (post.headers["Accept-Encoding"], post.headers["Content-Type"]) == ("identity", "application/json")
    assert post.extensions["timeout"] == {"connect": 110.0, "read": 110.0, "write": 110.0, "pool": 10.0}
    assert (server.waited, server.closed) == ([], 2)


@BOTH
def test_no_time_left_is_no_time_to_wait_for_a_connection(serve: Callable[..., Server], ask: Ask) -> None:
    """Not less than none, which no lock takes; it is the endpoint's clock that says so, to the connection too."""
    server = serve(said(200))
    moments = iter([100.0, 111.0, 111.0])
    late = Endpoint("http://there", "", 10.0, (), lambda: next(moments, 111.0))
    ask(late, CALL)
    assert server.clocks == [late.clock]
    assert server.requests[0].extensions["timeout"]["pool"] == 0.0


@BOTH
@pytest.mark.parametrize("busy", [True, False])
def test_a_call_is_made_again_after_each_delay(serve: Callable[..., Server], ask: Ask, busy: bool) -> None:
    """And no more often than there are delays: then the last answer is the answer, the last failure the failure."""

    def failures(times: int) -> list[httpx.Response | httpx.RequestError]:
        return [said(503) if busy else httpx.ReadError("reset") for _ in range(times)]

    server = serve(*failures(2), said(200, b"{}"))
    assert ask(endpoint(), CALL) == Answer(200, b"{}")
    assert (server.waited, len(server.requests)) == ([0.25, 0.5], 3)
    server = serve(*failures(3))
    if busy:
        assert ask(endpoint(), CALL) == Answer(503, b"")
    else:
        with pytest.raises(UnavailableError) as caught:
            ask(endpoint(), CALL)
        assert str(caught.value) == "http://there:8401/embed broke off without an answer (reset)"
    assert (server.waited, len(server.requests)) == ([0.25, 0.5], 3)


@BOTH
def test_an_answer_is_taken_in_up_to_its_limit(
    serve: Callable[..., Server], ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many bytes are an answer, one more is none; what comes behind is not read, the connection given back."""
    monkeypatch.setattr(module, "MAX_ANSWER", 1000)
    full, over = Answering(b"x" * 600, b"y" * 400), Answering(b"x" * 600, b"y" * 401, b"z")
    serve(httpx.Response(200, stream=full), httpx.Response(200, stream=over))
    assert ask(endpoint(), CALL) == Answer(200, b"x" * 600 + b"y" * 400)
    with pytest.raises(UnavailableError) as caught:
        ask(endpoint(), CALL)
    assert str(caught.value) == "http://there:8401/embed answered more than 1,000 bytes; is it the right server?"
    assert over.chunks == [b"z"]
    assert full.closed >= 1
    assert over.closed >= 1


@BOTH
@pytest.mark.parametrize(("encoding", "said"), [("gzip", "gzip"), (" BR ", "br"), ("", "")])
def test_an_answer_in_another_encoding_is_not_read(
    serve: Callable[..., Server], ask: Ask, encoding: str, said: str
) -> None:
    """Its size would be known too late; the connection is given back."""
    body = Answering(b"x")
    serve(httpx.Response(200, headers={"Content-Encoding": encoding}, stream=body))
    with pytest.raises(UnavailableError) as caught:
        ask(endpoint(), CALL)
    assert str(caught.value) == f"http://there:8401/embed answered in the encoding {said!r}, not asked for"
    assert (body.chunks, body.closed >= 1) == ([b"x"], True)


@BOTH
@pytest.mark.parametrize("encoding", ["identity", " Identity "])
def test_an_answer_as_it_is_may_say_so(serve: Callable[..., Server], ask: Ask, encoding: str) -> None:
    """In whatever letters."""
    serve(httpx.Response(200, headers={"Content-Encoding": encoding}, stream=Answering(b"x")))
    assert ask(endpoint(), CALL) == Answer(200, b"x")


@BOTH
def test_only_an_encrypted_connection_has_certificates(
    serve: Callable[..., Server], ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that come with the client, whatever the environment names; and the server's is checked against them."""
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    server = serve(said(200), said(200))
    ask(endpoint("http://there"), CALL)
    ask(endpoint("https://there"), CALL)
    plain, encrypted = server.tls
    assert plain is None
    assert encrypted is not None
    assert (encrypted.verify_mode, encrypted.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.parametrize("kind", [Transport, AsyncTransport])
def test_a_transport_is_called_by_its_servers_address(kind: type[Transport] | type[AsyncTransport]) -> None:
    """Without the slashes at its end."""
    assert kind(endpoint()).url == "http://there:8401"
