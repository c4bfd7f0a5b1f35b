"""What a client hands to its transport when it is told no more than an address, and what it takes from its caller.

No server runs here; that a server is asked so is tested in test_http.
"""

import pytest

from overflow.tokens.client import _Behind
from overflow.tokens.endpoint import Endpoint


class Seen(_Behind[Endpoint]):
    """A client that opens nothing."""

    @staticmethod
    def _open(endpoint: Endpoint) -> Endpoint:
        return endpoint

    @property
    def endpoint(self) -> Endpoint:
        return self._transport


def test_a_client_of_a_mere_address_waits_a_minute_and_sends_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call has 60 seconds, two repetitions within them; no token anywhere is no Authorization at all."""
    monkeypatch.delenv("OVERFLOW_TOKEN", raising=False)
    endpoint = Seen("http://127.0.0.1:1").endpoint
    assert (endpoint.timeout, endpoint.retry_delays) == (60.0, (0.1, 0.4))
    assert "Authorization" not in endpoint.headers


@pytest.mark.parametrize(("token", "sent"), [(None, "Bearer from the variable"), ("own", "Bearer own"), ("", None)])
def test_a_token_of_the_caller_comes_before_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, token: str | None, sent: str | None
) -> None:
    """The variable counts only where the caller says nothing, without the white space around it."""
    monkeypatch.setenv("OVERFLOW_TOKEN", " from the variable\n")
    assert Seen("http://127.0.0.1:1", token=token).endpoint.headers.get("Authorization") == sent


def test_times_are_those_of_the_caller() -> None:
    """The time of a whole call, and the waits before it is made again."""
    endpoint = Seen("http://127.0.0.1:1", timeout=2.5, retry_delays=[0.5]).endpoint
    assert (endpoint.timeout, endpoint.retry_delays) == (2.5, (0.5,))
