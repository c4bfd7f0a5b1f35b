"""HTTP transports to which a time-out is a moment and not a length of time, so that it bounds a whole request.

httpx starts its time-outs anew at each read: a server that sends a byte now and then would hold a client for ever. Here
`timeout=T` says that connecting, sending and every read are to be over when the clock shows T. Nothing else changes. An
httpx whose connections this cannot reach is refused: it would take the moment for a length of time, and wait for ever.
"""

import ssl
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

from overflow.errors import UnavailableError
from overflow.tokens.endpoint import Clock

#: As httpx has them; times in seconds.
_LIMITS: dict[str, Any] = {"max_connections": 100, "max_keepalive_connections": 20, "keepalive_expiry": 5.0}

_SocketOptions = Iterable[Any] | None


def transport(tls: ssl.SSLContext | None, clock: Clock) -> httpx.HTTPTransport:
    """One whose time-outs are moments of `clock`; raises UnavailableError where httpx is another."""
    made = httpx.HTTPTransport(verify=False)
    _require_pool(made, httpcore.ConnectionPool)
    # A network backend is given to the pool alone, and httpx hands none down to it.
    made._pool = httpcore.ConnectionPool(ssl_context=tls, network_backend=_Backend(clock), **_LIMITS)
    return made


def async_transport(tls: ssl.SSLContext | None, clock: Clock) -> httpx.AsyncHTTPTransport:
    """`transport` whose calls are awaited."""
    made = httpx.AsyncHTTPTransport(verify=False)
    _require_pool(made, httpcore.AsyncConnectionPool)
    made._pool = httpcore.AsyncConnectionPool(ssl_context=tls, network_backend=_AsyncBackend(clock), **_LIMITS)
    return made


def _require_pool(made: object, kind: type) -> None:
    """Raise UnavailableError unless the pool of connections is where httpx 0.27 and 0.28 have it."""
    if not isinstance(getattr(made, "_pool", None), kind):
        raise UnavailableError(
            f"httpx {httpx.__version__} keeps its connections where a time-out cannot be set; install httpx 0.28"
        )


def _left(moment: float | None, clock: Clock) -> float:
    # Every request of this package has a deadline.
    assert moment is not None
    seconds = moment - clock()
    if seconds <= 0:
        raise httpcore.ReadTimeout
    return seconds


class DeadlineStream(httpcore.NetworkStream):
    """A connection that gives each step what is left to the moment it is to be over."""

    def __init__(self, stream: httpcore.NetworkStream, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(timeout, self._clock))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(timeout, self._clock))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = _left(timeout, self._clock)
        return DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, left), self._clock)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend(httpcore.NetworkBackend):
    def __init__(self, clock: Clock) -> None:
        self._sockets = httpcore.SyncBackend()
        self._clock = clock

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: _SocketOptions = None,
    ) -> httpcore.NetworkStream:
        left = _left(timeout, self._clock)
        return DeadlineStream(self._sockets.connect_tcp(host, port, left, local_address, socket_options), self._clock)


class AsyncDeadlineStream(httpcore.AsyncNetworkStream):
    """DeadlineStream whose steps are awaited."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._stream.read(max_bytes, _left(timeout, self._clock))

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._stream.write(buffer, _left(timeout, self._clock))

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        left = _left(timeout, self._clock)
        return AsyncDeadlineStream(await self._stream.start_tls(ssl_context, server_hostname, left), self._clock)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _AsyncBackend(httpcore.AsyncNetworkBackend):
    def __init__(self, clock: Clock) -> None:
        self._sockets = httpcore.AnyIOBackend()
        self._clock = clock

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: _SocketOptions = None,
    ) -> httpcore.AsyncNetworkStream:
        left = _left(timeout, self._clock)
        stream = await self._sockets.connect_tcp(host, port, left, local_address, socket_options)
        return AsyncDeadlineStream(stream, self._clock)
