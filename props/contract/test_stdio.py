"""Subjects out of process: real child processes, asked, killed, ended, and made to break the protocol."""

import ast
import errno
import io
import json
import os
import re
import select
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from overflow.contract import adapter_kit, child, stdio
from overflow.contract.child import Child
from overflow.contract.gone import GoneError
from overflow.contract.locate import subject_maker
from overflow.contract.signals import OverdueError
from overflow.contract.stdio import StdioSubject, SubjectError
from overflow.contract.subject import CAPABILITIES, Ref, Scope, Subject, SubjectDied, capabilities
from overflow.errors import InputError, UnavailableError
from overflow.subjects.registry import SUBJECTS, subject_factory

HERE = Path(__file__).parent
DOCUMENTATION = HERE.parents[1] / "docs" / "subjects.md"
KIT = Path(adapter_kit.__file__)
SCOPE = Scope("アリス", "p", "c\u2028")
TEXT = "NUL \0, line\r\nends \u2028 \u0085, \U0001f469\u200d\U0001f680, \ufeff"

CALLS: dict[str, Callable[[Subject], object]] = {
    "store": lambda s: s.store(TEXT, SCOPE),
    "archive_episode": lambda s: s.archive_episode(TEXT, scope=SCOPE),
    "update": lambda s: s.update(Ref("ep", 2**53 + 1), TEXT),
    "delete": lambda s: s.delete(Ref("mem", 1)),
    "lock": lambda s: s.lock(Ref("mem", 1), False),
    "settle": lambda s: s.settle(),
    "health": lambda s: s.health(),
    "repair": lambda s: s.repair(),
    "recall": lambda s: s.recall("query", SCOPE, 3),
    "reconstruct": lambda s: s.reconstruct(TEXT, SCOPE, 2),
    "quote": lambda s: (s.quote(Ref("mem", 1), TEXT, SCOPE), s.quote(Ref("mem", 1), "", SCOPE)),
    "contents": lambda s: (s.contents(Ref("mem", 1), SCOPE), s.contents(Ref("mem", 1), SCOPE, 3)),
    "export": lambda s: s.export("dump"),
    "import": lambda s: s.import_("dump"),
    "nodes": lambda s: s.nodes(Ref("mem", 1)),
    "text": lambda s: (s.text(Ref("mem", 1)), s.text(Ref("mem", 0))),
    "refs": lambda s: s.refs(),
    "record_bytes": lambda s: (s.record_bytes(Ref("mem", 1)), s.record_bytes(Ref("mem", 0))),
    "execute": lambda s: (s.execute(TEXT), s.execute("?", [1, 1.0, None, b"\xff", TEXT])),
    "configure": lambda s: (s.configure(queue=True), s.configure(model="m")),
    "kill_at": lambda s: s.kill_at(3),
}


def command(kind: str) -> list[str]:
    return ["env", f"PYTHONPATH={HERE}", sys.executable, "-m", "overflow.contract.stdio", f"echo_subject:{kind}"]


@pytest.fixture
def start() -> Iterator[Callable[..., StdioSubject]]:
    """Makes subjects served by children, and kills those a test left running."""
    started: list[StdioSubject] = []

    def start(kind: str, timeout: float = 60.0) -> StdioSubject:
        subject = StdioSubject(command(kind), timeout)
        started.append(subject)
        return subject

    yield start
    for subject in started:
        subject._child.kill()


@pytest.fixture
def script() -> Callable[..., list[str]]:
    """The command of a child that introduces itself, then answers one call with `line`."""
    hello = {"name": "script", "version": "1", "capabilities": ["text"]}

    def script(line: str, introduction: Any = hello) -> list[str]:
        first = json.dumps({"jsonrpc": "2.0", "id": 1, "result": introduction})
        return [sys.executable, "-c", f"input(); print({first!r}, flush=True); input(); print({line!r})"]

    return script


