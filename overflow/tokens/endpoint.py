"""One server as its clients see it: a checked address, headers, the time a call has, and when a call is made again.

It opens no connection. A request that may have been served is never repeated unless the caller says that it may.
DESIGN.md, "CEmbedding 0.9.1 as observed".
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import httpx

from overflow.errors import InputError, UnavailableError
from overflow.tokens.answer import TOKEN_VARIABLE

#: Seconds since some moment, never going back.
Clock = Callable[[], float]

_BUSY = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True)
class Call:
    """One request; `repeatable` says that serving it twice does no harm and costs little."""

    path: str
    body: bytes | None
    repeatable: bool

    @property
    def method(self) -> str:
        return "GET" if self.body is None else "POST"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The server at `url`. A call has `timeout` seconds, its repetitions and the waits before them included.

    Without a `token` no authorization is sent. Raises InputError for what is no address of a server, or no token.
    """

    url: str
    token: str
    timeout: float
    retry_delays: tuple[float, ...]
    clock: Clock = time.monotonic

    def __post_init__(self) -> None:
        _require_address(self.url)
        if not (self.token.isascii() and self.token.isprintable()):
            raise InputError(f"the bearer token in {TOKEN_VARIABLE} holds a character that a header cannot carry")

    @property
    def base(self) -> str:
        """The address that a call's path is put behind."""
        return self.url.rstrip("/")

    @property
    def is_encrypted(self) -> bool:
        return self.url.lower().startswith("https:")

    @property
    def headers(self) -> dict[str, str]:
        # A compressed answer would have to be unpacked to learn its size, and then it is too late.
        common = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        return {**common, "Authorization": f"Bearer {self.token}"} if self.token else common

    def address(self, call: Call) -> str:
        return self.base + call.path

    def deadline(self) -> float:
        """The moment a call that starts now has to be over."""
        return self.clock() + self.timeout

    def left(self, deadline: float) -> float:
        """Seconds to the deadline, below 0 when it has passed."""
        return deadline - self.clock()

    def delay(self, call: Call, attempt: int, failure: httpx.RequestError | int, deadline: float) -> float | None:
        """Seconds to wait before making the call again; None to give up."""
        if attempt >= len(self.retry_delays) or self.left(deadline) <= self.retry_delays[attempt]:
            return None
        never_arrived = isinstance(failure, httpx.ConnectError | httpx.ConnectTimeout)
        lost = isinstance(failure, httpx.ReadError | httpx.WriteError | httpx.RemoteProtocolError)
        busy = isinstance(failure, int) and failure in _BUSY
        if never_arrived or (call.repeatable and (lost or busy)):
            return self.retry_delays[attempt]
        return None

    def failure(self, call: Call, error: httpx.RequestError) -> UnavailableError:
        """What is said of a call that came to nothing."""
        address = self.address(call)
        if isinstance(error, httpx.ConnectTimeout | httpx.ConnectError):
            return UnavailableError(f"no server at {address} ({_reason(error)}); start it or correct the address")
        if isinstance(error, httpx.TimeoutException):
            return UnavailableError(f"{address} did not answer in time; give it more time or smaller texts")
        return UnavailableError(f"{address} broke off without an answer ({_reason(error)})")


def _reason(error: httpx.RequestError) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _require_address(url: str) -> None:
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
