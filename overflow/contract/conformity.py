"""Whether a value a subject returned is of the kind the protocol says, before a law reads it.

It reads the annotations of `Subject` itself, and judges types, never contents. DESIGN.md, "Subject protocol".
"""

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from overflow.contract import told
from overflow.contract.subject import Subject


def require_conformity(method: str, value: Any) -> None:
    """Raise TypeError, naming the method, for a value that is not what the protocol's `method` returns."""
    annotation = _hints(getattr(Subject, method))["return"]
    if not _conforms(value, annotation):
        raise TypeError(f"{method} returned {told.value(value)}, which is no {_named(annotation)}")


def _conforms(value: Any, annotation: Any) -> bool:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(value, int) and not _can_be_written(value):
        return False
    if annotation is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_conforms(value, each) for each in arguments)
    if origin is Literal:
        return value in arguments
    if origin in (list, tuple):
        return isinstance(value, origin) and all(_conforms(each, arguments[0]) for each in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _conforms(key, arguments[0]) and _conforms(each, arguments[1]) for key, each in value.items()
        )
    if annotation is type(None):
        return value is None
    if annotation is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if annotation is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(annotation, type) and is_dataclass(annotation):
        hints = _hints(annotation)
        return isinstance(value, annotation) and all(
            _conforms(getattr(value, each.name), hints[each.name]) for each in fields(annotation)
        )
    return isinstance(value, annotation)


def _can_be_written(number: int) -> bool:
    """Whether Python turns it into digits: of very long numbers it makes none, and no report could name them."""
    try:
        str(number)
    except ValueError:
        return False
    return True


@cache
def _hints(of: Any) -> dict[str, Any]:
    return get_type_hints(of)


def _named(annotation: Any) -> str:
    return (
        annotation.__name__
        if isinstance(annotation, type)
        else str(annotation).replace("overflow.contract.subject.", "")
    )
