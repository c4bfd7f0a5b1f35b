"""The command `overflow`: its entry point is `main`, each command is one module. DESIGN.md, "Command line"."""

from overflow.cli.app import main

__all__ = ["main"]
