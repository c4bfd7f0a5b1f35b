"""From the tokens of one text to its report: the position at which the window closes, never inside a character.

Several tokens may share a character (bytes of UTF-8, a normalization that writes one character as three); a prefix that
took the character in would count more than the window. Overflow Tree, section 0.
"""

from overflow.tokens.report import TokenReport

#: Each token as the characters it stands for, `(start, end)`, in text order; several tokens may share a character.
Spans = list[tuple[int, int]]


def report_of_spans(text: str, spans: Spans, window: int, special_tokens: int) -> TokenReport:
    """The report of `text` with content tokens `spans`; a window that closes inside a character closes before it."""
    count = len(spans) + special_tokens
    if count <= window:
        return TokenReport(count=count, window=window, truncated=False, window_end_char=len(text))
    kept = max(window - special_tokens, 0)
    end = spans[kept - 1][1] if kept else 0
    if kept < len(spans):
        end = min(end, spans[kept][0])
    return TokenReport(count=count, window=window, truncated=True, window_end_char=end)
