"""What a server answered over HTTP, as JSON or as one line that says why it is none.

It never sends anything, and of what the server said it repeats one printable line at most. DESIGN.md, "CEmbedding 0.9.1
as observed".
"""

import json
from dataclasses import dataclass

from overflow.errors import UnavailableError

#: The environment variable that holds the bearer token.
TOKEN_VARIABLE = "OVERFLOW_TOKEN"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the status and the whole body."""

    status: int
    body: bytes


def json_object(answer: Answer, source: str) -> dict[str, object]:
    """The JSON object of a 200 answer; raises UnavailableError with one line for anything else."""
    value = _json_value(answer, source)
    if not isinstance(value, dict):
        raise UnavailableError(f"{source} answered JSON that is not an object")
    return value


def json_list(answer: Answer, source: str) -> list[object]:
    """The JSON list of a 200 answer; raises UnavailableError with one line for anything else."""
    value = _json_value(answer, source)
    if not isinstance(value, list):
        raise UnavailableError(f"{source} answered JSON that is not a list")
    return value


def _json_value(answer: Answer, source: str) -> object:
    if answer.status != 200:
        raise UnavailableError(_refusal(answer, source))
    try:
        value: object = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise UnavailableError(f"{source} answered something that is not JSON: {_line(answer.body)}") from error
    return value


def _refusal(answer: Answer, source: str) -> str:
    said = f": {_line(answer.body)}" if answer.body.strip() else ""
    if answer.status == 401:
        return f"{source} refused the bearer token (401); set {TOKEN_VARIABLE} to the server's token"
    if answer.status == 413:
        return f"{source} refused the request as too large (413){said}"
    if 300 <= answer.status < 400:
        return f"{source} redirects ({answer.status}); give the address it redirects to"
    return f"{source} answered {answer.status}{said}"


def _line(body: bytes) -> str:
    """One printable line of at most 120 characters, the `error` member of an object where there is one."""
    text = body[:2000].decode("utf-8", "replace")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and isinstance(value.get("error"), str):
        text = value["error"]
    text = "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
    return text if len(text) <= 120 else text[:117] + "..."
