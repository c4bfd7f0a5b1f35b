"""Runs the gate: the baseline first, then each mutant and saboteur in a process and a copy of its own, side by side.

Every process it starts has ended when it returns, however it returns. DESIGN.md, principle 4 and "Command line"
(`overflow mutate`).
"""

import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from overflow.contract.laws import LAWS, all_laws
from overflow.contract.saboteurs import SABOTEURS
from overflow.embedding.cache import cache_directory
from overflow.errors import UnavailableError
from overflow.gate.child import Job
from overflow.gate.mutants import Catalogue, Mutant
from overflow.gate.processes import Processes
from overflow.gate.trees import StaleError, copied, importing, locate, was_imported
from overflow.gate.verdict import Kind, LawResult, Outcome, Verdict, judged, law_result

#: Examples of an invariant, of which a law beside the six may ask a part: for a law that has to go red, those after
#: which it counts as green; for one that has to stay green; and for a control, which all of them have to let pass.
_FINDING, _LOOKING, _CONTROL = 100, 3, 4

#: A run may take so many times as long as the baseline's, and so many seconds more: others run beside it.
_SLOWER, _GRACE = 6, 60.0

#: Seconds that a run on the subject unbroken may take.
_UNBROKEN = 3600.0


@dataclass(frozen=True, slots=True)
class Breaking:
    """One way to break the subject: a mutant of its sources, or the saboteur `name` around it.

    `expected` are the laws that must go red, each with the titles it may go red by, none where any will do;
    `requires` are capabilities that it needs of the subject. Where it is not `exact`, one of those laws is enough.
    """

    name: str
    kind: Kind
    breaks: str
    expected: Mapping[str, Sequence[str]]
    mutant: Mutant | None
    requires: frozenset[str] = frozenset()
    exact: bool = True


def breakings(subject: str, catalogue: Catalogue | None) -> list[Breaking]:
    """Every way there is to break a subject: the mutants of its sources, and the saboteurs.

    What a saboteur reddens on the reference is known to the last law; on another subject it depends on what that does.
    """
    mutants = catalogue.mutants if catalogue is not None else ()
    return [
        *(Breaking(each.name, "source", each.breaks, dict.fromkeys(each.red, each.titles), each) for each in mutants),
        *(
            Breaking(each.name, "saboteur", each.breaks, each.titles, None, each.requires, subject == "reference")
            for each in SABOTEURS.values()
        ),
    ]


@dataclass(frozen=True, slots=True)
class Ran:
    """How a process ended: what the subject offers, each law's result, why it ended early; times are seconds."""

    capabilities: frozenset[str]
    results: tuple[LawResult, ...]
    failure: tuple[Outcome, str] | None
    seconds: float


