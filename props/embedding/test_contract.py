"""The CEmbedding contract, held by every server named in `SERVERS`: the scripted one over several tokenizers, and a
real one.

Give a real server's address in OVERFLOW_CONTRACT_URL (and its token in OVERFLOW_TOKEN) to hold it to the same. What is
expected is DESIGN.md, "CEmbedding 0.9.1 as observed".
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from overflow.embedding.http import EmbeddingClient
from overflow.embedding.script import Script
from overflow.embedding.server import ScriptedServer
from overflow.embedding.wordllama import wordllama_vectors
from overflow.tokens.e5 import E5Window
from overflow.tokens.foreign import checked_reports
from overflow.tokens.http import HttpWindow
from overflow.tokens.report import TokenWindow
from overflow.tokens.synthetic import SyntheticWindow
from overflow.tokens.tokenizer_file import TokenizerFileWindow
from overflow.tokens.wordllama import WordllamaWindow

MIB = 1024 * 1024
REAL = os.environ.get("OVERFLOW_CONTRACT_URL")
WINDOWS: dict[str, Callable[[Path], TokenWindow]] = {
    "e5": lambda _: E5Window(),
    "wordllama": lambda _: WordllamaWindow(64),
    "wordpiece": lambda path: TokenizerFileWindow(path, 32),
    "pairs": lambda _: SyntheticWindow("pairs_from_end", 5, special_tokens=2),
    "words": lambda _: SyntheticWindow("words", 3),
}
SERVERS = [*WINDOWS, *(["real"] if REAL else [])]
TEXTS = ["one two three four five", "", "日本語の文章。", "👩‍👩‍👧‍👦 é e\u0301", "a\0b\u2028c", "\n \t ", "word " * 2000]


@pytest.fixture(scope="module", params=SERVERS)
def url(request: pytest.FixtureRequest, wordpiece_file: Path) -> Iterator[str]:
    if request.param == "real":
        assert REAL is not None
        yield REAL
        return
    with ScriptedServer(Script(WINDOWS[request.param](wordpiece_file), wordllama_vectors)) as server:
        yield server.url


@pytest.fixture
def post(url: str) -> Iterator[Callable[[str, Any], httpx.Response]]:
    """Posts a JSON value, or bytes as they are."""
    token = os.environ.get("OVERFLOW_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with httpx.Client(base_url=url, trust_env=False, timeout=60, headers=headers) as client:

        def send(path: str, content: Any) -> httpx.Response:
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            return client.post(path, content=body)

        yield send


Post = Callable[[str, Any], httpx.Response]
BOTH = pytest.mark.parametrize("path", ["/count_tokens", "/embed"])


def test_a_report_for_each_text_in_order(post: Post) -> None:
    """/count_tokens answers one sound report a text; a text alone is reported as it is among others."""
    answered = post("/count_tokens", {"texts": TEXTS}).json()
    assert set(answered) == {"token_info"}
    reports = checked_reports(answered["token_info"], TEXTS, "the server")
    alone = [post("/count_tokens", {"texts": [text]}).json()["token_info"][0] for text in TEXTS]
    assert alone == answered["token_info"]
    assert len({report.window for report in reports if report}) == 1
    assert reports[-1] is not None
    assert reports[-1].truncated


def test_a_vector_for_each_text_in_order(post: Post) -> None:
    """/embed answers rows of `dimensions` finite numbers, and says nothing of tokens unless asked."""
    answered = post("/embed", {"texts": TEXTS}).json()
    assert set(answered) == {"embeddings", "dimensions"}
    vectors = np.array(answered["embeddings"])
    assert vectors.shape == (len(TEXTS), answered["dimensions"])
    assert np.isfinite(vectors).all()
    assert post("/embed", {"texts": TEXTS, "token_info": False}).json() == answered


def test_an_embedding_answer_tells_tokens_when_asked(post: Post) -> None:
    """`token_info: true` adds what /count_tokens answers."""
    answered = post("/embed", {"texts": TEXTS, "token_info": True}).json()
    assert answered["token_info"] == post("/count_tokens", {"texts": TEXTS}).json()["token_info"]


def test_what_lies_past_the_window_does_not_reach_the_vector(post: Post) -> None:
    """Two texts that differ only past the window have one vector."""
    first = "word " * 2000
    (report,) = post("/count_tokens", {"texts": [first]}).json()["token_info"]
    second = first[: report["window_end_char"]] + first[report["window_end_char"] :].replace("word", "other")
    assert second != first
    assert post("/count_tokens", {"texts": [second]}).json()["token_info"][0]["window_end_char"] > 0
    one, other = np.array(post("/embed", {"texts": [first, second]}).json()["embeddings"])
    np.testing.assert_allclose(one, other, atol=1e-5)


@BOTH
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        {},
        {"texts": []},
        {"texts": "a"},
        {"texts": None},
        {"texts": {"a": 1}},
        {"texts": ["a"] * 101},
    ],
)
def test_a_malformed_request_is_400(post: Post, path: str, content: Any) -> None:
    """Not JSON, no texts, an empty list, no list, more than 100: 400 with an `error`."""
    answered = post(path, content)
    assert answered.status_code == 400
    assert isinstance(answered.json()["error"], str)


@pytest.mark.parametrize("texts", [[3], ["a", None], [["a"]]])
def test_counting_refuses_what_is_no_text(post: Post, texts: list[Any]) -> None:
    """/count_tokens looks at every element: 400."""
    assert post("/count_tokens", {"texts": texts}).status_code == 400


@BOTH
def test_100_texts_are_taken(post: Post, path: str) -> None:
    """The limit itself is within it."""
    answered = post(path, {"texts": ["a"] * 100})
    assert answered.status_code == 200
    assert len(next(iter(answered.json().values()))) == 100


@pytest.mark.parametrize("size", [MIB - 1, MIB + 1])
def test_a_body_over_one_mib_is_refused(post: Post, size: int) -> None:
    """Under it is counted, over it is 400, whatever it holds; 1 MiB itself depends on the version of aiohttp."""
    frame = b'{"texts":["%s"]}'
    body = frame % (b" " * (size - len(frame) + 2))
    assert len(body) == size
    assert post("/count_tokens", body).status_code == (200 if size < MIB else 400)


def test_token_info_must_be_a_boolean(post: Post) -> None:
    """/embed refuses another type: 400."""
    assert post("/embed", {"texts": ["a"], "token_info": 1}).status_code == 400


@BOTH
def test_a_lone_surrogate_is_500(post: Post, path: str) -> None:
    """JSON can write one, and the tokenizer cannot read it."""
    answered = post(path, b'{"texts":["\\ud800"]}')
    assert answered.status_code == 500
    assert isinstance(answered.json()["error"], str)


def test_a_body_that_is_no_object_is_500(post: Post) -> None:
    """The server asks a list for its `texts`, and fails."""
    assert post("/count_tokens", b"[]").status_code == 500


def test_the_client_reads_what_the_server_says(url: str, post: Post) -> None:
    """Our client's reports, vectors and identity are the server's."""
    with EmbeddingClient(url) as client, HttpWindow(url) as window:
        embedded = client.embed(TEXTS)
        assert embedded.reports == client.measure(TEXTS) == window.measure(TEXTS)
        answered = post("/embed", {"texts": TEXTS}).json()
        assert embedded.vectors.shape == (len(TEXTS), answered["dimensions"])
        lengths = np.linalg.norm(embedded.vectors, axis=1)
        assert all(length == 0 or abs(length - 1) < 1e-5 for length in lengths)
        np.testing.assert_allclose(embedded.vectors, np.array(answered["embeddings"]), atol=1e-5)
        identity = client.identity()
        assert identity is None or identity == client.identity()


def test_capabilities_name_what_makes_the_vectors(url: str) -> None:
    """/capabilities answers the identity's fields and the fingerprint; the window is the tokenizer's."""
    token = os.environ.get("OVERFLOW_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answered = httpx.get(url + "/capabilities", trust_env=False, headers=headers).json()
    with EmbeddingClient(url) as client:
        (report,) = client.measure(["a"])
        assert report is not None
        assert answered["identity"]["window"] == report.window
        assert answered["identity"]["dimensions"] == client.embed(["a"]).vectors.shape[1]
        assert client.identity() == answered["fingerprint"]
    assert {"provider", "model", "pooling", "normalized"} <= set(answered["identity"])


@pytest.mark.parametrize(("method", "path", "status"), [("POST", "/elsewhere", 404), ("GET", "/embed", 405)])
def test_another_route_is_refused(url: str, method: str, path: str, status: int) -> None:
    """Unknown paths are 404, known ones with another method 405."""
    token = os.environ.get("OVERFLOW_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    assert httpx.request(method, url + path, trust_env=False, headers=headers).status_code == status
