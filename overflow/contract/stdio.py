"""A subject out of process: the protocol as JSON-RPC 2.0, one message a line on stdin and stdout.

`StdioSubject` is the harness's end, `serve` (and `python -m overflow.contract.stdio module:Class`) the subject's; a
foreign system serves itself with a copy of `adapter_kit`. Nothing here knows a subject of its own, and no failure of a
subject is ever a violation. DESIGN.md, "Subject protocol"; docs/subjects.md shows the lines.
"""

import functools
import inspect
import os
import shlex
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, ParamSpec, TypeVar

from overflow.contract import adapter_kit, codec
from overflow.contract.child import Child, EndedError
from overflow.contract.gone import GoneError
from overflow.contract.locate import subject_maker
from overflow.contract.signals import TIMEOUT
from overflow.contract.subject import CAPABILITIES, CLAIMS, Subject, SubjectDied, capabilities
from overflow.contract.told import shortened
from overflow.errors import HarnessError, InputError, UnavailableError

#: How a child ends that was killed, and a shell whose child was.
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)

P = ParamSpec("P")
R = TypeVar("R")


class SubjectError(HarnessError):
    """The subject answered a call with an error: `method`, the `remote_type` of its exception, and its `message`.

    `where` is the place in the subject's own code that raised it, if it says so.
    """

    exit_code = 3

    def __init__(self, subject: str, method: str, remote_type: str, message: str, where: object = None):
        said = f"{subject}: {method} failed with {shortened(remote_type)}: {shortened(' '.join(message.split()))}"
        super().__init__(said + (f" ({shortened(where)})" if isinstance(where, str) else ""))
        self.method = method
        self.remote_type = remote_type
        self.message = message


class DiskFullError(SubjectError, GoneError):
    """The subject answered that there is no room left."""


@dataclass(frozen=True, slots=True)
class Introduction:
    """What `initialize` answers."""

    name: str
    version: str
    capabilities: tuple[str, ...]


def _capability(name: str) -> str:
    """The capability a Python method stands for."""
    return "import" if name == "import_" else name


def _remote(method: Callable[P, R]) -> Callable[P, R]:
    """The protocol's `method`, called in the child with every parameter by name."""
    signature = inspect.signature(method)
    name = _capability(method.__name__)

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        subject = bound.arguments.pop("self")
        return subject._call(name, bound.arguments)

    return call


