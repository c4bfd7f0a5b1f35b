"""The page of the power matrix: each mark says how a law stood to a mutant, and nothing needs a mouse or a network.

It is read as a document, by the standard library's parser. DESIGN.md, principle 4 and `overflow mutate`.
"""

from collections.abc import Collection, Sequence
from html.parser import HTMLParser

import pytest

from overflow.gate import report
from overflow.gate.verdict import LawResult, Outcome, Verdict

LAWS = {"1": "one", "2": "two", "3": "three"}


class Document(HTMLParser):
    """What a page shows: its words, the cells of each row of its tables, its ids and the targets of its links."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words = ""
        self.rows: list[list[str]] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self._hidden = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self._hidden = self._hidden or tag in ("style", "title")
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for name, value in attrs if name in ("href", "src") and value]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = self._hidden and tag not in ("style", "title")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.words += data
            if self.rows and self.rows[-1]:
                self.rows[-1][-1] += data

    def cells(self, name: str) -> list[str]:
        """The marks of the row `name`, one a law."""
        (row,) = [row for row in self.rows if row and row[0].split()[:1] == [name] and len(row) > len(LAWS)]
        return [cell.strip() for cell in row[1 : 1 + len(LAWS)]]


def verdict(
    name: str,
    expected: Collection[str],
    red: Collection[str],
    outcome: Outcome = "as_expected",
    asked: Collection[str] = tuple(LAWS),
) -> Verdict:
    noticed = {law: f"what {law} saw of {name}" for law in red}
    reason = None if outcome == "as_expected" else f"why {name} did not pass"
    breaks = "It <breaks> & so on."
    after = dict.fromkeys(noticed, 1)
    return Verdict(name, "source", breaks, frozenset(expected), noticed, after, frozenset(asked), outcome, reason, 1.0)


def page(*verdicts: Verdict, baseline: Sequence[LawResult] = (), red: Sequence[LawResult] = ()) -> str:
    return report.page("my <store>", LAWS, baseline, red, verdicts)


@pytest.mark.parametrize(
    ("broken", "marks"),
    [
        (verdict("a", {"1"}, {"1"}), ["■", "·", "·"]),
        (verdict("a", {"1", "2"}, {"1", "2"}), ["●", "●", "·"]),
        (verdict("a", (), ()), ["·", "·", "·"]),
        (verdict("a", {"1"}, {"1"}, asked={"1", "3"}), ["■", "", "·"]),
        (verdict("a", {"1"}, (), "survived"), ["○", "·", "·"]),
        # Law 1 alone went red, and yet it is not told as what only law 1 notices: law 2 had to.
        (verdict("a", {"1", "2"}, {"1"}, "wrong_red"), ["●", "○", "·"]),
        (verdict("a", {"1"}, {"2", "3"}, "wrong_red"), ["○", "✗", "✗"]),
        (verdict("a", {"3"}, (), "broken", asked=()), ["", "", "○"]),
        # Around a foreign subject one of a saboteur's laws is enough: the other did not fail to notice.
        (verdict("a", {"1", "2"}, {"2"}), ["·", "■", "·"]),
    ],
)
def test_each_law_has_the_mark_of_how_it_stood(broken: Verdict, marks: list[str]) -> None:
    """Alone, beside others, green, not asked, missing and uncalled-for are told apart by their shape."""
    assert Document(page(broken)).cells("a") == marks


def test_what_each_law_noticed_is_there_to_read_without_a_mouse() -> None:
    """A tooltip shows itself to a mouse alone; whatever one says is words on the page too."""
    words = Document(page(verdict("a", {"1", "2"}, {"1", "2"}))).words
    for said in ("what 1 saw of a", "what 2 saw of a", *LAWS.values()):
        assert said in words


def test_what_did_not_end_as_expected_is_told_before_the_matrix() -> None:
    """A failure among a hundred rows is found without looking for it."""
    told = Document(page(verdict("fine", {"1"}, {"1"}), verdict("bad", {"2"}, (), "survived")))
    before, _, _ = told.words.partition("broken by")
    assert "1 of 2" in before
    assert "bad survived: why bad did not pass" in before
    assert "fine" not in before


def test_laws_that_are_red_before_anything_is_broken_are_no_success() -> None:
    """Principle 4: nothing was shown, and the page says which law kept it from being shown."""
    baseline = [
        LawResult("1", "green", None, 3, 0.1),
        LawResult("2", "red", "a node is stale", 3, 0.1),
        LawResult("3", "skipped", "no such notion", 3, 0.1),
    ]
    shown = page(baseline=baseline, red=baseline[1:2])
    words = Document(shown).words
    assert "The laws are red on the subject unbroken, so nothing was broken." in words
    assert "2: a node is stale" in words
    assert "no such notion" not in words
    assert 'class="pass"' not in shown


def test_a_law_that_is_red_unbroken_is_told_beside_what_was_broken() -> None:
    """A fault so rare that only the breakings' many examples came to it: what they noticed may be the subject's own."""
    words = Document(page(verdict("a", {"1"}, {"1"}), red=[LawResult("1", "red", "its own fault", 40, 0.1)])).words
    assert "The laws are red on the subject unbroken." in words
    assert "1: its own fault" in words
    assert "broken by" in words


def test_a_page_holds_what_it_links_to() -> None:
    """A law's column leads to its name, and nothing is loaded from elsewhere: a link names a place on the page."""
    shown = page(verdict("a", {"1"}, {"1"}))
    told = Document(shown)
    assert {f"#law-{law}" for law in LAWS} <= set(told.links)
    assert set(told.links) <= {f"#{each}" for each in told.ids}
    assert len(set(told.ids)) == len(told.ids)
    assert "http" not in shown
    assert "url(" not in shown
    assert "<script" not in shown


def test_what_a_page_shows_is_text() -> None:
    """No markup of a mutant's, a law's or a subject's words is read as the page's own."""
    shown = page(verdict("a", {"1"}, {"1"}))
    assert "It &lt;breaks&gt; &amp; so on." in shown
    assert "my &lt;store&gt;" in shown
