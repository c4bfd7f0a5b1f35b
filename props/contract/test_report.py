"""A run's results as people read them, at several widths, and as JUnit."""

import re
from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console, RenderableType

from overflow.contract.laws import all_laws
from overflow.contract.readable import read
from overflow.contract.report import Rerun, data, explanations, junit, line, summary, table
from overflow.contract.results import CorpusResult, Result, described
from overflow.contract.subject import Node
from overflow.contract.violation import Violation

HELD = CorpusResult("holds", None, 211, 92, 12.0)
STEPS = "\n  store 'a b c' → mem 1\n    meanwhile delete mem 1\n  settle"
RERUN = Rerun(["overflow", "check", "--subject", "cmd:node x.js"], ["--corpus", "my notes"])


def held(law_id: str, name: str) -> Result:
    return Result(law_id, name, "the design", "holds", None, 300, 271, 123.4, corpus=HELD)


def every_law() -> list[Result]:
    return [held(law.id, law.name) for law in all_laws()]


def skipped(law_id: str, reason: str) -> Result:
    return Result(law_id, "a law", "the design", "skipped", reason, 0, 0, 0.0)


def violated(law_id: str = "4", **context: str) -> Result:
    found = {"title": "nodes leave a gap", "expected": "3", "got": "4", **context}
    return Result(law_id, "partition", "section 5.4", "violated", "nodes leave a gap", 7, 5, 0.1, found)


def printed(what: RenderableType, width: int) -> list[str]:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(what, crop=False)
    return [line.rstrip() for line in captured.get().splitlines()]


def told(results: Sequence[Result], width: int) -> list[str]:
    return printed(table(results, "title", "on stdlib-docs, wordllama", width), width)


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_a_laws_id_and_figures_are_never_cut_nor_broken(width: int) -> None:
    """Every law has its id, verdict, and both counts whole on one line, and no line is wider than the terminal."""
    lines = told(every_law(), width)
    assert max(map(len, lines)) <= width
    for law in all_laws():
        (row,) = (each for each in lines if each.startswith(f"{law.id} "))
        assert "271 of 300" in row
        assert "holds, 92 of 211" in row
        assert row.count("holds") == 2


@pytest.mark.parametrize(("width", "names", "seconds"), [(60, False, False), (80, True, False), (120, True, True)])
def test_seconds_go_first_and_then_names(width: int, names: bool, seconds: bool) -> None:
    """80 columns show every name, folded where it must be; 120 show all there is."""
    lines = told(every_law(), width)
    text = " ".join(" ".join(lines).split())
    assert ("every node fits its" in text) == names
    assert ("123.4" in text) == seconds
    assert ("seconds" in text) == seconds


def test_the_heading_says_what_the_corpus_numbers_are() -> None:
    """Word by word, however it is folded."""
    lines = told(every_law(), 200)
    heading = " ".join(" ".join(lines[1 : lines.index(next(each for each in lines if "──" in each))]).split())
    for word in ("stdlib-docs,", "wordllama:", "records", "divided", "examples"):
        assert word in heading


def test_an_error_is_told_from_a_violation() -> None:
    """A crash of the subject is no violation, in the table as in JUnit."""
    result = replace(violated(), error=True)
    assert any(" error " in each for each in told([result], 80))
    suite = ET.fromstring(junit([result], "x", RERUN, 1.0))
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1")


def test_skips_are_told_by_their_reason() -> None:
    """One line a reason, with all the laws it holds for, in order."""
    results = [skipped("1", "the subject lacks recall"), skipped("6", "no delete"), skipped("pending", "no delete")]
    assert printed(explanations(results, RERUN), 80) == [
        "skipped, the subject lacks recall: 1",
        "skipped, no delete: 6, pending",
    ]


def test_what_the_corpus_skips_is_told() -> None:
    """A law that is not for a corpus is skipped there with its reason, and not twice where it is skipped anyway."""
    made = CorpusResult("skipped", "its examples are made for it", 211, 0, 0.0)
    results = [replace(held("limit", "limit"), corpus=made), replace(skipped("repair", "no repair"), corpus=made)]
    assert printed(explanations(results, RERUN), 80) == [
        "skipped on the corpus, its examples are made for it: limit",
        "skipped, no repair: repair",
    ]


