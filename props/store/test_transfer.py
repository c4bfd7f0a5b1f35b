"""Export and import: whole or not at all, without nodes, and the same records again."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overflow.errors import InputError
from overflow.store import Drained, Health, Ref, Scope
from overflow.store.errors import DamagedStoreError, NotAStoreError, StoreInputError
from overflow.store.records import LENGTH_LIMIT
from props.store.conftest import Bench, on_a_bench

LONG = "one two three four five six seven eight nine. "
#: A record as it is stored: text, whether it is an episode, scope, whether it is locked.
Stored = tuple[str, bool, Scope, bool]
GOOD = {"kind": "mem", "agent": "agent", "text": "fine"}

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
records = st.tuples(texts, st.booleans(), st.builds(Scope, texts, texts, texts), st.booleans())


@on_a_bench
@given(stored=st.lists(records, max_size=5))
def test_an_import_of_an_export_exports_the_same(bench: Bench, stored: list[Stored]) -> None:
    """Text, kind, scope, lock and times come through to the byte; ids do not, and nodes are rebuilt."""
    store, _ = bench.fresh()
    for text, episode, scope, locked in stored:
        bench.clock.now += 1
        ref = (store.archive_episode if episode else store.store)(text, scope).ref
        bench.clock.now += 1
        store.lock(ref, locked)
    first, second = bench.path("first.jsonl"), bench.path("second.jsonl")
    store.export(first)
    store.drain()
    store.export(second)
    assert Path(first).read_bytes() == Path(second).read_bytes(), "nodes are not exported"
    other = bench.open(bench.fresh_name())
    other.store("before", Scope("another"))
    imported = other.import_(first)
    assert [nodes is not None for nodes in (each.nodes for each in imported)] == [
        bench.embedder.window.measure([text])[0].truncated for text, _ in _sorted(stored)
    ]
    other.drain()
    health = other.check_health()
    assert (health.missing_nodes, health.findings) == ((), {})
    other.delete(Ref("mem", 1))
    other.export(second)
    assert Path(first).read_bytes() == Path(second).read_bytes()


def _sorted(stored: list[Stored]) -> list[tuple[str, bool]]:
    """In the order of an export: episodes, then memories, each by id."""
    return [(t, e) for t, e, *_ in stored if e] + [(t, e) for t, e, *_ in stored if not e]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{not json", "it is not JSON in UTF-8"),
        (b'{"kind": "mem", "text": "\xff"}', "it is not JSON in UTF-8"),
        (b"[" * 100_000, "it is not JSON in UTF-8"),
        (b"[1, 2]", "it is not a JSON object"),
        (b'{"text": "x"}', "kind is None and must be mem or ep"),
        (b'{"kind": "note", "text": "x"}', "kind is 'note' and must be mem or ep"),
        (b'{"kind": "mem"}', "text is missing, or no text"),
        (b'{"kind": "mem", "text": 7}', "text is missing, or no text"),
        (b'{"kind": "mem", "text": ""}', "the text is empty; give at least one character"),
        (b'{"kind": "mem", "text": "\\ud800"}', ".*lone surrogate.*"),
        (b'{"kind": "mem", "text": "x", "agent": "\\ud800"}', ".*lone surrogate.*"),
        (b'{"kind": "mem", "text": "x", "channel": 3}', "agent, project and channel must be texts"),
        (b'{"kind": "mem", "text": "x", "locked": 1}', "locked is neither true nor false"),
        (b'{"kind": "mem", "text": "x", "created_at": NaN}', "created_at is no number of seconds"),
        (b'{"kind": "mem", "text": "x", "updated_at": true}', "updated_at is no number of seconds"),
        (b'{"kind": "mem", "text": "x", "created_at": 1' + b"0" * 400 + b"}", "created_at is no number of seconds"),
        (b'{"kind": "mem", "text": "x", "created_at": -1e400}', "created_at is no number of seconds"),
    ],
)
def test_a_bad_line_is_named_by_its_number_and_nothing_is_imported(bench: Bench, line: bytes, says: str) -> None:
    """All or none, and nothing is embedded before every line is read."""
    store = bench.open()
    file = Path(bench.path("bad.jsonl"))
    file.write_bytes(json.dumps(GOOD).encode() + b"\n\n" + line + b"\n" + json.dumps(GOOD).encode())
    with pytest.raises(StoreInputError, match=rf"bad\.jsonl, line 3: {says}; nothing was imported$") as raised:
        store.import_(str(file))
    assert "\n" not in str(raised.value)
    assert bench.embedder.embedded == []
    assert bench.raw().execute("SELECT count(*) FROM records").fetchone() == (0,)


def test_an_import_keeps_the_limit_and_separators_inside_a_text(bench: Bench) -> None:
    """A line ends at a line feed alone: U+2028 and its like are characters of a text."""
    store, file = bench.open(), Path(bench.path("lines.jsonl"))
    texts = ["a\u2028b\u0085c\x0bd\r", "x" * (LENGTH_LIMIT + 5)]
    file.write_text("\n".join(json.dumps(GOOD | {"text": text}, ensure_ascii=False) for text in texts), newline="")
    refs = [stored.ref for stored in store.import_(str(file))]
    assert [store.contents(ref, Scope()) for ref in refs] == [texts[0], texts[1][:LENGTH_LIMIT]]
    assert bench.raw().execute("SELECT locked FROM records").fetchall() == [(0,), (0,)], "unless a line says so"


def test_an_export_has_a_line_a_record(bench: Bench) -> None:
    """Episodes first: kind, scope, text, lock and times, and nothing that is derived."""
    store, path = bench.open(), Path(bench.path("out.jsonl"))
    scope = {"agent": "a", "project": "p", "channel": "c"}
    bench.clock.now = 5.0
    ref = store.store(LONG, Scope(**scope)).ref
    store.archive_episode("short", Scope())
    store.drain()
    bench.clock.now = 7.5
    store.lock(ref, True)
    store.export(str(path))
    assert [json.loads(line) for line in path.read_bytes().splitlines()] == [
        {"kind": "ep", "agent": "agent", "project": "", "channel": "", "text": "short"}
        | {"locked": False, "created_at": 5.0, "updated_at": 5.0},
        {"kind": "mem", **scope, "text": LONG, "locked": True, "created_at": 5.0, "updated_at": 7.5},
    ]


def test_an_export_can_be_read_by_people(bench: Bench) -> None:
    """Every writing stands in it as it is."""
    store, path = bench.open(), Path(bench.path("out.jsonl"))
    store.store("日本語 é 🙂", Scope())
    store.export(str(path))
    assert '"text": "日本語 é 🙂"' in path.read_text("utf-8")


def test_an_import_embeds_in_batches_and_survives_a_server_that_is_away(bench: Bench) -> None:
    """At most 50 texts a request; without a server the records come in, and lack their vectors."""
    store, file = bench.open(), Path(bench.path("many.jsonl"))
    file.write_text("".join(json.dumps(GOOD | {"text": f"{LONG}{number}"}) + "\n" for number in range(120)))
    assert all(stored.nodes for stored in store.import_(str(file)))
    assert [len(texts) for texts in bench.embedder.embedded] == [50, 50, 20]
    bench.embedder.away = True
    assert not any(stored.nodes for stored in store.import_(str(file)))
    assert len(store.check_health().findings["missing_vectors"]) == 120


def test_an_export_that_fails_leaves_the_older_file(bench: Bench) -> None:
    """It is written aside and renamed, and leaves nothing beside it."""
    store = bench.open()
    target = Path(bench.path("out.jsonl"))
    store.store("first", Scope())
    store.export(str(target))
    older = target.read_bytes()
    store.store("second", Scope())
    with target.open("rb") as reader:
        store.export(str(target))
        assert reader.read() == older, "who reads the older file reads all of it"
    before = target.read_bytes()
    bench.raw().execute("DROP VIEW records")
    names = sorted(path.name for path in bench.directory.iterdir())
    with pytest.raises(DamagedStoreError, match="records"):
        store.export(str(target))
    assert target.read_bytes() == before
    assert sorted(path.name for path in bench.directory.iterdir()) == names
    with pytest.raises(InputError, match="cannot write the export"):
        store.export(bench.path("missing/out.jsonl"))


def test_a_file_that_cannot_be_read_is_named(bench: Bench) -> None:
    """One line with the path and the system's reason."""
    with pytest.raises(InputError, match=r"cannot read .*missing\.jsonl: No such file"):
        bench.open().import_(bench.path("missing.jsonl"))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory has no such limit")
