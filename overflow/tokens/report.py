"""The token report: what an embedding model's tokenizer says of one text, and what measures it.

Never decides anything about division. Overflow Tree, section 0; DESIGN.md, "Words" and principle 5: an absent report is
the value None, and nothing treats it as "fits".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class TokenReport:
    """One text against the window.

    `count` is tokens, special tokens and prompt prefix included, and so is `window`. `window_end_char` is in code
    points: `text[:window_end_char]` is what the vector represents; it is `len(text)` when nothing was cut.
    """

    count: int
    window: int
    truncated: bool
    window_end_char: int


@runtime_checkable
class TokenWindow(Protocol):
    """Measures texts against one model's window."""

    @property
    def name(self) -> str:
        """What a person typed to get it, such as `e5` or `words@40`."""

    @property
    def prefix_safe(self) -> bool:
        """Whether a report on a prefix that ends well past the window's close equals the report on the whole text.

        True for every tokenizer whose tokens do not reach across white space or beyond a bounded run; False lets the
        division measure the whole remaining text each time.
        """

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        """One report a text, in order; None where the tokens are unknown.

        Raises InputError for a text that is not Unicode (a lone surrogate), UnavailableError when the server behind it
        cannot answer.
        """


class AsyncTokenWindow(Protocol):
    """A TokenWindow whose measuring is awaited."""

    @property
    def name(self) -> str: ...

    @property
    def prefix_safe(self) -> bool: ...

    async def measure(self, texts: Sequence[str]) -> list[TokenReport | None]: ...
