"""Calls to a server of the CEmbedding contract, blocking and awaited, each bounded in time and its answer in size.

It knows nothing of tokens or vectors, follows no redirect and uses no proxy of the environment. DESIGN.md, "CEmbedding
0.9.1 as observed".
"""

import asyncio
import functools
import ssl
import time

import httpx

from overflow.errors import UnavailableError
from overflow.tokens.answer import Answer
from overflow.tokens.deadline import async_transport, transport
from overflow.tokens.endpoint import Call, Endpoint

#: An answer has at most this many bytes: 100 vectors of 16,384 dimensions, written out at 20 bytes a number, take half.
MAX_ANSWER = 64 * 1024 * 1024


class Transport:
    """Blocking calls to one server."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._transport = transport(_tls(endpoint), endpoint.clock)
        self.url = endpoint.base

    def call(self, call: Call) -> Answer:
        """Make the call; raises UnavailableError when there is no answer. Any status is an answer."""
        endpoint, attempt = self._endpoint, 0
        deadline = endpoint.deadline()
        while True:
            try:
                answer = self._once(call, deadline)
            except httpx.RequestError as error:
                wait = endpoint.delay(call, attempt, error, deadline)
                if wait is None:
                    raise endpoint.failure(call, error) from error
            else:
                wait = endpoint.delay(call, attempt, answer.status, deadline)
                if wait is None:
                    return answer
            time.sleep(wait)
            attempt += 1

    def _once(self, call: Call, deadline: float) -> Answer:
        response = self._transport.handle_request(_request(self._endpoint, call, deadline))
        try:
            body = _Body(self._endpoint.address(call), response)
            for chunk in response.iter_raw():
                body.add(chunk)
            return body.answer()
        finally:
            response.close()

    def close(self) -> None:
        self._transport.close()


class AsyncTransport:
    """Transport whose calls are awaited."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._transport = async_transport(_tls(endpoint), endpoint.clock)
        self.url = endpoint.base

    async def call(self, call: Call) -> Answer:
        """Make the call; raises UnavailableError when there is no answer. Any status is an answer."""
        endpoint, attempt = self._endpoint, 0
        deadline = endpoint.deadline()
        while True:
            try:
                answer = await self._once(call, deadline)
            except httpx.RequestError as error:
                wait = endpoint.delay(call, attempt, error, deadline)
                if wait is None:
                    raise endpoint.failure(call, error) from error
            else:
                wait = endpoint.delay(call, attempt, answer.status, deadline)
                if wait is None:
                    return answer
            await asyncio.sleep(wait)
            attempt += 1

    async def _once(self, call: Call, deadline: float) -> Answer:
        response = await self._transport.handle_async_request(_request(self._endpoint, call, deadline))
        try:
            body = _Body(self._endpoint.address(call), response)
            async for chunk in response.aiter_raw():
                body.add(chunk)
            return body.answer()
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        await self._transport.aclose()


class _Body:
    """The body of one answer as it arrives; raises UnavailableError as soon as it is too much."""

    def __init__(self, address: str, response: httpx.Response) -> None:
        self._address = address
        self._status = response.status_code
        self._bytes = bytearray()
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding != "identity":
            raise UnavailableError(f"{address} answered in the encoding {encoding!r}, not asked for")

    def add(self, chunk: bytes) -> None:
        if len(self._bytes) + len(chunk) > MAX_ANSWER:
            raise UnavailableError(f"{self._address} answered more than {MAX_ANSWER:,} bytes; is it the right server?")
        self._bytes += chunk

    def answer(self) -> Answer:
        return Answer(self._status, bytes(self._bytes))


def _request(endpoint: Endpoint, call: Call, deadline: float) -> httpx.Request:
    """The call, for a transport: it needs nothing of what a client would add, and takes a third less time without."""
    # A moment for the connection, and the seconds left to wait for one of the pool.
    timeout = httpx.Timeout(deadline, pool=max(endpoint.left(deadline), 0.0)).as_dict()
    return httpx.Request(
        call.method,
        _url(endpoint.address(call)),
        headers=endpoint.headers,
        content=call.body,
        extensions={"timeout": timeout},
    )


@functools.lru_cache(maxsize=64)
def _url(address: str) -> httpx.URL:
    """An address read once: there are few, and reading one takes a tenth of a request."""
    return httpx.URL(address)


def _tls(endpoint: Endpoint) -> ssl.SSLContext | None:
    # Loading the certificates takes longer than many a test, and plain HTTP needs none.
    return httpx.create_ssl_context(trust_env=False) if endpoint.is_encrypted else None
