"""The vector cache answers as the model does, asks it once, and never breaks a run for the state of its file."""

import hashlib
import logging
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overflow.embedding import vector_file
from overflow.embedding.cache import CachedEmbedder, cache_directory
from overflow.embedding.embedder import Embedded, Embedder
from overflow.embedding.vector_file import VectorFile
from overflow.embedding.wordllama import WordllamaEmbedder, wordllama_vectors
from overflow.errors import InputError
from overflow.tokens.report import TokenReport
from overflow.tokens.synthetic import SyntheticWindow


class Model:
    """An embedder that notes what it is asked to embed."""

    def __init__(self, identity: str | None = "model-1", window: int = 3) -> None:
        self.name = identity
        self.window = SyntheticWindow("words", window)
        self.prefix_safe = self.window.prefix_safe
        self.asked: list[str] = []

    def identity(self) -> str | None:
        return self.name

    def embed(self, texts: Sequence[str]) -> Embedded:
        self.asked += texts
        return Embedded(wordllama_vectors([f"{self.name}: {text}" for text in texts]), self.measure(texts))

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        return self.window.measure(texts)


def same(found: Embedded, expected: Embedded) -> bool:
    return np.array_equal(found.vectors, expected.vectors) and found.reports == expected.reports


def test_a_cached_embedder_is_an_embedder(tmp_path: Path) -> None:
    """It has what the protocol asks for, and its identity and reports are the model's."""
    cached = CachedEmbedder(Model(), tmp_path)
    assert isinstance(cached, Embedder)
    assert cached.identity() == "model-1"
    assert cached.measure(["a b c d"]) == Model().measure(["a b c d"])


@given(st.lists(st.lists(st.sampled_from(["", "a", "b c", "日本", "d\0e", "f g h i"]), max_size=6), max_size=4))
def test_answers_are_the_models_and_each_text_is_embedded_once(
    tmp_path_factory: pytest.TempPathFactory, calls: list[list[str]]
) -> None:
    """Any order, any repetition, over several runs of the program."""
    directory, model = tmp_path_factory.mktemp("cache"), Model()
    for texts in calls:
        assert same(CachedEmbedder(model, directory).embed(texts), Model().embed(texts))
    assert sorted(model.asked) == sorted({text for texts in calls for text in texts})


def test_vectors_of_another_model_are_not_taken(tmp_path: Path) -> None:
    """By identity; and of a model that states none, nothing is kept."""
    for identity in ("model-1", "model-2", None, None):
        model = Model(identity)
        assert same(CachedEmbedder(model, tmp_path).embed(["a"]), Model(identity).embed(["a"]))
        assert model.asked == ["a"]


def test_reports_are_those_of_now(tmp_path: Path) -> None:
    """A window that changed shows at once, whatever was kept."""
    CachedEmbedder(Model(window=3), tmp_path).embed(["a b c d"])
    assert CachedEmbedder(Model(window=9), tmp_path).embed(["a b c d"]).reports == [TokenReport(4, 9, False, 7)]


def test_a_lone_surrogate_is_refused(tmp_path: Path) -> None:
    """Before the file is asked."""
    with pytest.raises(InputError, match="surrogate"):
        CachedEmbedder(Model(), tmp_path).embed(["\ud800"])


def test_the_folder_is_that_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OVERFLOW_CACHE, else the user's cache folder; made when it is needed."""
    monkeypatch.setenv("OVERFLOW_CACHE", str(tmp_path / "some" / "where"))
    CachedEmbedder(Model()).embed(["a"])
    assert [path.name for path in (tmp_path / "some" / "where").iterdir()] == ["vectors.sqlite"]
    monkeypatch.delenv("OVERFLOW_CACHE")
    assert cache_directory().name == "overflow"


