"""The one way a check fails: a typed violation that a person can read and a gate can tell from every other failure.

An import error, an SQL error or a crash of the subject is never a Violation; the runner reports it as an error.
DESIGN.md, principle 4.
"""

from dataclasses import dataclass, field
from typing import Any

from overflow.contract.readable import read, read_both


@dataclass(eq=False)
class Violation(AssertionError):
    """A law that did not hold: which, what was expected, what was got, and the input as a person would want to read it.

    `law` is the law's id (`"1"` to `"6"`, or a word). `context` maps a label (text, window, nodes, ...) to a value.
    """

    law: str
    title: str
    expected: Any
    got: Any
    context: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        expected, got = read_both(self.expected, self.got)
        lines = [f"[{self.law}] {self.title}", f"  expected: {expected}", f"  got:      {got}"]
        lines += [f"  {label}: {read(value)}" for label, value in self.context.items()]
        return "\n".join(lines)
