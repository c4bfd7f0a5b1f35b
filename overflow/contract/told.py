"""What foreign code raised, as text that is safe to print: shortened, and told even where it cannot tell of itself.

It decides nothing about whose fault an exception is. DESIGN.md, principle 4: a failure is told for its own reason.
"""

import traceback
from collections.abc import Callable
from pathlib import Path

#: The most characters told of one text; a longer one is shown by its two ends.
TOLD = 400


def shortened(text: str) -> str:
    """`text`, or its two ends and how long it is."""
    if len(text) <= TOLD:
        return text
    half = TOLD // 2
    return f"{text[:half]}… ({len(text)} characters) …{text[-half:]}"


def message(error: BaseException) -> str:
    """What `error` says."""
    return _safely(str, error)


def value(any_value: object) -> str:
    """A value as Python writes it."""
    return _safely(repr, any_value)


def where(error: BaseException, module: str | None) -> str:
    """Where foreign code raised `error`: the last line in `module`, and the deepest one where that is another.

    Nothing when it was raised in another process, or by the harness.
    """
    foreign: list[tuple[str, str]] = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        name, code = str(frame.f_globals.get("__name__")), frame.f_code
        if not name.startswith("overflow.contract."):
            foreign.append((name, f"{Path(code.co_filename).name}:{line}, in {code.co_name}"))
    if not foreign:
        return ""
    deepest = foreign[-1][1]
    own = next((place for name, place in reversed(foreign) if name == module), deepest)
    return f" ({own})" if own == deepest else f" ({own}; deepest {deepest})"


def _safely(write: Callable[[object], str], any_value: object) -> str:
    try:
        return shortened(write(any_value))
    except BaseException as error:  # noqa: BLE001 - it is foreign code, and raises what it likes
        return f"(a {type(any_value).__name__} that cannot be shown: {type(error).__name__})"
