"""The scripted server's true answers: the CEmbedding contract as a function from a request to a reply, without any
socket.

It keeps the contract's limits and its errors to the letter, the odd ones too. DESIGN.md, "CEmbedding 0.9.1 as
observed".
"""

import hmac
import json
from collections.abc import Sequence
from dataclasses import asdict

from overflow.embedding.script import Reply, Request, Script
from overflow.errors import HarnessError
from overflow.tokens.batches import MAX_BODY, MAX_TEXTS
from overflow.tokens.report import TokenReport

_PLAIN = ("Content-Type", "text/plain; charset=utf-8")
_POST = frozenset({"/embed", "/count_tokens"})
_GET = frozenset({"/capabilities"})


def answer(script: Script, method: str, request: Request, authorization: str) -> Reply:
    """The reply the contract asks for; `authorization` is the header's value, empty when there is none."""
    if script.token is not None and not _authorized(authorization, script.token):
        refused = _json({"error": "unauthorized"}, 401)
        return Reply(401, refused.body, (*refused.headers, ("WWW-Authenticate", "Bearer")))
    if request.path not in _POST | _GET:
        return Reply(404, b"404: Not Found", (_PLAIN,))
    allowed = "GET" if request.path in _GET else "POST"
    if method != allowed:
        return Reply(405, b"405: Method Not Allowed", (_PLAIN, ("Allow", allowed)))
    if request.path == "/capabilities":
        return _capabilities(script)
    body = parsed(request.body)
    if body is None:
        return _json({"error": "Invalid JSON body"}, 400)
    if not isinstance(body, dict):
        return Reply(500, b"500 Internal Server Error", (_PLAIN,))
    return _embed(script, body) if request.path == "/embed" else _count_tokens(script, body)


def parsed(body: bytes) -> object:
    """The JSON of a body; None when it is none, or as large as the limit."""
    if len(body) >= MAX_BODY:
        return None
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value


def texts_of(body: object) -> tuple[str, ...]:
    """The texts of a parsed body; none when it holds no list of texts alone."""
    texts = body.get("texts") if isinstance(body, dict) else None
    return tuple(texts) if isinstance(texts, list) and all(isinstance(t, str) for t in texts) else ()


def _authorized(header: str, token: str) -> bool:
    scheme, _, credential = header.partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(credential.strip().encode(), token.encode())


def _count_tokens(script: Script, body: dict[object, object]) -> Reply:
    texts = texts_of(body)
    if not texts:
        return _json({"error": "'texts' must be a non-empty array of strings"}, 400)
    if len(texts) > MAX_TEXTS:
        return _json({"error": f"Batch size exceeds limit (max {MAX_TEXTS})"}, 400)
    try:
        return _json({"token_info": _token_info(_measured(script, texts))})
    except HarnessError as error:
        return _json({"error": f"Token counting failed: {error}"}, 500)


def _embed(script: Script, body: dict[object, object]) -> Reply:
    given = body.get("texts")
    if not isinstance(given, list) or not given:
        return _json({"error": "'texts' must be a non-empty array of strings"}, 400)
    if len(given) > MAX_TEXTS:
        return _json({"error": f"Batch size exceeds limit (max {MAX_TEXTS})"}, 400)
    token_info = body.get("token_info", False)
    if not isinstance(token_info, bool):
        return _json({"error": "'token_info' must be a boolean"}, 400)
    texts = texts_of(body)
    if not texts:
        # The contract checks the elements in /count_tokens alone; here a number among them fails in the tokenizer.
        return _json({"error": "Embedding failed: a text is not a string"}, 500)
    try:
        reports = _measured(script, texts)
        heads = [t if r is None else t[: r.window_end_char] for t, r in zip(texts, reports, strict=True)]
        vectors = script.model(heads)
    except HarnessError as error:
        return _json({"error": f"Embedding failed: {error}"}, 500)
    content: dict[str, object] = {"embeddings": vectors.tolist(), "dimensions": int(vectors.shape[1])}
    if token_info:
        content["token_info"] = _token_info(reports)
    return _json(content)


def _measured(script: Script, texts: Sequence[str]) -> list[TokenReport | None]:
    return [None] * len(texts) if script.window is None else script.window.measure(texts)


def _token_info(reports: Sequence[TokenReport | None]) -> list[dict[str, object]] | None:
    known = [asdict(report) for report in reports if report is not None]
    return known if len(known) == len(reports) else None


def _capabilities(script: Script) -> Reply:
    if script.identity is None:
        return Reply(404, b"404: Not Found", (_PLAIN,))
    (report,) = _measured(script, [""])
    identity = {
        "provider": "scripted",
        "model": script.identity,
        "dimensions": int(script.model([""]).shape[1]),
        "window": None if report is None else report.window,
        "pooling": "mean",
        "normalized": True,
    }
    return _json({"identity": identity, "incomplete": [], "fingerprint": script.identity})


def _json(content: dict[str, object], status: int = 200) -> Reply:
    return Reply(status, json.dumps(content).encode())
