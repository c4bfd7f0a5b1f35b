"""The pages for people can be followed: what they link to is there, and what they tell a reader to type is a command.

It runs none of the commands, and judges no wording. README.md, DESIGN.md and docs/.
"""

import re
import shlex
from pathlib import Path

import click
import pytest

from overflow.cli.app import overflow

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "DESIGN.md", ROOT / "bench" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings: lower case, spaces as hyphens, without punctuation."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def typed(page: Path) -> list[str]:
    """The lines that a reader types: indented, and beginning with the command."""
    return re.findall(r"^    (overflow .*)$", page.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_links_to_is_there(page: Path) -> None:
    """The file, and in a page the heading."""
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_says_to_type_is_a_command(page: Path) -> None:
    """Each command is there, and takes the options and arguments that stand behind it."""
    for line in typed(page):
        name, *arguments = shlex.split(line, comments=True)[1:]
        command = overflow.get_command(click.Context(overflow), name)
        assert command is not None, line
        assert command.make_context(name, arguments).params, line


def test_pages_have_commands_to_type() -> None:
    """The pattern finds them: those of the README alone are several."""
    assert len(typed(ROOT / "README.md")) >= 3