@pytest.mark.parametrize("size", [10**11, 7 * 10**7], ids=["its bytes", "its lines"])
def test_an_export_larger_than_memory_is_named(bench: Bench, size: int) -> None:
    """One line, where its bytes do not fit and where they do and its lines do not."""
    path = Path(bench.path("large.jsonl"))
    path.touch()
    os.truncate(path, size)  # Of holes alone: it takes no room on the disk.
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from overflow.errors import InputError\n"
        "from overflow.store.transfer import parse\n"
        "pages = int(Path('/proc/self/statm').read_text().split()[0])\n"
        "limit = pages * resource.getpagesize() + 100_000_000\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
        "try:\n"
        "    parse(sys.argv[1])\n"
        "except InputError as error:\n"
        "    print(error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False)
    assert (ended.stderr, ended.stdout) == ("", f"cannot read {path}: larger than the memory there is\n")


def test_an_import_from_a_pipe_is_refused(bench: Bench) -> None:
    """Without a writer it would wait for ever."""
    os.mkfifo(bench.path("pipe.jsonl"))
    with pytest.raises(InputError, match=r"cannot read .*pipe\.jsonl: not a regular file"):
        bench.open().import_(bench.path("pipe.jsonl"))


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_an_export_may_be_read_as_any_new_file(bench: Bench, mask: int) -> None:
    """The mask of the process decides who may read it, and not how it came to be written whole."""
    store, target = bench.open(), Path(bench.path("out.jsonl"))
    before = os.umask(mask)
    try:
        store.export(str(target))
    finally:
        os.umask(before)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~mask


