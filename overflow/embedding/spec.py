"""A SPEC of the command line as the embedding model it names, for what needs vectors and not only counts.

DESIGN.md, "Command line"; a tokenizer without a model (hf:, tei:, words@N) is refused with the ones that have one.
"""

from typing import Protocol

from overflow.embedding.embedder import Embedder
from overflow.errors import InputError
from overflow.tokens.report import TokenWindow
from overflow.tokens.spec import parse_window
from overflow.tokens.wordllama import WordllamaWindow


class Model(Embedder, Protocol):
    """An Embedder that hands out its window."""

    @property
    def window(self) -> TokenWindow: ...


def parse_model(spec: str) -> Model:
    """The bundled model that `spec` names: `e5`, `wordllama` or `wordllama@N`.

    Raises InputError for any other.
    """
    kind, at, _ = spec.partition("@")
    if kind == "e5" and not at:
        from overflow.embedding.e5 import E5Embedder

        return E5Embedder()
    if kind == "wordllama":
        from overflow.embedding.wordllama import WordllamaEmbedder

        window = parse_window(spec)
        assert isinstance(window, WordllamaWindow)
        return WordllamaEmbedder(window.window)
    parse_window(spec)  # says what is wrong with a spec that is none
    raise InputError(f"{spec} counts tokens and embeds nothing; use e5, wordllama or wordllama@N")
