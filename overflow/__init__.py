"""Overflow: proof that a memory store does not lose what is long, or what is short."""

from importlib.metadata import version

__version__ = version("overflow-tree")
