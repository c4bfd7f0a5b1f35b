"""What it is for a subject to be gone: nobody can be asked any further, and no law is to blame.

It ended, was given up, or its disk is full; an exception it raises is its crash in that one law. DESIGN.md, "Command
line": 3, the subject is not available.
"""

from overflow.errors import UnavailableError


class GoneError(UnavailableError):
    """The subject, or what it stands on, is gone."""
