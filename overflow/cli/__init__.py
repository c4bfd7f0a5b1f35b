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
    """Run the command line (`sys.argv` by default) and end the process with the code of DESIGN.md, "Command line"."""
    try:
        from overflow.cli.app import run
        from overflow.contract.ending import end_in_time
    except KeyboardInterrupt:
        with suppress(OSError):
            os.write(2, b"overflow: interrupted\n")
        sys.exit(130)
    code = run(arguments)
    # A subject in process may have left a thread running, which the interpreter would wait for.
    end_in_time(code)
    sys.exit(code)