def test_an_unreadable_row_is_exported_as_it_is_read(bench: Bench) -> None:
    """What is no UTF-8 comes out as U+FFFD, as every read gives it."""
    store, raw = bench.open(), bench.raw()
    raw.execute("INSERT INTO memories (agent, content) VALUES ('agent', x'61ff62')")
    store.export(bench.path("out.jsonl"))
    assert json.loads(Path(bench.path("out.jsonl")).read_bytes())["text"] == "a\ufffdb"


#: What another program may have put in a row, its column as it is exported, and the finding that names the row.
ODD = {
    "agent = x'61ff'": ("agent", "a\ufffd", "odd_columns"),
    "project = x''": ("project", "", "odd_columns"),
    "project = CAST(x'ff' AS TEXT)": ("project", "\ufffd", "odd_columns"),
    "channel = CAST(x'ff' AS TEXT)": ("channel", "\ufffd", "odd_columns"),
    "created_at = 'abc'": ("created_at", 0.0, "odd_columns"),
    "created_at = x'00'": ("created_at", 0.0, "odd_columns"),
    "created_at = 9e999": ("created_at", 0.0, "odd_columns"),
    "updated_at = -9e999": ("updated_at", 0.0, "odd_columns"),
    "content = ''": ("text", None, "empty_text"),
    "content = x''": ("text", None, "empty_text"),
    "agent = NULL": ("agent", "", "odd_columns"),
    "project = NULL": ("project", "", "odd_columns"),
    "channel = NULL": ("channel", "", "odd_columns"),
    "created_at = NULL": ("created_at", 0.0, "odd_columns"),
    "updated_at = NULL": ("updated_at", 0.0, "odd_columns"),
    "content = NULL": ("text", None, "empty_text"),
}
#: A record table as another program may have made it: the columns by their names, and nothing that they must be.
FOREIGN = (
    "CREATE TABLE {} (id INTEGER PRIMARY KEY AUTOINCREMENT, agent, project, channel, {}, locked, created_at,"
    " updated_at, embedding, embedding_model)"
)


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_row_is_named_and_loses_no_other_record(bench: Bench, odd: str) -> None:
    """It is exported as an import accepts it, or left out if it has no text; the others come through as they are."""
    column, value, finding = ODD[odd]
    raw = bench.raw()
    raw.execute(FOREIGN.format("memories", "content"))
    raw.execute(FOREIGN.format("episodes", "summary"))
    store, file = bench.open(), bench.path("out.jsonl")
    for text in ("first", "second"):
        store.store(text, Scope())
    raw.execute(f"UPDATE memories SET {odd} WHERE id = 1")
    first, second = Ref("mem", 1), Ref("mem", 2)
    in_scope = not odd.startswith(("agent", "project", "channel"))
    shown = ("first" if value is not None else "") if in_scope else None
    assert (store.contents(first, Scope()), store.contents(second, Scope())) == (shown, "second")
    quotes = [store.quote(ref, "second", Scope()) for ref in (first, second)]
    assert [quote and quote.text for quote in quotes] == [shown, "second"]
    assert [hit.ref for hit in store.recall("second", Scope(), 1)] == [second]
    assert store.drain() == Drained(built=0, failed=0)
    assert finding in store.check_health().findings
    assert store.check_health().findings[finding] == (Ref("mem", 1),)
    store.repair()
    assert store.check_health() == Health((), {finding: (Ref("mem", 1),)}), "it stays, and nothing else does"
    store.export(file)
    lines = [json.loads(line) for line in Path(file).read_bytes().splitlines()]
    assert [line["text"] for line in lines] == (["second"] if value is None else ["first", "second"])
    if value is not None:
        assert lines[0][column] == value
    other = bench.open("other.db")
    assert len(other.import_(file)) == len(lines)
    assert other.check_health() == Health((), {})


