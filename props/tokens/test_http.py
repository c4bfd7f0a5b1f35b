"""Counting over HTTP, against a real server on the loopback: limits, faults, retries, and one clear line for each."""

import asyncio
import contextlib
import gzip
import json
import re
import socketserver
import threading
import time
from collections.abc import Callable, Iterator

import httpcore
import pytest

from overflow.embedding.script import Reply, Request, Script
from overflow.embedding.server import ScriptedServer
from overflow.embedding.wordllama import wordllama_vectors
from overflow.errors import HarnessError, InputError, UnavailableError
from overflow.tokens.deadline import DeadlineStream
from overflow.tokens.endpoint import Call, Clock, Endpoint
from overflow.tokens.http import AsyncHttpWindow, HttpWindow
from overflow.tokens.report import TokenReport
from overflow.tokens.synthetic import SyntheticWindow
from overflow.tokens.transport import AsyncTransport, Transport

MIB = 1024 * 1024
BACK_TO_BACK = (0.0, 0.0)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(Script(SyntheticWindow("words", 3), wordllama_vectors)) as running:
        yield running


def measured(url: str, texts: list[str], *, timeout: float = 60.0) -> list[TokenReport | None]:
    """By both clients, which must agree or fail alike."""

    async def awaited() -> list[TokenReport | None]:
        async with AsyncHttpWindow(url, timeout=timeout, retry_delays=BACK_TO_BACK) as window:
            return await window.measure(texts)

    def blocking() -> list[TokenReport | None]:
        with HttpWindow(url, timeout=timeout, retry_delays=BACK_TO_BACK) as window:
            return window.measure(texts)

    first, second = outcome(blocking), outcome(lambda: asyncio.run(awaited()))
    if isinstance(first, HarnessError):
        # What the system says of a refused connection (in parentheses) is told apart by the two.
        assert type(second) is type(first)
        assert re.sub(r"\(.*\)", "", str(second)) == re.sub(r"\(.*\)", "", str(first))
        raise first
    assert first == second
    return first


def outcome(measure: Callable[[], list[TokenReport | None]]) -> list[TokenReport | None] | HarnessError:
    try:
        return measure()
    except HarnessError as error:
        return error


def test_reports_are_those_of_the_servers_tokenizer_in_order(server: ScriptedServer) -> None:
    """Blocking and awaited: the window's own reports, for none, and for more texts than a request carries."""
    texts = ["", "one", "one two three four", "日本 é\0 😀", "\u2028\u200b a"] * 25
    assert measured(server.url, texts) == SyntheticWindow("words", 3).measure(texts)
    server.reset()
    assert measured(server.url, []) == []
    assert server.requests() == []


def test_a_request_carries_at_most_100_texts(server: ScriptedServer) -> None:
    """250 texts go in 3 requests, in order."""
    with HttpWindow(server.url) as window:
        window.measure([str(i) for i in range(250)])
    assert [len(request.texts) for request in server.requests()] == [100, 100, 50]
    assert [text for request in server.requests() for text in request.texts] == [str(i) for i in range(250)]


def test_a_body_stays_under_one_mib_and_is_filled(server: ScriptedServer) -> None:
    """20 texts of 100,000 three-byte characters: 3 a request, since 4 would pass 1 MiB; each as UTF-8, not escaped."""
    with HttpWindow(server.url) as window:
        window.measure(["日" * 100_000] * 20)
    assert [len(request.texts) for request in server.requests()] == [3] * 6 + [2]
    assert all(300_000 * len(request.texts) < len(request.body) < MIB for request in server.requests())


@pytest.mark.parametrize("length", [MIB - 15, MIB - 14])
def test_the_largest_text_one_request_can_carry(server: ScriptedServer, length: int) -> None:
    """A body of 1 MiB less one byte is sent; one of 1 MiB is an input error, and nothing is sent."""
    text = "x" * length
    if len(json.dumps({"texts": [text]}, separators=(",", ":"))) < MIB:
        assert measured(server.url, [text]) == SyntheticWindow("words", 3).measure([text])
    else:
        with pytest.raises(InputError, match=r"text 1 of 1048562 characters .* 1048576"):
            measured(server.url, ["fine", text])
        assert server.requests() == []


def test_a_lone_surrogate_is_refused_before_anything_is_sent(server: ScriptedServer) -> None:
    """The server would answer 500."""
    with pytest.raises(InputError, match=r"text 150 .* surrogate"):
        measured(server.url, ["fine"] * 150 + ["\ud800"])
    assert server.requests() == []


def test_unknown_is_none(server: ScriptedServer) -> None:
    """`token_info: null`, and an older server without the route, make every report None."""
    server.script.window = None
    assert measured(server.url, ["a", "b"]) == [None, None]
    server.script.hook = lambda _: Reply(404, b"404: Not Found")
    assert measured(server.url, ["a", "b"]) == [None, None]