def test_a_command_to_copy_is_one_line() -> None:
    """However narrow the terminal, it is whole, quoted for a shell, and outside the frame."""
    commands = [each for each in printed(explanations([violated()], RERUN), 40) if each.startswith("again")]
    assert commands == ["again: overflow check --subject 'cmd:node x.js' --invariant 4 --corpus none"]


def test_steps_stand_below_their_label() -> None:
    """An entry of several lines is indented, a line each, as they are nested."""
    lines = printed(explanations([violated(steps=STEPS)], RERUN), 80)
    inside = [each[2:-1].rstrip() for each in lines if each.startswith("│")]
    assert inside[inside.index("steps:") :] == [
        "steps:",
        "  store 'a b c' → mem 1",
        "    meanwhile delete mem 1",
        "  settle",
    ]


def test_forty_steps_are_all_shown() -> None:
    """A history as long as one gets is not cut; one as long as a corpus is, and says so."""
    steps = "\n".join(f"store 'a text of some length, {number}' → mem {number}" for number in range(40))
    lines = printed(explanations([violated(steps=steps)], RERUN), 100)
    assert sum("store 'a text" in each for each in lines) == 40
    texts = "\n".join(f"mem {number}: {'x' * 5_000}" for number in range(211))
    lines = printed(explanations([violated(scenario=texts)], RERUN), 100)
    assert len(lines) < 80
    assert any("lines left out" in each for each in lines)
    assert any("characters left out" in each for each in lines)


def test_nothing_a_subject_says_draws_on_the_terminal() -> None:
    """Escape sequences are spelled out, in the frame and in the reasons."""
    results = [violated(text="\x1b[2Jgone"), skipped("1", "\x1b]0;title\x07")]
    text = "\n".join(printed(explanations(results, RERUN), 80))
    assert "\x1b" not in text
    assert "\\x1b[2Jgone" in text


def test_junit_says_what_the_terminal_does() -> None:
    """Reason, values, steps a line each, and the command that shows it again; on the corpus, with the corpus."""
    found = replace(
        violated(steps=STEPS),
        corpus=CorpusResult("violated", "a gap", 3, 2, 0.1, {"title": "a gap", "got": "\x00\ud800"}),
    )
    suite = ET.fromstring(junit([found, held("5", "deterministic"), skipped("1", "no recall")], "x", RERUN, 1.0))
    assert [suite.get(key) for key in ("tests", "failures", "errors", "skipped")] == ["3", "2", "0", "1"]
    generated, corpus = suite.iter("failure")
    assert generated.get("message") == "nodes leave a gap"
    assert (generated.text or "").splitlines() == [
        "nodes leave a gap",
        "demanded by section 5.4; told in full in docs/laws.md#4",
        "expected: 3",
        "got: 4",
        "steps:",
        "  store 'a b c' → mem 1",
        "    meanwhile delete mem 1",
        "  settle",
        "again: overflow check --subject 'cmd:node x.js' --invariant 4 --corpus none",
    ]
    assert corpus.get("message") == "on the corpus: a gap"
    assert (corpus.text or "").splitlines()[-2:] == [
        "got: \\x00\\ud800",
        "again: overflow check --subject 'cmd:node x.js' --invariant 4 --corpus 'my notes'",
    ]


def test_junit_is_read_a_line_an_element() -> None:
    """Each is indented under what it is in, and what a failure says is left as it is."""
    lines = junit([violated(steps=STEPS), skipped("1", "no recall")], "x", RERUN, 1.0).splitlines()
    elements = [found.group() for each in lines if (found := re.match(r" *</?test\w+| *<(failure|skipped)", each))]
    assert elements == [
        "<testsuite",
        "  <testcase",
        "    <failure",
        "  </testcase",
        "  <testcase",
        "    <skipped",
        "  </testcase",
        "</testsuite",
    ]
    assert "  store 'a b c' → mem 1" in lines


