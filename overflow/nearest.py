"""What a person may have meant who misspelt a name, as the end of an error's line. It never decides in their place."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean words? ` for the known name nearest to `name`; nothing when none is near."""
    near = get_close_matches(name.lower(), known, n=1)
    return f"did you mean {near[0]}? " if near else ""
