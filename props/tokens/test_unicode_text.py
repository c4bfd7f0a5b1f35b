"""A text is a string that can be written as UTF-8, and what is none is told before anything is done with it."""

import pytest

from overflow.errors import InputError
from overflow.tokens.unicode_text import require_unicode


def test_every_text_is_taken_as_it_is() -> None:
    """None at all, an empty one, one with NUL, with characters that name nothing, and the last there is."""
    require_unicode([])
    require_unicode(["", "a\0", "\ufffe", "\U0010ffff", "\ud7ff\ue000"])


@pytest.mark.parametrize(
    ("texts", "fault"),
    [
        (["\ud800"], "text 0 is not Unicode: a lone surrogate U+D800 at character 0"),
        (["ab", "a日\udfff\ud800"], "text 1 is not Unicode: a lone surrogate U+DFFF at character 2"),
        (["\U0001f600\udc00", "\ud800"], "text 0 is not Unicode: a lone surrogate U+DC00 at character 1"),
    ],
)
def test_a_lone_surrogate_is_told_by_text_and_position(texts: list[str], fault: str) -> None:
    """The first of them: which text, counted from 0, which code point, where, and what to do."""
    with pytest.raises(InputError) as caught:
        require_unicode(texts)
    assert str(caught.value) == f"{fault}; remove or replace it"
