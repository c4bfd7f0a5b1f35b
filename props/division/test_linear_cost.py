"""What division posts, counted by the server: the figures of `bench/linear_cost.py` that no clock decides."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from overflow.tokens.e5 import E5Window
from overflow.tokens.wordllama import WordllamaWindow

BENCH = Path(__file__).parents[2] / "bench" / "linear_cost.py"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("linear_cost", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its module up by name.
    sys.modules["linear_cost"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("language", ["english", "japanese"])
@pytest.mark.parametrize("window", [E5Window(), WordllamaWindow()], ids=["e5", "wordllama"])
def test_one_record_is_posted_little_more_than_twice(bench: ModuleType, language: str, window: E5Window) -> None:
    """A record of one line: at most 2.5 characters a character, 1.6 of them in probes, 1.1 requests a node and 2."""
    figures = bench.one_record(language, getattr(bench, language)(bench.RECORD), window)
    assert len(figures) == 3
    assert [figure for figure in figures if not figure.met] == []


def test_a_backlog_shares_its_requests(bench: ModuleType) -> None:
    """50 records: at most 0.15 requests a node."""
    (figure,) = bench.backlog("English", bench.english(bench.BACKLOG * bench.RECORD), E5Window())
    assert figure.met, figure
    assert "50 records" in figure.name
