"""A SPEC as a model: the bundled ones, a server's, and what has a tokenizer and no model."""

from collections.abc import Iterator

import numpy as np
import pytest

from overflow.embedding.script import Script
from overflow.embedding.server import ScriptedServer
from overflow.embedding.spec import opened_model
from overflow.embedding.wordllama import wordllama_vectors
from overflow.errors import InputError
from overflow.tokens.client import BehindServer
from overflow.tokens.synthetic import SyntheticWindow

LONG = "one two three four five six"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(Script(SyntheticWindow("words", 4), wordllama_vectors, identity="served-1")) as server:
        yield server


def test_an_address_is_the_model_behind_it(server: ScriptedServer) -> None:
    """Identity, vectors and reports are the server's, and its window measures as the server counts."""
    with opened_model(server.url) as model:
        embedded = model.embed([LONG])
        assert model.identity() == "served-1"
        assert np.allclose(embedded.vectors, wordllama_vectors(["one two three four"]), atol=1e-6)
        assert embedded.reports == model.window.measure([LONG]) == SyntheticWindow("words", 4).measure([LONG])
        assert (model.window.name, model.window.prefix_safe) == (server.url, True)


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The class of each client that was closed."""
    names: list[str] = []
    close = BehindServer.close

    def noted(client: BehindServer) -> None:
        names.append(type(client).__name__)
        close(client)

    monkeypatch.setattr(BehindServer, "close", noted)
    return names


def test_a_model_behind_a_server_is_closed_by_who_opened_it(server: ScriptedServer, closed: list[str]) -> None:
    """At the end of the block, and not before."""
    with opened_model(server.url) as model:
        model.embed([LONG])
        assert closed == []
    assert closed == ["EmbeddingClient"]


def test_a_window_opened_only_to_be_refused_is_closed(closed: list[str]) -> None:
    """A tokenizer behind a server has a client of its own, and no model."""
    with pytest.raises(InputError), opened_model("tei:http://127.0.0.1:9"):
        pass
    assert closed == ["TeiWindow"]


@pytest.mark.parametrize("spec", ["words@40", "tei:http://127.0.0.1:9"])
def test_a_tokenizer_without_a_model_is_refused(spec: str) -> None:
    """It is named, with what embeds."""
    refused = f"{spec} counts tokens and embeds nothing; use e5, wordllama, wordllama@N or an embedding server's http"
    with pytest.raises(InputError, match=refused), opened_model(spec):
        pass


def test_what_names_nothing_is_refused() -> None:
    """As a window is: with examples."""
    with pytest.raises(InputError, match="names no window; did you mean"), opened_model("wordlama"):
        pass
