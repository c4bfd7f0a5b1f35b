"""The transports that end a request at a moment: every step has what is left to it, and nothing else is changed.

No server runs here; that slow ones are given up is tested with the clients, in test_http.
"""

import asyncio
import ssl
import time
from collections.abc import Callable, Iterable
from typing import Any

import httpcore
import httpx
import pytest

from overflow.errors import UnavailableError
from overflow.tokens.deadline import (
    AsyncDeadlineStream,
    DeadlineStream,
    _AsyncBackend,
    _Backend,
    async_transport,
    transport,
)
from overflow.tokens.endpoint import Clock

ANSWER = [b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", b"answer"]
#: Each step of a connection: its name, the seconds it is given, and whatever else it is given.
Steps = list[tuple[Any, ...]]


class Ticking:
    """A clock that shows 1, 2, 3, ... as often as it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


class Wire(httpcore.MockStream):
    """A connection on which ANSWER arrives, and which writes down its steps."""

    def __init__(self, steps: Steps) -> None:
        super().__init__(list(ANSWER))
        self.steps = steps

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self.steps.append(("read", timeout))
        return super().read(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.steps.append(("write", timeout, buffer))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        self.steps.append(("start_tls", timeout, ssl_context, server_hostname))
        return self

    def get_extra_info(self, info: str) -> object:
        return f"{info} of the connection" if info == "socket" else super().get_extra_info(info)


class AsyncWire(httpcore.AsyncMockStream):
    """Wire whose steps are awaited."""

    def __init__(self, steps: Steps) -> None:
        super().__init__(list(ANSWER))
        self.wire = Wire(steps)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self.wire.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.wire.write(buffer, timeout)

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        self.wire.start_tls(ssl_context, server_hostname, timeout)
        return self

    def get_extra_info(self, info: str) -> object:
        return self.wire.get_extra_info(info)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """The steps of whatever is connected in the test, to no network."""
    done: Steps = []

    class Sockets(httpcore.MockBackend):
        def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,
            local_address: str | None = None,
            socket_options: Iterable[Any] | None = None,
        ) -> httpcore.NetworkStream:
            done.append(("connect", timeout, host, port, local_address, socket_options))
            return Wire(done)

    class AsyncSockets(httpcore.AsyncMockBackend):
        async def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,
            local_address: str | None = None,
            socket_options: Iterable[Any] | None = None,
        ) -> httpcore.AsyncNetworkStream:
            done.append(("connect", timeout, host, port, local_address, socket_options))
            return AsyncWire(done)

    monkeypatch.setattr(httpcore, "SyncBackend", lambda: Sockets([]))
    monkeypatch.setattr(httpcore, "AnyIOBackend", lambda: AsyncSockets([]))
    return done


def blocking(tls: ssl.SSLContext, clock: Clock, request: httpx.Request) -> bytes:
    response = transport(tls, clock).handle_request(request)
    return b"".join(response.iter_raw())


def awaited(tls: ssl.SSLContext, clock: Clock, request: httpx.Request) -> bytes:
    async def ask() -> bytes:
        response = await async_transport(tls, clock).handle_async_request(request)
        return b"".join([chunk async for chunk in response.aiter_raw()])

    return asyncio.run(ask())


@pytest.mark.parametrize("ask", [blocking, awaited])
def test_each_step_of_a_request_has_what_is_left_of_its_time(
    steps: Steps, ask: Callable[[ssl.SSLContext, Clock, httpx.Request], bytes]
) -> None:
    """Connecting, TLS, each write and read: of 20 seconds one has passed at each, and none starts anew."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    timeout = {"timeout": httpx.Timeout(20.0).as_dict()}
    request = httpx.Request("POST", "https://there:8443/embed", content=b"texts", extensions=timeout)
    assert ask(tls, Ticking(), request) == b"answer"
    assert [step[1] for step in steps] == [20.0 - passed for passed in range(1, len(steps) + 1)]
    assert [step[0] for step in steps if step[0] != "write"] == ["connect", "start_tls", "read", "read"]
    assert steps[0][2:] == ("there", 8443, None, None)
    assert steps[1][2:] == (tls, "there")
    sent = b"".join(step[2] for step in steps if step[0] == "write")
    assert sent.startswith(b"POST /embed HTTP/1.1\r\n")
    assert sent.endswith(b"\r\n\r\ntexts")


def test_a_backend_hands_over_all_else_as_it_is_given(steps: Steps) -> None:
    """An address of its own and options of a socket, which are its caller's business."""
    options = [(1, 2, 3)]
    _Backend(Ticking()).connect_tcp("there", 80, 9.0, "127.0.0.2", options)
    asyncio.run(_AsyncBackend(Ticking()).connect_tcp("there", 80, 9.0, "127.0.0.2", options))
    assert steps == [("connect", 8.0, "there", 80, "127.0.0.2", options)] * 2


@pytest.mark.parametrize("stream", [DeadlineStream(Wire([]), Ticking()), AsyncDeadlineStream(AsyncWire([]), Ticking())])
def test_what_a_connection_says_of_itself_is_said(stream: DeadlineStream | AsyncDeadlineStream) -> None:
    """Its socket is asked whether the server has closed it while nobody used it."""
    assert stream.get_extra_info("socket") == "socket of the connection"


@pytest.mark.parametrize(
    ("made", "of_httpx"), [(transport, httpx.HTTPTransport), (async_transport, httpx.AsyncHTTPTransport)]
)
def test_as_many_connections_are_kept_as_httpx_keeps(
    made: Callable[[None, Clock], Any], of_httpx: Callable[..., Any]
) -> None:
    """Open at once, idle, and for how long."""
    limits = ("_max_connections", "_max_keepalive_connections", "_keepalive_expiry")
    own, other = made(None, time.monotonic)._pool, of_httpx(verify=False)._pool
    assert [getattr(own, name) for name in limits] == [getattr(other, name) for name in limits]


@pytest.mark.parametrize("made", [transport, async_transport])
def test_no_certificate_is_read_for_plain_http(
    monkeypatch: pytest.MonkeyPatch, made: Callable[[None, Clock], object]
) -> None:
    """Reading them takes longer than many a call."""
    monkeypatch.setattr(ssl, "create_default_context", None)
    assert made(None, time.monotonic)


class Otherwise:
    """A transport of an httpx that keeps its connections under another name."""

    def __init__(self, **_options: object) -> None:
        self._connections = object()


@pytest.mark.parametrize(("name", "made"), [("HTTPTransport", transport), ("AsyncHTTPTransport", async_transport)])
def test_an_httpx_that_is_built_otherwise_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, made: Callable[[None, Clock], object]
) -> None:
    """One line that says which httpx to install: a moment taken for a length of time would be no time-out at all."""
    monkeypatch.setattr(httpx, name, Otherwise)
    with pytest.raises(UnavailableError, match=r"httpx .* install httpx 0\.28"):
        made(None, time.monotonic)
