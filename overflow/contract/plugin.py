"""The pytest plugin: `pytest --pyargs overflow.contract --overflow-subject module:Class` runs the contract on it.

It is loaded by every pytest run of an environment that has this package, so it imports nothing heavy and does nothing
until the contract is asked for.
"""

import argparse
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from overflow.contract.ending import before_giving_up, end_in_time
from overflow.contract.signals import TIMEOUT
from overflow.errors import HarnessError

if TYPE_CHECKING:
    from overflow.contract.runner import Runner


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("overflow", "the contract of a memory store (overflow)")
    group.addoption(
        "--overflow-subject",
        metavar="SUBJECT",
        help="the subject to check: module:Class, or cmd:COMMAND LINE for one that speaks JSON-RPC on stdin and stdout",
    )
    group.addoption("--overflow-profile", default="quick", choices=("quick", "ci", "deep"), help="how hard to look")
    group.addoption("--overflow-seed", type=int, default=0, help="the seed of the generated examples")
    group.addoption(
        "--overflow-timeout",
        type=_seconds,
        default=round(TIMEOUT),
        metavar="SECONDS",
        help="how long one call of the subject may take",
    )


def pytest_configure(config: pytest.Config) -> None:
    """One line in place of an error a law, when the laws are to run and there is nothing to run them on.

    Before collection, because under pytest-xdist that is done by workers, which can't end the session.
    """
    if not _asked(config) or hasattr(config, "workerinput"):
        return
    if config.getoption("--overflow-subject") is None:
        raise pytest.UsageError(
            "the laws of overflow.contract need a subject: pass --overflow-subject module:Class, "
            "or --overflow-subject 'cmd:COMMAND LINE'"
        )
    giving_up = ExitStack()
    # What is written while pytest captures would be lost with the process.
    giving_up.enter_context(before_giving_up(lambda: _stop_capturing(config)))
    config.add_cleanup(giving_up.close)
    try:
        with subject_runner(config):
            pass  # It opens, and closes again.
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A thread that the subject left running does not keep pytest, whose last reports are still to be written."""
    if _asked(session.config):
        session.config.add_cleanup(lambda: end_in_time(int(session.exitstatus)))


def subject_runner(config: pytest.Config) -> "Runner":
    """A run over the subject of --overflow-subject; raises InputError for one that cannot be found."""
    from overflow.contract.locate import subject_maker
    from overflow.contract.runner import Runner
    from overflow.contract.stdio import command_maker
    from overflow.embedding.wordllama import wordllama_vectors

    spec: str = config.getoption("--overflow-subject")
    maker = command_maker(spec.removeprefix("cmd:")) if spec.startswith("cmd:") else subject_maker(spec)
    return Runner(maker, wordllama_vectors, timeout=config.getoption("--overflow-timeout"))


def _asked(config: pytest.Config) -> bool:
    return config.option.pyargs and any(argument.startswith("overflow.contract") for argument in config.args)


def _stop_capturing(config: pytest.Config) -> None:
    capturing = config.pluginmanager.get_plugin("capturemanager")
    if capturing is not None:
        capturing.suspend_global_capture()


def _seconds(given: str) -> int:
    if not (given.isascii() and given.isdecimal() and 1 <= int(given) <= 86_400):
        raise argparse.ArgumentTypeError(f"{given!r} is not a number of seconds from 1 to 86400")
    return int(given)
