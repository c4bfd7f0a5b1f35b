"""The embedding side of the CEmbedding HTTP contract: vectors and reports from `POST /embed`, as an Embedder.

An answer is checked before it is believed (number, dimensions, finite values), and a request that may have been served
is never sent twice. DESIGN.md, "CEmbedding 0.9.1 as observed" and principle 5: an identity can be absent.
"""

from collections.abc import Sequence

import numpy as np

from overflow.embedding.embedder import Embedded, Vectors
from overflow.embedding.unit import unit_rows
from overflow.errors import UnavailableError
from overflow.tokens.answer import json_object
from overflow.tokens.batches import batches
from overflow.tokens.client import BehindServer
from overflow.tokens.endpoint import Call
from overflow.tokens.foreign import checked_reports
from overflow.tokens.http import measure_over
from overflow.tokens.report import TokenReport, TokenWindow


class EmbeddingClient(BehindServer):
    """An Embedder behind one server; close it, or use it as a context manager.

    A server does not say whether its tokenizer is prefix-safe, and is believed to be: every span is measured whole, so
    that a wrong belief moves a cut and never puts a node past its window. It is its own window too, by `measure`.
    """

    prefix_safe = True

    @property
    def url(self) -> str:
        """The server's address."""
        return self._transport.url

    @property
    def name(self) -> str:
        """The window's name, as HttpWindow's: the server's address."""
        return self.url

    @property
    def window(self) -> TokenWindow:
        """The window that the server embeds through."""
        return self

    def identity(self) -> str | None:
        """The server's fingerprint, asked anew each time; None when it has no /capabilities, or states none there.

        Raises UnavailableError when there is no answer, or one outside the contract.
        """
        source = self.url + "/capabilities"
        answer = self._transport.call(Call("/capabilities", None, repeatable=True))
        if answer.status == 404:
            return None
        fingerprint = json_object(answer, source).get("fingerprint")
        if fingerprint is None:
            return None
        if not isinstance(fingerprint, str) or not fingerprint or not _storable(fingerprint):
            raise UnavailableError(f"{source} answered a fingerprint that is not a text")
        return fingerprint

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Unit vectors, shape (texts, dimensions), and reports; no texts give shape (0, 0). A zero vector stays zero.

        Raises InputError for a text no request can carry, UnavailableError when there is no answer or a wrong one.
        """
        vectors: list[Vectors] = []
        reports: list[TokenReport | None] = []
        source = self.url + "/embed"
        for batch in batches(texts, key="texts", tail=b',"token_info":true}'):
            answer = json_object(self._transport.call(Call("/embed", batch.body, repeatable=False)), source)
            rows = _checked_vectors(answer, len(batch.texts), source)
            if vectors and rows.shape[1] != vectors[0].shape[1]:
                raise UnavailableError(
                    f"{source} changed from {vectors[0].shape[1]} to {rows.shape[1]} dimensions between two requests"
                )
            vectors.append(rows)
            reports += checked_reports(answer.get("token_info"), batch.texts, source)
        joined = np.concatenate(vectors) if vectors else np.zeros((0, 0), np.float32)
        return Embedded(unit_rows(joined), reports)

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        """Reports without running the model, as `HttpWindow.measure` gives them."""
        return measure_over(self._transport, texts)


def _storable(text: str) -> bool:
    """Whether it can be written as UTF-8: JSON can spell a lone surrogate, and no database takes one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _checked_vectors(answer: dict[str, object], count: int, source: str) -> Vectors:
    raw, dimensions = answer.get("embeddings"), answer.get("dimensions")
    if not isinstance(raw, list) or len(raw) != count:
        got = f"{len(raw)} vectors" if isinstance(raw, list) else "no list of vectors"
        raise UnavailableError(f"{source} answered {got} for {count} texts")
    try:
        rows = np.array(raw)
    except ValueError as error:
        raise UnavailableError(f"{source} answered vectors of unequal length") from error
    # Kinds: i, u whole, f floating; anything else (text, true, null, a number past 64 bits) is no vector.
    if rows.ndim != 2 or rows.dtype.kind not in "iuf":
        raise UnavailableError(f"{source} answered vectors that are not rows of numbers")
    if isinstance(dimensions, bool) or not isinstance(dimensions, int) or dimensions != rows.shape[1] or dimensions < 1:
        raise UnavailableError(
            f"{source} answered vectors of {rows.shape[1]} numbers and says dimensions {dimensions!r}"
        )
    with np.errstate(over="ignore"):
        vectors = rows.astype(np.float32)
    if not np.isfinite(vectors).all():
        raise UnavailableError(f"{source} answered a vector with a value that is not a finite number")
    return vectors
