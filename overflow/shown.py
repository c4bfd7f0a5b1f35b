"""Text from outside in a form that a terminal, and XML, shows as one line. It decides nothing about what is shown."""


def shown(text: str) -> str:
    """`text` with everything that is not printable, such as a line break or an escape sequence, spelled out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
