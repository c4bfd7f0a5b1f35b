"""What a client of one server is made from and how it is closed: the one place of its parameters and their defaults.

It sends nothing. DESIGN.md, "CEmbedding 0.9.1 as observed": the bearer token is optional.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Generic, Self, TypeVar

from overflow.tokens.answer import TOKEN_VARIABLE
from overflow.tokens.endpoint import Endpoint
from overflow.tokens.transport import AsyncTransport, Transport

T = TypeVar("T")


class _Behind(ABC, Generic[T]):
    """`token` None is that of the environment variable OVERFLOW_TOKEN; `timeout`, for a whole call, and `retry_delays`,
    before the second attempt and the next ones, are in seconds. Raises InputError for what is no address of a server.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 60.0,
        retry_delays: Sequence[float] = (0.1, 0.4),
    ) -> None:
        given = os.environ.get(TOKEN_VARIABLE, "").strip() if token is None else token
        self._transport = self._open(Endpoint(url, given, timeout, tuple(retry_delays)))

    @staticmethod
    @abstractmethod
    def _open(endpoint: Endpoint) -> T: ...


class BehindServer(_Behind[Transport]):
    """What is answered by one server: close it, or use it as a context manager."""

    @staticmethod
    def _open(endpoint: Endpoint) -> Transport:
        return Transport(endpoint)

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class BehindServerAsync(_Behind[AsyncTransport]):
    """What is answered by one server and awaited: close it with `aclose`, or use it as an async context manager."""

    @staticmethod
    def _open(endpoint: Endpoint) -> AsyncTransport:
        return AsyncTransport(endpoint)

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