class StdioSubject:
    """A subject served by the child process `command`.

    `timeout` bounds each call (seconds). The child starts at once; after `close`, `open` starts another.
    Every method raises SubjectError when the subject answers with an error, UnavailableError when the child cannot be
    started, ends, or answers something else than its contract, InputError when an argument cannot be sent, SubjectDied
    when the child was killed as `kill_at` asked.
    """

    def __init__(self, command: Sequence[str], timeout: float = TIMEOUT):
        self._command = command
        self._timeout = timeout
        self._requests = 0
        self._child = self._start()

    def limit_calls(self, seconds: float) -> None:
        """From now on `seconds` bounds each call."""
        self._timeout = self._child.timeout = seconds

    def open(self, directory: str, embedding_url: str) -> None:
        if self._child.is_over:
            self._child = self._start()
        try:
            self._call("open", {"directory": directory, "embedding_url": embedding_url})
        except SubjectError:
            self._child.end()  # nobody closes what did not open
            raise

    def close(self) -> None:
        """Close the subject and end the child; nothing happens when it is over, or dies at this as `kill_at` asked."""
        if self._child.is_over:
            return
        try:
            with suppress(SubjectDied):
                self._call("close", {})
        finally:
            self._child.end()

    store = _remote(Subject.store)
    archive_episode = _remote(Subject.archive_episode)
    update = _remote(Subject.update)
    delete = _remote(Subject.delete)
    lock = _remote(Subject.lock)
    settle = _remote(Subject.settle)
    health = _remote(Subject.health)
    repair = _remote(Subject.repair)
    recall = _remote(Subject.recall)
    reconstruct = _remote(Subject.reconstruct)
    quote = _remote(Subject.quote)
    contents = _remote(Subject.contents)
    export = _remote(Subject.export)
    import_ = _remote(Subject.import_)
    nodes = _remote(Subject.nodes)
    text = _remote(Subject.text)
    refs = _remote(Subject.refs)
    record_bytes = _remote(Subject.record_bytes)
    execute = _remote(Subject.execute)
    configure = _remote(Subject.configure)

    def kill_at(self, statement: int) -> None:
        self._call("kill_at", {"statement": statement})
        self._doomed = True

    def _start(self) -> Child:
        child = Child(self._command, self._timeout)
        try:
            answer = self._request(child, "initialize", {})
            introduction: Introduction = codec.decode(Introduction, answer, "initialize result")
        except codec.MalformedError as error:
            raise child.failure(f"does not follow the protocol: {error}") from error
        except SubjectError:
            child.end()
            raise
        unknown = sorted(set(introduction.capabilities).difference(CAPABILITIES + CLAIMS))
        if unknown:
            raise child.failure(f"does not follow the protocol: it offers unknown capabilities, {', '.join(unknown)}")
        self.name, self.version = introduction.name, introduction.version
        self.capabilities = frozenset(introduction.capabilities)
        self._doomed = False
        return child

    def _call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        if self._child.is_over:
            raise GoneError(f"{self.name} is not running: {method} was called before open")
        try:
            params = {name: codec.encode(value, f"{method}.{name}") for name, value in arguments.items()}
        except codec.MalformedError as error:
            raise InputError(f"{self.name} cannot be sent this: {error}") from error
        try:
            answer = self._request(self._child, method, params)
        except EndedError as error:
            if self._doomed and error.returncode in KILLED:
                raise SubjectDied(str(error)) from error
            raise
        try:
            return codec.decode_result(method, answer)
        except codec.MalformedError as error:
            raise UnavailableError(f"{self.name} does not follow the protocol: {error}") from error

    def _request(self, child: Child, method: str, params: dict[str, Any]) -> Any:
        self._requests += 1
        request = {"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params}
        line = child.exchange(adapter_kit.encode_line(request))
        try:
            answer = adapter_kit.decode_line(line)
        except ValueError:
            answer = None
        if (
            not isinstance(answer, dict)
            or answer.get("id") != self._requests
            or ("result" in answer) == ("error" in answer)
        ):
            raise child.failure(f"wrote on stdout what does not answer {method}: {line[:80]!r}")
        if "error" in answer:
            raise self._subject_error(method, answer["error"])
        return answer["result"]

    def _subject_error(self, method: str, error: object) -> SubjectError:
        """The error of an answer; `data.type` is the remote exception's type, if the subject has such a thing."""
        details: Mapping[str, Any] = error if isinstance(error, dict) else {"message": error}
        told = details.get("data")
        data: Mapping[str, Any] = told if isinstance(told, dict) else {}
        return (DiskFullError if data.get("disk_full") is True else SubjectError)(
            getattr(self, "name", self._command[0]),
            method,
            str(data.get("type") or f"JSON-RPC error {details.get('code')}"),
            str(details.get("message")).encode("utf-8", "backslashreplace").decode(),
            data.get("where"),
        )


def command_maker(line: str) -> Callable[[], Subject]:
    """What makes subjects served by the command `line`, quoted as for a shell; raises InputError when it is none."""
    try:
        command = shlex.split(line)
    except ValueError as error:
        raise InputError(f"cannot read the command line {line!r}: {error}") from error
    if not command:
        raise InputError("cmd: needs the command line of a subject after it")
    return lambda: StdioSubject(command)


class PlainSubject:
    """A subject of the protocol as `adapter_kit` serves one: the same methods over plain values."""

    def __init__(self, subject: Subject):
        self._subject = subject
        self.name, self.version = subject.name, subject.version
        self.capabilities = capabilities(subject)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return functools.partial(self._call, name)

    def _call(self, name: str, /, **params: Any) -> Any:
        method = _capability(name)
        try:
            arguments = codec.decode_params(method, params)
        except codec.MalformedError as error:
            raise adapter_kit.RefusedError(adapter_kit.INVALID_PARAMS, str(error)) from error
        process = os.getpid()
        try:
            result = getattr(self._subject, name)(**arguments)
        except SubjectDied:
            os.kill(os.getpid(), signal.SIGKILL)
            raise
        finally:
            if os.getpid() != process:
                os._exit(1)  # Forked by the subject, and come back: two would answer.
        return codec.encode(result, f"{method} result")


def serve(subject: Subject, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Answer every request line of `stdin` on `stdout` until it ends."""
    adapter_kit.serve(PlainSubject(subject), stdin, stdout)


def main(arguments: Sequence[str]) -> int:
    """Serve the class named by the one argument, `module:Class`; the exit code is DESIGN.md's."""
    if len(arguments) != 1:
        print("usage: python -m overflow.contract.stdio module:Class", file=sys.stderr)
        return InputError.exit_code
    stdin, stdout = adapter_kit.claim_stdio()
    try:
        subject = subject_maker(arguments[0])()
    except HarnessError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    serve(subject, stdin, stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
