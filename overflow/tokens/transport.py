"""JSON over HTTP to a server of the CEmbedding contract: bearer token, retries, and errors as one line each.

It knows nothing of tokens or vectors, follows no redirect, uses no proxy of the environment, and never repeats a
request that may have been served unless the caller says that it may. An answer is bounded in size and a call in time,
whatever the server sends. DESIGN.md, "CEmbedding 0.9.1 as observed".
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import httpx

from overflow.errors import InputError, UnavailableError

#: The environment variable that holds the bearer token.
TOKEN_VARIABLE = "OVERFLOW_TOKEN"

#: An answer has at most this many bytes: 100 vectors of 16,384 dimensions, written out at 20 bytes a number, take half.
MAX_ANSWER = 64 * 1024 * 1024

#: Seconds since some moment, never going back.
Clock = Callable[[], float]

_BUSY = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True)
class Call:
    """One request; `repeatable` says that serving it twice does no harm and costs little."""

    path: str
    body: bytes | None
    repeatable: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the status and the whole body."""

    status: int
    body: bytes


def json_object(answer: Answer, source: str) -> dict[str, object]:
    """The JSON object of a 200 answer; raises UnavailableError with one line for anything else."""
    value = _json_value(answer, source)
    if not isinstance(value, dict):
        raise UnavailableError(f"{source} answered JSON that is not an object")
    return value


def json_list(answer: Answer, source: str) -> list[object]:
    """The JSON list of a 200 answer; raises UnavailableError with one line for anything else."""
    value = _json_value(answer, source)
    if not isinstance(value, list):
        raise UnavailableError(f"{source} answered JSON that is not a list")
    return value


def _json_value(answer: Answer, source: str) -> object:
    if answer.status != 200:
        raise UnavailableError(_refusal(answer, source))
    try:
        value: object = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise UnavailableError(f"{source} answered something that is not JSON: {_line(answer.body)}") from error
    return value


def _refusal(answer: Answer, source: str) -> str:
    said = f": {_line(answer.body)}" if answer.body.strip() else ""
    if answer.status == 401:
        return f"{source} refused the bearer token (401); set {TOKEN_VARIABLE} to the server's token"
    if answer.status == 413:
        return f"{source} refused the request as too large (413){said}"
    if 300 <= answer.status < 400:
        return f"{source} redirects ({answer.status}); give the address it redirects to"
    return f"{source} answered {answer.status}{said}"


def _line(body: bytes) -> str:
    """One printable line of at most 120 characters, the `error` member of an object where there is one."""
    text = body[:2000].decode("utf-8", "replace")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and isinstance(value.get("error"), str):
        text = value["error"]
    text = "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
    return text if len(text) <= 120 else text[:117] + "..."


class _Settings:
    """What the two clients share: the checked address, the headers, and when a failed call may be made again."""

    def __init__(
        self, url: str, token: str | None, timeout: float, retry_delays: Sequence[float], clock: Clock
    ) -> None:
        self.url = _checked_url(url)
        self.timeout = timeout
        self.retry_delays = tuple(retry_delays)
        self.clock = clock
        # Loading the certificates takes longer than many a test, and plain HTTP needs none.
        self.verify = self.url.lower().startswith("https:")
        token = os.environ.get(TOKEN_VARIABLE, "").strip() if token is None else token
        if not (token.isascii() and token.isprintable()):
            raise InputError(f"the bearer token in {TOKEN_VARIABLE} holds a character that a header cannot carry")
        # A compressed answer would have to be unpacked to learn its size, and then it is too late.
        self.headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"

    def address(self, call: Call) -> str:
        return self.url + call.path

    def method(self, call: Call) -> str:
        return "GET" if call.body is None else "POST"

    def delay(self, call: Call, attempt: int, failure: httpx.RequestError | int, deadline: float) -> float | None:
        """Seconds to wait before making the call again; None to give up."""
        if attempt >= len(self.retry_delays) or self.clock() + self.retry_delays[attempt] >= deadline:
            return None
        never_arrived = isinstance(failure, httpx.ConnectError | httpx.ConnectTimeout)
        lost = isinstance(failure, httpx.ReadError | httpx.WriteError | httpx.RemoteProtocolError)
        busy = isinstance(failure, int) and failure in _BUSY
        if never_arrived or (call.repeatable and (lost or busy)):
            return self.retry_delays[attempt]
        return None

    def failure(self, call: Call, error: httpx.RequestError) -> UnavailableError:
        address = self.address(call)
        if isinstance(error, httpx.ConnectTimeout | httpx.ConnectError):
            return UnavailableError(f"no server at {address} ({_reason(error)}); start it or correct the address")
        if isinstance(error, httpx.TimeoutException):
            return self.too_late(call)
        return UnavailableError(f"{address} broke off without an answer ({_reason(error)})")

    def left(self, call: Call, deadline: float) -> float:
        """Seconds to the deadline, more than 0; raises UnavailableError when it has passed."""
        seconds = deadline - self.clock()
        if seconds <= 0:
            raise self.too_late(call)
        return seconds

    def too_late(self, call: Call) -> UnavailableError:
        return UnavailableError(f"{self.address(call)} did not answer in time; give it more time or smaller texts")


