"""Unigram over small vocabularies, against the definition: of all ways to divide a text into pieces, the most probable.

Scores are whole numbers, so that sums are exact and a tie is a tie.
"""

import random
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overflow.tokens import unigram as unigram_module
from overflow.tokens.charmap import code_points
from overflow.tokens.unigram import Unigram
from overflow.tokens.unigram_batch import MAX_RUN, BatchCounter

UNKNOWN = -30.0
PIECES = st.text("ab日\U0001f600", min_size=1, max_size=4)
VOCABULARIES = st.dictionaries(PIECES, st.integers(-20, -1).map(float), min_size=1, max_size=25)
TEXTS = st.text("ab日\U0001f600z", max_size=24)


class Counting(dict[str, float]):
    """Scores that count how often they are looked up."""

    asked = 0

    def get(self, piece: str, default: float | None = None) -> float | None:  # type: ignore[override]
        self.asked += 1
        return super().get(piece, default)


class Batch(BatchCounter):
    """Notes which runs are counted together, and gives `lost` counts too few."""

    def __init__(self, lost: int = 0) -> None:
        super().__init__({"a": -1.0}, UNKNOWN)
        self.asked: list[set[str]] = []
        self._lost = lost

    def counts(self, runs: Sequence[str]) -> list[int]:
        self.asked.append(set(runs))
        return super().counts(runs)[self._lost :]


class Looking(Unigram):
    """Notes which runs are divided one by one."""

    def __init__(self, scores: dict[str, float], unknown_score: float) -> None:
        super().__init__(scores, unknown_score)
        self.looked: list[str] = []

    def token_ends(self, run: str) -> list[int]:
        self.looked.append(run)
        return super().token_ends(run)


def best_sum(scores: dict[str, float], text: str) -> float:
    """By trying every first piece; a character no piece matches costs UNKNOWN."""

    @cache
    def rest(start: int) -> float:
        if start == len(text):
            return 0.0
        ways = [
            scores[text[start:end]] + rest(end) for end in range(start + 1, len(text) + 1) if text[start:end] in scores
        ]
        return max([*ways, UNKNOWN + rest(start + 1)])

    return rest(0)


def pieces_of(text: str, ends: list[int]) -> list[str]:
    return [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]


@given(VOCABULARIES, TEXTS)
def test_the_tokens_are_the_most_probable(scores: dict[str, float], text: str) -> None:
    """The tokens of a run make up the run, and no other way to divide it has a higher sum."""
    ends = Unigram(scores, UNKNOWN).token_ends(text)
    pieces = pieces_of(text, ends)
    assert "".join(pieces) == text
    assert sum(scores.get(piece, UNKNOWN) for piece in pieces) == best_sum(scores, text)


@given(VOCABULARIES, TEXTS)
def test_no_token_leaves_a_run(scores: dict[str, float], text: str) -> None:
    """The runs make up the text, and dividing them apart is as probable as dividing the text at once."""
    unigram = Unigram(scores, UNKNOWN)
    runs = unigram.runs(code_points(text))
    assert "".join(runs) == text
    assert sum(best_sum(scores, run) for run in runs) == best_sum(scores, text)


@given(VOCABULARIES, st.lists(TEXTS.filter(bool), min_size=1, max_size=30))
def test_a_batch_counts_as_one_by_one(scores: dict[str, float], runs: list[str]) -> None:
    """The counts in columns are those of the tokens, whatever lengths stand together."""
    unigram = Unigram(scores, UNKNOWN)
    expected = [len(unigram.token_ends(run)) for run in runs]
    assert BatchCounter(scores, UNKNOWN).counts(runs) == expected
    assert unigram.counts(runs) == expected


