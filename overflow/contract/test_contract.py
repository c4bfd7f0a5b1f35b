"""The contract as pytest tests, one a law, for `pytest --pyargs overflow.contract --overflow-subject module:Class`."""

from collections.abc import Iterator

import pytest
from rich.console import Console

from overflow.contract.evidence import PROFILES
from overflow.contract.laws import Law, all_laws
from overflow.contract.plugin import subject_runner
from overflow.contract.report import Rerun, explanations
from overflow.contract.runner import Runner
from overflow.contract.signals import TIMEOUT
from overflow.errors import HarnessError


@pytest.fixture(scope="session")
def overflow_runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    """A run over the subject of --overflow-subject."""
    try:
        with subject_runner(request.config) as runner:
            yield runner
    except HarnessError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


@pytest.mark.parametrize("law", all_laws(), ids=lambda law: f"{law.id}-{law.name.replace(' ', '-')}")
def test_law(law: Law, overflow_runner: Runner, request: pytest.FixtureRequest) -> None:
    config = request.config
    profile = PROFILES[config.getoption("--overflow-profile")]
    result = overflow_runner.check(law, profile, config.getoption("--overflow-seed"))
    if result.status == "skipped":
        pytest.skip(result.reason or "")
    if result.status == "violated":
        console = Console(width=120, force_terminal=False)
        with console.capture() as captured:
            console.print(explanations([result], Rerun(_again(config))), crop=False)
        # The first line is what pytest's summary shows.
        pytest.fail(f"{result.reason}\n{captured.get()}", pytrace=False)


def _again(config: pytest.Config) -> list[str]:
    """The command that checks the same in the same way."""
    options = {
        "--subject": "--overflow-subject",
        "--profile": "--overflow-profile",
        "--seed": "--overflow-seed",
        "--timeout": "--overflow-timeout",
    }
    given = {name: config.getoption(ours) for name, ours in options.items()}
    if given["--timeout"] == TIMEOUT:
        del given["--timeout"]
    return ["overflow", "check", *(word for name, value in given.items() for word in (name, str(value)))]
