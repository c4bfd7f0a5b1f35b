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


@pytest.mark.parametrize("prompt", ["", "passage: "])
def test_an_empty_text_counts_the_prompt_and_the_special_tokens(
    server: ScriptedServer, wordpiece_file: Path, prompt: str
) -> None:
    """The server refuses it, so it is not sent; what it counts is what stands around every text."""
    server.script.hook = StandIn(wordpiece_file, prompt)
    (alone,) = TokenizerFileWindow(wordpiece_file, WINDOW).measure([prompt])
    assert alone is not None
    with TeiWindow(server.url) as window:
        assert window.measure([""]) == [TokenReport(alone.count, WINDOW, False, 0)]


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
        with pytest.raises(InputError) as caught:
            window.measure(["fine", "x" * (250 * WINDOW + 1)])
        assert str(caught.value) == (
            f"text 1 of 3001 characters is longer than tei:{server.url} takes (3000); send a part of it"
        )
        with pytest.raises(InputError, match="surrogate"):
            window.measure(["\ud800"])


NO_SIZE = "/info answered no {}; is it a server of text-embeddings-inference?"
NO_OBJECTS = "/tokenize answered tokens that are not a list of objects"
NO_TOKEN = "/tokenize found no token in the text 'a'"
NO_STOP = "/tokenize answered a token without a position where it stops"


@pytest.mark.parametrize(
    ("path", "content", "says"),
    [
        ("/info", {}, NO_SIZE.format("max_input_length")),
        ("/info", [], "/info answered JSON that is not an object"),
        ("/info", {"max_input_length": 0, "max_client_batch_size": 4}, NO_SIZE.format("max_input_length")),
        ("/info", {"max_input_length": "12", "max_client_batch_size": 4}, NO_SIZE.format("max_input_length")),
        ("/info", {"max_input_length": 12}, NO_SIZE.format("max_client_batch_size")),
        ("/info", {"max_input_length": 12, "max_client_batch_size": True}, NO_SIZE.format("max_client_batch_size")),
        ("/tokenize", {}, "/tokenize answered JSON that is not a list"),
        ("/tokenize", [], "/tokenize answered 0 lists of tokens for 1 texts"),
        ("/tokenize", [[], []], "/tokenize answered 2 lists of tokens for 1 texts"),
        ("/tokenize", [3], NO_OBJECTS),
        ("/tokenize", [[3]], NO_OBJECTS),
        ("/tokenize", [[{"special": False, "stop": 1}, 3]], NO_OBJECTS),
        ("/tokenize", [{"special": False, "stop": 1}], NO_OBJECTS),
        ("/tokenize", [[]], NO_TOKEN),
        ("/tokenize", [[{"special": True, "stop": None}]], NO_TOKEN),
        ("/tokenize", [[{"special": True, "stop": 1}]], NO_TOKEN),
        ("/tokenize", [[{"special": False, "stop": 0}]], NO_TOKEN),
        ("/tokenize", [[{"special": False, "stop": None}]], NO_STOP),
        ("/tokenize", [[{"special": None, "stop": None}]], NO_STOP),
        ("/tokenize", [[{"stop": 1}, {}]], NO_STOP),
        ("/tokenize", [[{"special": False, "stop": -1}]], NO_STOP),
        ("/tokenize", [[{"special": False, "stop": "1"}]], NO_STOP),
        ("/tokenize", [[{"special": False, "stop": 1.5}]], NO_STOP),
        ("/tokenize", [[{"special": False, "stop": True}]], NO_STOP),
    ],
)
def test_an_answer_of_another_shape_is_one_line(
    server: ScriptedServer, wordpiece_file: Path, path: str, content: object, says: str
) -> None:
    """The address that answered, and what is wrong with the answer."""
    stand_in = StandIn(wordpiece_file)
    server.script.hook = lambda request: reply(content) if request.path == path else stand_in(request)
    with TeiWindow(server.url) as window, pytest.raises(UnavailableError) as caught:
        window.measure(["a"])
    assert str(caught.value) == server.url + says


def token(stop: int | None, special: bool = False) -> dict[str, object]:
    return {"special": special, "stop": stop}


Tokens = list[dict[str, object]]


