"""The laws of the first contract: the six invariants of section 5, and the laws of sections 2 to 4, 6 and 7."""

from overflow.contract.laws import (  # noqa: F401 - they register themselves
    building,
    interleavings,
    keeping,
    lifecycle,
    nodes,
    portability,
    repair,
    retrieval,
    tampering,
)
from overflow.contract.laws.law import LAWS, Law, expect, law

_ORDER = ("1", "2", "3", "4", "5", "6")


def all_laws() -> list[Law]:
    """Every law, the numbered invariants first."""
    return sorted(LAWS.values(), key=lambda each: _ORDER.index(each.id) if each.id in _ORDER else len(_ORDER))


__all__ = ["LAWS", "Law", "all_laws", "expect", "law"]
