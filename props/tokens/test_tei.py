"""text-embeddings-inference: its `/tokenize` gives the same reports as its tokenizer file gives here.

The stand-in answers as the project's sources do: byte offsets, null for special tokens, a default prompt put first, no
empty text, at most `max_client_batch_size` texts.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from overflow.embedding.script import Reply, Request, Script
from overflow.embedding.server import ScriptedServer
from overflow.embedding.wordllama import wordllama_vectors
from overflow.errors import InputError, UnavailableError
from overflow.tokens.report import TokenReport
from overflow.tokens.tei import TeiWindow
from overflow.tokens.tokenizer_file import TokenizerFileWindow

WINDOW = 12
TEXTS = st.text(st.sampled_from("the fox é日😀\u0301\n.,\0") | st.characters(codec="utf-8"), max_size=60)


class StandIn:
    """A hook that serves /info and /tokenize over a tokenizer file."""

    def __init__(self, path: Path, prompt: str = "", max_batch: int = 4) -> None:
        self.tokenizer = Tokenizer.from_file(str(path))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.prompt = prompt
        self.max_batch = max_batch

    def __call__(self, request: Request) -> Reply:
        if request.path == "/info":
            return reply({"model_id": "a", "max_input_length": WINDOW, "max_client_batch_size": self.max_batch})
        inputs = json.loads(request.body)["inputs"]
        if len(inputs) > self.max_batch or not all(inputs):
            return Reply(413, b'{"error": "Batch size error", "error_type": "validation"}')
        return reply([self.tokens(self.prompt + text) for text in inputs])

    def tokens(self, text: str) -> list[dict[str, object]]:
        encoding = self.tokenizer.encode(text)
        found: list[dict[str, object]] = []
        pairs = zip(encoding.ids, encoding.offsets, encoding.special_tokens_mask, strict=True)
        for number, (start, stop), special in pairs:
            first, last = (None, None) if special else (len(text[:start].encode()), len(text[:stop].encode()))
            found.append({"id": number, "text": "", "special": bool(special), "start": first, "stop": last})
        return found


def reply(content: object) -> Reply:
    return Reply(200, json.dumps(content).encode())


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(Script(None, wordllama_vectors)) as running:
        yield running


@given(texts=st.lists(TEXTS, max_size=9))
def test_reports_are_those_of_the_servers_tokenizer_file(
    server: ScriptedServer, wordpiece_file: Path, texts: list[str]
) -> None:
    """Byte offsets become character offsets, special tokens count, an empty text is not sent, batches stay small."""
    server.script.hook = StandIn(wordpiece_file)
    with TeiWindow(server.url) as window:
        assert window.measure(texts) == TokenizerFileWindow(wordpiece_file, WINDOW).measure(texts)


@given(text=TEXTS.filter(bool))
def test_a_default_prompt_counts_and_shifts_nothing(server: ScriptedServer, wordpiece_file: Path, text: str) -> None:
    """With a prompt of the server: the count of prompt and text together, and the close within the text."""
    prompt = "é passage: "
    server.script.hook = StandIn(wordpiece_file, prompt)
    (whole,) = TokenizerFileWindow(wordpiece_file, WINDOW).measure([prompt + text])
    assert whole is not None
    end = max(whole.window_end_char - len(prompt), 0)
    with TeiWindow(server.url) as window:
        assert window.measure([text]) == [TokenReport(whole.count, WINDOW, whole.truncated, end)]


def test_the_server_is_asked_for_its_window_once(server: ScriptedServer, wordpiece_file: Path) -> None:
    """/info and one probe come before the first texts, and not again."""
    server.script.hook = StandIn(wordpiece_file)
    server.reset()
    with TeiWindow(server.url) as window:
        window.measure(["a"] * 9)
        window.measure(["b"])
    assert server.counts()["/info"].requests == 1
    assert server.counts()["/tokenize"].requests == 1 + 3 + 1


def test_a_text_longer_than_the_server_takes_is_refused_here(server: ScriptedServer, wordpiece_file: Path) -> None:
    """250 characters a token of the window are its limit; the error says which text, and how much is taken."""
    server.script.hook = StandIn(wordpiece_file)
    with TeiWindow(server.url) as window:
        window.measure(["x" * 250 * WINDOW])
        with pytest.raises(InputError, match=r"text 1 of 3001 characters .*\(3000\)"):
            window.measure(["fine", "x" * (250 * WINDOW + 1)])
        with pytest.raises(InputError, match="surrogate"):
            window.measure(["\ud800"])


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/info", {}),
        ("/info", []),
        ("/info", {"max_input_length": 0, "max_client_batch_size": 4}),
        ("/info", {"max_input_length": 12, "max_client_batch_size": True}),
        ("/tokenize", {}),
        ("/tokenize", []),
        ("/tokenize", [[], []]),
        ("/tokenize", [3]),
        ("/tokenize", [[3]]),
        ("/tokenize", [[]]),
        ("/tokenize", [[{"special": True, "stop": None}]]),
        ("/tokenize", [[{"special": False, "stop": None}]]),
        ("/tokenize", [[{"special": False, "stop": -1}]]),
        ("/tokenize", [[{"special": False, "stop": "1"}]]),
    ],
)
def test_garbage_names_the_address(server: ScriptedServer, wordpiece_file: Path, path: str, content: object) -> None:
    """An answer of another shape is UnavailableError of one line."""
    stand_in = StandIn(wordpiece_file)
    server.script.hook = lambda request: reply(content) if request.path == path else stand_in(request)
    with TeiWindow(server.url) as window, pytest.raises(UnavailableError) as caught:
        window.measure(["a"])
    assert f"{server.url}{path}" in str(caught.value)
    assert str(caught.value).isprintable()