def test_a_subject_answers_the_same_through_a_child_process(
    start: Callable[..., StdioSubject], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every method, with values of every kind and text that breaks lines or encodings, equals the call in process."""
    monkeypatch.syspath_prepend(HERE)
    local = subject_maker("echo_subject:Echo")()
    remote: Subject = start("Echo")
    local.open(str(tmp_path), "http://a")
    remote.open(str(tmp_path), "http://a")
    assert list(CALLS) == list(CAPABILITIES)
    for name, call in CALLS.items():
        assert call(remote) == call(local), name
    assert (remote.name, remote.version, capabilities(remote)) == (local.name, local.version, capabilities(local))
    remote.close()


def test_a_method_that_is_missing_is_a_missing_capability(start: Callable[..., StdioSubject]) -> None:
    """What the subject lacks is not offered, and a call of it is an error and not the end."""
    pipeline = start("Pipeline")
    assert capabilities(pipeline) == {"store", "nodes"}
    with pytest.raises(
        SubjectError, match=r"pipeline: health failed with .*RefusedError: pipeline does not offer health"
    ):
        pipeline.health()
    assert pipeline.nodes(Ref("mem", 1)) == []


def test_an_exception_of_the_subject_comes_back_with_its_type_and_message(start: Callable[..., StdioSubject]) -> None:
    """A subject's failure is one clear line here, and the subject can still be asked."""
    echo = start("Echo")
    with pytest.raises(SubjectError) as caught:
        echo.lock(Ref("mem", 4), locked=True)
    assert (caught.value.method, caught.value.remote_type) == ("lock", "sqlite3.IntegrityError")
    source = (HERE / "echo_subject.py").read_text(encoding="utf-8").splitlines()
    line = 1 + next(number for number, each in enumerate(source) if "raise sqlite3.IntegrityError" in each)
    assert caught.value.message == "mem 4 is\nlocked"
    assert (
        str(caught.value)
        == f"echo: lock failed with sqlite3.IntegrityError: mem 4 is locked (echo_subject.py:{line}, in lock)"
    )
    with pytest.raises(SubjectError, match="configure failed with KeyError: None"):
        echo.configure(model="unknown")
    assert echo.repair().built == 2


def test_what_a_subject_prints_never_reaches_the_protocol(start: Callable[..., StdioSubject]) -> None:
    """Prints at import, in a call, below Python go to stderr, of which little is kept; stdin is not the subject's."""
    noisy = start("Noisy")
    noisy.settle()
    assert noisy.repair().built == 2
    assert len(noisy._child._tail) <= child.STDERR_BYTES


@pytest.mark.parametrize("size", [1_000_000])
def test_messages_longer_than_a_pipe_holds_pass(start: Callable[..., StdioSubject], tmp_path: Path, size: int) -> None:
    """A long record goes out and comes back whole."""
    echo = start("Echo")
    echo.open(str(tmp_path), "")
    assert echo.update(Ref("mem", 1), "あ" * size).nodes == "あ" * size
    echo.close()


def test_a_lone_surrogate_is_refused_before_it_is_sent(start: Callable[..., StdioSubject]) -> None:
    """The caller's mistake is an InputError that names the argument; the child has not seen it."""
    echo = start("Echo")
    with pytest.raises(InputError, match=r"echo cannot be sent this: store.text: a lone surrogate at character 1"):
        echo.store("a\ud800", SCOPE)
    assert echo.repair().built == 2


def test_an_answer_against_the_protocol_names_the_method_and_the_field(script: Callable[..., list[str]]) -> None:
    """Neither believed nor repaired."""
    subject = StdioSubject(script('{"jsonrpc":"2.0","id":2,"result":7}'))
    with pytest.raises(
        UnavailableError, match="script does not follow the protocol: text result: expected text, got 7"
    ):
        subject.text(Ref("mem", 1))
    subject._child.kill()


def test_a_python_subject_that_answers_against_the_protocol(start: Callable[..., StdioSubject]) -> None:
    """The answer is refused here too when the subject is a class of ours."""
    ill = start("Ill")
    with pytest.raises(UnavailableError, match="store result: expected an object, got 'stored'"):
        ill.store("a", SCOPE)
    with pytest.raises(UnavailableError, match=r"nodes result\[0\].end: expected a whole number, got '5'"):
        ill.nodes(Ref("mem", 1))


@pytest.mark.parametrize(
    "line",
    ["hello", "", "[]", "[" * 100_000, '{"jsonrpc":"2.0","id":1,"result":null}', '{"jsonrpc":"2.0","id":2}', "\udcff"],
)
def test_garbage_on_stdout_ends_the_child(script: Callable[..., list[str]], line: str) -> None:
    """What does not answer the request is an UnavailableError, and is never taken for a later answer."""
    subject = StdioSubject(["env", "PYTHONIOENCODING=utf-8:surrogateescape", *script(line)])
    with pytest.raises(UnavailableError, match="wrote on stdout what does not answer text: b'"):
        subject.text(Ref("mem", 1))
    with pytest.raises(UnavailableError, match="script is not running: text was called before open"):
        subject.text(Ref("mem", 1))


def test_an_error_without_a_type_is_still_the_subjects(script: Callable[..., list[str]]) -> None:
    """`data` is optional in JSON-RPC; a message that could not be printed is escaped."""
    subject = StdioSubject(script('{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"no \\ud800"}}'))
    with pytest.raises(SubjectError, match=r"script: text failed with JSON-RPC error -32000: no \\ud800"):
        subject.text(Ref("mem", 1))
    subject._child.kill()


@pytest.mark.parametrize(
    ("introduction", "message"),
    [
        ({"name": "a", "version": 1, "capabilities": []}, "initialize result.version: expected text, got 1"),
        ({"name": "a", "version": "1", "capabilities": ["fly", "text"]}, "it offers unknown capabilities, fly"),
    ],
)
def test_a_child_that_introduces_itself_wrongly(
    script: Callable[..., list[str]], introduction: dict[str, Any], message: str
) -> None:
    """It is refused at once, and ended."""
    with pytest.raises(UnavailableError, match=f"does not follow the protocol: {message}"):
        StdioSubject(script("", introduction))


def test_a_child_that_ends_in_a_call_is_reported_with_its_last_words(
    start: Callable[..., StdioSubject], tmp_path: Path
) -> None:
    """The exit status and the end of stderr are in the one line; open starts another child."""
    fragile = start("Fragile")
    with pytest.raises(UnavailableError, match=r"ended with status 7; stderr ends: .*about to \| end badly$"):
        fragile.text(Ref("mem", 1))
    fragile.close()
    fragile.open(str(tmp_path), "")
    with pytest.raises(UnavailableError, match="was ended by signal 9"):
        fragile.refs()


def test_a_child_that_does_not_answer_in_time_is_ended(start: Callable[..., StdioSubject]) -> None:
    """No answer within the timeout is an UnavailableError; a late answer can't be taken for the next one."""
    fragile = start("Fragile")
    fragile.limit_calls(0.05)
    with pytest.raises(OverdueError, match=r"did not answer within 0.05 s"):
        fragile.settle()
    assert fragile._child.is_over


def test_a_killed_child_is_gone_and_can_be_opened_again(start: Callable[..., StdioSubject], tmp_path: Path) -> None:
    """Fault injection: what was written stays, the process does not."""
    echo = start("Echo")
    echo.open(str(tmp_path), "")
    echo.export("before")
    echo._child.kill()
    echo._child.kill()
    echo.close()
    with pytest.raises(UnavailableError, match="echo is not running: repair was called before open"):
        echo.repair()
    echo.open(str(tmp_path), "")
    echo.import_("before")
    echo.close()


@pytest.mark.parametrize("wrap", [list, lambda words: ["sh", "-c", f"{' '.join(words)}; exit $?"]])
def test_a_subject_told_to_die_dies_as_one_in_this_process(wrap: Callable[[list[str]], list[str]]) -> None:
    """`kill_at` ends the process by SIGKILL before that statement, also a shell's; here it is SubjectDied."""
    mortal = StdioSubject(wrap(command("Mortal")))
    mortal.kill_at(2)
    mortal.execute("1")
    with pytest.raises(SubjectDied):
        mortal.execute("2")
    mortal.close()


def test_a_subject_that_dies_while_it_closes_is_closed(start: Callable[..., StdioSubject]) -> None:
    """The death was asked for, and whoever closes has nothing left to do."""
    mortal = start("Mortal")
    mortal.kill_at(1)
    mortal.close()
    assert mortal._child.is_over


def test_a_kill_reaches_what_a_wrapper_started(tmp_path: Path) -> None:
    """With `sh -c`, npx or uv run the subject is a grandchild: it must not survive with the database open."""
    os.mkfifo(tmp_path / "alive")
    held = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    serve = " ".join(command("Holding"))
    holding = StdioSubject(["sh", "-c", f"{serve}; true"])
    holding.open(str(tmp_path), "")
    assert select.select([held], [], [], 0)[0] == []
    holding._child.kill()
    assert select.select([held], [], [], 30)[0] == [held]
    assert os.read(held, 1) == b""
    os.close(held)


def test_a_kill_reaches_what_a_wrapper_left_behind(tmp_path: Path) -> None:
    """The wrapper has ended already, and what it started still has the database open."""
    os.mkfifo(tmp_path / "alive")
    held = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    sleeping = f"exec 3>{tmp_path}/alive; echo; sleep 600 <&- >&- 2>&- &"
    wrapper = Child(["sh", "-c", sleeping], timeout=60)
    wrapper.exchange(b"")
    wrapper._process.wait()
    wrapper.kill()
    assert select.select([held], [], [], 30)[0] == [held]
    assert os.read(held, 1) == b""
    os.close(held)


@pytest.mark.parametrize(("number", "is_gone"), [(errno.ENOSPC, True), (errno.EACCES, False)])
def test_a_full_disk_is_told_from_any_other_error(script: Callable[..., list[str]], number: int, is_gone: bool) -> None:
    """The kit tells it of the exception, or of what that was raised from, and here it is the end of the subject."""

    class Full:
        name, version = "full", "1"

        def text(self, ref: Any) -> None:  # noqa: ARG002 - the protocol's parameter
            try:
                raise OSError(number, "no")
            except OSError as error:
                raise ValueError("not written") from error

    out = io.BytesIO()
    call = b'{"jsonrpc":"2.0","id":2,"method":"text","params":{"ref":null}}\n'
    adapter_kit.serve(Full(), io.BytesIO(call), out)
    with pytest.raises(SubjectError, match="not written") as caught:
        StdioSubject(script(out.getvalue().decode().strip())).text(Ref("mem", 1))
    assert isinstance(caught.value, GoneError) == is_gone


def test_a_subject_that_does_not_open_leaves_no_child(start: Callable[..., StdioSubject], tmp_path: Path) -> None:
    """Nobody closes what did not open."""
    refusing = start("Refusing")
    with pytest.raises(SubjectError, match=r"echo: open failed with PermissionError: .* is read-only"):
        refusing.open(str(tmp_path), "")
    assert refusing._child.is_over


def test_a_child_that_ignores_its_end_is_killed() -> None:
    """Stdin closed, then SIGTERM, then SIGKILL."""
    code = "import signal, threading; signal.signal(15, signal.SIG_IGN); print(flush=True); threading.Event().wait()"
    stubborn = Child([sys.executable, "-c", code], timeout=60, grace=0.05)
    stubborn.exchange(b"")
    stubborn.end()
    assert stubborn._process.returncode == -9


def test_a_line_that_never_ends_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that floods stdout is ended before it fills the memory."""
    monkeypatch.setattr(child, "ANSWER_BYTES", 100_000)
    flood = Child(["cat", "/dev/zero"], timeout=60)
    with pytest.raises(UnavailableError, match="`cat /dev/zero` wrote more than 100000 bytes without ending a line"):
        flood.exchange(b"\n")


def test_a_command_that_cannot_be_started_is_one_clear_line() -> None:
    """Neither a traceback nor a hint at Python."""
    with pytest.raises(UnavailableError, match="cannot start `no-such-command -x`: No such file or directory"):
        StdioSubject(["no-such-command", "-x"])


def test_the_command_says_why_it_cannot_serve() -> None:
    """The reason that the server prints is the end of the harness's line."""
    with pytest.raises(UnavailableError, match="ended with status 2; stderr ends: there is no module 'no_such_module'"):
        StdioSubject([sys.executable, "-m", "overflow.contract.stdio", "no_such_module:Class"])
    with pytest.raises(UnavailableError, match=r"usage: python -m overflow.contract.stdio module:Class"):
        StdioSubject([sys.executable, "-m", "overflow.contract.stdio"])


def served(*lines: bytes, kind: str = "Pipeline") -> list[dict[str, Any]]:
    """What the server half answers to `lines`."""
    out = io.BytesIO()
    stdio.serve(subject_maker(f"echo_subject:{kind}")(), io.BytesIO(b"\n".join(lines) + b"\n"), out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        (b"{", -32700, "not a line of JSON"),
        (b"\xff", -32700, "not a line of JSON"),
        (b"[]", -32600, "a request is an object"),
        (b'{"jsonrpc":"2.0","method":"nodes","params":{}}', -32600, "a request has an id"),
        (b'{"jsonrpc":"2.0","id":3,"method":"health","params":{}}', -32601, "pipeline does not offer health"),
        (b'{"jsonrpc":"2.0","id":3,"method":"__init__","params":{}}', -32601, "pipeline does not offer __init__"),
        (b'{"jsonrpc":"2.0","id":3,"method":"nodes","params":[]}', -32602, "nodes: params are an object, by name"),
        (b'{"jsonrpc":"2.0","id":3,"method":"nodes"}', -32602, "nodes: the field 'ref' is missing"),
        (
            b'{"jsonrpc":"2.0","id":3,"method":"nodes","params":{"ref":1}}',
            -32602,
            "nodes.ref: expected an object, got 1",
        ),
    ],
)
def test_the_server_answers_a_bad_request_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, line: bytes, code: int, message: str
) -> None:
    """JSON-RPC's own error codes, the request's id where it has one, and the next request is answered."""
    monkeypatch.syspath_prepend(HERE)
    refusal, introduction = served(line, b'{"jsonrpc":"2.0","id":"x","method":"initialize","params":{}}')
    assert refusal["error"]["code"] == code
    assert refusal["error"]["message"].startswith(message)
    assert refusal["id"] == (3 if b'"id":3' in line else None)
    assert (introduction["id"], introduction["result"]["name"]) == ("x", "pipeline")


