"""What pytest does differently while mutmut runs it: a lean Hypothesis profile, quick tests first, and an end to each.

Loaded with `-p under_mutation` and by nothing else; it decides no verdict. DESIGN.md, principle 4.
"""

import functools
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

import overflow

# Shrinking says nothing about whether a mutant lives, and takes most of the time of one that does not.
LEAN = {
    "phases": (Phase.explicit, Phase.generate),
    "deadline": None,
    "database": None,
    "derandomize": True,
    "suppress_health_check": list(HealthCheck),
}
settings.register_profile("under_mutation", **LEAN)
settings.load_profile("under_mutation")

#: A test may take so many times as long as unmutated, and so many seconds more, of the processor; so many by the clock.
_SLOWER, _PROCESSOR, _CLOCK = 10, 3.0, 60.0
_COLLECTING = 30.0
#: The exit code that mutmut reads as a time-out.
_TIMED_OUT = 36


def pytest_sessionstart() -> None:
    """The package under test must be the mutated copy in the current folder, whatever else is installed."""
    if Path(overflow.__file__).parent != Path.cwd() / "overflow":
        pytest.exit(f"imported from {overflow.__file__}, not from {Path.cwd()}", returncode=pytest.ExitCode.USAGE_ERROR)
    _end_after(_COLLECTING)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick tests first; those never timed last. A test's own settings, too, get the lean profile."""
    items.sort(key=lambda item: _durations().get(item.nodeid, float("inf")))
    for item in items:
        test = getattr(item, "obj", None)
        if getattr(test, "is_hypothesis_test", False):
            # `@settings` on a test, and a profile that a conftest loads, replace the list of health checks as a whole.
            own = test._hypothesis_internal_use_settings or settings.default
            test._hypothesis_internal_use_settings = settings(own, **LEAN)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """The fixtures a test sets up count as its own."""
    # One that was never timed is of the contract, whose laws take some seconds each.
    _end_after(_SLOWER * _durations().get(item.nodeid, 10.0))
    return (yield)


def _end_after(seconds: float) -> None:
    """End this process in so long, on top of what is always allowed, unless called again; only under a mutant."""
    if "__mutmut_" in os.environ.get("MUTANT_UNDER_TEST", ""):
        for timer, number, least in (
            (signal.ITIMER_PROF, signal.SIGPROF, _PROCESSOR),
            (signal.ITIMER_REAL, signal.SIGALRM, _CLOCK),
        ):
            signal.signal(number, lambda _number, _frame: os._exit(_TIMED_OUT))
            signal.setitimer(timer, least + seconds)


@functools.cache
def _durations() -> dict[str, float]:
    """Seconds of each test as mutmut measured them before it broke anything."""
    file = Path("mutmut-stats.json")
    return json.loads(file.read_text(encoding="utf-8"))["duration_by_test"] if file.is_file() else {}
