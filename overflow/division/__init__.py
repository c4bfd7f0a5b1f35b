"""Division of a long record into spans that each fit the embedding window. Overflow Tree, section 2.

`divide` and its kin do it against a TokenWindow; `division` and `Lockstep` are the same without input or output, for a
caller that measures in a way of its own (a span's report can come with its embedding).
"""

from overflow.division.core import Ask, Steps, division
from overflow.division.density import Density
from overflow.division.drivers import adivide, adivide_many, divide, divide_many
from overflow.division.lockstep import Lockstep, Outcome
from overflow.division.spans import Cost, Division, Span, TokensUnknownError, WindowTooSmallError

__all__ = [
    "Ask",
    "Cost",
    "Density",
    "Division",
    "Lockstep",
    "Outcome",
    "Span",
    "Steps",
    "TokensUnknownError",
    "WindowTooSmallError",
    "adivide",
    "adivide_many",
    "divide",
    "divide_many",
    "division",
]