@pytest.mark.parametrize("kind", ["garbage", "folder", "torn", "no table", "other table"])
def test_a_corrupt_file_is_done_without(tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str) -> None:
    """The run goes on with the model's own vectors; what is wrong is logged in one line."""
    path = tmp_path / "vectors.sqlite"
    CachedEmbedder(Model(), tmp_path).embed([f"text {i}" for i in range(200)])
    if kind == "garbage":
        path.write_bytes(b"not a database" * 1000)
    elif kind == "torn":
        path.write_bytes(path.read_bytes()[:5000])
    elif kind == "no table":
        path.write_bytes(b"")
    elif kind == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.unlink()
        run_sql(path, "CREATE TABLE vectors (a)")
    texts = ["a", "text 7", "text 199"]
    for _ in range(2):
        with caplog.at_level(logging.WARNING):
            assert same(CachedEmbedder(Model(), tmp_path).embed(texts), Model().embed(texts))
    assert all("\n" not in record.getMessage() and str(path) in record.getMessage() for record in caplog.records)
    assert bool(caplog.records) == (kind != "no table")
    assert ("delete it" in caplog.text) == (kind in ("garbage", "torn", "other table")), "a folder is no damaged file"


def test_a_file_that_another_process_holds_is_not_to_be_deleted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is whole, and somebody's: this run goes on without, and says so."""
    monkeypatch.setattr(vector_file, "_PATIENCE", 0.0)
    CachedEmbedder(Model(), tmp_path).embed(["a"])
    with closing(sqlite3.connect(tmp_path / "vectors.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert same(CachedEmbedder(Model(), tmp_path).embed(["a"]), Model().embed(["a"]))
    (record,) = caplog.records
    assert "database is locked" in record.getMessage()
    assert record.getMessage().endswith(": going on without")


def run_sql(path: Path, sql: str, *parameters: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql, parameters)


#: Not of length 1, not finite, of length 1 but of another number of dimensions, of one byte more.
UNSOUND = [b"\0\0\x80\x3f" * 3, b"\0\0\xc0\x7f" * 4, b"\0\0\x80\x3f", b"\0\0\x80\x3f" + bytes(4 * 256 - 3)]


@pytest.mark.parametrize("stored", [b"", b"abc", *UNSOUND, "text", 5])
def test_a_damaged_row_is_embedded_anew(tmp_path: Path, stored: object) -> None:
    """Whatever stands there instead of a vector: the model is asked, and the row is mended."""
    CachedEmbedder(Model(), tmp_path).embed(["a"])
    run_sql(tmp_path / "vectors.sqlite", "UPDATE vectors SET vector = ?", stored)
    for expected in (["a"], []):
        model = Model()
        assert same(CachedEmbedder(model, tmp_path).embed(["a"]), Model().embed(["a"]))
        assert model.asked == expected


def test_one_damaged_row_stops_no_batch(tmp_path: Path) -> None:
    """A vector of one number among those of 256: that text is embedded anew, the others are not."""
    CachedEmbedder(Model(), tmp_path).embed(["a", "b"])
    digest = hashlib.sha256(b"a").digest()
    one = np.array([1], "<f4").tobytes()
    run_sql(tmp_path / "vectors.sqlite", "UPDATE vectors SET vector = ? WHERE sha256 = ?", one, digest)
    for expected in (["a"], []):
        model = Model()
        assert same(CachedEmbedder(model, tmp_path).embed(["b", "a"]), Model().embed(["b", "a"]))
        assert model.asked == expected


@pytest.mark.parametrize(("texts", "expected"), [(["a", "b"], ["a", "b"]), (["a", "c"], ["c", "a"])])
def test_vectors_of_another_length_are_not_mixed(tmp_path: Path, texts: list[str], expected: list[str]) -> None:
    """A sound row of other dimensions (a model that changed, and its identity did not) gives way to the model's own."""
    CachedEmbedder(Model(), tmp_path).embed(["b"])
    VectorFile(tmp_path / "vectors.sqlite").write("model-1", [("a", np.array([0, 1], np.float32))])
    model = Model()
    assert same(CachedEmbedder(model, tmp_path).embed(texts), Model().embed(texts))
    assert model.asked == expected
    assert same(CachedEmbedder(model, tmp_path).embed(texts), Model().embed(texts))
    assert model.asked == expected


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write where nobody may")
def test_a_read_only_folder_is_read_and_not_written(tmp_path: Path) -> None:
    """What is kept is used, what is not is embedded each time."""
    CachedEmbedder(Model(), tmp_path).embed(["a"])
    (tmp_path / "vectors.sqlite").chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        for _ in range(2):
            model = Model()
            assert same(CachedEmbedder(model, tmp_path).embed(["a", "b"]), Model().embed(["a", "b"]))
            assert model.asked == ["b"]
    finally:
        tmp_path.chmod(0o700)


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "file").write_text("")
    for _ in range(2):
        assert same(CachedEmbedder(Model(), tmp_path / "file").embed(["a"]), Model().embed(["a"]))
    assert "going on without" in caplog.text


def test_a_name_that_is_no_utf8_is_a_file_that_cannot_be_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """SQLite's message quotes it, and Python cannot decode that: the cache is done without all the same."""
    path = tmp_path / "vectors.sqlite"
    CachedEmbedder(Model(), tmp_path).embed(["a"])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET name = CAST(x'ff' AS TEXT), sql = 'CREATE TABLE ('")
    assert same(CachedEmbedder(Model(), tmp_path).embed(["a"]), Model().embed(["a"]))
    VectorFile(path).write("model-1", [("b", np.array([1, 0], np.float32))])
    assert [record.getMessage().partition(" the vector cache")[0] for record in caplog.records] == [
        "cannot read",
        "cannot write",
    ]


def test_the_warning_is_one_line_that_draws_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A line break or an escape sequence of a path is spelled out."""
    folder = tmp_path / "a\n\x1b[31mb"
    folder.mkdir()
    (folder / "vectors.sqlite").write_bytes(b"no database " * 100)
    CachedEmbedder(Model(), folder).embed(["a"])
    (message,) = (record.getMessage() for record in caplog.records)
    assert message.isprintable()
    assert r"a\n\x1b[31mb" in message


def test_a_batch_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    """A batch that breaks off half-way leaves none of its vectors."""
    file = VectorFile(tmp_path / "vectors.sqlite")
    vectors = wordllama_vectors(["a", "b"])
    file.write("model", [("a", vectors[0])])
    run_sql(
        file.path,
        "CREATE TRIGGER full BEFORE INSERT ON vectors WHEN (SELECT count(*) FROM vectors) > 1 "
        "BEGIN SELECT raise(ABORT, 'database or disk is full'); END",
    )
    file.write("model", [("b", vectors[1]), ("c", vectors[1])])
    kept = VectorFile(file.path).read("model", ["a", "b", "c"])
    assert [vector is not None for vector in kept] == [True, False, False]


def test_a_full_disk_is_done_without(tmp_path: Path) -> None:
    """A process that may not make the file larger goes on; what was kept before is still sound."""
    texts = [f"text {i}" for i in range(100)]
    CachedEmbedder(WordllamaEmbedder(), tmp_path).embed(texts[:1])
    code = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from overflow.embedding.cache import CachedEmbedder\n"
        "from overflow.embedding.wordllama import WordllamaEmbedder\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "cached = CachedEmbedder(WordllamaEmbedder(), Path(sys.argv[1]))\n"
        "assert cached.embed([f'text {i}' for i in range(100)]).vectors.shape == (100, 256)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "going on without" in done.stderr
    kept = VectorFile(tmp_path / "vectors.sqlite").read(WordllamaEmbedder().identity(), texts)
    assert [vector is not None for vector in kept] == [True] + [False] * 99


def test_processes_may_share_the_file(tmp_path: Path) -> None:
    """Four processes fill one cache with overlapping texts; all of it is there, sound, at the end."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from overflow.embedding.cache import CachedEmbedder\n"
        "from overflow.embedding.wordllama import WordllamaEmbedder\n"
        "cached = CachedEmbedder(WordllamaEmbedder(), Path(sys.argv[1]))\n"
        "for i in range(int(sys.argv[2]), int(sys.argv[2]) + 20):\n"
        "    cached.embed([f'text {i}', f'text {i + 1}'])\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(10 * i)]) for i in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    texts = [f"text {i}" for i in range(51)]
    identity = WordllamaEmbedder().identity()
    kept = VectorFile(tmp_path / "vectors.sqlite").read(identity, texts)
    assert all(vector is not None for vector in kept)
    np.testing.assert_array_equal(np.stack([v for v in kept if v is not None]), wordllama_vectors(texts))
