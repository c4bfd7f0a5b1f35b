"""The process in which one mutant or saboteur meets every law; it prints what the subject offers,
and each law's result, a line of JSON each.

It is started on a copy of the sources, looks no further than a verdict needs (no shrinking), and judges nothing.
DESIGN.md, principle 4.
"""

import gc
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from hypothesis import Phase
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider
from hypothesis.internal.constants_ast import Constants

import overflow
from overflow.contract.adapter_kit import claim_stdio
from overflow.contract.evidence import Profile
from overflow.contract.laws import all_laws
from overflow.contract.runner import Runner
from overflow.contract.saboteurs import sabotaged
from overflow.embedding.wordllama import wordllama_vectors
from overflow.errors import HarnessError
from overflow.subjects.registry import subject_factory

_PHASES = (Phase.explicit, Phase.generate)


class _Still(HypothesisProvider):
    """Draws as Hypothesis does, but no constants of the sources at hand: each edit of them would move the examples."""

    _local_constants = Constants()


@dataclass(frozen=True, slots=True)
class Job:
    """What one process does: the laws that it asks, each in so many examples; the first that fails ends the law.

    `package` is the folder that the package under test must have been imported from.
    """

    subject: str
    saboteur: str | None
    examples: Mapping[str, int]
    seed: int
    package: str | None


def run(job: Job, told: BinaryIO) -> None:
    """Write to `told` what the subject offers, then each law's result; HarnessError when it cannot be opened."""
    factory = subject_factory(job.subject)
    if job.saboteur is not None:
        factory = sabotaged(job.saboteur, factory)
    with Runner(factory, wordllama_vectors) as runner:
        _tell(told, {"capabilities": sorted(runner.capabilities)})
        for law in all_laws():
            if law.id in job.examples:
                profile = Profile("gate", job.examples[law.id], 0.3, 12, phases=_PHASES)
                _tell(told, asdict(runner.check(law, profile, job.seed)))


def _tell(told: BinaryIO, value: object) -> None:
    told.write(json.dumps(value, default=str).encode() + b"\n")
    told.flush()


def main(argument: str) -> int:
    """Run the job that `argument` is in JSON; the exit code of DESIGN.md, with one line on stderr."""
    job = Job(**json.loads(argument))
    if job.package is not None and Path(overflow.__file__).parent != Path(job.package):
        print(f"imported from {Path(overflow.__file__).parent}, not from the copy {job.package}", file=sys.stderr)
        return 2
    AVAILABLE_PROVIDERS["hypothesis"] = _Still
    # What is imported by now stays to the end: looking through it again and again takes a twentieth of a run.
    gc.freeze()
    # What a subject in process prints is no line of ours.
    _, told = claim_stdio()
    try:
        run(job, told)
    except HarnessError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
