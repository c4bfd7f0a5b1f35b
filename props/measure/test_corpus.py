"""Corpora: the standard library's documentation is what the check needs, and files are read as they are."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overflow.errors import InputError
from overflow.measure import stdlib_docs
from overflow.measure.corpus import Corpus, Document, load
from overflow.measure.records import read_records
from overflow.tokens.spec import parse_window


def dividing(corpus: Corpus, window: str) -> int:
    """How many records run past the window."""
    reports = parse_window(window).measure([record.text for record in corpus.records])
    return sum(report is not None and report.truncated for report in reports)


def test_the_documentation_corpus_divides_often_enough() -> None:
    """DESIGN.md, "The check": at least 200 records of which at least 60 divide at wordllama 512."""
    corpus = load("stdlib-docs")
    assert len(corpus.records) >= 200
    assert dividing(corpus, "wordllama") >= 60


def test_a_subset_of_it_divides_often_enough_for_a_slow_model() -> None:
    """DESIGN.md, "The check": at least 40 records of which 15 divide at e5 512."""
    subset = load("stdlib-docs").subset(40)
    assert len(subset.records) == 40
    assert dividing(subset, "e5") >= 15


def test_the_documentation_corpus_keeps_the_stores_limit() -> None:
    """No record is longer than a store takes, none is empty, no id and no text comes twice."""
    records = load("stdlib-docs").records
    assert max(len(record.text) for record in records) <= stdlib_docs.LENGTH_LIMIT
    assert all(record.text.strip() for record in records)
    assert len({record.id for record in records}) == len({record.text for record in records}) == len(records)


def test_the_documentation_corpus_is_the_same_in_another_process() -> None:
    """Order and content depend on the Python version alone, not on hashing or on what is imported."""
    code = "from overflow.measure.corpus import load; print(load('stdlib-docs').digest)"
    command = [sys.executable, "-c", code]
    other = subprocess.run(command, env={"PYTHONHASHSEED": "1"}, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == load("stdlib-docs").digest


def test_docstrings_are_read_without_importing_the_module() -> None:
    """`this` prints when it is imported, `antigravity` opens a browser, tkinter may not be there."""
    code = "import sys; from overflow.measure.corpus import load; load('stdlib-docs'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"this", "antigravity", "turtle", "tkinter", "configparser"}.intersection(loaded)


def test_docstrings_are_those_of_modules_and_public_classes() -> None:
    """One of each, against what the source says."""
    texts = {record.id: record.text for record in load("stdlib-docs").records}
    import configparser
    import difflib

    tree = ast.parse(Path(configparser.__file__).read_text(encoding="utf-8"))
    assert texts["module/configparser"] == ast.get_docstring(tree)
    assert texts["class/difflib.Differ"].startswith("Differ is a class for comparing sequences of lines")
    assert difflib.Differ.__doc__ is None or texts["class/difflib.Differ"][:60] in difflib.Differ.__doc__


blocks = st.lists(
    st.sampled_from(["word ", "line\n", "end\n\n", "Heading\n*******\n", "\n\n\n", "x" * 30]), max_size=60
)


@given(text=blocks.map("".join), limit=st.integers(1, 80))
def test_parts_are_the_text_and_none_is_too_long(text: str, limit: int) -> None:
    """Joined, the parts are the text; each is within the limit and all but the last at least half of it."""
    parts = list(stdlib_docs.parts(text, limit))
    assert "".join(parts) == text
    assert all(limit // 2 <= len(part) <= limit for part in parts[:-1])
    assert len(parts[-1]) <= limit


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("aaaa\n\nbbb\n\nHead\n====\ncc\n", ["aaaa\n\nbbb\n\n", "Head\n====\ncc\n"]),
        ("aaaa\nbbbb\n\n\ncc\ndd\neeeeee\n", ["aaaa\nbbbb\n\n\n", "cc\ndd\neeeeee\n"]),
        ("aaaa\nbbbb\ncccc\ndddddd\n", ["aaaa\nbbbb\ncccc\n", "dddddd\n"]),
        ("a" * 20, ["a" * 18, "aa"]),
        ("H\n====\n" + "a" * 14, ["H\n====\n" + "a" * 11, "aaa"]),
    ],
)
def test_a_part_ends_at_the_best_boundary(text: str, parts: list[str]) -> None:
    """Before a heading, else after a blank line, else after a line, else where it must (a limit of 18)."""
    assert list(stdlib_docs.parts(text, 18)) == parts


documents = st.lists(st.text(min_size=1, max_size=9), min_size=1, max_size=30).map(
    lambda texts: tuple(Document(str(number), text) for number, text in enumerate(texts))
)


@given(records=documents, size=st.integers(1, 40))
def test_a_subset_is_spread_over_the_lengths(records: tuple[Document, ...], size: int) -> None:
    """It has the asked size, keeps the order, and no slice of the lengths is over- or under-represented."""
    corpus = Corpus("c", "en", "here", "MIT", records)
    subset = corpus.subset(size)
    assert len(subset.records) == min(size, len(records))
    assert list(subset.records) == [record for record in records if record in subset.records]
    for length in range(10):
        whole = sum(len(record.text) <= length for record in records) / len(records)
        part = sum(len(record.text) <= length for record in subset.records) / len(subset.records)
        assert abs(whole - part) <= 1 / len(subset.records)


def test_a_digest_changes_with_every_part_of_the_content() -> None:
    """Another id, another text, another order, another border between two texts: another digest."""
    corpora = [
        (("a", "bc"), ("d", "e")),
        (("d", "e"), ("a", "bc")),
        (("ab", "c"), ("d", "e")),
        (("a", "b"), ("cd", "e")),
    ]
    digests = {
        Corpus("c", "en", "here", "MIT", tuple(Document(*record) for record in records)).digest for records in corpora
    }
    assert len(digests) == len(corpora)


def test_files_are_read_as_they_are(tmp_path: Path) -> None:
    """Line ends, NUL and line separators inside JSON stay; a folder is read in order; ids say where a text is from."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.MD").write_bytes(b"# Head\r\n\r\nbody\0\r\n")
    (tmp_path / "a.txt").write_bytes("\ufeffいち\n".encode())
    lines = [json.dumps({"text": "one"}), "", json.dumps({"text": "two\u2028\x85", "id": 7}, ensure_ascii=False)]
    (tmp_path / "c.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    (tmp_path / "ignored.png").write_bytes(b"\x89PNG")
    corpus = load(str(tmp_path))
    assert [(record.id, record.text) for record in corpus.records] == [
        ("a.txt", "いち\n"),
        ("c.jsonl:1", "one"),
        ("7", "two\u2028\x85"),
        ("sub/b.MD", "# Head\r\n\r\nbody\0\r\n"),
    ]
    assert (corpus.id, corpus.language, corpus.licence) == (tmp_path.name, "und", "NOASSERTION")
    assert load(str(tmp_path / "a.txt")).records == (Document("a.txt", "いち\n"),)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"ab\xff", "a.txt is not UTF-8 text: byte 0xff at offset 2"),
        ("a.png", b"\x89PNG", "a.png is not UTF-8 text: byte 0x89 at offset 0"),
        ("a.md", "words".encode("utf-16-le"), "a.md is not text but binary: NUL at offset 1"),
        ("a.JSONL", b'{"text":"a"}\n{', "a.JSONL:2: not JSON"),
        ("a.jsonl", b'["text"]', "a.jsonl:1: not an object"),
        ("a.jsonl", b'{"text":1}', "a.jsonl:1: the field `text` is no string"),
        ("a.jsonl", b'{"text":"a","id":[]}', "a.jsonl:1: the field `id` is neither"),
        ("a.jsonl", b'{"text":"a","id":true}', "a.jsonl:1: the field `id` is neither"),
        ("a.jsonl", b'{"text":"a\\ud800"}', "a.jsonl:1: `text` is not Unicode: a lone surrogate"),
    ],
)
def test_what_cannot_be_read_is_said_as_by_divide(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    """A corpus and `overflow divide` read the same files alike: one line, the same, for each that cannot be had."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load(str(path))
    assert str(caught.value).startswith(f"{tmp_path}/{message}")
    assert "\n" not in str(caught.value)
    assert str(caught.value) in [str(each) for each in read_records([str(path)]) if isinstance(each, InputError)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"", "a.txt: the text is empty"),
        ("a.jsonl", b'{"text":"","id":7}', "a.jsonl:1: the text is empty"),
        ("a.jsonl", b"", "a.jsonl holds no record"),
        ("a.jsonl", b'{"text":"a","id":"1"}\n{"text":"b","id":1}', "a.jsonl: the id '1' is used by more than one"),
    ],
)
def test_a_file_that_is_no_corpus_is_one_clear_line(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    """A corpus has texts, none empty, each with an id of its own."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        load(str(tmp_path / name))
    assert str(caught.value).startswith(f"{tmp_path}/{message}")
    assert "\n" not in str(caught.value)


def test_every_bad_source_of_a_folder_is_named(tmp_path: Path) -> None:
    """In one line, as `overflow divide` names each; ten of them, and how many more there are."""
    (tmp_path / "a.txt").write_bytes(b"\xff")
    (tmp_path / "b.md").write_bytes(b"")
    (tmp_path / "c.jsonl").write_text('{"text": "good"}\n' + "bad\n" * 10, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load(str(tmp_path))
    said = str(caught.value).split("; ")
    assert said[0].endswith("a.txt is not UTF-8 text: byte 0xff at offset 0")
    assert said[1].endswith("b.md: the text is empty")
    assert ["not JSON" in each for each in said] == [False, False, *[True] * 8, False]
    assert said[-1] == "and 2 more"


def test_a_misspelt_corpus_is_told_its_name() -> None:
    """The nearest corpus is named, and none where none is near."""
    with pytest.raises(InputError, match="'stdlib-doc' is no corpus and no file; did you mean stdlib-docs"):
        load("stdlib-doc")
    with pytest.raises(InputError, match="'nowhere' is no corpus and no file; corpora"):
        load("nowhere")


def test_what_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    """Neither a corpus nor a file; an empty folder; a subset of nothing."""
    with pytest.raises(InputError, match="'nowhere' is no corpus and no file; corpora: stdlib-docs"):
        load("nowhere")
    with pytest.raises(InputError, match=r"holds no file that ends in \.txt, \.md, \.jsonl"):
        load(str(tmp_path))
    with pytest.raises(InputError, match="a subset has at least 1 record, not 0"):
        Corpus("c", "en", "here", "MIT", ()).subset(0)


#: What `read_records` gives for the paths it is called with, in 100 MB more than the process has.
IN_LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
from overflow.measure.records import read_records
import encodings.utf_8, json
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + 100_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for each in read_records(sys.argv[1:]):
    print(each)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory has no such limit")
@pytest.mark.parametrize("name", ["large.txt", "large.jsonl", "-"])
@pytest.mark.parametrize("size", [10**11, 7 * 10**7], ids=["its bytes", "its text"])
def test_a_source_larger_than_memory_stops_no_other(tmp_path: Path, name: str, size: int) -> None:
    """Neither where its bytes do not fit nor where they do and its text does not: one line, and the next is read."""
    large, good = tmp_path / "large", tmp_path / "good.txt"
    good.write_text("some words")
    named = tmp_path / name if name != "-" else large
    named.touch()
    os.truncate(named, size)  # Of holes alone: it takes no room on the disk.
    path = "-" if name == "-" else str(named)
    with named.open("rb") as stdin:
        ended = subprocess.run(
            [sys.executable, "-c", IN_LITTLE_MEMORY, path, str(good)],
            stdin=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
    said = "stdin" if name == "-" else str(named)
    assert (ended.stderr, ended.returncode) == ("", 0)
    assert ended.stdout.splitlines() == [
        f"cannot read {said}: larger than the memory there is",
        f"Record(where={str(good)!r}, text='some words', own_id=None)",
    ]
