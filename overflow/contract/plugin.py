"""The pytest plugin: `pytest --pyargs overflow.contract --overflow-subject module:Class` runs the contract on it.

It is loaded by every pytest run of an environment that has this package, so it imports nothing heavy and does nothing
until its option is given.
"""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("overflow", "the contract of a memory store (overflow)")
    group.addoption(
        "--overflow-subject",
        metavar="SUBJECT",
        help="the subject to check: module:Class, or cmd:COMMAND LINE for one that speaks JSON-RPC on stdin and stdout",
    )
    group.addoption("--overflow-profile", default="quick", choices=("quick", "ci", "deep"), help="how hard to look")
    group.addoption("--overflow-seed", type=int, default=0, help="the seed of the generated examples")


def pytest_configure(config: pytest.Config) -> None:
    """One line in place of an error a law, when the laws are to run and there is nothing to run them on.

    Before collection, because under pytest-xdist that is done by workers, which can't end the session.
    """
    asked = config.option.pyargs and any(argument.startswith("overflow.contract") for argument in config.args)
    if asked and config.getoption("--overflow-subject") is None:
        raise pytest.UsageError(
            "the laws of overflow.contract need a subject: pass --overflow-subject module:Class, "
            "or --overflow-subject 'cmd:COMMAND LINE'"
        )
