"""What dividing one record gives: its spans, what the measuring cost, and the two ways it can have no answer.

It holds offsets and counts, never text, and decides nothing. Overflow Tree, sections 1 and 2.
"""

from dataclasses import dataclass

from overflow.division.density import Density
from overflow.errors import InputError, UnavailableError


@dataclass(frozen=True, slots=True)
class Span:
    """One node of a record: code points `start` to `end` (exclusive).

    `token_count` is the count of that text measured alone, at most `window`; both are tokens, special tokens included.
    """

    start: int
    end: int
    token_count: int
    window: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What was asked of the tokenizer: rounds of measuring, texts in them, and their code points.

    A round that many records share is one request to the server, and one in the cost of each of them.
    """

    requests: int
    texts: int
    characters: int


@dataclass(frozen=True, slots=True)
class Division:
    """A divided record. `fits` records have no spans: the record itself is its only one.

    `window` is in tokens, None for an empty text, which is never measured. `density` makes the division of the next
    text cheaper when it is handed on; None when nothing was learnt.
    """

    spans: tuple[Span, ...]
    fits: bool
    window: int | None
    density: Density | None
    cost: Cost


class TokensUnknownError(UnavailableError):
    """The server reports no tokens, so nothing is known of the record: not that it fits, not where to cut."""

    def __init__(self, cost: Cost) -> None:
        super().__init__("the embedding server reports no tokens, so the record is not divided")
        self.cost = cost


class WindowTooSmallError(InputError):
    """No character of the text at `position` (code points) fits the window alone: the record cannot be divided."""

    def __init__(self, position: int, window: int, cost: Cost) -> None:
        super().__init__(f"a window of {window} tokens holds no text at character {position}; use a larger window")
        self.position = position
        self.window = window
        self.cost = cost
