"""Finds the class a person named as `module:Class`, in an installed module or in one of the current directory.

It makes subjects of that class and never opens one. DESIGN.md, "Command line".
"""

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from overflow.contract.subject import Subject
from overflow.contract.told import message
from overflow.errors import InputError


def subject_maker(spec: str) -> Callable[[], Subject]:
    """What makes subjects of the class that `spec` (`module:Class`) names.

    Raises InputError, here or when a subject is made, for a module that is not there or does not import, a class that
    it lacks, and a class that is no subject: without open, close, name or version, or with parameters.
    """
    module_name, _, class_name = spec.partition(":")
    if not all(part.isidentifier() for part in [*module_name.split("."), class_name]):
        raise InputError(f"{spec!r} names no class; write module:Class")
    module = _module(module_name)
    kind = getattr(module, class_name, None)
    if not isinstance(kind, type):
        # A file of the current directory may have lost to an installed module of its name.
        file = getattr(module, "__file__", None) or "no file: it is built in"
        raise InputError(f"the module {module_name!r} has no class {class_name!r}; it was imported from {file}")
    for method in ("open", "close"):
        if not callable(getattr(kind, method, None)):
            raise InputError(f"{spec} is no subject: it has no method {method!r}")
    try:
        inspect.signature(kind).bind()
    except TypeError as error:
        raise InputError(f"{spec} is no subject: it cannot be made without arguments ({error})") from error

    def make() -> Subject:
        try:
            subject: Subject = kind()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise InputError(f"{spec} cannot be made: {type(error).__name__}: {message(error)}") from error
        for attribute in ("name", "version"):
            if not isinstance(getattr(subject, attribute, None), str):
                raise InputError(f"{spec} is no subject: its {attribute!r} is not a text")
        return subject

    return make


def _module(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # last: a file here must not hide an installed module
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise InputError(f"there is no module {error.name!r}, installed or in {here}") from error
        raise InputError(f"the module {name!r} does not import: {message(error)}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module is foreign code, and raises what it likes
        raise InputError(f"the module {name!r} does not import: {type(error).__name__}: {message(error)}") from error
