"""Turns what a person typed as `--subject` into a maker of subjects: a name, `module:Class` or `cmd:COMMAND LINE`.

It imports a subject only when it is asked for, and never opens one. DESIGN.md, "Command line".
"""

import shlex
import sys
from collections.abc import Callable

from overflow.contract.locate import subject_maker
from overflow.contract.stdio import command_maker
from overflow.contract.subject import Subject
from overflow.errors import InputError

_REFERENCE = "overflow.subjects.reference:Reference"

#: Each known name, and the longer way to write it.
SUBJECTS = {
    "reference": _REFERENCE,
    "reference-stdio": "cmd:" + shlex.join([sys.executable, "-m", "overflow.contract.stdio", _REFERENCE]),
}


def subject_factory(spec: str) -> Callable[[], Subject]:
    """The maker of the subject that `spec` names; each call gives a new one, not opened.

    Raises InputError for an unknown name, and for a module or class that is no subject. For a command the maker raises
    UnavailableError when it cannot be started or does not speak the protocol.
    """
    written_out = SUBJECTS.get(spec, spec)
    if written_out.startswith("cmd:"):
        return command_maker(written_out.removeprefix("cmd:"))
    if ":" in written_out:
        return subject_maker(written_out)
    raise InputError(f"unknown subject {spec!r}; known: {', '.join(SUBJECTS)}, module:Class, cmd:COMMAND LINE")
