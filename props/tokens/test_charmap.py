"""A map of characters agrees with `str.translate`, character by character, and knows the way back to the text."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overflow.tokens.charmap import CharMap, as_text, code_points

#: Each length there is: none, one, several; the first code point of all, and the last.
REPLACEMENTS = {"\0": "", "a": "b", "ß": "ss", "\ufdfa": "صلى الله عليه وسلم", "\U0010ffff": "end"}
CHARMAP = CharMap(REPLACEMENTS)
TEXTS = st.text(st.sampled_from([*REPLACEMENTS, "b", "日", "\U0010fffe"]) | st.characters(codec="utf-8"), max_size=30)


@given(TEXTS)
def test_the_result_is_that_of_translate_with_its_sources(text: str) -> None:
    """Each character becomes its replacement, or stays; behind each code point stands the index of its character."""
    table = str.maketrans(REPLACEMENTS)
    result = CHARMAP.apply(text)
    assert as_text(result.points) == text.translate(table)
    assert result.sources.tolist() == [i for i, c in enumerate(text) for _ in c.translate(table)]


@pytest.mark.parametrize("text", ["plain", "ß", "\U0010ffff"])
def test_code_points_are_32_bits(text: str) -> None:
    """The type that is promised: hashes of neighbours wrap around in it."""
    assert code_points(text).dtype == np.uint32
    assert CHARMAP.apply(text).points.dtype == np.uint32


def test_every_character_has_a_place() -> None:
    """All of Unicode that can be written, kept as it is where nothing replaces it."""
    text = "".join(map(chr, [*range(0xD800), *range(0xE000, sys.maxunicode + 1)]))
    assert code_points(text).tolist() == list(map(ord, text))
    assert as_text(CharMap({}).apply(text).points) == text


def test_a_lone_surrogate_is_refused() -> None:
    """It cannot be written as UTF-32."""
    with pytest.raises(UnicodeEncodeError):
        CHARMAP.apply("a\ud800")
