"""A counterexample's values as a person reads them: bytes by their number and a digest, rows of nodes a line each, and
two long values by where they first differ.

It decides nothing about what a counterexample holds, and never shortens a text of its own accord: `apart` is for who
shows one, and what keeps one keeps it whole. DESIGN.md, principle 4.
"""

import ast
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from overflow.contract.subject import Node

#: Bytes, and characters of a collection on one line, up to which a value is written out.
_BYTES = 32
_LINE = 100
#: What is shown of a long value before its first difference and after it: characters or bytes, and lines.
_BEFORE, _AFTER = 40, 80
_LINES = 3


def read(value: Any) -> str:
    """One value; a text as it is, and a long collection as one line an item."""
    return value if isinstance(value, str) else _written(value)


def read_both(expected: Any, got: Any) -> tuple[str, str]:
    """Two values that are not the same; long bytes from a little before their first difference on."""
    if isinstance(expected, bytes) and isinstance(got, bytes) and max(len(expected), len(got)) > _BYTES:
        at = _common(expected, got)
        return _bytes_around(expected, at), _bytes_around(got, at)
    return read(expected), read(got)


def apart(expected: str, got: str) -> tuple[list[str], list[str], str] | None:
    """The lines to show of each, around their first difference, and where that is; None where one has no need of it."""
    one, other = _text(expected), _text(got)
    if one is not None and other is not None:
        if max(len(one), len(other)) <= _BEFORE + _AFTER:
            return None
        at = _common(one, other)
        return [_around(one, at)], [_around(other, at)], f"at character {at:,} of the text, counted from 0"
    lines = expected.strip("\n").split("\n"), got.strip("\n").split("\n")
    if min(map(len, lines)) == 1 or max(map(len, lines)) <= 2 * _LINES + 1:
        return None
    at = _common(*lines)
    return _lines_around(lines[0], at), _lines_around(lines[1], at), f"in item {at:,}, counted from 0"


def _written(value: Any) -> str:
    if isinstance(value, bytes):
        return repr(value) if len(value) <= _BYTES else _sized(value)
    if isinstance(value, Node):
        vector = "no vector" if value.embedding is None else f"vector {_written(value.embedding)}"
        counted = f"token_count {value.token_count}, window {value.window}"
        return f"node {value.index}: {value.start} to {value.end}, {counted}, model {value.model!r}, {vector}"
    if isinstance(value, Mapping):
        return _collected([f"{_item(key)}: {_item(each)}" for key, each in value.items()], "{", "}")
    if isinstance(value, (set, frozenset)):
        return _collected(sorted(map(_item, value)), "{", "}")
    if isinstance(value, list):
        return _collected([_item(each) for each in value], "[", "]")
    if type(value) is tuple:
        return "(" + ", ".join(map(_item, value)) + ")"
    return str(value)


def _item(value: Any) -> str:
    return repr(value) if isinstance(value, str) else _written(value)


def _collected(items: Sequence[str], opening: str, closing: str) -> str:
    line = opening + ", ".join(items) + closing
    # A value of several lines begins on a line of its own.
    return line if len(line) <= _LINE or len(items) < 2 else "".join(f"\n{each}" for each in items)


def _sized(value: bytes) -> str:
    return f"of {len(value):,} bytes (sha256 {hashlib.sha256(value).hexdigest()[:8]})"


def _bytes_around(value: bytes, at: int) -> str:
    start = max(0, at - _BEFORE)
    return f"{len(value):,} bytes, first different at byte {at:,}; from byte {start:,}: {value[start : at + _AFTER]!r}"


def _text(value: str) -> str | None:
    """The text that `value` is the literal of; None for anything else."""
    if value[:1] not in ("'", '"'):
        return None
    try:
        text = ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return None
    return text if isinstance(text, str) else None


def _around(text: str, at: int) -> str:
    start, end = max(0, at - _BEFORE), at + _AFTER
    dots = "…" * (start > 0), "…" * (end < len(text))
    return f"{dots[0]}{text[start:end]!r}{dots[1]} ({len(text):,} characters)"


def _lines_around(lines: list[str], at: int) -> list[str]:
    start, end = max(0, at - _LINES), at + _LINES + 1
    before = [f"… ({start:,} before, the same in both)"] if start else []
    after = [f"… ({len(lines) - end:,} after)"] if len(lines) > end else []
    return [f"({len(lines):,} in all)", *before, *lines[start:end], *after]


def _common(one: Sequence[object], other: Sequence[object]) -> int:
    """How many items both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