def test_the_bearer_token_is_that_of_the_environment(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the server's 401 names the variable; with it the server answers."""
    server.script.token = "s3cret"
    with pytest.raises(UnavailableError, match=r"401.*OVERFLOW_TOKEN"):
        measured(server.url, ["a"])
    monkeypatch.setenv("OVERFLOW_TOKEN", "s3cret")
    assert measured(server.url, ["a"]) == [TokenReport(1, 3, False, 1)]
    monkeypatch.setenv("OVERFLOW_TOKEN", "wrong")
    with pytest.raises(UnavailableError, match="401"):
        measured(server.url, ["a"])
    with HttpWindow(server.url, token="s3cret") as window:
        assert window.measure(["a"]) == [TokenReport(1, 3, False, 1)]


@pytest.mark.parametrize("token", ["a\nb", "töken"])
def test_a_token_no_header_can_carry_is_refused(token: str) -> None:
    """An input error, and the token is not repeated."""
    with pytest.raises(InputError, match="OVERFLOW_TOKEN") as caught:
        HttpWindow("http://127.0.0.1:1", token=token)
    assert token not in str(caught.value)


def test_a_proxy_of_the_environment_is_not_used(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loopback is asked directly."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert measured(server.url, ["a"]) == [TokenReport(1, 3, False, 1)]


GOOD = {"count": 1, "window": 3, "truncated": False, "window_end_char": 1}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Welcome</html>",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"[]",
        b"3",
        json.dumps({"token_info": []}).encode(),
        json.dumps({"token_info": [GOOD, GOOD]}).encode(),
        json.dumps({"token_info": "null"}).encode(),
        json.dumps({"token_info": [None]}).encode(),
        json.dumps({"token_info": [{**GOOD, "window_end_char": 2}]}).encode(),
        json.dumps({"token_info": [{**GOOD, "truncated": True}]}).encode(),
        json.dumps({"token_info": [{**GOOD, "count": 4}]}).encode(),
        json.dumps({"token_info": [{**GOOD, "count": 1e400}]}).encode(),
        json.dumps({"token_info": [{**GOOD, "window": 2**63}]}).encode(),
        json.dumps({"token_info": [{**GOOD, "window": 10**400}]}).encode(),
        json.dumps({"token_info": [{**GOOD, "count": 2**63, "truncated": True}]}).encode(),
    ],
)
def test_garbage_names_the_address_in_one_line(server: ScriptedServer, body: bytes) -> None:
    """Not JSON, no object, the wrong number of reports, an unsound report: UnavailableError, not a traceback."""
    server.script.hook = lambda _: Reply(200, body)
    with pytest.raises(UnavailableError) as caught:
        measured(server.url, ["a"])
    assert f"{server.url}/count_tokens" in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (400, b'{"error": "Batch size exceeds\\n limit"}', "400: Batch size exceeds limit"),
        (413, b"too much", "413): too much"),
        (500, b'{"error": "' + b"x" * 5000 + b'"}', "500: xxx"),
        (500, b"\x00\xff\x1b[31m", "500: "),
        (418, b"", "418"),
        (307, b"", "redirects (307)"),
    ],
)
def test_a_status_is_told_with_what_the_server_said(
    server: ScriptedServer, status: int, body: bytes, says: str
) -> None:
    """One printable line of bounded length; such an answer is not asked for again."""
    server.script.hook = lambda _: Reply(status, body, (("Location", "/elsewhere"),))
    with pytest.raises(UnavailableError) as caught:
        measured(server.url, ["a"])
    assert says in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300
    assert server.counts()["/count_tokens"].requests == 2


class Failing:
    """A hook that fails so many times and then lets the server answer."""

    def __init__(self, times: int, reply: Reply) -> None:
        self.left = times
        self.reply = reply

    def __call__(self, _: Request) -> Reply | None:
        self.left -= 1
        return self.reply if self.left >= 0 else None


@pytest.mark.parametrize("reply", [Reply(502), Reply(503), Reply(504), Reply(hang_up=True)])
def test_counting_is_tried_again_twice(server: ScriptedServer, reply: Reply) -> None:
    """A busy server, or a connection closed without an answer, is asked a second and a third time, and no more."""
    with HttpWindow(server.url, retry_delays=BACK_TO_BACK) as window:
        server.script.hook = Failing(2, reply)
        assert window.measure(["a"]) == [TokenReport(1, 3, False, 1)]
        assert server.counts()["/count_tokens"].requests == 3
        server.reset()
        server.script.hook = Failing(99, reply)
        with pytest.raises(UnavailableError):
            window.measure(["a"])
        assert server.counts()["/count_tokens"].requests == 3


def test_a_server_that_does_not_answer_in_time_is_given_up(server: ScriptedServer) -> None:
    """The client's time ends, while the answer is still held back; it is not asked twice."""
    release = threading.Event()

    def hold(_: Request) -> None:
        release.wait()

    server.script.hook = hold
    try:
        with pytest.raises(UnavailableError, match="did not answer in time"):
            measured(server.url, ["a"], timeout=0.05)
        assert server.counts()["/count_tokens"].requests == 2
    finally:
        release.set()


