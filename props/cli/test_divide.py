"""`overflow divide` from outside: what it prints, what it writes, and how it ends."""

import io
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from overflow.cli.app import run as run_command
from overflow.division import divide
from overflow.embedding.script import Request, Script
from overflow.embedding.server import ScriptedServer
from overflow.tokens.synthetic import KINDS, SyntheticWindow

WORDS = "one two three four. Five six seven"


class Ended:
    """One run of the command: its exit code, the lines of stdout and of stderr."""

    def __init__(self, code: object, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.lines = out.splitlines()
        self.errors = err.splitlines()

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


class Run:
    """Runs the command in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: object, stdin: bytes = b"") -> Ended:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        code = run_command([str(argument) for argument in arguments])
        out, err = self._capsys.readouterr()
        return Ended(code, out, err)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    return Run(capsys, monkeypatch)


def test_a_file_as_json(run: Run) -> None:
    """One object a record: its id, length, window, spans and cost, which are those of the division."""
    Path("a.txt").write_text(WORDS, encoding="utf-8")
    ended = run("divide", "a.txt", "--window", "words@3", "--json", "-")
    division = divide(WORDS, SyntheticWindow("words", 3))
    spans = [
        {"index": i, "start": s.start, "end": s.end, "token_count": s.token_count} for i, s in enumerate(division.spans)
    ]
    cost = {
        "requests": division.cost.requests,
        "texts": division.cost.texts,
        "characters": division.cost.characters,
    }
    row = {"id": "a.txt", "length": len(WORDS), "window": 3, "fits": False, "spans": spans, "cost": cost}
    assert (ended.code, ended.rows(), ended.errors) == (0, [row], [])
    assert len(spans) == 3


def test_a_record_that_fits(run: Run) -> None:
    """It has no spans, and says so."""
    Path("a.md").write_text("one two", encoding="utf-8")
    (row,) = run("divide", "a.md", "--window", "words@3", "--json", "-").rows()
    assert row["spans"] == []
    assert row["fits"] is True
    assert row["window"] == 3


def test_offsets_are_code_points_of_the_file_as_it_is(run: Run) -> None:
    """Line ends are not translated, and a byte order mark is no part of the text."""
    Path("a.txt").write_bytes("\ufeff日本 b\r\nc".encode())
    (row,) = run("divide", "a.txt", "--window", "words@2", "--json", "-").rows()
    assert row["length"] == 7
    assert [(span["start"], span["end"]) for span in row["spans"]] == [(0, 3), (3, 7)]


def test_stdin_is_one_record(run: Run) -> None:
    """`-` reads stdin, whole."""
    ended = run("divide", "-", "--window", "words@3", "--json", "-", stdin=WORDS.encode())
    assert [(row["id"], row["length"]) for row in ended.rows()] == [("-", len(WORDS))]


def test_stdin_that_begins_as_jsonl_has_a_record_a_line(run: Run) -> None:
    """Its first line is an object with a `text`; a later line that is none is named, as in a file."""
    lines = '\ufeff{"id": "first", "text": "a b"}\n\n{"text": 1}\n{"text": "c"}\n'
    ended = run("divide", "-", "--window", "words@3", "--json", "-", stdin=lines.encode())
    assert [(row["id"], row["length"]) for row in ended.rows()] == [("first", 3), ("-:4", 1)]
    assert (ended.code, ended.errors) == (2, ["overflow: -:3: the field `text` is no string"])


@pytest.mark.parametrize(
    "text",
    ['{"a": 1}\n{"text": "b"}', "[1]", '{\n "text": "a"\n}', "words\n" + '{"text": "b"}', "", "[" * 99_999, "\xff"],
)
def test_any_other_stdin_is_one_text(run: Run, text: str) -> None:
    """JSON too, when it does not begin as JSON lines do."""
    ended = run("divide", "-", "--window", "bytes@3", "--json", "-", stdin=text.encode())
    assert [(row["id"], row["length"]) for row in ended.rows()] == [("-", len(text))]


def test_a_jsonl_file_has_a_record_a_line(run: Run) -> None:
    """A line's id is its own or the file and line; U+2028 inside a string ends no line, and blank lines are none."""
    lines = [
        '{"id": "first", "text": "a b"}',
        "",
        '{"text": "c\u2028d"}',
        '{"id": 7, "text": ""}',
        '{"id": null, "text": "e"}\r',
    ]
    Path("m.jsonl").write_bytes("\n".join(lines).encode())
    ended = run("divide", "m.jsonl", "--window", "words@9", "--json", "-")
    assert [(row["id"], row["length"]) for row in ended.rows()] == [
        ("first", 3),
        ("m.jsonl:3", 3),
        (7, 0),
        ("m.jsonl:5", 1),
    ]
    assert ended.code == 0


def test_a_byte_order_mark_is_no_part_of_a_jsonl_file(run: Run) -> None:
    """Before the first record, on a line of its own, and alone; offsets in the file count it."""
    for content, ids in (('{"text": "a"}', ["m.jsonl:1"]), ('\n{"text": "a"}', ["m.jsonl:2"]), ("", [])):
        Path("m.jsonl").write_bytes(f"\ufeff{content}".encode())
        ended = run("divide", "m.jsonl", "--window", "words@3", "--json", "-")
        assert (ended.code, [(row["id"], row["length"]) for row in ended.rows()]) == (0, [(each, 1) for each in ids])
    Path("m.jsonl").write_bytes(b"\xef\xbb\xbf\xff")
    assert "byte 0xff at offset 3" in run("divide", "m.jsonl", "--window", "words@3").errors[0]


def test_a_folder_is_searched_in_order(run: Run) -> None:
    """Its .txt, .md and .jsonl files at any depth, sorted, and no others."""
    for name in ("b.txt", "a/z.MD", "a/c.jsonl", "a/skip.py", "c.rst"):
        path = Path("docs") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"text": "x"}', encoding="utf-8")
    ids = [row["id"] for row in run("divide", "docs", "--window", "words@9", "--json", "-").rows()]
    assert ids == [str(Path("docs/a/c.jsonl")) + ":1", str(Path("docs/a/z.MD")), str(Path("docs/b.txt"))]


