"""Runs the gate: the baseline first, then each mutant and saboteur in a process and a copy of its own, side by side.

Every process it starts has ended when it returns, however it returns. DESIGN.md, principle 4 and "Command line"
(`overflow mutate`).
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from overflow.contract.laws import all_laws
from overflow.contract.saboteurs import SABOTEURS
from overflow.embedding.cache import cache_directory
from overflow.errors import UnavailableError
from overflow.gate.child import Job
from overflow.gate.mutants import Catalogue, Mutant
from overflow.gate.trees import StaleError, copied, importing, locate, was_imported
from overflow.gate.verdict import Kind, LawResult, Outcome, Verdict, judged, law_result

#: A run may take so many times as long as the baseline's, and so many seconds more: others run beside it.
_SLOWER, _GRACE = 6, 60.0


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


def breakings(catalogue: Catalogue | None) -> list[Breaking]:
    """Every way there is to break a subject: the mutants of its sources, and the saboteurs.

    What a saboteur reddens on the reference is known to the last law; on another subject it depends on what that does.
    """
    mutants = catalogue.mutants if catalogue is not None else ()
    is_reference = catalogue is not None and catalogue.package == "overflow"
    return [
        *(Breaking(each.name, "source", each.breaks, dict.fromkeys(each.red, ()), each) for each in mutants),
        *(
            Breaking(each.name, "saboteur", each.breaks, each.titles, None, each.requires, is_reference)
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
    A run may take `limit` seconds; None leaves it to the baseline.
    """

    def __init__(
        self,
        subject: str,
        catalogue: Catalogue | None,
        *,
        python: str,
        seed: int,
        workers: int,
        limit: float | None = None,
    ) -> None:
        self._subject = subject
        self._python = python
        self._package = None if catalogue is None else catalogue.package
        self._source = None if catalogue is None else locate(python, catalogue.package, os.environ)
        self._seed = seed
        self._pool = ThreadPoolExecutor(workers)
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._ended = False
        self._limit = limit

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._ended = True
            for process in self._running:
                _kill(process)
        self._pool.shutdown(cancel_futures=True)

    def baseline(self) -> Ran:
        """Every law on the subject unbroken, in a copy as a mutant has it; its time bounds that of the others.

        Raises UnavailableError when the laws could not be run to their end.
        """
        ran = self._run(None, None, frozenset())
        if ran.failure is not None:
            raise UnavailableError(f"the laws cannot be run on {self._subject}: {ran.failure[1]}")
        self._limit = _SLOWER * ran.seconds + _GRACE
        return ran

    def break_each(self, breakings: Sequence[Breaking], told: Callable[[Verdict], None]) -> list[Verdict]:
        """A verdict on each, in the order given; `told` hears of each as it ends."""
        futures = {self._pool.submit(self._break, each): place for place, each in enumerate(breakings)}
        verdicts = {}
        for future in as_completed(futures):
            verdicts[futures[future]] = future.result()
            told(future.result())
        return [verdicts[place] for place in range(len(breakings))]

    def _break(self, breaking: Breaking) -> Verdict:
        saboteur = breaking.name if breaking.kind == "saboteur" else None
        ran = self._run(breaking.mutant, saboteur, frozenset(breaking.expected))
        outcome, reason = ran.failure or judged(breaking.expected, ran.results, exact=breaking.exact)
        noticed = {result.law: result.reason or "" for result in ran.results if result.state == "red"}
        asked = frozenset(result.law for result in ran.results if result.state != "skipped")
        return Verdict(
            breaking.name,
            breaking.kind,
            breaking.breaks,
            frozenset(breaking.expected),
            noticed,
            asked,
            outcome,
            reason,
            ran.seconds,
        )

    def _run(self, mutant: Mutant | None, saboteur: str | None, expected: frozenset[str]) -> Ran:
        if self._source is None:
            return self._start(saboteur, expected, dict(os.environ), None)
        try:
            with copied(self._source, mutant) as folder:
                copy = folder / self._source.name
                ran = self._start(saboteur, expected, importing(folder), copy)
                if ran.failure is None and not was_imported(copy):
                    return replace(ran, failure=("broken", _another(self._source)))
                return ran
        except StaleError as stale:
            return Ran(frozenset(), (), ("stale", str(stale)), 0.0)

    def _start(
        self, saboteur: str | None, expected: frozenset[str], environment: dict[str, str], copy: Path | None
    ) -> Ran:
        own = copy is not None and copy.name == "overflow"
        job = Job(self._subject, saboteur, tuple(expected), self._seed, str(copy) if own else None)
        command = [sys.executable, "-P", "-m", "overflow.gate.child", json.dumps(asdict(job))]
        # One order of sets and dictionaries for every run, so that the same examples are drawn each time.
        environment["PYTHONHASHSEED"] = "0"
        environment.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(cache_directory() / "hypothesis"))
        started = time.monotonic()
        with self._process(command, environment) as process:
            try:
                out, err = process.communicate(timeout=self._limit)
            except subprocess.TimeoutExpired:
                _kill(process)
                out, err = process.communicate()
                failure: tuple[Outcome, str] | None = ("timeout", f"no end within {self._limit:.0f} s")
            else:
                last = err.strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
                failure = ("broken", last[0]) if process.returncode else None
        # A process that was ended may have left its last line unended.
        told = [json.loads(line) for line in out.splitlines(keepends=True) if line.endswith("\n")]
        offered = frozenset(told[0]["capabilities"]) if told else frozenset()
        if failure is None and len(told) != 1 + len(all_laws()):
            # os._exit(0), of the subject or of a library: it says nothing of the laws that were left.
            failure = ("broken", f"it ended after {max(len(told) - 1, 0)} of {len(all_laws())} laws, with exit code 0")
        return Ran(offered, tuple(map(law_result, told[1:])), failure, time.monotonic() - started)

    @contextlib.contextmanager
    def _process(self, command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
        with self._lock:
            if self._ended:
                raise InterruptedError
            process = subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
            )
            self._running.add(process)
        with process:
            try:
                yield process
            finally:
                # Whatever ended the block: nothing of its group stays, and an interrupted wait is done again.
                _kill(process)
                process.wait()
                with self._lock:
                    self._running.discard(process)


def _another(source: Path) -> str:
    return (
        f"the subject imports another {source.stem} than the mutated copy, which is first in PYTHONPATH; "
        "start Python with -P, and put no folder before PYTHONPATH"
    )


def _kill(process: subprocess.Popen[str]) -> None:
    """The process, and with its group what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
