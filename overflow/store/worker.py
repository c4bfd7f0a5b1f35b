"""Runs the queue: claims what is due, builds it without a lock, and writes each result with the end of its task.

It never builds what is not queued; repair does. Overflow Tree, section 3.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from overflow.division import TokensUnknownError
from overflow.errors import HarnessError, UnavailableError
from overflow.store import building, failures, node_set, queue
from overflow.store.building import Job, Prepared
from overflow.store.database import Database
from overflow.store.model import Model
from overflow.store.node_set import Verdict, verdict
from overflow.store.queue import MAX_ATTEMPTS, Task
from overflow.store.records import text_of


@dataclass(frozen=True, slots=True)
class Drained:
    """One run of the queue: records that got nodes, and attempts that failed."""

    built: int
    failed: int


class Worker:
    """One worker of a store's queue; `clock` gives seconds."""

    def __init__(self, database: Database, model: Model, clock: Callable[[], float]) -> None:
        self._database = database
        self._model = model
        self._clock = clock

    def drain(self) -> Drained:
        """Run tasks until none is due."""
        built = failed = 0
        owner = secrets.token_hex(8)
        while tasks := queue.claim(self._database, owner, self._clock(), building.WIDTH):
            jobs = {task: job for task in tasks if (job := self._job(task, owner)) is not None}
            outcomes = building.prepare(self._model, list(jobs.values()))
            for task, outcome in zip(jobs, outcomes, strict=True):
                if isinstance(outcome, Prepared):
                    built += self._keep(task, owner, outcome)
                else:
                    self._failed(task, owner, outcome)
                    failed += 1
        return Drained(built, failed)

    def _job(self, task: Task, owner: str) -> Job | None:
        """The build a task asks for; None when there is nothing left to do, and the task is over."""
        text = text_of(self._database, task.ref)
        if text is not None and task.attempt <= MAX_ATTEMPTS:
            found = node_set.read(self._database, task.ref)
            window = None if task.report is None else task.report.window
            if verdict(text, found, model=self._model.last_name(), window=window) is not Verdict.CURRENT:
                return Job(task.ref, text, task.report)
        with self._database.transaction():
            if queue.finish(self._database, task, owner) and text is not None and task.attempt > MAX_ATTEMPTS:
                # Its lease ran out again and again: whoever claimed it did not live to say why.
                failures.note(self._database, "nodes", task.ref, UnavailableError("its builds never ended"))
        return None

    def _keep(self, task: Task, owner: str, prepared: Prepared) -> bool:
        with self._database.transaction():
            if not building.write(self._database, prepared, self._model):
                # No failure of the record: the model is another now. Was its text changed, it has a task of its own by
                # now, and this one is not ours any more.
                queue.release(self._database, task, owner, self._clock())
                return False
            failures.clear(self._database, "nodes", task.ref)
            queue.finish(self._database, task, owner)
        return bool(prepared.rows)

    def _failed(self, task: Task, owner: str, error: HarnessError) -> None:
        """Back off where time may help; else the task is over, and the health check finds the record."""
        may_pass = isinstance(error, UnavailableError) and not isinstance(error, TokensUnknownError)
        with self._database.transaction():
            if may_pass and task.attempt < MAX_ATTEMPTS:
                queue.retry(self._database, task, owner, self._clock(), str(error))
                return
            if queue.finish(self._database, task, owner) and not isinstance(error, TokensUnknownError):
                failures.note(self._database, "nodes", task.ref, error)
