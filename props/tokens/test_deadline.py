"""The transports that end a request at a moment: only on an httpx in which they reach every connection.

That they do end it is tested with the clients, in test_http.
"""

import time
from collections.abc import Callable

import httpx
import pytest

from overflow.errors import UnavailableError
from overflow.tokens.deadline import async_transport, transport
from overflow.tokens.endpoint import Clock


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
