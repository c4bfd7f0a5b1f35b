"""A map of characters agrees with `str.translate`, character by character, and knows the way back to the text."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overflow.tokens.charmap import CharMap, as_text, code_points

CHARACTERS = "ab日\U0001f600\0\U0010ffff"
MAPS = st.dictionaries(st.sampled_from(CHARACTERS), st.text("xy日", max_size=20))


@settings(max_examples=40)
@given(MAPS, st.text(CHARACTERS + "c ", max_size=30))
def test_the_result_is_that_of_translate_with_its_sources(replacements: dict[str, str], text: str) -> None:
    """Each character becomes its replacement, or stays; behind each code point stands the index of its character."""
    table = str.maketrans(replacements)
    result = CharMap(replacements).apply(text)
    assert as_text(result.points) == text.translate(table)
    assert result.sources.tolist() == [i for i, c in enumerate(text) for _ in c.translate(table)]


@pytest.mark.parametrize("text", ["plain", "ß"])
def test_code_points_are_32_bits(text: str) -> None:
    """The type that is promised: hashes of neighbours wrap around in it."""
    assert code_points(text).dtype == np.uint32
    assert CharMap({"ß": "ss"}).apply(text).points.dtype == np.uint32


def test_every_character_has_a_place() -> None:
    """All of Unicode that can be written, kept as it is where nothing replaces it."""
    text = "".join(map(chr, [*range(0xD800), *range(0xE000, sys.maxunicode + 1)]))
    assert code_points(text).tolist() == list(map(ord, text))
    assert as_text(CharMap({}).apply(text).points) == text


def test_a_lone_surrogate_is_refused() -> None:
    """It cannot be written as UTF-32."""
    with pytest.raises(UnicodeEncodeError):
        CharMap({}).apply("a\ud800")
