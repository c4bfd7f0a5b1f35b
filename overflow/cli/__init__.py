"""The command `overflow`: its entry point is `main`, each command is one module. DESIGN.md, "Command line".

Nothing else of the package is imported before `main` runs: most of the time before a command begins passes there, and
an interrupt meanwhile must be told as any other is.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line (`sys.argv` by default) and exit with the code of DESIGN.md, "Command line"."""
    try:
        from overflow.cli.app import run
    except KeyboardInterrupt:
        with suppress(OSError):
            os.write(2, b"overflow: interrupted\n")
        sys.exit(130)
    run(arguments)
