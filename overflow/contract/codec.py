"""Values of the subject protocol to and from plain ones: dicts, lists, text, numbers, bytes, None.

One rule a type, read off the protocol's own annotations, so that the wire can't drift from `subject`: a dataclass is an
object of its fields, a sequence a list, everything else itself. Decoding is strict and says which field is wrong; it
never converts or repairs. DESIGN.md, "Subject protocol"; the JSON text itself is `adapter_kit`'s.
"""

import inspect
import sys
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from overflow.contract.subject import Subject, method_name

_LARGEST = sys.float_info.max


class MalformedError(ValueError):
    """A value that is not what the protocol says; the message starts with the method and the field."""


def encode(value: object, where: str) -> Any:
    """`value` as a plain one. Raises MalformedError for text with a lone surrogate, an infinity, a foreign type."""
    if is_dataclass(value):
        return {f.name: encode(getattr(value, f.name), f"{where}.{f.name}") for f in fields(value)}
    if isinstance(value, Mapping):
        return {_text(key, where): encode(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item, f"{where}[{index}]") for index, item in enumerate(value)]
    return _scalar(value, where)


def decode_params(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of a call of `method`. Raises MalformedError for a name too many, one missing, a value."""
    hints, optional = _parameters(method)
    _same_names(params, hints, hints.keys() - optional, method)
    return {name: decode(hints[name], value, f"{method}.{name}") for name, value in params.items()}


def decode_result(method: str, value: object) -> Any:
    """What `method` answers, from its plain form. Raises MalformedError."""
    return decode(get_type_hints(_protocol_method(method))["return"], value, f"{method} result")


def decode(annotation: Any, value: object, where: str) -> Any:
    """`value` as `annotation` says. Raises MalformedError, which names `where` in the message."""
    if annotation is Any:
        return _scalar(value, where)
    if is_dataclass(annotation):
        return _dataclass(annotation, value, where)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        inner, _ = arguments  # the protocol has no other union than `X | None`
        return None if value is None else decode(inner, value, where)
    if origin is Literal:
        if value not in arguments:
            raise _expected(f"one of {', '.join(arguments)}", value, where)
        return value
    if origin in (list, tuple, Sequence):
        if not isinstance(value, list):
            raise _expected("a list", value, where)
        items = [decode(arguments[0], item, f"{where}[{index}]") for index, item in enumerate(value)]
        return items if origin is list else tuple(items)
    if origin is Mapping:
        pairs = _object(value, where).items()
        return {_text(key, where): decode(arguments[1], item, f"{where}[{key!r}]") for key, item in pairs}
    return _SCALARS[annotation](value, where)


def _dataclass(kind: Any, value: object, where: str) -> Any:
    hints = _fields(kind)
    found = _object(value, where)
    _same_names(found, hints, hints.keys(), where)
    return kind(**{name: decode(hints[name], item, f"{where}.{name}") for name, item in found.items()})


def _scalar(value: object, where: str) -> Any:
    """A value of a database: text, number, bytes, null."""
    if isinstance(value, str):
        return _text(value, where)
    if isinstance(value, float):
        return _number(value, where)
    if value is None or isinstance(value, (bool, int, bytes)):
        return value
    raise _expected("text, a number, bytes or null", value, where)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise _expected("text", value, where)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise MalformedError(f"{where}: a lone surrogate at character {error.start}; text is Unicode") from error
    return value


def _whole(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _expected("a whole number", value, where)
    return value


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -_LARGEST <= value <= _LARGEST:
        raise _expected("a finite number", value, where)
    return float(value)


def _boolean(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise _expected("true or false", value, where)
    return value


def _binary(value: object, where: str) -> bytes:
    if not isinstance(value, bytes):
        raise _expected('bytes, as {"base64": ...}', value, where)
    return value


def _nothing(value: object, where: str) -> None:
    if value is not None:
        raise _expected("null", value, where)


_SCALARS: dict[Any, Callable[[object, str], Any]] = {
    str: _text,
    int: _whole,
    float: _number,
    bool: _boolean,
    bytes: _binary,
    type(None): _nothing,
}


def _object(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _expected("an object", value, where)
    return value


def _same_names(found: Mapping[str, Any], known: Mapping[str, Any], required: Collection[str], where: str) -> None:
    for name in found:
        if name not in known:
            raise MalformedError(f"{where}: unknown field {name!r}; it has {', '.join(known) or 'none'}")
    for name in known:
        if name in required and name not in found:
            raise MalformedError(f"{where}: the field {name!r} is missing")


def _expected(what: str, value: object, where: str) -> MalformedError:
    shown = repr(value)
    return MalformedError(f"{where}: expected {what}, got {shown if len(shown) <= 80 else shown[:77] + '...'}")


@cache
def _fields(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _parameters(method: str) -> tuple[dict[str, Any], frozenset[str]]:
    """The annotations of a method's parameters by name, and which of them may be left out."""
    function = _protocol_method(method)
    hints = get_type_hints(function)
    declared = {name: p for name, p in inspect.signature(function).parameters.items() if name != "self"}
    optional = frozenset(name for name, p in declared.items() if p.default is not inspect.Parameter.empty)
    return {name: hints[name] for name in declared}, optional


def _protocol_method(method: str) -> Any:
    return getattr(Subject, method_name(method))
