"""docs/laws.md names every law there is, with the capabilities and claims it needs, and no other."""

import re
from pathlib import Path

from overflow.contract.laws import all_laws

PAGE = Path(__file__).parent.parent.parent / "docs" / "laws.md"


def test_page_names_every_law_and_its_needs() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| .* \| ([a-z_ ]+) \|$", PAGE.read_text(), re.MULTILINE)
    written = {law_id: frozenset(needs.split()) for law_id, needs in rows}
    assert written == {law.id: law.requires for law in all_laws()}
