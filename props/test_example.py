"""The example that newcomers start from keeps the six invariants, its divider does what the page says of it, and the
page's table of methods is that of the protocol.

It knows the example as a user's subject alone. docs/subjects.md, docs/example/notes_sqlite.py.
"""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overflow.contract.evidence import Profile
from overflow.contract.laws import all_laws
from overflow.contract.locate import subject_maker
from overflow.contract.runner import Runner
from overflow.contract.saboteurs import sabotaged
from overflow.contract.strategies import long_texts, windows
from overflow.contract.subject import CAPABILITIES
from overflow.embedding.wordllama import wordllama_vectors
from overflow.tokens.synthetic import SyntheticWindow

DOCS = Path(__file__).parent.parent / "docs"
EXAMPLE = DOCS / "example"
PAGE = (DOCS / "subjects.md").read_text(encoding="utf-8")
FEW = Profile("few", 6, 0.5, 1)
LAWS = {law.id: law for law in all_laws()}


@pytest.fixture(scope="module")
def example() -> Iterator[Any]:
    """The module, imported from its folder as `overflow check` does there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(EXAMPLE)
        patch.syspath_prepend(str(EXAMPLE))
        import notes_sqlite

        yield notes_sqlite


@pytest.fixture(scope="module")
def runner(example: Any) -> Iterator[Runner]:
    with Runner(subject_maker(f"{example.__name__}:Notes"), wordllama_vectors) as runner:
        yield runner


@pytest.mark.parametrize("invariant", ["1", "2", "3", "4", "5", "6"])
def test_the_example_keeps_the_six_invariants(runner: Runner, invariant: str) -> None:
    """All six are asked of it, and hold."""
    result = runner.check(LAWS[invariant], FEW, 0)
    assert result.status == "holds", f"{result.reason}\n{result.counterexample}"


def test_the_example_can_be_broken(example: Any) -> None:
    """What the gate's page says of saboteurs is true of the example: a gap between its nodes is noticed."""
    broken = sabotaged("leave-gap", subject_maker(f"{example.__name__}:Notes"))
    with Runner(broken, wordllama_vectors) as runner:
        assert runner.check(LAWS["4"], FEW, 0).status == "violated"


def counter(window: SyntheticWindow) -> Any:
    """What counts one text as the server's `/count_tokens` would."""

    def count(text: str) -> dict[str, Any]:
        (report,) = window.measure([text])
        assert report is not None
        return asdict(report)

    return count


def pieces(example: Any, text: str, window: SyntheticWindow) -> list[tuple[int, int]]:
    return [(start, end) for start, end, _ in example.divide(text, counter(window))]


@given(data=st.data())
@settings(max_examples=40)
def test_the_examples_pieces_fit_and_partition(example: Any, data: st.DataObject) -> None:
    """None or several; each counted alone is within the window; together they are the text."""
    window = data.draw(windows())
    text = data.draw(long_texts(window))
    found = pieces(example, text, window)
    assert len(found) != 1
    assert "".join(text[start:end] for start, end in found) == (text if found else "")
    assert all(counter(window)(text[start:end])["count"] <= window.window for start, end in found)


def test_a_piece_that_counts_more_alone_shrinks(example: Any) -> None:
    """`word_ends` counts 1 a character and 1 where a word ends: of "abcd" 4 tokens reach "abcd", which alone is 5."""
    window = SyntheticWindow("word_ends", 4)
    assert counter(window)("abcdefgh")["window_end_char"] == 4
    assert counter(window)("abcd")["count"] == 5
    assert pieces(example, "abcdefgh", window) == [(0, 3), (3, 6), (6, 8)]


def test_a_text_of_which_no_character_fits_is_given_up(example: Any) -> None:
    """`window_end_char` is 0: no pieces, and no endless loop; not even for what came before."""
    window = SyntheticWindow("bytes", 2)
    assert counter(window)("日")["window_end_char"] == 0
    assert pieces(example, "ab日cd", window) == []


def test_unknown_tokens_are_no_pieces(example: Any) -> None:
    """A report that is not there is not "fits", at the start or later; a text that fits has no pieces either."""
    count = counter(SyntheticWindow("words", 1))
    assert example.divide("one two", count)
    for first_unknown in range(3):
        reports = iter([*map(count, ("one two", "one")[:first_unknown]), None])
        assert example.divide("one two", lambda _, reports=reports: next(reports)) == []
    assert pieces(example, "one two", SyntheticWindow("words", 2)) == []


def test_the_page_shows_the_examples_divider() -> None:
    """Line by line."""
    shown = re.search(r"^    def divide.*?\n\n(?=\S)", PAGE, re.DOTALL | re.MULTILINE)
    assert shown is not None
    assert textwrap.dedent(shown[0]).strip() in (EXAMPLE / "notes_sqlite.py").read_text(encoding="utf-8")


def test_the_page_tells_every_method_and_the_laws_that_need_it() -> None:
    """A row a capability, in the order of the protocol, with exactly the laws that require it."""
    rows = re.findall(r"^\| `(\w+)\([^|]*\|[^|]*\| ([^|]*) \|", PAGE, re.MULTILINE)
    assert [method for method, _ in rows] == list(CAPABILITIES)
    for method, laws in rows:
        named = set(re.findall(r"`([^`]+)`", laws))
        told = set(LAWS) - named if laws.startswith("every law") else named
        assert told == {law.id for law in LAWS.values() if method in law.requires}, method