def test_records_keep_the_order_they_were_given_in(run: Run) -> None:
    """However many rounds each takes, lines come out in the order of the records."""
    texts = [WORDS * (1 + place % 7) for place in range(130)]
    Path("m.jsonl").write_text("\n".join(json.dumps({"id": i, "text": text}) for i, text in enumerate(texts)))
    rows = run("divide", "m.jsonl", "--window", "words@3", "--json", "-").rows()
    assert [(row["id"], row["length"]) for row in rows] == [(i, len(text)) for i, text in enumerate(texts)]


def test_a_json_file_is_written_whole(run: Run) -> None:
    """`--json PATH` replaces the file at the end, and the table still goes to stdout."""
    Path("a.txt").write_text(WORDS, encoding="utf-8")
    Path("out.json").write_text("old", encoding="utf-8")
    ended = run("divide", "a.txt", "--window", "words@3", "--json", "out.json")
    assert json.loads(Path("out.json").read_text(encoding="utf-8"))["id"] == "a.txt"
    assert "3 nodes" in ended.lines[-1]
    assert sorted(path.name for path in Path().iterdir()) == ["a.txt", "out.json"]


def test_a_failed_run_leaves_the_json_file_alone(run: Run) -> None:
    """When the server fails, what stood there before still does, and nothing lies beside it."""
    Path("a.txt").write_text(WORDS, encoding="utf-8")
    Path("out.json").write_text("old", encoding="utf-8")
    ended = run("divide", "a.txt", "--window", "http://127.0.0.1:9", "--json", "out.json")
    assert ended.code == 3
    assert Path("out.json").read_text(encoding="utf-8") == "old"
    assert sorted(path.name for path in Path().iterdir()) == ["a.txt", "out.json"]


def test_the_table_has_a_row_a_record(run: Run) -> None:
    """People see the id, length, nodes, and the ranges of tokens and characters; ids cannot draw on the terminal."""
    Path("m.jsonl").write_text(json.dumps({"id": "\x1b[31mred[/]", "text": WORDS}) + '\n{"id": "b", "text": "a"}')
    ended = run("divide", "m.jsonl", "--window", "words@3")
    red = next(line for line in ended.lines if "red" in line)
    assert "\\x1b[31mred[/]" in red
    # By the rule: "one two ", "three four.", " Five six seven".
    assert [cell.strip() for cell in red.split("│")[2:6]] == ["34", "3", "2–3", "8–15"]
    assert ended.lines[-1].startswith("2 records: 1 divided, 1 fits; 3 nodes; ")


