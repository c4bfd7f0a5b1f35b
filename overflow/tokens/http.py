"""The token side of the CEmbedding HTTP contract: reports from `POST /count_tokens`, blocking and awaited.

It never guesses: a server that cannot count (`token_info: null`, or an older one without the route) gives None for
every text, and an answer outside the contract is an error. Overflow Tree, section 0; DESIGN.md, "CEmbedding 0.9.1 as
observed".
"""

from collections.abc import Sequence

from overflow.tokens.answer import Answer, json_object
from overflow.tokens.batches import Batch, batches
from overflow.tokens.client import BehindServer, BehindServerAsync
from overflow.tokens.endpoint import Call
from overflow.tokens.foreign import checked_reports
from overflow.tokens.report import TokenReport
from overflow.tokens.transport import Transport

_PATH = "/count_tokens"


def _calls(texts: Sequence[str]) -> list[tuple[Batch, Call]]:
    found = batches(texts, key="texts", tail=b"}")
    return [(batch, Call(_PATH, batch.body, repeatable=True)) for batch in found]


def _reports(answer: Answer, batch: Batch, url: str) -> list[TokenReport | None]:
    source = url + _PATH
    if answer.status == 404:
        return [None] * len(batch.texts)
    return checked_reports(json_object(answer, source).get("token_info"), batch.texts, source)


class HttpWindow(BehindServer):
    """A TokenWindow behind one server; close it, or use it as a context manager.

    That it is prefix-safe is believed, because no server says it and to measure every rest would cost the square of a
    record's length. Where it is not true, as a beginning counts otherwise when more follows, a cut depends on how
    much was measured, and so on the records divided in its company. Each node fits all the same.
    """

    prefix_safe = True

    @property
    def name(self) -> str:
        """The server's address."""
        return self._transport.url

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        """One report a text, in order; raises InputError for a text no request can carry, else UnavailableError."""
        return measure_over(self._transport, texts)


def measure_over(transport: Transport, texts: Sequence[str]) -> list[TokenReport | None]:
    """Reports of `texts` over an open transport, as `HttpWindow.measure` gives them."""
    reports: list[TokenReport | None] = []
    for batch, call in _calls(texts):
        reports += _reports(transport.call(call), batch, transport.url)
    return reports


class AsyncHttpWindow(BehindServerAsync):
    """HttpWindow whose measuring is awaited; close it with `aclose`, or use it as an async context manager."""

    #: Believed: see HttpWindow.
    prefix_safe = True

    @property
    def name(self) -> str:
        """The server's address."""
        return self._transport.url

    async def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        """One report a text, in order; raises InputError for a text no request can carry, else UnavailableError."""
        reports: list[TokenReport | None] = []
        for batch, call in _calls(texts):
            reports += _reports(await self._transport.call(call), batch, self._transport.url)
        return reports
