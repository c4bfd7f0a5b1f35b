"""What the scripted server is told: its tokenizer, model, identity, token and faults, changed by a test while it runs.

These are values only; `server` reads them anew at each request. DESIGN.md, "Subject protocol" (the embedding side).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from overflow.embedding.embedder import Vectors
from overflow.tokens.report import TokenWindow

#: Vectors of texts, shape (texts, dimensions). The server hands over each text cut to where the window closes.
Model = Callable[[Sequence[str]], Vectors]


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it arrived; `texts` is empty when the body holds no list of texts."""

    path: str
    texts: tuple[str, ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer in place of the true one; `hang_up` closes the connection without any."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)
    hang_up: bool = False


#: Called after a request was read and before it is answered. It may run operations, change the script, or block until a
#: test sets an event; a Reply it returns is sent in place of the true answer.
Hook = Callable[[Request], Reply | None]


@dataclass(slots=True)
class Script:
    """The server's part.

    `window` None answers `token_info: null`. `identity` is the fingerprint; None answers 404 to /capabilities. `token`
    is the bearer token every request must carry; None asks for none.
    """

    window: TokenWindow | None
    model: Model
    identity: str | None = "scripted"
    token: str | None = field(default=None, repr=False)
    hook: Hook | None = None
