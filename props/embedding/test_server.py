"""The scripted server does what its script says, counts what it is asked, and leaves no socket behind."""

import socket
import threading
from collections.abc import Iterator

import httpx
import pytest

from overflow.embedding.embedder import Vectors
from overflow.embedding.http import EmbeddingClient
from overflow.embedding.script import Reply, Request, Script
from overflow.embedding.server import PathCount, ScriptedServer
from overflow.embedding.wordllama import wordllama_vectors
from overflow.errors import UnavailableError
from overflow.tokens.http import HttpWindow
from overflow.tokens.report import TokenReport
from overflow.tokens.synthetic import SyntheticWindow

BODY = b'{"texts":["one two","\xe6\x97\xa5"]}'


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(Script(SyntheticWindow("words", 3), wordllama_vectors)) as running:
        yield running


def test_every_request_and_character_is_counted(server: ScriptedServer) -> None:
    """Requests, texts, code points and bytes by path; what is refused counts too; `reset` forgets."""
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        for _ in range(3):
            client.post("/count_tokens", content=BODY)
        client.post("/embed", content=b"nonsense")
        client.get("/capabilities")
    assert server.counts() == {
        "/count_tokens": PathCount(3, 6, 3 * 8),
        "/embed": PathCount(1, 0, 0),
        "/capabilities": PathCount(1, 0, 0),
    }
    assert server.requests()[0] == Request("/count_tokens", ("one two", "日"), BODY)
    assert len(server.requests()) == 5
    server.reset()
    assert (server.counts(), server.requests()) == ({}, [])


