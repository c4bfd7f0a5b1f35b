"""What all commands share: how they are found, and how every failure becomes one line and an exit code.

A command is the function of its own name in the module of its name here, imported only when it is used or listed; it
returns its exit code, None for 0. DESIGN.md, "Command line".
"""

import signal
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from overflow.cli.streams import ReaderGoneError, prepare_streams
from overflow.errors import HarnessError
from overflow.shown import shown

#: What a shell reports for a process ended by SIGINT, and by SIGPIPE.
_INTERRUPTED = 130
_BROKEN_PIPE = 141

#: The commands, in the order of the help. Add a name, and the module with the command of that name.
COMMANDS = ("divide", "check", "mutate")


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"overflow.cli.{cmd_name}"), cmd_name)
        return command


@click.group(cls=_Commands, no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="overflow-tree", prog_name="overflow")
def overflow() -> None:
    """Check that the length of a record never hides what a memory store was told.

    \b
    Exit codes: 0 holds or done · 1 violated, or a threshold missed
                2 bad usage or input · 3 subject or server not available
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (`sys.argv` by default); the exit code of DESIGN.md, "Command line"."""
    try:
        prepare_streams()
        try:
            code: int | None = overflow.main(arguments, prog_name="overflow", standalone_mode=False)
        finally:
            # Here, where what goes wrong can still be told, and not at the interpreter's end.
            sys.stdout.flush()
    except ReaderGoneError:
        # The reader has seen enough (`overflow … | head`).
        return _BROKEN_PIPE
    except HarnessError as error:
        return _failed(str(error), error.exit_code)
    except click.ClickException as error:
        return _failed(f"{error.format_message()}{_help_for(error)}", error.exit_code)
    except (click.Abort, KeyboardInterrupt) as interrupt:
        return _ended_by(interrupt)
    return code or 0


def _ended_by(interrupt: BaseException) -> int:
    """One line and one exit code, however often it is asked for while what was opened is ended."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        # It came before it could be ignored; from the first on they only say the same once more.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    where = _interrupted(interrupt)
    return _failed("interrupted" + f": {where}" * bool(where), _INTERRUPTED)


def _interrupted(interrupt: BaseException | None) -> str:
    """What was interrupted, as the one who raised it says; click, and later interrupts, stand before it in a chain."""
    said = ""
    while interrupt is not None:
        said = said or (str(interrupt) if isinstance(interrupt, KeyboardInterrupt) else "")
        interrupt = interrupt.__cause__ or interrupt.__context__
    return said


def _failed(message: str, code: int) -> int:
    click.echo(f"overflow: {shown(message)}", err=True)
    return code


def _help_for(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f" (see {context.command_path} --help)" if context is not None else ""
