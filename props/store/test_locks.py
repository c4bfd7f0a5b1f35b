"""A process must not end the locks that it holds on a store: its log would be taken away, and records with it."""

import subprocess
import sys
from pathlib import Path

from overflow.embedding.wordllama import WordllamaEmbedder
from overflow.store import MemoryStore, Scope

#: Another process that opens the store and closes it again: if nobody else seems to use it, the log is taken away.
PASSING_BY = """
import sys
from overflow.embedding.wordllama import WordllamaEmbedder
from overflow.store import MemoryStore
MemoryStore(sys.argv[1], WordllamaEmbedder()).close()
"""


def test_a_second_store_in_the_process_leaves_the_locks_of_the_first(tmp_path: Path) -> None:
    """A record stays in the log that the next process will read, whoever came by in between."""
    path = str(tmp_path / "store.sqlite3")
    with MemoryStore(path, WordllamaEmbedder()) as first:
        MemoryStore(path, WordllamaEmbedder()).close()
        first.store("Before.", Scope())
        log = Path(f"{path}-wal")
        before = log.stat().st_ino
        subprocess.run([sys.executable, "-c", PASSING_BY, path], check=True)
        assert log.exists(), "the log was taken away under an open store"
        assert log.stat().st_ino == before