class _Body:
    """The body of one answer as it arrives; raises UnavailableError as soon as it is too much, or too late."""

    def __init__(self, settings: _Settings, call: Call, deadline: float, response: httpx.Response) -> None:
        self._settings = settings
        self._call = call
        self._deadline = deadline
        self._bytes = bytearray()
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding != "identity":
            raise UnavailableError(f"{settings.address(call)} answered in the encoding {encoding!r}, not asked for")

    def add(self, chunk: bytes) -> None:
        if len(self._bytes) + len(chunk) > MAX_ANSWER:
            raise UnavailableError(
                f"{self._settings.address(self._call)} answered more than {MAX_ANSWER:,} bytes; is it the right server?"
            )
        self._settings.left(self._call, self._deadline)
        self._bytes += chunk

    def whole(self) -> bytes:
        return bytes(self._bytes)


def _reason(error: httpx.RequestError) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _checked_url(url: str) -> str:
    try:
        parsed = httpx.URL(url)
        # As the system's resolver will, which raises this for an empty label or one of more than 63 letters; the host
        # itself does for a label that only looks like an encoded one (xn--).
        host, _ = parsed.host, parsed.raw_host.decode("ascii").encode("idna")
    except (httpx.InvalidURL, UnicodeError) as error:
        raise InputError(f"{url!r} is not an address ({error}); give one such as http://127.0.0.1:8401") from error
    # httpx would escape white space and ask for a host of that name.
    odd = parsed.query or parsed.fragment or len(url.split()) != 1 or (parsed.port or 0) > 65_535
    if parsed.scheme not in ("http", "https") or not host or odd:
        raise InputError(f"{url!r} is not the address of a server; give one such as http://127.0.0.1:8401")
    if parsed.userinfo:
        raise InputError(f"the address of {parsed.host} holds a password; put the bearer token in {TOKEN_VARIABLE}")
    return url.rstrip("/")


#: Seconds to wait before the second and the third attempt.
RETRY_DELAYS = (0.1, 0.4)
#: Seconds after which a call fails, its repetitions included.
TIMEOUT = 60.0


class Transport:
    """Blocking calls to one server. `token` None is that of the environment variable OVERFLOW_TOKEN; times in seconds.

    Raises InputError for what is no address of a server.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = TIMEOUT,
        retry_delays: Sequence[float] = RETRY_DELAYS,
        clock: Clock = time.monotonic,
    ) -> None:
        self._settings = _Settings(url, token, timeout, retry_delays, clock)
        self._client = httpx.Client(trust_env=False, verify=self._settings.verify, headers=self._settings.headers)
        self.url = self._settings.url

    def call(self, call: Call) -> Answer:
        """Make the call; raises UnavailableError when there is no answer. Any status is an answer."""
        settings, attempt = self._settings, 0
        deadline = settings.clock() + settings.timeout
        while True:
            try:
                answer = self._once(call, deadline)
            except httpx.RequestError as error:
                wait = settings.delay(call, attempt, error, deadline)
                if wait is None:
                    raise settings.failure(call, error) from error
            else:
                wait = settings.delay(call, attempt, answer.status, deadline)
                if wait is None:
                    return answer
            time.sleep(wait)
            attempt += 1

    def _once(self, call: Call, deadline: float) -> Answer:
        settings = self._settings
        method, left = settings.method(call), settings.left(call, deadline)
        with self._client.stream(method, settings.address(call), content=call.body, timeout=left) as response:
            body = _Body(settings, call, deadline, response)
            for chunk in response.iter_raw():
                body.add(chunk)
            return Answer(response.status_code, body.whole())

    def close(self) -> None:
        self._client.close()


class BehindServer:
    """What is answered by one server over a Transport: close it, or use it as a context manager.

    `token` None is that of the environment variable OVERFLOW_TOKEN. `timeout` and `retry_delays` are in seconds. Raises
    InputError for what is no address of a server.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = TIMEOUT,
        retry_delays: Sequence[float] = RETRY_DELAYS,
    ) -> None:
        self._transport = Transport(url, token=token, timeout=timeout, retry_delays=retry_delays)

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncTransport:
    """Transport whose calls are awaited."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = TIMEOUT,
        retry_delays: Sequence[float] = RETRY_DELAYS,
        clock: Clock = time.monotonic,
    ) -> None:
        self._settings = _Settings(url, token, timeout, retry_delays, clock)
        self._client = httpx.AsyncClient(trust_env=False, verify=self._settings.verify, headers=self._settings.headers)
        self.url = self._settings.url

    async def call(self, call: Call) -> Answer:
        """Make the call; raises UnavailableError when there is no answer. Any status is an answer."""
        settings, attempt = self._settings, 0
        deadline = settings.clock() + settings.timeout
        while True:
            try:
                answer = await self._once(call, deadline)
            except httpx.RequestError as error:
                wait = settings.delay(call, attempt, error, deadline)
                if wait is None:
                    raise settings.failure(call, error) from error
            else:
                wait = settings.delay(call, attempt, answer.status, deadline)
                if wait is None:
                    return answer
            await asyncio.sleep(wait)
            attempt += 1

    async def _once(self, call: Call, deadline: float) -> Answer:
        settings = self._settings
        method, left = settings.method(call), settings.left(call, deadline)
        async with self._client.stream(method, settings.address(call), content=call.body, timeout=left) as response:
            body = _Body(settings, call, deadline, response)
            async for chunk in response.aiter_raw():
                body.add(chunk)
            return Answer(response.status_code, body.whole())

    async def aclose(self) -> None:
        await self._client.aclose()
