"""The scripted embedding server: a local HTTP server of the CEmbedding contract that a test tells what to answer.

It binds the loopback alone, counts every request and character, and closes every socket at its end, even while a hook
blocks. What it answers is in `answers`, what it is told in `script`. DESIGN.md, "Subject protocol".
"""

import contextlib
import socket
import sys
import threading
from dataclasses import dataclass
from http.client import responses
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from types import TracebackType
from typing import Any, Self

from overflow.embedding.answers import answer, parsed, texts_of
from overflow.embedding.script import Reply, Request, Script

#: A body above this many bytes is not even read; the connection is closed instead.
_READ_LIMIT = 64 * 1024 * 1024


@dataclass(slots=True)
class PathCount:
    """What was posted to one path: requests, texts, characters (code points) of the texts."""

    requests: int = 0
    texts: int = 0
    characters: int = 0


class ScriptedServer:
    """A context manager that serves `script` at `url`, on a free port, until its end. Enter each one made.

    With `keep_requests` every request is kept in `requests()` until `reset()`; counts are kept always. An error that is
    none of the contract's (in a hook, a model) closes its connection and is raised again at the end.
    """

    def __init__(self, script: Script, *, keep_requests: bool = True) -> None:
        self.script = script
        self._keep = keep_requests
        self._lock = threading.Lock()
        self._counts: dict[str, PathCount] = {}
        self._requests: list[Request] = []
        self._errors: list[BaseException] = []
        self._handlers: set[_Handler] = set()
        self._closing = threading.Event()
        self._http = _Listener(("127.0.0.1", 0), _Handler)
        self._http.scripted = self
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        # The poll is how soon the end is noticed; half a second, the default, would be paid by every test.
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def counts(self) -> dict[str, PathCount]:
        """A copy of the counts by path."""
        with self._lock:
            return {
                path: PathCount(count.requests, count.texts, count.characters) for path, count in self._counts.items()
            }

    def requests(self) -> list[Request]:
        """The requests so far, in order of arrival."""
        with self._lock:
            return list(self._requests)

    def reset(self) -> None:
        """Forget the counts and the requests."""
        with self._lock:
            self._counts.clear()
            self._requests.clear()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if self._errors and error is None:
            raise self._errors[0]
        if self._errors and error is not None:
            error.add_note(f"the scripted server met before: {self._errors[0]!r}")

    def close(self) -> None:
        """Stop and close every connection. A handler whose hook still blocks is left behind without its socket."""
        self._http.shutdown()
        self._thread.join()
        with self._lock:
            self._closing.set()
            handlers = list(self._handlers)
            for handler in handlers:
                handler.cut()
            busy = [handler.thread for handler in handlers if not handler.in_hook]
        for thread in busy:
            thread.join()
        self._http.server_close()

    def _opened(self, handler: "_Handler") -> None:
        with self._lock:
            self._handlers.add(handler)
            if self._closing.is_set():
                handler.cut()

    def _closed(self, handler: "_Handler") -> None:
        with self._lock:
            self._handlers.discard(handler)

    def _failed(self, error: BaseException) -> None:
        with self._lock:
            self._errors.append(error)

    def _record(self, request: Request) -> None:
        with self._lock:
            count = self._counts.setdefault(request.path, PathCount())
            count.requests += 1
            count.texts += len(request.texts)
            count.characters += sum(map(len, request.texts))
            if self._keep:
                self._requests.append(request)

    def _reply(self, handler: "_Handler", method: str, request: Request, authorization: str) -> Reply:
        hook = self.script.hook
        if hook is not None:
            with self._lock:
                if self._closing.is_set():
                    return Reply(hang_up=True)
                handler.in_hook = True
            try:
                fault = hook(request)
            finally:
                with self._lock:
                    handler.in_hook = False
            if self._closing.is_set():
                return Reply(hang_up=True)
            if fault is not None:
                return fault
        return answer(self.script, method, request, authorization)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    # Threads are joined by ScriptedServer.close, which knows those that a hook blocks.
    block_on_close = False
    request_queue_size = 128
    scripted: ScriptedServer

    def server_bind(self) -> None:
        """Bind, and no more: HTTPServer would ask DNS for the host's full name, which may take seconds."""
        TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - socketserver's signature
        """Keep what went wrong for the end, in place of printing it; called while the exception is handled."""
        error = sys.exception()
        if error is not None:
            self.scripted._failed(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def setup(self) -> None:
        super().setup()
        self.thread = threading.current_thread()
        self.in_hook = False
        self.answering = False
        self.server.scripted._opened(self)

    def finish(self) -> None:
        self.server.scripted._closed(self)
        super().finish()

    def cut(self) -> None:
        """End the connection from another thread, so that a blocked read returns; called under the server's lock."""
        with contextlib.suppress(OSError):  # The client may have ended it first.
            self.connection.shutdown(socket.SHUT_RDWR)
        if self.in_hook:
            # Nobody reads here, so the files can be closed now; else the thread closes them as it ends.
            self.rfile.close()
            self.connection.close()

    def handle(self) -> None:
        try:
            super().handle()
        except (OSError, ValueError):
            # The client went away, or `cut` closed the file under a read or a write ("I/O operation on closed file").
            # What a hook or a model raised is another matter.
            if self.answering:
                raise

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal() and int(length) <= _READ_LIMIT):
            self.close_connection = True
            self._send(Reply(411, b"411: Length Required", (("Content-Type", "text/plain; charset=utf-8"),)))
            return
        self._serve(self.rfile.read(int(length)))

    def _serve(self, body: bytes) -> None:
        request = Request(self.path, texts_of(parsed(body)), body)
        scripted = self.server.scripted
        scripted._record(request)
        self.answering = True
        reply = scripted._reply(self, self.command, request, self.headers.get("Authorization", ""))
        self.answering = False
        if reply.hang_up:
            self.close_connection = True
        else:
            self._send(reply)

    def _send(self, reply: Reply) -> None:
        lines = [f"HTTP/1.1 {reply.status} {responses.get(reply.status, 'Scripted')}"]
        lines += [f"{name}: {value}" for name, value in reply.headers]
        if not any(name.lower() == "content-length" for name, _ in reply.headers):
            lines.append(f"Content-Length: {len(reply.body)}")
        # One write: a head and a body sent apart wait for each other's acknowledgement.
        self.wfile.write("\r\n".join([*lines, "", ""]).encode("latin-1") + reply.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's signature
        """Nothing: the counts are the log."""
