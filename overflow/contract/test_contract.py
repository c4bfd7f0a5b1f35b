"""The contract as pytest tests, one a law, for `pytest --pyargs overflow.contract --overflow-subject module:Class`."""

from collections.abc import Callable, Iterator

import pytest
from rich.console import Console

from overflow.contract.evidence import PROFILES
from overflow.contract.laws import Law, all_laws
from overflow.contract.locate import subject_maker
from overflow.contract.report import Rerun, explanations
from overflow.contract.runner import Runner
from overflow.contract.stdio import command_maker
from overflow.contract.subject import Subject
from overflow.embedding.wordllama import wordllama_vectors
from overflow.errors import HarnessError


@pytest.fixture(scope="session")
def overflow_runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    """A run over the subject of --overflow-subject."""
    try:
        with Runner(_maker(request.config.getoption("--overflow-subject") or ""), wordllama_vectors) as runner:
            yield runner
    except HarnessError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def _maker(spec: str) -> Callable[[], Subject]:
    return command_maker(spec.removeprefix("cmd:")) if spec.startswith("cmd:") else subject_maker(spec)


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
    options = {"--subject": "--overflow-subject", "--profile": "--overflow-profile", "--seed": "--overflow-seed"}
    return [
        "overflow",
        "check",
        *(word for name, ours in options.items() for word in (name, str(config.getoption(ours)))),
    ]