class Written:
    """A hook that serves a window, the tokens of the probe, and those of every other text."""

    def __init__(self, window: int, probe: Tokens, tokens: Tokens) -> None:
        self.window = window
        self.probe = probe
        self.tokens = tokens

    def __call__(self, request: Request) -> Reply:
        if request.path == "/info":
            return reply({"max_input_length": self.window, "max_client_batch_size": 1})
        return reply([self.probe if json.loads(request.body)["inputs"] == ["a"] else self.tokens])


#: The special tokens before and after a text; some servers give them a position, which says nothing.
FIRST, LAST = token(None, special=True), token(None, special=True)
PLACED = token(0, special=True)


@pytest.mark.parametrize(
    ("text", "tokens", "closes"),
    [
        ("ab", [FIRST, token(1), token(2), LAST], [0, 0, 1, 2]),
        ("ab", [PLACED, token(1), token(2), PLACED], [0, 0, 1, 2]),
        ("ab ", [FIRST, token(1), token(2), LAST], [0, 0, 1, 3]),
        ("ab", [token(0), token(1), token(2)], [0, 1, 2]),
        ("日a", [token(1), token(2), token(3), token(4)], [0, 0, 1, 2]),
    ],
)
def test_a_window_closes_at_the_end_of_its_last_token(
    server: ScriptedServer, text: str, tokens: Tokens, closes: list[int]
) -> None:
    """From a window of 1 to one that the text fills: special tokens take room, and no character is torn apart."""
    probe = [each for each in tokens if each["special"]] + [token(1)]
    for window, close in enumerate(closes, 1):
        server.script.hook = Written(window, probe, tokens)
        with TeiWindow(server.url) as measuring:
            expected = TokenReport(len(tokens), window, window < len(tokens), close)
            assert measuring.measure([text]) == [expected]


def test_a_window_that_no_store_can_hold_is_refused(server: ScriptedServer) -> None:
    """What follows from a server's numbers is checked as any report from outside is."""
    server.script.hook = Written(2**63, [token(1)], [token(1)])
    with TeiWindow(server.url) as window, pytest.raises(UnavailableError) as caught:
        window.measure(["a"])
    fault = "answered a token report whose window is 9223372036854775808"
    assert str(caught.value) == f"{server.url}/tokenize {fault}"


@pytest.mark.parametrize("busy", ["/info", "/tokenize"])
def test_a_busy_server_is_asked_again(server: ScriptedServer, wordpiece_file: Path, busy: str) -> None:
    """A second and a third time: to be asked does it no harm."""
    stand_in, refusals = StandIn(wordpiece_file), [Reply(503), Reply(503)]
    server.script.hook = lambda request: refusals.pop() if request.path == busy and refusals else stand_in(request)
    with TeiWindow(server.url, retry_delays=(0.0, 0.0)) as window:
        assert window.measure(["a"]) == TokenizerFileWindow(wordpiece_file, WINDOW).measure(["a"])
    assert refusals == []


@pytest.mark.parametrize("refused", ["/info", "/tokenize"])
def test_a_request_that_is_refused_names_its_address(
    server: ScriptedServer, wordpiece_file: Path, refused: str
) -> None:
    """The second as the first."""
    stand_in = StandIn(wordpiece_file)
    server.script.hook = lambda request: Reply(500) if request.path == refused else stand_in(request)
    with TeiWindow(server.url) as window, pytest.raises(UnavailableError) as caught:
        window.measure(["a"])
    assert str(caught.value) == f"{server.url}{refused} answered 500"


@pytest.mark.parametrize(("max_batch", "requests"), [(1, [1] * 205), (100, [100, 100, 5]), (512, [100, 100, 5])])
def test_requests_are_as_large_as_the_server_and_the_contract_let_them(
    server: ScriptedServer, wordpiece_file: Path, max_batch: int, requests: list[int]
) -> None:
    """At most `max_client_batch_size` texts, and never more than 100; the probe is a request of its own."""
    server.script.hook = StandIn(wordpiece_file, max_batch=max_batch)
    server.reset()
    with TeiWindow(server.url) as window:
        window.measure(["a"] * 205)
    asked = [json.loads(request.body)["inputs"] for request in server.requests() if request.path == "/tokenize"]
    assert [len(texts) for texts in asked] == [1, *requests]