def test_a_single_record_is_told_by_its_spans(run: Run) -> None:
    """One line a span: index, start, end, tokens, and what the span begins and ends with."""
    Path("a.txt").write_text("one two three four.\nFive six seventy-seventh", encoding="utf-8")
    ended = run("divide", "a.txt", "--window", "words@3")
    cells = [[cell.strip() for cell in line.split("│")[1:7]] for line in ended.lines if "│" in line]
    # By the rule; 16 columns of either end.
    assert cells == [
        ["0", "0", "8", "2", "one two", "one two"],
        ["1", "8", "20", "2", "three four.\\n", "three four.\\n"],
        ["2", "20", "44", "3", "Five six seventy", "seventy-seventh"],
    ]
    assert ended.lines[0].strip() == "a.txt, 44 characters; reference, words@3"


def test_a_window_of_a_counterexample_divides(run: Run) -> None:
    """`--window word_ends@4+1` is what a counterexample calls its window, and the help says what it counts."""
    Path("a.txt").write_text("ab cd ef", encoding="utf-8")
    (row,) = run("divide", "a.txt", "--window", "word_ends@4+1", "--json", "-").rows()
    assert row["window"] == 4
    assert all(span["token_count"] <= 4 for span in row["spans"])
    told = run("divide", "--help").lines
    for kind in KINDS:
        assert any(line.split()[:1] == [kind] and len(line.split()) > 2 for line in told), kind
    assert max(map(len, told)) <= 80


def test_a_span_is_glimpsed_in_columns(run: Run) -> None:
    """A wide character takes two, and what is not printable is spelled out whole or not at all."""
    Path("a.txt").write_text("語" * 30 + "\x1b" * 30, encoding="utf-8")
    ended = run("divide", "a.txt", "--window", "chars@30")
    first, second = ([cell.strip() for cell in line.split("│")[5:7]] for line in ended.lines if "│" in line)
    assert first == ["語" * 8, "語" * 8]
    assert second == ["\\x1b" * 4, "\\x1b" * 4]


def test_many_spans_of_a_single_record_are_cut(run: Run) -> None:
    """The first 50 have a line; how many have none is said."""
    Path("a.txt").write_text("word " * 51, encoding="utf-8")
    ended = run("divide", "a.txt", "--window", "words@1")
    assert len([line for line in ended.lines if "│" in line]) == 50
    assert ended.lines[-2] == "… and 1 more node; --json PATH writes every one"
    assert ended.lines[-1].startswith("1 record: 1 divided; 51 nodes; ")


def test_a_long_table_is_cut_and_its_totals_are_not(run: Run) -> None:
    """The first 50 records have a row, a line says how many have none, the sums are over all."""
    lines = [json.dumps({"id": f"record {i}.", "text": WORDS if i % 2 else "a"}) for i in range(1200)]
    Path("m.jsonl").write_text("\n".join(lines), encoding="utf-8")
    ended = run("divide", "m.jsonl", "--window", "words@3", "--json", "out.json")
    shown = [line.split("│")[1].strip() for line in ended.lines if "record " in line and "│" in line]
    assert shown == [f"record {i}." for i in range(50)]
    assert ended.lines[-2] == "… and 1,150 more records; --json PATH writes every one"
    assert ended.lines[-1].startswith("1,200 records: 600 divided, 600 fits; 1,800 nodes; ")
    assert len(Path("out.json").read_text(encoding="utf-8").splitlines()) == 1200
    Path("m.jsonl").write_text("\n".join(lines[:50]), encoding="utf-8")
    assert not any("more records" in line for line in run("divide", "m.jsonl", "--window", "words@3").lines)


def test_unknown_tokens_are_null_and_exit_3(run: Run) -> None:
    """Behind a server that reports no tokens no record is divided, and none is said to fit."""
    Path("a.txt").write_text(WORDS, encoding="utf-8")
    script = Script(window=None, model=lambda texts: np.zeros((len(texts), 1), np.float32))
    with ScriptedServer(script) as server:
        ended = run("divide", "a.txt", "--window", server.url, "--json", "-")
    (row,) = ended.rows()
    assert row["spans"] is None
    assert "fits" not in row
    assert "error" not in row
    assert ended.code == 3
    assert len(ended.errors) == 1


