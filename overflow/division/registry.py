"""The dividers by name: each takes many texts and a token window and ends every text with a division or its error.

`reference` is the rule of the design; what others do is compared with it. DESIGN.md, "Command line" (`--divider`).
"""

from collections.abc import Callable, Iterable, Iterator

from overflow.division.drivers import divide_many
from overflow.division.lockstep import Outcome
from overflow.errors import InputError
from overflow.tokens.report import TokenWindow

#: Yields (place of the text, outcome), each text once, in any order.
Divider = Callable[[Iterable[str], TokenWindow], Iterator[tuple[int, Outcome]]]

DIVIDERS: dict[str, Divider] = {"reference": divide_many}


def divider(name: str) -> Divider:
    """The divider of that name; raises InputError, with the names there are, for another."""
    if name not in DIVIDERS:
        raise InputError(f"no divider is called {name!r}; there are {', '.join(DIVIDERS)}")
    return DIVIDERS[name]