def test_a_crash_on_the_corpus_is_an_error_too() -> None:
    """In the table and in JUnit, as one on generated examples."""
    crashed = CorpusResult("violated", "the subject's store raised OSError", 3, 0, 0.1, {}, error=True)
    result = replace(held("4", "partition"), corpus=crashed)
    suite = ET.fromstring(junit([result], "x", RERUN, 1.0))
    assert [suite.get(key) for key in ("failures", "errors")] == ["0", "1"]
    assert any("error, 0 of 3" in each for each in told([result], 120))


def test_a_law_is_a_line_of_a_log() -> None:
    """What became of it, generated and on the corpus."""
    assert line(held("4", "partition")) == (
        "4 partition: holds, 271 of 300 divided; on the corpus holds, 92 of 211 divided"
    )
    assert line(skipped("1", "no recall")) == "1 a law: skipped"
    crashed = CorpusResult("violated", "the subject's store raised OSError", 3, 0, 0.1, error=True)
    assert line(replace(violated(), error=True, corpus=crashed)) == (
        "4 partition: error, 5 of 7 divided; on the corpus error, 0 of 3 divided"
    )


def test_a_run_of_skips_is_not_green() -> None:
    """Nothing was asked, so nothing holds."""
    assert str(summary([skipped("1", "no recall")], 1.0).style) == "red"
    assert str(summary([held("4", "partition"), skipped("1", "no recall")], 1.0).style) == "green"
    assert str(summary([violated()], 1.0).style) == "red"
    assert str(summary([held("5", "deterministic"), replace(violated(), error=True)], 1.0).style) == "red"


def test_the_last_line_counts_errors_apart_and_tells_the_time() -> None:
    """An error is no violation; one is singular; the corpus is told where something failed on it."""
    error, hold = replace(violated(), error=True), replace(held("5", "deterministic"), corpus=None)
    assert str(summary([hold, violated(), error, skipped("1", "x")], 4.26)) == (
        "1 holds, 1 violated, 1 error, 1 skipped, in 4.3 s"
    )
    assert str(summary([hold, error, error], 117.4)) == "1 holds, 0 violated, 2 errors, 0 skipped, in 1 min 57 s"
    crashed = CorpusResult("violated", "it raised", 3, 0, 0.1, {}, error=True)
    on_corpus = [replace(hold, corpus=crashed), replace(hold, corpus=replace(crashed, error=False))]
    assert str(summary(on_corpus, 59.96)) == (
        "0 holds, 1 violated (on the corpus), 1 error (on the corpus), 0 skipped, in 1 min 0 s"
    )


def test_the_last_line_counts_each_law_once() -> None:
    """By the worse of what was seen on generated examples and on the corpus; it says what only the corpus showed."""
    hold = held("5", "deterministic")
    fails = CorpusResult("violated", "a gap", 3, 2, 0.1)
    raises = replace(fails, error=True)
    both = [hold, replace(hold, corpus=fails), replace(violated(), corpus=fails)]
    assert str(summary(both, 1.0)) == "1 holds, 2 violated (1 on the corpus), 0 errors, 0 skipped, in 1.0 s"
    worse = [replace(violated(), corpus=raises), replace(violated(), error=True, corpus=fails)]
    assert str(summary(worse, 1.0)) == "0 holds, 2 violated (1 on the corpus), 0 errors, 0 skipped, in 1.0 s"
    assert str(summary([hold, replace(hold, corpus=raises)], 1.0).style) == "red"


def test_counterexamples_stand_below_what_was_skipped() -> None:
    """What a screen ends with is what was found."""
    lines = printed(explanations([violated(), skipped("1", "no recall")], RERUN), 80)
    assert lines[0] == "skipped, no recall: 1"
    assert lines[-2].startswith("again: ")


