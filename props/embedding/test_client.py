"""The embedding client believes no answer it has not checked, and sends nothing twice that may have been served."""

import json
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from overflow.embedding.embedder import Embedder
from overflow.embedding.http import EmbeddingClient
from overflow.embedding.script import Reply, Request, Script
from overflow.embedding.server import ScriptedServer
from overflow.embedding.wordllama import wordllama_vectors
from overflow.errors import InputError, UnavailableError
from overflow.tokens.report import TokenReport
from overflow.tokens.synthetic import SyntheticWindow

BACK_TO_BACK = (0.0, 0.0)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(Script(SyntheticWindow("words", 3), wordllama_vectors, identity="model-1")) as running:
        yield running


@pytest.fixture
def client(server: ScriptedServer) -> Iterator[EmbeddingClient]:
    with EmbeddingClient(server.url, retry_delays=BACK_TO_BACK) as opened:
        yield opened


def answering(content: object) -> Reply:
    return Reply(200, json.dumps(content).encode())


def test_a_client_is_an_embedder(client: EmbeddingClient) -> None:
    """It has what the protocol asks for."""
    assert isinstance(client, Embedder)


def test_many_texts_keep_their_order_over_requests(server: ScriptedServer, client: EmbeddingClient) -> None:
    """250 texts in 3 requests: each row is the vector of its text, each report its own."""
    texts = [f"text number {i} of them" for i in range(250)]
    embedded = client.embed(texts)
    np.testing.assert_allclose(embedded.vectors, wordllama_vectors([" ".join(t.split()[:3]) for t in texts]), atol=1e-6)
    assert embedded.vectors.dtype == np.float32
    assert embedded.reports == SyntheticWindow("words", 3).measure(texts)
    assert server.counts()["/embed"].requests == 3
    assert set(server.counts()) == {"/embed"}


def test_no_texts_ask_nothing(server: ScriptedServer, client: EmbeddingClient) -> None:
    """An empty list gives no rows and no request."""
    embedded = client.embed([])
    assert (embedded.vectors.shape, embedded.reports) == ((0, 0), [])
    assert server.requests() == []


def test_vectors_come_out_of_unit_length_and_zero_stays_zero(server: ScriptedServer, client: EmbeddingClient) -> None:
    """Large, tiny and zero vectors come out finite."""
    server.script.hook = lambda _: answering({"embeddings": [[3e30, 4e30], [0, 0], [3e-30, 4e-30]], "dimensions": 2})
    embedded = client.embed(["a", "b", "c"])
    np.testing.assert_allclose(embedded.vectors, [[0.6, 0.8], [0, 0], [0.6, 0.8]], rtol=1e-6)


@pytest.mark.parametrize("token_info", [{}, {"token_info": None}])
def test_an_answer_without_token_info_is_unknown(
    server: ScriptedServer, client: EmbeddingClient, token_info: dict[str, None]
) -> None:
    """An older server ignores the request's `token_info`: every report is None."""
    server.script.hook = lambda _: answering({"embeddings": [[1.0]], "dimensions": 1, **token_info})
    assert client.embed(["a"]).reports == [None]


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"embeddings": [[1.0, 2.0]]},
        {"dimensions": 2},
        {"embeddings": [], "dimensions": 2},
        {"embeddings": [[1.0, 2.0], [1.0, 2.0]], "dimensions": 2},
        {"embeddings": [[1.0]], "dimensions": 2},
        {"embeddings": [[]], "dimensions": 0},
        {"embeddings": [1.0], "dimensions": 1},
        {"embeddings": [[[1.0]]], "dimensions": 1},
        {"embeddings": [["1.0", "2.0"]], "dimensions": 2},
        {"embeddings": [[True, False]], "dimensions": 2},
        {"embeddings": [[None, 1.0]], "dimensions": 2},
        {"embeddings": [[10**400, 1.0]], "dimensions": 2},
        {"embeddings": [[float("nan"), 1.0]], "dimensions": 2},
        {"embeddings": [[float("inf"), 1.0]], "dimensions": 2},
        {"embeddings": [[1e300, 1.0]], "dimensions": 2},
        {"embeddings": [[1.0]], "dimensions": True},
        {"embeddings": "x", "dimensions": 1},
        {"embeddings": [[1.0]], "dimensions": 1, "token_info": []},
        {"embeddings": [[1.0]], "dimensions": 1, "token_info": [{"count": 1}]},
    ],
)
def test_a_wrong_answer_names_the_address(server: ScriptedServer, client: EmbeddingClient, content: object) -> None:
    """The wrong number, shape, type or value of vectors, or unsound reports: UnavailableError of one line."""
    server.script.hook = lambda _: answering(content)
    with pytest.raises(UnavailableError, match=f"{server.url}/embed ") as caught:
        client.embed(["a"])
    assert str(caught.value).isprintable()


