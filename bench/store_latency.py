"""How soon a write to the store answers, and what a record weighs: `python bench/store_latency.py [--json PATH|-]`.

Beside each latency stands that of a plain INSERT of the same text and vector into a database of the same durability,
in the same run; the queue is on, and nothing is built while it is timed. The aim is for wordllama's: a write waits for
its embedding, which takes e5 seconds. Exit code 1 on a miss. DESIGN.md, "The
reference store".
"""

import argparse
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import quantiles

from linear_cost import english

from overflow.cli.output import write_text
from overflow.embedding.e5 import E5Embedder
from overflow.embedding.embedder import Embedder
from overflow.embedding.wordllama import WordllamaEmbedder
from overflow.store import MemoryStore, Scope

RECORDS = 200
#: Records that fit, and records that run past the window of 512 tokens (characters).
SIZES = {"fits": 800, "runs past the window": 8_000}
#: The design says "milliseconds": 95 of 100 answers within this many.
AIM = 50.0
#: A full window takes e5 seconds, so that it is given fewer records.
SLOW_RECORDS = 4
_SCOPE = Scope("agent", "", "")


def records(size: int, count: int = RECORDS) -> list[str]:
    """Different stretches of the documentation's prose."""
    prose = english(count * 97 + size)
    return [prose[at * 97 : at * 97 + size] for at in range(count)]


def milliseconds(call: Callable[[str], object], texts: Sequence[str]) -> tuple[float, float]:
    """The median and the 95th percentile of one call a text."""
    call(texts[0])  # Statements prepared, model loaded.
    taken = []
    for text in texts:
        begin = time.perf_counter()
        call(text)
        taken.append(1000 * (time.perf_counter() - begin))
    cuts = quantiles(taken, n=20)
    return cuts[9], cuts[18]


def plain(path: Path, texts: Sequence[str]) -> tuple[float, float]:
    """The latency of one INSERT a text, committed as the store commits: WAL, synchronous NORMAL."""
    vector = bytes(4 * 256)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE records (id INTEGER PRIMARY KEY, text TEXT, vector BLOB)")
        insert = "INSERT INTO records (text, vector) VALUES (?, ?)"
        return milliseconds(lambda text: connection.execute(insert, (text, vector)), texts)
    finally:
        connection.close()


@dataclass(frozen=True, slots=True)
class Latency:
    """One percentile of a kind of write; `aim` in milliseconds, None where there is none."""

    model: str
    write: str
    record: str
    percentile: str
    ms: float
    embedding_ms: float
    insert_ms: float
    aim: float | None

    @property
    def met(self) -> bool:
        return self.aim is None or self.ms <= self.aim

    @property
    def line(self) -> str:
        sign = "pass" if self.met else "MISS"
        start, aim = ("    ", "    ") if self.aim is None else (sign, f"≤ {self.aim:.0f}")
        return (
            f"{start}  {self.ms:7.2f} ms {aim}  {self.percentile} {self.write}, {self.record}, "
            f"{self.model}: {self.ms / self.insert_ms:.0f} times an INSERT of {self.insert_ms:.3f} ms; "
            f"embedding alone takes {self.embedding_ms:.2f} ms"
        )


def latencies(directory: Path, model: str, embedder: Embedder, count: int, aim: float | None) -> list[Latency]:
    """A row for each kind of record and of write."""
    rows: list[Latency] = []
    for size_name, size in SIZES.items():
        texts = records(size, count)
        base = plain(directory / f"plain-{model}-{size}.sqlite3", texts)
        embedding = milliseconds(lambda text: embedder.embed([text]), texts)
        with MemoryStore(str(directory / f"store-{model}-{size}.sqlite3"), embedder) as store:
            for name, write in (("store", store.store), ("archive_episode", store.archive_episode)):
                took = milliseconds(partial(write, scope=_SCOPE), texts)
                for label, ms, embedding_ms, insert_ms in zip(("p50", "p95"), took, embedding, base, strict=True):
                    rows.append(Latency(model, name, size_name, label, ms, embedding_ms, insert_ms, aim))
    return rows


def weights(directory: Path) -> list[dict[str, object]]:
    """Bytes of the database a record that runs past the window, before and after its nodes are built."""
    texts = records(SIZES["runs past the window"])[:50]
    sizes = {}
    for name, build in (("without nodes", False), ("with nodes", True)):
        path = directory / f"{name}.sqlite3"
        with MemoryStore(str(path), WordllamaEmbedder()) as store:
            for text in texts:
                store.store(text, _SCOPE)
            if build and store.drain().built != len(texts):
                raise SystemExit("not every record was built: its weight would be of fewer nodes")
        sizes[name] = path.stat().st_size / len(texts)
    return [{"record": name, "characters": len(texts[0]), "bytes": size} for name, size in sizes.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description="How soon a write to the store answers, and what a record weighs.")
    parser.add_argument("--json", metavar="PATH|-", help="write the figures as JSON as well")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        times = latencies(Path(directory), "wordllama", WordllamaEmbedder(), RECORDS, AIM)
        times += latencies(Path(directory), "e5", E5Embedder(), SLOW_RECORDS, None)
        sizes = weights(Path(directory))
    if arguments.json != "-":
        for latency in times:
            print(latency.line)
        for row in sizes:
            print(f"      {row['bytes']:9,.0f} bytes a record of {row['characters']:,} characters, {row['record']}")
    if arguments.json is not None:
        write_text(arguments.json, json.dumps({"latencies": [asdict(each) for each in times], "weights": sizes}) + "\n")
    return 0 if all(latency.met for latency in times) else 1


if __name__ == "__main__":
    from script import run

    run(main)
