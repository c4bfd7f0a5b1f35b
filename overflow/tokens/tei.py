"""A server of text-embeddings-inference as a TokenWindow: its own tokenizer, by `POST /tokenize` and `GET /info`.

What its sources say, and this module relies on: `start` and `stop` are offsets in bytes of UTF-8, null for special
tokens; a default prompt is put before the text and the offsets count it; an empty text, and one of more than 250
characters a token of the window, is refused (413); a request carries at most `max_client_batch_size` texts.
huggingface/text-embeddings-inference, `core/src/tokenization.rs` and `router/src/http/server.rs`; DESIGN.md,
"Windows and models".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from overflow.errors import InputError, UnavailableError
from overflow.tokens.answer import json_list, json_object
from overflow.tokens.batches import MAX_TEXTS, Batch, batches
from overflow.tokens.client import BehindServer
from overflow.tokens.endpoint import Call
from overflow.tokens.foreign import checked_report
from overflow.tokens.report import TokenReport

_TOKENIZE = "/tokenize"
_CHARACTERS_PER_TOKEN = 250
#: A text that is one token or more in every tokenizer, to see what the server puts before and after a text.
_PROBE = "a"


@dataclass(frozen=True, slots=True)
class _Facts:
    """What holds for every text of one server: sizes in tokens, texts and bytes, and the count of an empty text."""

    window: int
    max_texts: int
    prompt_bytes: int
    empty_count: int


class TeiWindow(BehindServer):
    """A TokenWindow behind one server; close it, or use it as a context manager.

    The server is asked for its window once, at the first measuring. That it is prefix-safe is believed, as of
    HttpWindow.
    """

    prefix_safe = True

    @property
    def name(self) -> str:
        """What names it on the command line."""
        return f"tei:{self._transport.url}"

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        """One report a text, in order, none unknown.

        Raises InputError for a lone surrogate and for a text longer than the server takes, UnavailableError when there
        is no answer or a wrong one.
        """
        facts = self._facts
        longest = facts.window * _CHARACTERS_PER_TOKEN
        for index, text in enumerate(texts):
            if len(text) > longest:
                raise InputError(
                    f"text {index} of {len(text)} characters is longer than {self.name} takes ({longest}); "
                    "send a part of it"
                )
        filled = [text for text in texts if text]
        reports = iter(self._reports(filled, facts))
        return [next(reports) if text else self._report(text, [None] * facts.empty_count, facts) for text in texts]

    @cached_property
    def _facts(self) -> _Facts:
        source = self._transport.url + "/info"
        info = json_object(self._transport.call(Call("/info", None, repeatable=True)), source)
        window = _positive(info, "max_input_length", source)
        max_texts = _positive(info, "max_client_batch_size", source)
        (batch,) = batches([_PROBE], key="inputs", tail=b"}")
        (tokens,) = self._tokenize(batch)
        stops = [stop for stop in tokens if stop is not None]
        if not stops or stops[-1] < len(_PROBE):
            raise UnavailableError(f"{self._transport.url}{_TOKENIZE} found no token in the text {_PROBE!r}")
        prompt_bytes = stops[-1] - len(_PROBE)
        # An empty text, which the server refuses, is its special tokens; with a prompt, the prompt's tokens too.
        empty_count = len(tokens) - sum(stop > prompt_bytes for stop in stops)
        return _Facts(window, min(max_texts, MAX_TEXTS), prompt_bytes, empty_count)

    def _reports(self, texts: Sequence[str], facts: _Facts) -> list[TokenReport]:
        reports: list[TokenReport] = []
        for batch in batches(texts, key="inputs", tail=b"}", max_texts=facts.max_texts):
            for text, stops in zip(batch.texts, self._tokenize(batch), strict=True):
                reports.append(self._report(text, stops, facts))
        return reports

    def _tokenize(self, batch: Batch) -> list[list[int | None]]:
        """The byte at which each token ends, None for a special one, of each text."""
        source = self._transport.url + _TOKENIZE
        answered = json_list(self._transport.call(Call(_TOKENIZE, batch.body, repeatable=True)), source)
        if len(answered) != len(batch.texts):
            raise UnavailableError(f"{source} answered {len(answered)} lists of tokens for {len(batch.texts)} texts")
        return [_stops(tokens, source) for tokens in answered]

    def _report(self, text: str, stops: Sequence[int | None], facts: _Facts) -> TokenReport:
        content = [stop for stop in stops if stop is not None]
        end = len(text)
        if len(stops) > facts.window:
            kept = content[: max(facts.window - (len(stops) - len(content)), 0)]
            encoded = text.encode()
            # A stop inside a character (a tokenizer of bytes) closes before it; one inside the prompt before the text.
            end = len(encoded[: max(kept[-1] - facts.prompt_bytes, 0)].decode(errors="ignore")) if kept else 0
        value = {
            "count": len(stops),
            "window": facts.window,
            "truncated": len(stops) > facts.window,
            "window_end_char": end,
        }
        return checked_report(value, text, self._transport.url + _TOKENIZE)


def _positive(info: dict[str, object], key: str, source: str) -> int:
    value = info.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UnavailableError(f"{source} answered no {key}; is it a server of text-embeddings-inference?")
    return value


def _stops(tokens: object, source: str) -> list[int | None]:
    if not isinstance(tokens, list) or not all(isinstance(token, dict) for token in tokens):
        raise UnavailableError(f"{source} answered tokens that are not a list of objects")
    content = [token.get("stop") for token in tokens if token.get("special") is not True]
    if not all(isinstance(stop, int) and not isinstance(stop, bool) and stop >= 0 for stop in content):
        raise UnavailableError(f"{source} answered a token without a position where it stops")
    return [None if token.get("special") is True else token.get("stop") for token in tokens]
