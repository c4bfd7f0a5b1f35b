"""A SPEC of the command line as the embedding model it names, for what needs vectors and not only counts.

DESIGN.md, "Command line"; a tokenizer without a model (hf:, tei:, words@N) is refused with the ones that have one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from overflow.embedding.embedder import Embedder
from overflow.errors import InputError
from overflow.tokens.report import TokenWindow
from overflow.tokens.spec import opened_window, parse_window
from overflow.tokens.wordllama import WordllamaWindow


class Model(Embedder, Protocol):
    """An Embedder that hands out its window."""

    @property
    def window(self) -> TokenWindow: ...


@contextmanager
def opened_model(spec: str) -> Iterator[Model]:
    """The model of `spec`, closed at the end when there is something to close; raises as `parse_model` does."""
    model = parse_model(spec)
    try:
        yield model
    finally:
        close = getattr(model, "close", None)
        if close is not None:
            close()


def parse_model(spec: str) -> Model:
    """The model that `spec` names: `e5`, `wordllama`, `wordllama@N`, or the address of a CEmbedding server.

    One behind a server has a `close`. Raises InputError for any other spec.
    """
    if spec.startswith(("http://", "https://")):
        from overflow.embedding.http import EmbeddingClient

        return EmbeddingClient(spec)
    kind, at, _ = spec.partition("@")
    if kind == "e5" and not at:
        from overflow.embedding.e5 import E5Embedder

        return E5Embedder()
    if kind == "wordllama":
        from overflow.embedding.wordllama import WordllamaEmbedder

        window = parse_window(spec)
        assert isinstance(window, WordllamaWindow)
        return WordllamaEmbedder(window.window)
    with opened_window(spec):  # says what is wrong with a spec that is none
        raise InputError(
            f"{spec} counts tokens and embeds nothing; use e5, wordllama, wordllama@N or an embedding server's http://…"
        )