def test_counting_is_safe_between_threads(server: ScriptedServer) -> None:
    """Requests of many threads at once are all counted."""
    with HttpWindow(server.url) as window:
        threads = [threading.Thread(target=lambda: [window.measure(["ab"]) for _ in range(10)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    count = server.counts()["/count_tokens"]
    assert (count.requests, count.texts, count.characters) == (80, 80, 160)


def test_requests_are_not_kept_when_not_asked_for() -> None:
    """A server that runs for long counts, and keeps no texts."""
    script = Script(SyntheticWindow("words", 3), wordllama_vectors)
    with ScriptedServer(script, keep_requests=False) as server, HttpWindow(server.url) as window:
        window.measure(["a"])
        assert server.requests() == []
        assert server.counts()["/count_tokens"].requests == 1


def test_the_script_can_change_while_the_server_runs(server: ScriptedServer) -> None:
    """Tokenizer, model, identity and token are read anew at each request."""
    with EmbeddingClient(server.url) as client:
        assert client.measure(["a b c d"]) == [TokenReport(4, 3, True, 5)]
        server.script.window = SyntheticWindow("chars", 5)
        assert client.measure(["a b c d"]) == [TokenReport(7, 5, True, 5)]
        server.script.model = lambda texts: wordllama_vectors(texts)[:, :2]
        assert client.embed(["a"]).vectors.shape == (1, 2)


def test_an_operation_can_run_while_an_answer_is_held_back(server: ScriptedServer) -> None:
    """The hook asks the same server something else, and changes the script before the first answer is made."""
    seen: list[object] = []

    with EmbeddingClient(server.url) as client, EmbeddingClient(server.url) as other:

        def interleave(request: Request) -> None:
            if request.path == "/embed":
                seen.append(other.measure(["a b"]))
                server.script.window = SyntheticWindow("chars", 1)

        server.script.hook = interleave
        assert client.embed(["ab"]).reports == [TokenReport(2, 1, True, 1)]
    assert seen == [[TokenReport(2, 3, False, 3)]]


def test_a_hook_answers_in_place_of_the_server(server: ScriptedServer) -> None:
    """Status, body and headers as given; `hang_up` closes without an answer."""
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        server.script.hook = lambda _: Reply(418, b"short", (("X-Odd", "yes"),))
        answered = client.post("/embed", content=BODY)
        assert (answered.status_code, answered.content, answered.headers["X-Odd"]) == (418, b"short", "yes")
        server.script.hook = lambda _: Reply(hang_up=True)
        with pytest.raises(httpx.RemoteProtocolError):
            client.post("/embed", content=BODY)
        server.script.hook = None
        assert client.post("/count_tokens", content=BODY).status_code == 200


def broken_off() -> pytest.RaisesExc[UnavailableError]:
    return pytest.raises(UnavailableError, match="broke off")


def test_what_a_hook_raises_is_raised_at_the_end() -> None:
    """A failure in a hook is not lost in a thread: the client sees a broken connection, the test the failure."""

    class Failure(AssertionError):
        pass

    def fail(_: Request) -> None:
        raise Failure("in the hook")

    def run() -> None:
        script = Script(None, wordllama_vectors, hook=fail)
        with ScriptedServer(script) as server, HttpWindow(server.url, retry_delays=()) as window, broken_off():
            window.measure(["a"])

    with pytest.raises(Failure, match="in the hook"):
        run()


@pytest.mark.parametrize("error", [ValueError("x"), OSError("x")])
def test_a_failure_that_looks_like_a_lost_connection_is_not_mistaken_for_one(error: Exception) -> None:
    """A model that raises what a closed socket raises."""

    def broken(_: object) -> Vectors:
        raise error

    def run() -> None:
        with ScriptedServer(Script(None, broken)) as server, EmbeddingClient(server.url) as client, broken_off():
            client.embed(["a"])

    with pytest.raises(type(error)):
        run()


def connected(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)))


def test_the_end_closes_what_clients_hold_open() -> None:
    """An idle connection, half a request, and one whose hook still blocks: each sees the end, none is waited for."""
    release = threading.Event()
    arrived = threading.Event()

    def hold(_: Request) -> None:
        arrived.set()
        release.wait()

    request = b"POST /count_tokens HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
    with ScriptedServer(Script(SyntheticWindow("words", 3), wordllama_vectors)) as server:
        idle, half, blocked = (connected(server.url) for _ in range(3))
        idle.sendall(request)
        assert idle.recv(4096).startswith(b"HTTP/1.1 200 ")
        half.sendall(request[:-3])
        server.script.hook = hold
        blocked.sendall(request)
        arrived.wait()
    for connection in (idle, half, blocked):
        assert connection.recv(4096) == b""
        connection.close()
    with pytest.raises(ConnectionError):
        connected(server.url)
    release.set()


def test_an_answer_comes_in_one_piece_on_one_connection(server: ScriptedServer) -> None:
    """Two requests sent at once on one connection are answered in order."""
    request = b"POST /count_tokens HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
    with connected(server.url) as connection, connection.makefile("rb") as answers:
        connection.sendall(request * 2)
        for _ in range(2):
            head = [answers.readline()]
            while head[-1] != b"\r\n":
                head.append(answers.readline())
            (length,) = [int(line.split()[1]) for line in head if line.lower().startswith(b"content-length")]
            assert b"token_info" in answers.read(length)


@pytest.mark.parametrize(
    "header", ["X-None: 0", "Content-Length: -1", "Content-Length: x", "Content-Length: 9999999999"]
)
def test_a_body_of_no_sensible_length_is_411(server: ScriptedServer, header: str) -> None:
    """The server never waits for a body it cannot tell the end of, nor reads one without bounds."""
    with connected(server.url) as connection:
        connection.sendall(f"POST /embed HTTP/1.1\r\nHost: x\r\n{header}\r\n\r\n".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 411 ")
        assert connection.recv(4096) == b""


def test_a_body_of_exactly_one_mib_is_refused(server: ScriptedServer) -> None:
    """The contract says under 1 MiB; where real servers differ, the scripted one is the strict one."""
    body = BODY[:-1] + b" " * (1024 * 1024 - len(BODY)) + BODY[-1:]
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        assert client.post("/count_tokens", content=body).status_code == 400
        assert client.post("/count_tokens", content=body.replace(b" }", b"}")).status_code == 200