def test_vectors_of_unequal_length_are_refused(server: ScriptedServer, client: EmbeddingClient) -> None:
    """Within one answer, and between two."""
    server.script.hook = lambda _: answering({"embeddings": [[1.0], [1.0, 2.0]], "dimensions": 1})
    with pytest.raises(UnavailableError, match="unequal length"):
        client.embed(["a", "b"])

    def one_more_for_an_odd_number(request: Request) -> Reply:
        dimensions = 1 + len(request.texts) % 2
        return answering({"embeddings": [[1.0] * dimensions] * len(request.texts), "dimensions": dimensions})

    server.script.hook = one_more_for_an_odd_number
    with pytest.raises(UnavailableError, match="from 1 to 2 dimensions"):
        client.embed(["a"] * 101)


@pytest.mark.parametrize("reply", [Reply(503), Reply(hang_up=True)])
def test_an_embedding_that_may_have_been_served_is_not_asked_for_again(
    server: ScriptedServer, client: EmbeddingClient, reply: Reply
) -> None:
    """A busy server, or a connection closed without an answer: one request, one line."""
    server.script.hook = lambda _: reply
    with pytest.raises(UnavailableError, match=f"{server.url}/embed"):
        client.embed(["a"])
    assert server.counts()["/embed"].requests == 1


def test_the_identity_is_the_fingerprint_or_unknown(server: ScriptedServer, client: EmbeddingClient) -> None:
    """Asked anew each time; None when the server states none: 404, or a fingerprint of null."""
    assert client.identity() == "model-1"
    server.script.identity = "model-2"
    assert client.identity() == "model-2"
    server.script.identity = None
    assert client.identity() is None
    server.script.hook = lambda _: answering({"identity": {}, "incomplete": ["window"], "fingerprint": None})
    assert client.identity() is None
    # The last is a lone surrogate, which JSON can spell and no database takes.
    for wrong in (3, "", ["a"], "\ud800"):
        server.script.hook = lambda _, wrong=wrong: answering({"fingerprint": wrong})  # type: ignore[misc]
        with pytest.raises(UnavailableError, match="fingerprint"):
            client.identity()


def test_the_bearer_token_goes_with_every_request(server: ScriptedServer) -> None:
    """/embed, /count_tokens and /capabilities alike; without it, one line that names the variable."""
    server.script.token = "s3cret"
    with EmbeddingClient(server.url, token="s3cret") as client:
        assert client.identity() == "model-1"
        assert client.embed(["a"]).reports == client.measure(["a"]) == [TokenReport(1, 3, False, 1)]
    with EmbeddingClient(server.url, token="") as client:
        for ask in (client.identity, lambda: client.embed(["a"]), lambda: client.measure(["a"])):
            with pytest.raises(UnavailableError, match="OVERFLOW_TOKEN"):
                ask()


def test_a_text_no_request_can_carry_is_refused(server: ScriptedServer, client: EmbeddingClient) -> None:
    """A lone surrogate, and a text of 1 MiB, before anything is sent."""
    for text in ("\udc00", "x" * 1024 * 1024):
        with pytest.raises(InputError, match="text 1 "):
            client.embed(["fine", text])
    assert server.requests() == []


def test_a_slow_embedding_is_given_up(server: ScriptedServer) -> None:
    """The client's time ends while the answer is held back."""
    release = threading.Event()

    def hold(_: object) -> None:
        release.wait()

    server.script.hook = hold
    with EmbeddingClient(server.url, timeout=0.05) as client:
        try:
            with pytest.raises(UnavailableError, match="did not answer in time"):
                client.embed(["a"])
        finally:
            release.set()
    assert server.counts()["/embed"].requests == 1
