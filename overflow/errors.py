"""What can go wrong outside the code's control, each with the exit code that tells it.

Every error a person can cause or meet is one of these; its text is one clear line that says what to do. Anything else
that escapes is a defect of this package.
"""


class HarnessError(Exception):
    """An expected failure; `exit_code` is the process status of DESIGN.md, "Command line"."""

    exit_code = 2


class InputError(HarnessError):
    """Bad usage or bad input: a missing file, text that is not Unicode, a window too small (exit 2)."""


class UnavailableError(HarnessError):
    """A server or a subject that cannot be reached, or answers with something else than its contract (exit 3)."""

    exit_code = 3