@given(VOCABULARIES, st.integers(0, 3))
def test_counts_stay_the_same_once_learnt(scores: dict[str, float], more: int) -> None:
    """Many new runs, learnt together or met one by one, long ones among them."""
    runs = [f"{'ab日z'[i % 4]}{i:03d}a" * (1 + i % 3) for i in range(299 + more)] + ["ab" * MAX_RUN]
    learnt, met = Unigram(scores, UNKNOWN), Unigram(scores, UNKNOWN)
    learnt.learn(runs)
    assert learnt.counts(runs) == met.counts(runs) == [len(met.token_ends(run)) for run in runs]


@settings(max_examples=25)
@given(VOCABULARIES, st.text("ab", min_size=1, max_size=4), st.integers(65, 150), st.integers(0, 150))
def test_a_beginning_of_a_long_run_has_the_tokens_it_has_alone(
    scores: dict[str, float], unit: str, length: int, shorter: int
) -> None:
    """Whatever was asked before, a longer run too."""
    unigram, run = Unigram(scores, UNKNOWN), (unit * length)[:length]
    for each in (run, run[:shorter], run):
        assert unigram.token_ends(each) == Unigram(scores, UNKNOWN).token_ends(each)


def test_a_long_run_is_looked_up_once_for_all_its_beginnings() -> None:
    """One letter without end: the rest after each node is a beginning of the rest before it.

    A run that the table of counts holds, of up to 64 characters, does not take its place.
    """
    scores = Counting({"a": -2.0, "aa": -3.0, "aaa": -4.0})
    unigram = Unigram(scores, UNKNOWN)
    unigram.token_ends("a" * 3000)
    unigram.token_ends("b" * 64)
    asked = scores.asked
    assert asked >= 3000
    assert len(unigram.token_ends("a" * 2000)) == 667, "666 threes, and a two in any place"
    assert scores.asked == asked


def test_a_place_is_looked_up_once_for_each_length_that_a_piece_can_have_there() -> None:
    """That of the longest piece that begins with the same two characters at most, and no place behind the end."""
    scores = Counting({"a": -2.0, "aa": -3.0, "aaa": -4.0})
    Unigram(scores, UNKNOWN).token_ends("a" * 100)
    assert scores.asked == 98 * 3 + 2 + 1
    scores.asked = 0
    Unigram(scores, UNKNOWN).token_ends("b" * 100)
    assert scores.asked == 100


def test_many_new_runs_are_counted_together() -> None:
    """From 300 on, those of up to 24 characters, and none a second time; fewer are sooner counted one by one."""
    unigram, batch = Unigram({"a": -1.0}, UNKNOWN), Batch()
    unigram._batch = batch
    few = [f"{number:03d}" for number in range(298)] + ["x" * 24]
    unigram.learn([*few, "x" * 25])
    assert batch.asked == []
    unigram.learn([*few, *few, "one more", "x" * 25])
    assert batch.asked == [{*few, "one more"}]
    others = {f"{number:04d}" for number in range(300)}
    unigram.learn([*few, *others])
    assert batch.asked[1:] == [others]


def test_a_run_without_a_count_is_not_passed_over() -> None:
    """Too few counts are of nobody knows which runs."""
    unigram = Unigram({"a": -1.0}, UNKNOWN)
    unigram._batch = Batch(lost=1)
    with pytest.raises(ValueError, match="shorter"):
        unigram.learn(f"{number:03d}" for number in range(300))