def test_the_kit_stands_alone() -> None:
    """It is copied into other environments: no import but the standard library's."""
    tree = ast.parse(KIT.read_text(encoding="utf-8"))
    imported = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    imported |= {node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names


def documented(language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", DOCUMENTATION.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def test_the_documented_lines_are_the_lines_on_the_wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/subjects.md: its subject, served from the current directory, answers exactly what the page shows."""
    monkeypatch.chdir(tmp_path)
    Path("notes.py").write_text(documented("python")[0], encoding="utf-8")
    exchanges = re.findall(r"^> (.*\n)< (.*\n)", documented("jsonl")[0], re.MULTILINE)
    assert len(exchanges) == 6
    notes = Child([sys.executable, "-m", "overflow.contract.stdio", "notes:Notes"], timeout=60)
    for request, answer in exchanges:
        assert notes.exchange(request.encode()).decode() == answer
    notes.end()


def test_the_documented_adapter_serves_without_us(tmp_path: Path) -> None:
    """docs/subjects.md: the adapter with a copy of the kit, in an interpreter that can't import overflow."""
    shutil.copy(KIT, tmp_path / "adapter_kit.py")
    adapter = tmp_path / "notes_adapter.py"
    adapter.write_text(documented("python")[1], encoding="utf-8")
    notes = subject_factory(f"cmd:{sys.executable} -S {adapter}")()
    notes.open(str(tmp_path), "")
    assert capabilities(notes) == {"store", "text"}
    assert notes.text(notes.store(TEXT, SCOPE).ref) == TEXT
    notes.close()


def test_the_documented_class_is_a_subject_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/subjects.md: `module:Class` finds a module in the current directory."""
    (tmp_path / "documented_notes.py").write_text(documented("python")[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    notes = subject_factory("documented_notes:Notes")()
    assert capabilities(notes) == {"store", "delete", "text", "nodes"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("referenz", f"unknown subject 'referenz'; known: {', '.join(SUBJECTS)}, module:Class, cmd:COMMAND LINE"),
        ("no_such_module:A", "there is no module 'no_such_module', installed or in "),
        ("overflow.no_such:A", "there is no module 'overflow.no_such', installed or in "),
        ("no_such_package.sub:A", "there is no module 'no_such_package', installed or in "),
        ("needs_more:A", "the module 'needs_more' does not import: No module named 'no_such_requirement'"),
        ("misspelt:A", "the module 'misspelt' does not import: "),
        ("json:Decoder", "the module 'json' has no class 'Decoder'"),
        ("json:dumps", "the module 'json' has no class 'dumps'"),
        ("json:", "'json:' names no class; write module:Class"),
        ("..json:A", "'..json:A' names no class; write module:Class"),
        ("json:JSONDecoder", "json:JSONDecoder is no subject: it has no method 'open'"),
        ("needs_arguments:A", "needs_arguments:A is no subject: it cannot be made without arguments"),
        ("cmd:", "cmd: needs the command line of a subject after it"),
        ("cmd:python 'x", 'cannot read the command line "python \'x": No closing quotation'),
    ],
)
def test_a_subject_that_cannot_be_found_is_one_clear_line(
    spec: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong with `--subject`, in the words of the person who typed it."""
    (tmp_path / "needs_more.py").write_text("import no_such_requirement")
    (tmp_path / "misspelt.py").write_text("class A(:")
    (tmp_path / "needs_arguments.py").write_text(
        "class A:\n def __init__(self, x): ...\n def open(self): ...\n def close(self): ..."
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(InputError) as caught:
        subject_factory(spec)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_class_without_a_name_is_no_subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are filed under name and version."""
    (tmp_path / "nameless.py").write_text("class A:\n def open(self): ...\n def close(self): ...")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="nameless:A is no subject: its 'name' is not a text"):
        subject_factory("nameless:A")()
