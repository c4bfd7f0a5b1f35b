"""Token reports that come from outside: the one place where they are checked before anything relies on them.

It never corrects a report; one that contradicts itself or its text is refused, because a division built on it would
lose text silently. DESIGN.md, "CEmbedding 0.9.1 as observed".
"""

from collections.abc import Sequence

from overflow.errors import UnavailableError
from overflow.tokens.report import TokenReport

#: No number of a report is as large: SQLite, where reports end up, holds integers of 64 bits with a sign.
_LIMIT = 2**63


def checked_reports(value: object, texts: Sequence[str], source: str) -> list[TokenReport | None]:
    """The `token_info` of an answer as reports of `texts`, in order; None for each when `value` is None (unknown).

    Raises UnavailableError naming `source` when the value is not a list of one sound report a text.
    """
    if value is None:
        return [None] * len(texts)
    if not isinstance(value, list):
        raise UnavailableError(f"{source} answered token_info that is not a list but {_short(value)}")
    if len(value) != len(texts):
        raise UnavailableError(f"{source} answered {len(value)} token reports for {len(texts)} texts")
    return [checked_report(item, text, source) for item, text in zip(value, texts, strict=True)]


def checked_report(value: object, text: str, source: str) -> TokenReport:
    """One report (a JSON object of the contract) of `text`; raises UnavailableError naming `source` and the fault."""
    if not isinstance(value, dict):
        raise UnavailableError(f"{source} answered a token report that is not an object but {_short(value)}")
    count, window, end = (_whole(value, key, source) for key in ("count", "window", "window_end_char"))
    truncated = value.get("truncated")
    if not isinstance(truncated, bool):
        raise UnavailableError(f"{source} answered a token report whose truncated is {_short(truncated)}")
    report = TokenReport(count=count, window=window, truncated=truncated, window_end_char=end)
    if window < 1:
        raise UnavailableError(f"{source} answered a window of {window} tokens")
    if truncated != (count > window):
        raise UnavailableError(f"{source} answered a token report that contradicts itself: {_short(value)}")
    if end > len(text) or (not truncated and end != len(text)):
        raise UnavailableError(
            f"{source} answered window_end_char {end} (truncated: {truncated}) for a text of {len(text)} characters"
        )
    return report


def _whole(value: dict[object, object], key: str, source: str) -> int:
    number = value.get(key)
    # JSON true is an int to Python, and no count.
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < _LIMIT:
        raise UnavailableError(f"{source} answered a token report whose {key} is {_short(number)}")
    return number


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