def test_an_export_through_a_link_leaves_the_link(bench: Bench) -> None:
    """What it points to is written, also where that is not there yet."""
    store = bench.open()
    store.store("a memory", Scope())
    for name in ("older.jsonl", "new.jsonl"):
        link, target = Path(bench.path(f"link-{name}")), Path(bench.path(name))
        link.symlink_to(name)
        if name == "older.jsonl":
            target.write_text("old")
            target.chmod(0o600)
        store.export(str(link))
        assert link.is_symlink()
        assert json.loads(target.read_text())["text"] == "a memory"
    assert stat.S_IMODE(Path(bench.path("older.jsonl")).stat().st_mode) == 0o600


def test_an_export_takes_a_name_as_long_as_a_name_can_be(bench: Bench) -> None:
    """255 bytes: what is written aside has a name of its own."""
    store, path = bench.open(), bench.path("n" * 255)
    store.store("a memory", Scope())
    store.export(path)
    assert json.loads(Path(path).read_text())["text"] == "a memory"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("pipe", "not a regular file, but a pipe or a device"),
        ("folder", "not a regular file, but a folder"),
        ("loop", "Too many levels of symbolic links"),
        ("n" * 256, "File name too long"),
        ("missing/file", "No such file or directory"),
        ("a\0b", "no name of a file has such a character"),
        ("a\ud800b", "no name of a file has such a character"),
    ],
)
def test_an_export_that_cannot_be_written_is_a_named_error(bench: Bench, name: str, says: str) -> None:
    """It waits for nobody, and what stands there, a pipe too, stays what it is."""
    store = bench.open()
    store.store("a memory", Scope())
    os.mkfifo(bench.path("pipe"))
    Path(bench.path("folder")).mkdir()
    Path(bench.path("loop")).symlink_to("loop")
    before = sorted(bench.directory.iterdir())
    with pytest.raises(InputError, match=f"cannot write the export .*: {says}"):
        store.export(bench.path(name))
    assert sorted(bench.directory.iterdir()) == before
    assert stat.S_ISFIFO(Path(bench.path("pipe")).stat().st_mode)


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_a_path_that_is_none_is_a_named_error(bench: Bench, name: str) -> None:
    """As an import and as a store."""
    store = bench.open()
    with pytest.raises(InputError, match="no name of a file has such a character"):
        store.import_(bench.path(name))
    with pytest.raises(NotAStoreError, match="no name of a file has such a character"):
        bench.open(name)


def test_a_byte_order_mark_is_no_part_of_an_export(bench: Bench) -> None:
    """Some editors write one before the first line."""
    store, file = bench.open(), Path(bench.path("marked.jsonl"))
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode())
    (stored,) = store.import_(str(file))
    assert store.contents(stored.ref, Scope()) == "fine"