def test_a_window_too_small_is_that_records_error(run: Run) -> None:
    """The record says so, the others are divided, and the exit code is 1."""
    Path("m.jsonl").write_text('{"text": "ab"}\n{"text": "a日"}\n{"text": "cdef"}', encoding="utf-8")
    ended = run("divide", "m.jsonl", "--window", "bytes@2", "--json", "-")
    first, second, third = ended.rows()
    assert first["fits"]
    assert len(third["spans"]) == 2
    assert second["spans"] is None
    assert "window of 2 tokens" in second["error"]
    assert second["window"] == 2
    assert (ended.code, len(ended.errors)) == (1, 1)


# (what is wrong, the file's name, its bytes, what the one line must say)
BAD_INPUT = [
    ("invalid UTF-8", "bad.txt", b"abc\xff", "bad.txt is not UTF-8 text: byte 0xff at offset 3"),
    ("a picture", "bad.md", b"\x89PNG\r\n\x1a\n\0\0", "bad.md is not UTF-8 text: byte 0x89 at offset 0"),
    ("UTF-16 without a mark", "bad.txt", "words".encode("utf-16-le"), "not text but binary: NUL at offset 1"),
    ("no JSON", "bad.jsonl", b'{"text": "a"}\n{"text', "bad.jsonl:2: not JSON"),
    ("a deep nest", "bad.jsonl", b"[" * 200_000, "bad.jsonl:1: not JSON"),
    ("no object", "bad.jsonl", b"[1]", "bad.jsonl:1: not an object"),
    ("no text", "bad.jsonl", b'{"id": 1}', "bad.jsonl:1: the field `text` is missing"),
    ("a text that is none", "bad.jsonl", b'{"text": 1}', "bad.jsonl:1: the field `text` is no string"),
    ("an id that is none", "bad.jsonl", b'{"id": true, "text": ""}', "bad.jsonl:1: the field `id` is neither"),
    ("a lone surrogate", "bad.jsonl", b'{"text": "a\\ud800"}', "bad.jsonl:1: `text` is not Unicode: a lone surrogate"),
    ("invalid UTF-8 in a line", "bad.jsonl", b'{"text": "a"}\n{"text": "\xff"}', "byte 0xff at offset 24"),
]


@pytest.mark.parametrize(("what", "name", "data", "says"), BAD_INPUT)
def test_bad_input_is_one_line_and_stops_nothing_else(run: Run, what: str, name: str, data: bytes, says: str) -> None:
    """One clear line on stderr and exit code 2; every record that can be had is divided and printed."""
    Path(name).write_bytes(data)
    Path("good.txt").write_text(WORDS, encoding="utf-8")
    ended = run("divide", name, "good.txt", "--window", "words@3", "--json", "-")
    assert ended.code == 2, what
    assert len(ended.errors) == 1
    assert ended.errors[0].startswith("overflow: ")
    assert says in ended.errors[0]
    assert ended.rows()[-1]["id"] == "good.txt"


