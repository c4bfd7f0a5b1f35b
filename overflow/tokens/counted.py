"""A tokenizer that only counts, as a TokenWindow: where the window closes is found by counting prefixes.

It asks for no more than a count, so it serves any model behind a function or a remote counter, at the cost of some
dozens of counts a text. DESIGN.md, "Windows and models".
"""

from collections.abc import Callable, Sequence

from overflow.errors import InputError
from overflow.tokens.report import TokenReport
from overflow.tokens.unicode_text import require_unicode


class CountedWindow:
    """A TokenWindow over `count`, the number of tokens of a text, special tokens included.

    What is promised of a text that does not fit: `text[:window_end_char]` was counted and fits, and one character more
    was counted and does not. Where a longer text never counts less, that is the last prefix that fits; where it may, it
    is one at which the count passes the window. It is 0 when the search met no prefix that fits. `prefix_safe` is the
    caller's knowledge of `count`. Raises InputError for a window below 1.
    """

    def __init__(self, count: Callable[[str], int], window: int, *, name: str, prefix_safe: bool = False) -> None:
        if window < 1:
            raise InputError(f"a window of {window} tokens holds no text; give 1 or more")
        self.name = name
        self.prefix_safe = prefix_safe
        self.window = window
        self._count = count

    def measure(self, texts: Sequence[str]) -> list[TokenReport | None]:
        """One report a text, in order, none unknown; raises InputError for a lone surrogate, or what `count` raises."""
        require_unicode(texts)
        return [self._report(text) for text in texts]

    def _report(self, text: str) -> TokenReport:
        count = self._count(text)
        if count <= self.window:
            return TokenReport(count=count, window=self.window, truncated=False, window_end_char=len(text))
        return TokenReport(count=count, window=self.window, truncated=True, window_end_char=self._end(text))

    def _end(self, text: str) -> int:
        # Galloping first: the window is a small part of a long text, and a count costs as its prefix is long.
        fits, over = 0, min(2 * self.window, len(text))
        while over < len(text) and self._fits(text, over):
            fits, over = over, min(2 * over, len(text))
        # `text[:fits]` is known to fit (or is empty) and `text[:over]` not to, and the bisection keeps it so.
        while over - fits > 1:
            middle = (fits + over) // 2
            if self._fits(text, middle):
                fits = middle
            else:
                over = middle
        return fits

    def _fits(self, text: str, end: int) -> bool:
        return self._count(text[:end]) <= self.window