class Gate:
    """Breaks one subject; a context manager, at whose end no process is left.

    `catalogue` holds the package whose sources are copied for each mutant, `python` is what imports it for the subject.
    """

    def __init__(
        self,
        subject: str,
        catalogue: Catalogue | None,
        *,
        python: str,
        seed: int,
        workers: int,
    ) -> None:
        self._subject = subject
        self._python = python
        self._source = None if catalogue is None else locate(python, catalogue.package, os.environ)
        self._seed = seed
        self._workers = workers
        self._pool = ThreadPoolExecutor(workers)
        self._processes = Processes()

    @property
    def source(self) -> Path | None:
        """The folder, or the file, of the package that is copied; None where only saboteurs go around the subject."""
        return self._source

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._processes.__exit__(kind, error, trace)
        self._pool.shutdown(cancel_futures=True)

    def baseline(self) -> Ran:
        """Every law on the subject unbroken, in a copy as a mutant has it.

        Raises UnavailableError when the laws could not be run to their end.
        """
        ran = self._run(None, None, _each(_LOOKING), _UNBROKEN)
        if ran.failure is not None:
            raise UnavailableError(f"the laws cannot be run on {self._subject}: {ran.failure[1]}")
        return ran

    def break_each(
        self, breakings: Sequence[Breaking], baseline: Ran, told: Callable[[Verdict], None]
    ) -> list[Verdict]:
        """A verdict on each, in the order given; `told` hears of each as it ends. The baseline bounds their time."""
        futures = {self._pool.submit(self._break, each, baseline): place for place, each in enumerate(breakings)}
        verdicts = {}
        for future in as_completed(futures):
            verdicts[futures[future]] = future.result()
            told(future.result())
        return [verdicts[place] for place in range(len(breakings))]

    def confirm(self, verdicts: Sequence[Verdict], baseline: Ran) -> list[LawResult]:
        """The laws that are red on the subject unbroken too, in as many examples as it took them to notice a breaking.

        Without it the subject's own rare fault would count as noticed.
        """
        needed: dict[str, int] = {}
        for verdict in verdicts:
            for law, count in verdict.after.items():
                needed[law] = max(needed.get(law, 0), count)
        before = {result.law: result.examples for result in baseline.results}
        asked = {law: math.ceil(count / LAWS[law].share) for law, count in needed.items() if count > before[law]}
        dearest = sorted(asked, key=lambda law: -asked[law])
        shares = [dearest[start :: self._workers] for start in range(self._workers)]
        jobs = [
            self._pool.submit(self._run, None, None, {law: asked[law] for law in share}, _UNBROKEN)
            for share in shares
            if share
        ]
        rans = [job.result() for job in jobs]
        if failed := [ran.failure for ran in rans if ran.failure is not None]:
            raise UnavailableError(f"the laws cannot be run on {self._subject}: {failed[0][1]}")
        return [result for ran in rans for result in ran.results if result.state in ("red", "broken")]

    def _break(self, breaking: Breaking, baseline: Ran) -> Verdict:
        saboteur = breaking.name if breaking.kind == "saboteur" else None
        examples = _each(_LOOKING if breaking.expected else _CONTROL) | dict.fromkeys(breaking.expected, _FINDING)
        ran = self._run(breaking.mutant, saboteur, examples, _SLOWER * baseline.seconds + _GRACE)
        outcome, reason = ran.failure or judged(breaking.expected, ran.results, baseline.results, exact=breaking.exact)
        red = [result for result in ran.results if result.state == "red"]
        return Verdict(
            breaking.name,
            breaking.kind,
            breaking.breaks,
            frozenset(breaking.expected),
            {result.law: result.reason or "" for result in red},
            {result.law: result.examples for result in red},
            frozenset(result.law for result in ran.results if result.state != "skipped"),
            outcome,
            reason,
            ran.seconds,
        )

    def _run(self, mutant: Mutant | None, saboteur: str | None, examples: Mapping[str, int], limit: float) -> Ran:
        if self._source is None:
            with tempfile.TemporaryDirectory(prefix="overflow-gate-", ignore_cleanup_errors=True) as folder:
                return self._start(saboteur, examples, Path(folder), dict(os.environ), None, limit)
        try:
            with copied(self._source, mutant) as copies:
                copy = copies / self._source.name
                ran = self._start(saboteur, examples, copies, importing(copies), copy, limit)
                if ran.failure is None and not was_imported(copy):
                    return replace(ran, failure=("broken", _another(self._source)))
                return ran
        except StaleError as stale:
            return Ran(frozenset(), (), ("stale", str(stale)), 0.0)

    def _start(
        self,
        saboteur: str | None,
        examples: Mapping[str, int],
        folder: Path,
        environment: dict[str, str],
        copy: Path | None,
        limit: float,
    ) -> Ran:
        own = copy is not None and copy.name == "overflow"
        job = Job(self._subject, saboteur, examples, self._seed, str(copy) if own else None)
        command = [sys.executable, "-P", "-m", "overflow.gate.child", json.dumps(asdict(job))]
        # One order of sets and dictionaries for every run, so that the same examples are drawn each time.
        environment["PYTHONHASHSEED"] = "0"
        environment.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(cache_directory() / "hypothesis"))
        # What it leaves when it has to be killed goes with the folder; what it writes is not in its reach.
        temporary = folder / "tmp"
        temporary.mkdir()
        environment["TMPDIR"] = str(temporary)
        started = time.monotonic()
        ended = self._processes.run(command, environment, folder, limit)
        seconds = time.monotonic() - started
        failure: tuple[Outcome, str] | None = None
        try:
            # A process that was ended may have left its last line unended.
            told = [json.loads(line) for line in ended.out.splitlines(keepends=True) if line.endswith("\n")]
            offered = frozenset(told[0]["capabilities"]) if told else frozenset()
            results = tuple(map(law_result, told[1:]))
        except (ValueError, TypeError, KeyError):
            return Ran(frozenset(), (), ("broken", "the subject wrote among the results of its laws"), seconds)
        if ended.code is None:
            failure = ("timeout", f"no end within {limit:.0f} s")
        elif ended.code:
            failure = ("broken", (ended.err.strip().splitlines() or [f"exit code {ended.code}"])[-1])
        elif len(results) != len(examples):
            # os._exit(0), of the subject or of a library: it says nothing of the laws that were left.
            failure = ("broken", f"it ended after {len(results)} of {len(examples)} laws, with exit code 0")
        return Ran(offered, results, failure, seconds)


def _each(examples: int) -> dict[str, int]:
    return {law.id: examples for law in all_laws()}


def _another(source: Path) -> str:
    return (
        f"the subject imports another {source.stem} than the mutated copy, which is first in PYTHONPATH; "
        "start Python with -P, and put no folder before PYTHONPATH"
    )
