"""Runs of texts that one request to a server of the CEmbedding contract may carry: both limits, in one place.

It never splits a text and never sends anything. DESIGN.md, "CEmbedding 0.9.1 as observed": at most 100 texts and under
1 MiB a request.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from overflow.errors import InputError
from overflow.tokens.unicode_text import require_unicode

#: A request carries at most this many texts.
MAX_TEXTS = 100
#: A request's body is smaller than this many bytes; the server refuses a body of this size.
MAX_BODY = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Batch:
    """A run of texts that one request may carry, and its body."""

    texts: Sequence[str]
    body: bytes


def batches(texts: Sequence[str], *, key: str, tail: bytes, max_texts: int = MAX_TEXTS) -> list[Batch]:
    """Bodies `{"<key>":[...]<tail>` for runs of `texts`, in order, each within both limits.

    `tail` closes the object. Raises InputError for a lone surrogate, and for one text that no request could carry.
    """
    require_unicode(texts)
    head = b'{"' + key.encode() + b'":['
    frame = len(head) + 1 + len(tail)
    found: list[Batch] = []
    first, parts, size = 0, list[bytes](), frame
    for index, text in enumerate(texts):
        # Not escaped to ASCII: an escape makes six bytes of a three-byte character, and the limit is in bytes.
        part = json.dumps(text, ensure_ascii=False).encode()
        if frame + len(part) >= MAX_BODY:
            raise InputError(
                f"text {index} of {len(text)} characters makes a request of {frame + len(part)} bytes, and the server "
                f"takes less than {MAX_BODY}; send a part of it"
            )
        if parts and (len(parts) == max_texts or size + 1 + len(part) >= MAX_BODY):
            found.append(Batch(texts[first:index], head + b",".join(parts) + b"]" + tail))
            first, parts, size = index, [], frame
        size += len(part) + (1 if parts else 0)
        parts.append(part)
    if parts:
        found.append(Batch(texts[first:], head + b",".join(parts) + b"]" + tail))
    return found
