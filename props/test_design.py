"""DESIGN.md has what the code cites of it, and is true of what can be read off the code: its folders, the way its
imports point, the protocol's words and the commands.

It judges no wording. DESIGN.md, "Layout", "Subject protocol" and "Command line".
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from overflow.cli.app import COMMANDS, overflow
from overflow.contract.subject import CAPABILITIES, CLAIMS

ROOT = Path(__file__).parent.parent
DESIGN = (ROOT / "DESIGN.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^## (.+)$", DESIGN, re.MULTILINE)
FOLDERS = ("overflow", "props", "bench", "mutation", "docs", ".ci")
KINDS = {".py", ".md", ".sql", ".toml", ".json", ".html", ""}

_COMMENT_MARK = re.compile(r"\s*\n[ \t]*(?:#:?|--)?[ \t]*")
#: What follows the name: headings in quotes, numbers of principles; between them `and`, commas, words in parentheses.
_CITED = re.compile(r'DESIGN\.md, ((?:(?:"[^"]+"|principles? \d(?: and \d)*| \([^)]*\)| and |, |; )+))')
_ISSUE = re.compile(r'\bissues?\s+(?:#?\d|")', re.IGNORECASE)


def section(heading: str) -> str:
    return DESIGN.partition(f"\n## {heading}")[2].partition("\n## ")[0]


def flat(text: str) -> str:
    """The text on one line, without what a comment begins its lines with."""
    return _COMMENT_MARK.sub(" ", text)


def sources() -> Iterator[tuple[str, str]]:
    """Every text of the project, by its place in the checkout."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    for path in [*files, *ROOT.glob("*.md"), ROOT / "Makefile", ROOT / "pyproject.toml"]:
        if path.is_file() and path.suffix in KINDS:
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def cited(text: str) -> tuple[list[str], list[str]]:
    """The headings and the principles that a text cites."""
    citations = _CITED.findall(flat(text))
    headings = [name for each in citations for name in re.findall(r'"([^"]+)"', each)]
    principles = [number for each in citations for number in re.findall(r"\d", re.sub(r'"[^"]+"|\([^)]*\)', "", each))]
    return headings, principles


def test_citations_are_read_however_they_are_written() -> None:
    """Over the end of a line, in a comment, several at once; words after them are no citation."""
    assert cited('of it. DESIGN.md, "Subject\n# protocol" and principle 3.') == (["Subject protocol"], ["3"])
    assert cited("DESIGN.md, principles 3 and 4.") == ([], ["3", "4"])
    assert cited('DESIGN.md, principle 4; "Layout" (`mutation/`), "Words": 3 of them') == (["Layout", "Words"], ["4"])


def test_what_is_cited_is_there() -> None:
    """Each cited heading is one of DESIGN.md's, or the beginning of one; each principle has its number there."""
    numbers = set(re.findall(r"^(\d)\. \*\*", section("Principles"), re.MULTILINE))
    found = 0
    for place, text in sources():
        if place == "props/test_design.py":
            continue
        headings, principles = cited(text)
        found += len(headings) + len(principles)
        assert [name for name in headings if not any(each.startswith(name) for each in HEADINGS)] == [], place
        assert set(principles) <= numbers, place
    assert found > 80, "a pattern that finds nothing proves nothing"


def test_nothing_speaks_of_a_numbered_issue() -> None:
    """A reader of the sources has no tracker to look into: what is demanded stands in DESIGN.md."""
    assert [place for place, text in sources() if _ISSUE.search(flat(text))] == []
    assert _ISSUE.search(flat("as in Issue\n    2 says"))


def test_the_layout_is_what_there_is() -> None:
    """Every folder that DESIGN.md draws is there, and every package and every folder with code is drawn."""
    drawn = re.findall(r"^( *)([\w.]+)/ ", section("Layout"), re.MULTILINE)
    packages = {path.parent.name for path in (ROOT / "overflow").glob("*/__init__.py")}
    assert {name for indent, name in drawn if indent} == packages
    folders = {path.name for path in ROOT.iterdir() if path.name in FOLDERS and path.name != ".ci"}
    assert {name for indent, name in drawn if not indent} == folders


def test_dependencies_point_one_way() -> None:
    """A package imports those further right in the line of "Layout", and none beside or left of it."""
    (line,) = re.findall(r"`(cli → .*)`", section("Layout"))
    layers = {package: place for place, layer in enumerate(line.split(" → ")) for package in layer.split(", ")}
    assert layers.keys() == {path.parent.name for path in (ROOT / "overflow").glob("*/__init__.py")}
    wrong = []
    for path in sorted((ROOT / "overflow").glob("*/**/*.py")):
        package = path.relative_to(ROOT / "overflow").parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            for target in {name.split(".")[1] for name in names if name.startswith("overflow.")} & layers.keys():
                if target != package and layers[target] <= layers[package]:
                    wrong.append(f"{path.relative_to(ROOT)} imports {target}")
    assert wrong == []


def test_the_protocol_has_the_words_of_the_code() -> None:
    """Each capability in the list of methods, and each claim; and no method more."""
    listed = section("Subject protocol").split("```")[1]
    words = [word for line in listed.splitlines()[2:] for word in line.partition("   ")[0].split()]
    assert sorted(words) == sorted(CAPABILITIES)
    assert set(re.findall(r"`(\w+)` \(", section("Subject protocol"))) == set(CLAIMS)


def built_commands() -> dict[str, str]:
    """What DESIGN.md shows of each command that is built, by its name."""
    shown = section("Command line").split("```")[1].partition("\nSPEC")[0]
    parts = re.split(r"^overflow (\w+)", shown, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_command_is_shown_as_built_or_planned() -> None:
    """What the command line has is shown, and what is planned is not there yet."""
    assert tuple(built_commands()) == COMMANDS
    planned = set(re.findall(r"`overflow (\w+)`", section("Planned")))
    assert planned
    assert planned.isdisjoint(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_options_are_those_of_the_design(name: str) -> None:
    """Each option in DESIGN.md, `--json` of all of them in the sentence before; and none that is not there."""
    command = overflow.get_command(click.Context(overflow), name)
    assert command is not None
    options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    assert set(re.findall(r"--[a-z]+", built_commands()[name])) | {"--json"} == options