def test_no_server_at_all_is_one_line_with_the_address() -> None:
    """Connection refused, after the retries; and a name that does not resolve."""
    with ScriptedServer(Script(None, wordllama_vectors)) as gone:
        url = gone.url
    with pytest.raises(UnavailableError, match=f"no server at {url}/count_tokens"):
        measured(url, ["a"])
    with pytest.raises(UnavailableError, match="no server at"):
        measured("http://no-such-host.invalid", ["a"])


def test_one_client_serves_many_threads(server: ScriptedServer) -> None:
    """Concurrent calls of one client get their own answers."""
    texts = [[f"{i} " * (i % 5)] for i in range(40)]
    found: dict[int, list[TokenReport | None]] = {}
    with HttpWindow(server.url) as window:

        def ask(i: int) -> None:
            found[i] = window.measure(texts[i])

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [found[i] for i in range(40)] == [SyntheticWindow("words", 3).measure(each) for each in texts]


class Streamer(socketserver.StreamRequestHandler):
    """Reads a request and answers 200, then `head`, then `chunk` again and again until the client has gone."""

    head = b""
    chunk = b""
    sent = 0

    def handle(self) -> None:
        length = 0
        while (line := self.rfile.readline()).strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        self.rfile.read(length)
        with contextlib.suppress(OSError):
            self.wfile.write(b"HTTP/1.1 200 OK\r\n" + self.head)
            while True:
                self.wfile.write(self.chunk)
                type(self).sent += len(self.chunk)


@contextlib.contextmanager
def streaming(head: bytes, chunk: bytes) -> Iterator[tuple[str, type[Streamer]]]:
    handler = type("Handler", (Streamer,), {"head": head, "chunk": chunk, "sent": 0})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", handler
        finally:
            server.shutdown()
            thread.join()


def called(url: str, clock: Clock, timeout: float) -> list[str]:
    """What each transport, the blocking and the awaited, says of one call that fails."""
    call = Call("/count_tokens", b"{}", repeatable=True)
    endpoint = Endpoint(url, "", timeout, (0.1, 0.4), clock)

    async def awaited() -> None:
        transport = AsyncTransport(endpoint)
        try:
            await transport.call(call)
        finally:
            await transport.aclose()

    said: list[str] = []
    transport = Transport(endpoint)
    for make in (lambda: transport.call(call), lambda: asyncio.run(awaited())):
        with pytest.raises(UnavailableError) as caught:
            make()
        said.append(str(caught.value))
    transport.close()
    return said


def test_an_answer_without_end_is_given_up() -> None:
    """Past 64 MiB, by both clients, and little more than that is read."""
    with streaming(b"\r\n", b" " * MIB) as (url, handler):
        said = called(url, time.monotonic, 60.0)
        assert said == [f"{url}/count_tokens answered more than 67,108,864 bytes; is it the right server?"] * 2
        # What lies in the buffers of two sockets has been sent too.
        assert handler.sent < 2 * 80 * MIB


def test_a_compressed_answer_is_not_unpacked() -> None:
    """It was not asked for, and its size would be known too late."""
    with streaming(b"Content-Encoding: gzip\r\n\r\n", gzip.compress(b" " * MIB)) as (url, _):
        assert (
            called(url, time.monotonic, 60.0)
            == [f"{url}/count_tokens answered in the encoding 'gzip', not asked for"] * 2
        )


class Ticking:
    """A clock of the test's own: a second passes each time it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.mark.parametrize("part", ["head", "body"])
def test_an_answer_that_comes_in_drops_is_given_up(part: str) -> None:
    """A byte at a time keeps coming, of the head or of the body, and yet the time of the whole call ends."""
    head = b"X: " if part == "head" else b"Content-Length: 1000000000\r\n\r\n"
    with streaming(head, b"x") as (url, _):
        said = called(url, Ticking(), 20.0)
        assert said == [f"{url}/count_tokens did not answer in time; give it more time or smaller texts"] * 2


class Late(httpcore.MockStream):
    """A connection on which nothing arrives before its time is over; it keeps how long it was waited for."""

    def __init__(self) -> None:
        super().__init__([])
        self.waited: list[float | None] = []

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self.waited.append(timeout)
        return b"x" * min(max_bytes, 1)


def test_each_wait_is_as_long_as_what_is_left_of_the_whole() -> None:
    """Not as long as the whole again: the last of many drops could come as late as twice the time."""
    late, clock = Late(), Ticking()
    stream = DeadlineStream(late, clock)
    for _ in range(4):
        stream.read(10, timeout=4.5)
    with pytest.raises(httpcore.ReadTimeout):
        stream.read(10, timeout=4.5)
    assert late.waited == [3.5, 2.5, 1.5, 0.5]
