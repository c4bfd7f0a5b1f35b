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
