"""Reading a file that a person named, without waiting for ever: a pipe without a writer, or a device, has no end.

What the shell itself has opened (`<(command)`, a path such as /dev/fd/63) is read. DESIGN.md, "Bad input".
"""

import errno
import stat
from pathlib import Path

#: The folders of a process's own descriptors, and the name of the first.
_OPENED = (Path("/dev/fd"), Path("/proc/self/fd"))
_STDIN = Path("/dev/stdin")

#: What is said of a file that memory cannot hold.
TOO_LARGE = "larger than the memory there is"


def read_regular(path: Path) -> bytes:
    """The bytes of a regular file; raises OSError, whose `strerror` says so where it is another kind of file, where no
    file can have such a name, and where memory cannot hold it.
    """
    try:
        kind = path.stat().st_mode
    except ValueError as error:
        raise OSError(errno.EINVAL, "no name of a file has such a character", str(path)) from error
    opened = path.parent in _OPENED or path == _STDIN
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind) and not opened:
        raise OSError(errno.EINVAL, "not a regular file, but a pipe or a device", str(path))
    try:
        return path.read_bytes()
    except MemoryError as error:
        raise OSError(errno.ENOMEM, TOO_LARGE, str(path)) from error