def test_a_full_table_of_counts_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never before it is full, and then at once: what comes together and what comes one by one."""
    monkeypatch.setattr(unigram_module, "_CACHED_RUNS", 600)
    unigram, batch = Unigram({"a": -1.0}, UNKNOWN), Batch()
    unigram._batch = batch
    first, second, third = ([f"{name}{number:03d}" for number in range(300)] for name in "abc")
    for runs in (first, second, first, third, first):
        unigram.learn(runs)
    assert batch.asked == [set(first), set(second), set(third), set(first)]

    monkeypatch.setattr(unigram_module, "_CACHED_RUNS", 2)
    looking = Looking({"a": -1.0}, UNKNOWN)
    looking.counts(["a", "b", "a", "c", "a"])
    assert looking.looked == ["a", "b", "c", "a"]


def test_a_count_is_kept_of_a_run_that_may_come_again() -> None:
    """Of up to 64 characters; longer ones seldom do."""
    looking = Looking({"a": -1.0}, UNKNOWN)
    looking.counts(["a" * 64, "a" * 65] * 2)
    assert [len(run) for run in looking.looked] == [64, 65, 65]


def test_few_runs_are_joined_that_could_be_apart() -> None:
    """As many as chance has it where each pair of neighbours of the pieces takes one of 2**22 places."""
    drawn = random.Random(0)
    letters = [chr(point) for point in range(0x4E00, 0x9FFF)]
    pairs = {"".join(drawn.choices(letters, k=2)): -1.0 for _ in range(20_000)}
    text = "".join(drawn.choices(letters, k=200_000))
    joined = len(text) - len(Unigram(pairs, UNKNOWN).runs(code_points(text)))
    assert joined / len(text) < 1.4 * len(pairs) / 2**22


def test_of_equal_sums_the_longer_last_piece_wins() -> None:
    """As in the engine: a later start wins only with a strictly better sum, one by one and counted together."""
    scores = {"a": -1.0, "b": -1.0, "ab": -2.0}
    assert Unigram(scores, UNKNOWN).token_ends("ab") == [2]
    assert BatchCounter(scores, UNKNOWN).counts(["ab"]) == [1]
    without_b = {"a": -1.0, "ab": -2.0}
    assert Unigram(without_b, -1.0).token_ends("ab") == [2]
    assert BatchCounter(without_b, -1.0).counts(["ab"]) == [1]


def test_sums_begin_at_nothing() -> None:
    """Scores so small that any other number would swallow them still decide: two pieces are likelier here than one."""
    assert Unigram({"ab": -1e-17, "a": -4e-18, "b": -4e-18}, UNKNOWN).token_ends("ab") == [1, 2]


def test_the_longest_piece_counts_whatever_comes_after_it() -> None:
    """A vocabulary has no order: a shorter piece that begins alike hides no longer one."""
    scores = {"abcd": -1.0, "abc": -5.0, **dict.fromkeys("abcd", -3.0)}
    assert Unigram(scores, UNKNOWN).token_ends("abcd") == [4]


def test_a_tokenizer_knows_nothing_before_its_first_run() -> None:
    """Whatever that run is."""
    for run, ends in (("X", [1]), ("XX", [2]), ("XXXX", [2, 4])):
        assert Unigram({"XX": -1.0}, UNKNOWN).token_ends(run) == ends


def test_a_text_falls_apart_where_no_piece_reaches_across() -> None:
    """Between characters that stand side by side in no piece; else there is nothing to look up again."""
    unigram = Unigram({"ab": -1.0, "cd": -1.0}, UNKNOWN)
    assert unigram.runs(code_points("abcd")) == ["ab", "cd"]


def test_pieces_whose_keys_lie_together_are_told_apart() -> None:
    """Of twenty thousand pieces some share the upper bits of their keys; each is found all the same."""
    drawn = random.Random(0)
    pieces = sorted({"".join(chr(drawn.randrange(0x4E00, 0x9FFF)) for _ in range(3)) for _ in range(20_000)})
    assert BatchCounter(dict.fromkeys(pieces, -1.0), UNKNOWN).counts(pieces) == [1] * len(pieces)


def test_scores_come_in_columns_of_numbers() -> None:
    """Not of objects, whose sums are made one by one: that is what a batch is to save."""
    counter = BatchCounter({"a": -1.0}, UNKNOWN)
    assert counter._score(np.array([0], np.uint64)).dtype == np.float64


def test_a_character_of_the_lowest_numbers_is_one_too() -> None:
    """U+0001 before a piece makes no piece of it: strings of other lengths have other keys."""
    assert BatchCounter({"a": -1.0, "b": -1.0, "ab": -2.0}, -11.0).counts(["\x01a", "\x01\x01a"]) == [2, 3]
