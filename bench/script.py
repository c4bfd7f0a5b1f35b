"""How a script of this folder runs: it ends with its own exit code, and quietly where nobody reads on (`| head`)."""

import sys
from collections.abc import Callable
from typing import NoReturn

from overflow.cli.streams import ReaderGoneError, prepare_streams

#: What a shell reports for a process ended by SIGPIPE.
_BROKEN_PIPE = 141


def run(main: Callable[[], int]) -> NoReturn:
    """Run `main` and exit with the code it returns."""
    try:
        prepare_streams()
        try:
            code = main()
        finally:
            # Here, where it can still be caught, and not at the interpreter's end.
            sys.stdout.flush()
    except ReaderGoneError:
        sys.exit(_BROKEN_PIPE)
    sys.exit(code)
