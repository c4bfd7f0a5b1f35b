"""What there is to choose from, as lists: the laws of the contract, and the saboteurs with the laws they break.

It runs nothing. DESIGN.md, "Command line" (`overflow check --invariant`, `--saboteur`).
"""

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from overflow.cli.output import stdout_console
from overflow.contract.laws import Law
from overflow.contract.saboteurs import Saboteur

#: A line an entry where there is no terminal, however long: what reads it is a program, such as grep.
_UNFOLDED = 1_000


def print_laws(laws: Iterable[Law]) -> None:
    """Every law: its id, its name, the sentence's place in the design, and the capabilities it needs."""
    rows = [(law.id, law.name, law.source, " ".join(sorted(law.requires))) for law in laws]
    _print(("law", "name", "source", "needs"), rows)


def print_saboteurs(saboteurs: Iterable[Saboteur]) -> None:
    """Every saboteur: its name, the laws it breaks, and what it does."""
    rows = [(each.name, " ".join(sorted(each.expected)), each.breaks) for each in saboteurs]
    _print(("saboteur", "laws it breaks", "what it does"), rows)


def _print(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    shape = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, heading in enumerate(headings):
        # What is typed is never folded.
        shape.add_column(heading, no_wrap=place == 0)
    for row in rows:
        shape.add_row(*map(Text, row))
    stdout_console(_UNFOLDED).print(shape)