def test_json_has_the_command_that_shows_a_failure_again() -> None:
    """That of the box, for generated examples and for the corpus; none where there is nothing to see."""
    found = replace(violated(), corpus=CorpusResult("violated", "a gap", 3, 2, 0.1))
    told_again = data(found, RERUN)
    assert told_again["again"] == "overflow check --subject 'cmd:node x.js' --invariant 4 --corpus none"
    assert told_again["corpus"]["again"] == "overflow check --subject 'cmd:node x.js' --invariant 4 --corpus 'my notes'"
    holds = data(held("5", "deterministic"), RERUN)
    assert (holds["again"], holds["corpus"]["again"]) == (None, None)


def boxed(expected: object, got: object, **context: object) -> list[str]:
    """The inside of a box, of a violation as a law raises it."""
    found = described(Violation("6", "a title", expected, got, context))
    lines = printed(explanations([replace(violated(), counterexample=found)], RERUN), 300)
    return [each[2:-1].rstrip() for each in lines if each.startswith("│")]


def node(index: int, vector: bytes = b"\1" * 1024, model: str = "m") -> Node:
    return Node(index, 3 * index, 3 * index + 3, 1, 2, vector, model)


def test_vectors_are_told_by_their_number_of_bytes() -> None:
    """Nodes are a line each, and two vectors of the same length can be told apart."""
    lines = boxed([node(0), node(1)], [node(0), node(1, b"\2" * 1024)])
    text = "\n".join(lines)
    assert len(text) < 800
    assert "\\x01" not in text
    rows = [each for each in lines if each.startswith("  node ")]
    assert len(rows) == 4
    assert rows[0] == rows[2] != rows[1] != rows[3]
    assert all("1,024 bytes" in each for each in rows)
    assert rows[1].startswith("  node 1: 3 to 6, token_count 1, window 2, model 'm'")


def test_two_long_texts_are_shown_where_they_first_differ() -> None:
    """A little before it and after it; the place is that of the text, whatever is escaped in how it is written."""
    text = "line\n" * 200
    lines = boxed(repr(text), repr(text[:700] + "X" + text[701:]))
    assert max(map(len, lines)) < 200
    assert "they differ: at character 700 of the text, counted from 0" in lines
    (got,) = (each for each in lines if each.startswith("got: "))
    assert got.endswith("(1,000 characters)")
    assert r"line\nXine\nline" in got
    (cut,) = (each for each in boxed(repr(text), repr(text[:700])) if each.startswith("got: "))
    assert cut.endswith(r"line\n' (700 characters)")


def test_short_texts_are_whole() -> None:
    """As they are written."""
    assert boxed(repr("one\ntwo"), repr("one"))[2:4] == [r"expected: 'one\ntwo'", "got: 'one'"]


def test_two_long_lists_are_shown_where_they_first_differ() -> None:
    """Their lengths, and the items around the first that is not the same."""
    spans = [(10 * at, 10 * at + 10, 4) for at in range(60)]
    lines = boxed(spans, [*spans[:40], (400, 409, 4)])
    assert len(lines) < 25
    assert "they differ: in item 40, counted from 0" in lines
    assert [each.strip() for each in lines if "in all" in each] == ["(60 in all)", "(41 in all)"]
    assert "  (400, 410, 4)" in lines
    assert lines[lines.index("got:") :][-2] == "  (400, 409, 4)"


def test_a_list_in_place_of_none_is_told_as_it_is() -> None:
    """Nothing is there to differ in."""
    lines = boxed([], [node(at) for at in range(20)])
    assert lines[2:5] == ["expected: []", "got:", "  " + read(node(0))]
    assert not any("they differ" in each for each in lines)


def test_two_long_records_as_bytes_are_shown_where_they_first_differ() -> None:
    """And how long each is."""
    row = b"(1, 'some text', " + b"0" * 3_000 + b")"
    lines = boxed(row, row[:2_000] + b"#" + row[2_001:])
    (got,) = (each for each in lines if each.startswith("got: "))
    assert got.startswith("got: 3,018 bytes, first different at byte 2,000; from byte 1,960: b'000")
    assert len(got) < 220
    assert "000#000" in got