def test_a_text_with_a_nul_is_a_text(run: Run) -> None:
    """A stray NUL makes no binary file."""
    Path("a.txt").write_text("some words, a \0 and more words", encoding="utf-8")
    assert run("divide", "a.txt", "--window", "words@3").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["divide"], 2, "Missing argument"),
        (["divide", "missing.txt"], 2, "cannot read missing.txt: No such file or directory"),
        (["divide", "line\nbreak"], 2, "line\\nbreak"),
        (["divide", "n" * 300], 2, f"cannot read {'n' * 300}: File name too long"),
        (["divide", "-", "--window", f"hf:{'n' * 300}"], 2, "File name too long"),
        (["divide", "-", "--window", "words@3", "--json", "n" * 300], 2, "File name too long"),
        (["divide", "-", "--window", "words@3", "--json", "."], 2, "cannot write .: it is a folder"),
        (["divide", "-", "--window", "http://a..b"], 2, "'http://a..b' is not an address"),
        (["divide", "-", "--window", "http://xn--a"], 2, "'http://xn--a' is not an address"),
        (["divide", "-", "--window", "http://127.0.0.1:99999"], 2, "is not the address of a server"),
        (["divide", "-", "--window", f"tei:http://{'n' * 70}.org"], 2, "is not an address"),
        (["check", "--corpus", "n" * 300, "--invariant", "4"], 2, "File name too long"),
        (["divide", "."], 2, "holds no file that ends in .txt, .md, .jsonl"),
        (["divide", ".", "--window", "nonsense"], 2, "'nonsense' names no window; examples"),
        (["divide", ".", "--window", "word@40"], 2, "'word@40' names no window; did you mean words? examples"),
        (["divide", ".", "--window", "e5@100"], 2, "'e5@100': e5 has a window of its own and takes no @N"),
        (["divide", ".", "--divider", "nonsense"], 2, "no divider is called 'nonsense'; there are reference"),
        (["divide", ".", "--nonsense"], 2, "--nonsense"),
        (["divide", "-", "--window", "words@3", "--json", "missing/out.json"], 2, "cannot write missing/out.json"),
        (["divide", "-", "--window", "http://127.0.0.1:9"], 3, "no server at http://127.0.0.1:9"),
        (["nonsense"], 2, "No such command 'nonsense'"),
        ([], 2, "overflow --help"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(run: Run, arguments: list[str], code: int, says: str) -> None:
    """Bad usage and an absent server: one line on stderr, nothing on stdout, the exit code of the design."""
    ended = run(*arguments, stdin=b"some words")
    assert (ended.code, ended.lines, len(ended.errors)) == (code, [], 1)
    assert ended.errors[0].startswith("overflow: ")
    assert says in ended.errors[0]


@pytest.mark.parametrize("option", ["--json", "--corpus"])
def test_a_loop_of_links_is_one_line(run: Run, option: str) -> None:
    """As a file to write, and as one to read."""
    Path("loop").symlink_to("loop")
    arguments = ["divide", "-", "--window", "words@3"] if option == "--json" else ["check", "--invariant", "4"]
    ended = run(*arguments, option, "loop", stdin=b"some words")
    assert (ended.code, ended.lines, len(ended.errors)) == (2, [], 1)
    assert "loop" in ended.errors[0]


def test_an_unreadable_file_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose reading is refused is named, with the reason."""

    def refuse(_path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    Path("a.txt").write_text(WORDS, encoding="utf-8")
    monkeypatch.setattr(Path, "read_bytes", refuse)
    ended = run("divide", "a.txt", "--window", "words@3")
    assert (ended.code, ended.errors) == (2, ["overflow: cannot read a.txt: Permission denied"])


def test_a_full_disk_is_one_line(run: Run) -> None:
    """When the JSON cannot be written nothing is left of it, and the old file stays."""
    Path("m.jsonl").write_text('{"text": "one two three four"}\n' * 200, encoding="utf-8")
    Path("out.json").write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The signal would end the process; without it the write fails.
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        ended = run("divide", "m.jsonl", "--window", "words@3", "--json", "out.json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert (ended.code, ended.errors) == (2, ["overflow: cannot write out.json: File too large"])
    assert Path("out.json").read_bytes() == b"old"
    assert sorted(path.name for path in Path().iterdir()) == ["m.jsonl", "out.json"]


def test_a_name_as_long_as_a_name_can_be_is_written(run: Run) -> None:
    """255 bytes: what is written aside has a name of its own."""
    Path("a.txt").write_text(WORDS, encoding="utf-8")
    name = "j" * 255
    assert run("divide", "a.txt", "--window", "words@3", "--json", name).code == 0
    assert json.loads(Path(name).read_text(encoding="utf-8"))["id"] == "a.txt"


def test_a_pipe_or_a_device_is_refused_and_not_waited_for(run: Run) -> None:
    """Among the paths, in a folder, and as the tokenizer's file: one line each, and the others are divided."""
    Path("docs").mkdir()
    Path("docs/a.txt").write_text(WORDS, encoding="utf-8")
    os.mkfifo("docs/pipe.txt")
    ended = run("divide", "docs", "docs/pipe.txt", "/dev/zero", "--window", "words@3", "--json", "-")
    says = "not a regular file, but a pipe or a device"
    assert ended.errors == [f"overflow: cannot read {each}: {says}" for each in ("docs/pipe.txt",) * 2 + ("/dev/zero",)]
    assert (ended.code, [row["id"] for row in ended.rows()]) == (2, ["docs/a.txt"])
    ended = run("divide", "docs/a.txt", "--window", "hf:docs/pipe.txt@9")
    assert (ended.code, ended.lines, len(ended.errors)) == (2, [], 1)
    assert says in ended.errors[0]


def test_what_the_shell_has_opened_is_read(run: Run) -> None:
    """`<(command)` names a pipe that has a writer."""
    reading, writing = os.pipe()
    os.write(writing, WORDS.encode())
    os.close(writing)
    try:
        (row,) = run("divide", f"/dev/fd/{reading}", "--window", "words@3", "--json", "-").rows()
    finally:
        os.close(reading)
    assert row["length"] == len(WORDS)


def test_a_device_is_written_to_and_not_replaced(run: Run) -> None:
    """`--json /dev/null` leaves the device a device."""
    Path("a.txt").write_text(WORDS, encoding="utf-8")
    assert run("divide", "a.txt", "--window", "words@3", "--json", "/dev/null").code == 0
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize(
    ("paths", "json_path"),
    [
        (["docs/a.jsonl"], "docs/a.jsonl"),
        (["docs"], "docs/a.jsonl"),
        (["docs"], "link.jsonl"),
        (["missing", "link.jsonl"], "hard.jsonl"),
    ],
)
def test_an_input_is_not_written_over(run: Run, paths: list[str], json_path: str) -> None:
    """By the same name, in a folder, through a link, under another name: one line, and it is as it was."""
    Path("docs").mkdir()
    Path("docs/a.jsonl").write_text('{"text": "one two three four"}', encoding="utf-8")
    Path("link.jsonl").symlink_to("docs/a.jsonl")
    Path("hard.jsonl").hardlink_to("docs/a.jsonl")
    ended = run("divide", *paths, "--window", "words@3", "--json", json_path)
    assert (ended.code, ended.lines, len(ended.errors)) == (2, [], 1)
    assert f"cannot write {json_path}: it is one of the files to read" in ended.errors[0]
    assert Path("docs/a.jsonl").read_text(encoding="utf-8") == '{"text": "one two three four"}'


def test_a_tokenizer_is_not_written_over(run: Run, wordpiece_file: Path) -> None:
    """The file that the window is read from is an input too."""
    before = wordpiece_file.read_bytes()
    Path("a.txt").write_text(WORDS, encoding="utf-8")
    ended = run("divide", "a.txt", "--window", f"hf:{wordpiece_file}@9", "--json", str(wordpiece_file))
    assert (ended.code, len(ended.errors)) == (2, 1)
    assert "it is one of the files to read" in ended.errors[0]
    assert wordpiece_file.read_bytes() == before


@pytest.mark.usefixtures("run")
def test_stdin_is_not_written_over() -> None:
    """Where the shell took it from the file itself."""
    Path("a.txt").write_text(WORDS, encoding="utf-8")
    command = [sys.executable, "-m", "overflow", "divide", "-", "--window", "words@3", "--json", "a.txt"]
    with Path("a.txt").open("rb") as stdin:
        done = subprocess.run(command, stdin=stdin, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "it is one of the files to read" in done.stderr
    assert Path("a.txt").read_text(encoding="utf-8") == WORDS


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.usefixtures("run")
def test_a_run_that_is_terminated_leaves_nothing_beside_the_json(number: signal.Signals) -> None:
    """While the server keeps it waiting: one line, the exit code of an interrupted run, and the older file."""
    Path("a.txt").write_text(WORDS, encoding="utf-8")
    Path("out.json").write_text("old", encoding="utf-8")
    asked, answer = threading.Event(), threading.Event()

    def hold(_request: Request) -> None:
        asked.set()
        answer.wait()

    script = Script(SyntheticWindow("words", 3), lambda texts: np.zeros((len(texts), 1), np.float32), hook=hold)
    with ScriptedServer(script) as server:
        command = [sys.executable, "-m", "overflow", "divide", "a.txt", "--window", server.url, "--json", "out.json"]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert asked.wait(60)
        assert len(list(Path().iterdir())) == 3, "what is written aside is there"
        running.send_signal(number)
        out, err = running.communicate()
        answer.set()
    assert (running.returncode, out, err.strip()) == (130, "", "overflow: interrupted")
    assert Path("out.json").read_text(encoding="utf-8") == "old"
    assert sorted(path.name for path in Path().iterdir()) == ["a.txt", "out.json"]
