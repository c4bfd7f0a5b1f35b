"""The division of real texts under real tokenizers, against the rule measured on the whole rest at every step.

The rest is measured in prefixes where that is believed to be safe; these are the tests that it is.
"""

import json
from pathlib import Path

import pytest

from overflow.contract.oracle import divide_by_the_rule
from overflow.division import Density, divide
from overflow.tokens.e5 import E5Window
from overflow.tokens.report import TokenWindow
from overflow.tokens.synthetic import SyntheticWindow
from overflow.tokens.tokenizer_file import TokenizerFileWindow
from overflow.tokens.wordllama import WordllamaWindow

#: What a text may look like when it is not prose: no line breaks, no white space, JSON without any, letters alone.
FORMS = {
    "as it is": lambda text: text,
    "one line": lambda text: " ".join(text.split()),
    "no white space": lambda text: "".join(text.split()),
    "compact JSON": lambda text: json.dumps(text.split(), ensure_ascii=False, separators=(",", ":")),
    "letters alone": lambda text: "".join(c for c in text if c.isalnum()),
}


def of_moderate_length(topics: list[str]) -> list[str]:
    """Those that can be measured whole at each step."""
    return [text for text in topics if len(text) <= 12_000]


def windows(wordpiece_file: Path) -> list[TokenWindow]:
    return [E5Window(), WordllamaWindow(), TokenizerFileWindow(wordpiece_file, 256)]


def assert_equal_to_the_rule(texts: list[str], window: TokenWindow, density: Density | None = None) -> int:
    """How many of the texts divided."""
    divided = 0
    for text in texts:
        nodes = divide_by_the_rule(text, lambda rest: window.measure([rest])[0])
        spans = divide(text, window, density=density).spans
        assert [(span.start, span.end, span.token_count) for span in spans] == nodes, window.name
        divided += bool(nodes)
    return divided


@pytest.mark.parametrize("form", FORMS)
def test_topics_equal_the_rule(form: str, topics: list[str], wordpiece_file: Path) -> None:
    """The division of documentation equals the rule's, in prose and in forms where a clean break is rare."""
    texts = [FORMS[form](text) for text in of_moderate_length(topics)[-25::3]]
    assert sum(assert_equal_to_the_rule(texts, window) for window in windows(wordpiece_file)) > len(texts)


@pytest.mark.parametrize("window", [WordllamaWindow(40), SyntheticWindow("words", 30), SyntheticWindow("bytes", 100)])
def test_topics_equal_the_rule_in_small_windows(window: TokenWindow, topics: list[str]) -> None:
    """The same where nodes are short, and many."""
    texts = of_moderate_length(topics)[-25::6]
    assert assert_equal_to_the_rule(texts, window) == len(texts)


def test_corpora_equal_the_rule(corpora: list[str], wordpiece_file: Path) -> None:
    """The division of every record of the corpora equals the rule's, in English, Japanese and Chinese."""
    for window in (E5Window(), TokenizerFileWindow(wordpiece_file, 256)):
        assert assert_equal_to_the_rule(corpora, window) >= len(corpora) // 2


@pytest.mark.parametrize("form", ["no white space", "letters alone"])
def test_corpora_without_white_space_equal_the_rule(form: str, corpora: list[str]) -> None:
    """The same where no token boundary is given by white space, from a density that fits none of the texts."""
    texts = [FORMS[form](text) for text in corpora[::3]]
    for window in (E5Window(), WordllamaWindow()):
        assert assert_equal_to_the_rule(texts, window, Density(512, 0.05, 2.0, 0.1)) >= len(texts) // 3


@pytest.mark.parametrize("unit", ["a", "ab", "=", "あ", "！", "a,"])
def test_repeated_runs_equal_the_rule(unit: str, wordpiece_file: Path) -> None:
    """A repetition has no clean break, and a tokenizer may put its short token first: the whole of it counts."""
    texts = [form.replace("_", unit * 3001) for form in ("_", "Some words first. _ and last.")]
    for window in windows(wordpiece_file):
        assert_equal_to_the_rule(texts, window)
