"""What "text" means to every window: a string that can be written as UTF-8.

It refuses lone surrogates before anything is tokenized or sent, and never repairs a text. DESIGN.md, "CEmbedding 0.9.1
as observed": a server answers 500 to a lone surrogate.
"""

from collections.abc import Sequence

from overflow.errors import InputError


def require_unicode(texts: Sequence[str]) -> None:
    """Raise InputError when a text holds a lone surrogate, naming the text (from 0) and the position (code points)."""
    for index, text in enumerate(texts):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"text {index} is not Unicode: a lone surrogate U+{ord(text[error.start]):04X} at character "
                f"{error.start}; remove or replace it"
            ) from error
