"""Serves one subject as JSON-RPC 2.0, one message a line: the half of `stdio` that runs beside the system under test.

It is one file with no import but the standard library's, to be copied into the environment of a foreign system; values
are plain (dicts, lists, text, numbers, bytes), in the shapes of docs/subjects.md. It never reads the meaning of a value
and never lets anything but the protocol reach stdout. DESIGN.md, "Subject protocol".

    class Notes:
        name, version = "notes", "1"
        def open(self, directory, embedding_url): ...
        def close(self): ...
        def store(self, text, scope): ...          # every further method is a capability; `import` is `import_`

    run(Notes)
"""

import base64
import binascii
import errno
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO

CAPABILITIES = (
    "store",
    "archive_episode",
    "update",
    "delete",
    "lock",
    "settle",
    "health",
    "repair",
    "recall",
    "reconstruct",
    "quote",
    "contents",
    "export",
    "import",
    "nodes",
    "text",
    "refs",
    "record_bytes",
    "execute",
    "configure",
    "kill_at",
)
#: What a subject may claim of itself by an attribute that is true; offered like a capability, but not called.
CLAIMS = ("design_rule", "design_schema", "length_limit", "updates_episodes")

_SQLITE_FULL = 13

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, SUBJECT_ERROR = -32700, -32600, -32601, -32602, -32000


class RefusedError(ValueError):
    """A request that never reaches the subject's method; `code` is the JSON-RPC error code."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code


def encode_line(message: dict[str, Any]) -> bytes:
    r"""`message` as one line of ASCII: bytes become `{"base64": "..."}`, every other character than ASCII a \u escape.

    ASCII, because line readers of other languages also break at U+2028 or U+0085. Raises TypeError or ValueError for a
    value that JSON has not (an infinity, a set).
    """
    return json.dumps(message, default=_bytes_to_json, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"


def decode_line(line: bytes) -> Any:
    """The message on one line, with every `{"base64": "..."}` as bytes. Raises ValueError when it is not JSON."""
    try:
        return json.loads(line.decode("utf-8"), object_hook=_bytes_from_json)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def run(make_subject: Callable[[], Any]) -> None:
    """Serve the subject `make_subject()` gives on this process's stdin and stdout until stdin ends."""
    stdin, stdout = claim_stdio()
    serve(make_subject(), stdin, stdout)


def claim_stdio() -> tuple[BinaryIO, BinaryIO]:
    """Take stdin and stdout for the protocol: from here on what anybody prints goes to stderr, C code included."""
    stdin, stdout = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return stdin, stdout


def serve(subject: Any, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Answer every line of `stdin` on `stdout` until it ends; a subject that is still open then is closed."""
    is_open = False
    for line in stdin:
        answer, method = _answer(subject, line)
        is_open = method == "open" or (is_open and method != "close")
        stdout.write(answer)
        stdout.flush()
    if is_open:
        subject.close()


def offered(subject: Any) -> list[str]:
    """The capabilities of `subject`: what it declares in `capabilities`, else the methods it has and its claims."""
    declared = getattr(subject, "capabilities", None)
    if declared is not None:
        return sorted(declared)
    methods = [name for name in CAPABILITIES if callable(getattr(subject, _python_name(name), None))]
    return methods + [claim for claim in CLAIMS if getattr(subject, claim, False)]


def _answer(subject: Any, line: bytes) -> tuple[bytes, str | None]:
    """The answer to one request, and the method that succeeded (None when none did)."""
    identifier = None
    try:
        request = _request(line)
        identifier, method = request["id"], request["method"]
        result = _call(subject, method, request.get("params", {}))
        return encode_line({"jsonrpc": "2.0", "id": identifier, "result": result}), method
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever the subject raises is its answer to the caller
        return _error(identifier, error), None


def _request(line: bytes) -> dict[str, Any]:
    try:
        request = decode_line(line)
    except ValueError as error:
        raise RefusedError(PARSE_ERROR, f"not a line of JSON: {error}") from error
    if not isinstance(request, dict) or not isinstance(request.get("method"), str):
        raise RefusedError(INVALID_REQUEST, "a request is an object with jsonrpc, id, method and params")
    if not isinstance(request.get("id"), (str, int)):
        raise RefusedError(INVALID_REQUEST, "a request has an id, a text or a whole number: every one is answered")
    return request


def _call(subject: Any, method: str, params: Any) -> Any:
    if method == "initialize":
        return {"name": subject.name, "version": subject.version, "capabilities": offered(subject)}
    if method in CLAIMS or method not in ("open", "close", *offered(subject)):
        raise RefusedError(METHOD_NOT_FOUND, f"{subject.name} does not offer {method}")
    if not isinstance(params, dict):
        raise RefusedError(INVALID_PARAMS, f"{method}: params are an object, by name")
    function = getattr(subject, _python_name(method))
    try:
        inspect.signature(function).bind(**params)
    except TypeError as error:
        raise RefusedError(INVALID_PARAMS, f"{method}: {error}") from error
    return function(**params)


def _error(identifier: str | int | None, error: BaseException) -> bytes:
    code = error.code if isinstance(error, RefusedError) else SUBJECT_ERROR
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    data = {"type": name, **_where(error), **({"disk_full": True} if disk_is_full(error) else {})}
    body = {"code": code, "message": _message(error), "data": data}
    return encode_line({"jsonrpc": "2.0", "id": identifier, "error": body})


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as unspeakable:  # noqa: BLE001 - its text is foreign code too
        return f"(it cannot be shown: {type(unspeakable).__name__})"


def disk_is_full(error: BaseException | None) -> bool:
    """Whether `error`, or what it was raised from, says that there is no room: of the system's errors, or SQLite's."""
    seen: list[BaseException] = []
    while error is not None and all(error is not each for each in seen):
        seen.append(error)
        # SQLite's number is told by an attribute: an interpreter may lack its module.
        if getattr(error, "errno", None) == errno.ENOSPC or getattr(error, "sqlite_errorcode", None) == _SQLITE_FULL:
            return True
        error = error.__cause__ or error.__context__
    return False


def _where(error: BaseException) -> dict[str, str]:
    """The place that raised the error; none for a refusal, which is not the subject's."""
    if isinstance(error, RefusedError):
        return {}
    last = traceback.extract_tb(error.__traceback__)[-1]
    return {"where": f"{os.path.basename(last.filename)}:{last.lineno}, in {last.name}"}  # noqa: PTH119 - a name is enough


def _python_name(method: str) -> str:
    return "import_" if method == "import" else method


def _bytes_to_json(value: Any) -> dict[str, str]:
    if not isinstance(value, bytes):
        raise TypeError(f"JSON has no {type(value).__name__}")
    return {"base64": base64.b64encode(value).decode("ascii")}


def _bytes_from_json(value: dict[str, Any]) -> Any:
    """An object that only looks like bytes stays an object, so that its reader can say which field is wrong."""
    encoded = value.get("base64")
    if len(value) != 1 or not isinstance(encoded, str):
        return value
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return value
