"""Overflow: proof that a memory store does not lose what is long, or what is short."""


def __getattr__(name: str) -> str:
    """`__version__`, looked up when asked for: every pytest run of an environment imports this package."""
    if name == "__version__":
        from importlib.metadata import version

        return version("overflow-tree")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
