"""The one thread that carries out evaluations, one after the other. It goes on where a killed server stopped."""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from threading import Event

from fastapi import HTTPException

from acceptability.errors import AcceptabilityError
from acceptability.measuring import evaluate
from acceptability.serve.jobs import Job, all_jobs, find_job, kept, suite_of
from acceptability.serve.judging import Judges, TakingTurns
from acceptability.store.runs import Run, save_run, unit_rows
from acceptability.suites.tables import write_jsonl
from acceptability.types import Result, Suite

SENTENCES = "sentences.jsonl"
"""The file in the folder of a run that holds the sentences it was made of."""

_SECONDS_BETWEEN_NOTES = 0.3
_log = logging.getLogger(__name__)


class _Stopped(Exception):
    """Somebody asked for an end before the work was done."""


class Worker:
    """Carries out jobs."""

    def __init__(self, judges: Judges, most_waiting: int) -> None:
        self._judges, self._most = judges, most_waiting
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="jobs")
        self._closing = Event()
        self._stopping: set[str] = set()

    def start(self) -> None:
        """Go on with what an earlier server left unfinished, the oldest first."""
        for job in reversed(all_jobs()):
            if job.is_unfinished:
                self.add(job)

    def check_room(self) -> None:
        """Refuse another job where too many wait."""
        waiting = sum(job.is_unfinished for job in all_jobs())
        if waiting >= self._most:
            raise HTTPException(429, f"{waiting} evaluations wait already. Try again when some are done.")

    def add(self, job: Job) -> None:
        """Carry out a job when it is its turn."""
        self._thread.submit(self._carry_out, job.id).add_done_callback(_logged)

    def stop(self, job: Job) -> None:
        """End a job; what was scored is kept."""
        self._stopping.add(job.id)
        if job.state == "waiting":
            kept(replace(job, state="stopped"))

    def close(self) -> None:
        """End the work at the next batch; jobs that are not done go on when a server starts again."""
        self._closing.set()
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _carry_out(self, name: str) -> None:
        job = find_job(name)
        if job is None or not job.is_unfinished:
            return
        job = kept(replace(job, state="running", problem=""))
        ended = replace(job, state="failed", problem="it broke off. The log of the server says why.")
        try:
            ended = self._done(job)
        except _Stopped:
            ended = replace(find_job(name) or job, state="waiting" if self._closing.is_set() else "stopped")
        except AcceptabilityError as error:
            ended = replace(job, state="failed", problem=" ".join(str(error).split()))
        finally:
            kept(ended)
            self._stopping.discard(name)

    def _done(self, job: Job) -> Job:
        """Ask every model, save the run, and return the job as done."""
        suite = suite_of(job)
        results: list[Result] = []
        for place, name in enumerate(job.order.models):
            self._judges[name].model()
            results += evaluate(
                suite,
                [name],
                by=job.order.by or None,
                engine=TakingTurns(self._judges),
                progress=self._notes(job, place),
            )
        run = _saved(job, suite, results)
        return replace(find_job(job.id) or job, state="done", run=run.id, model="")

    def _notes(self, job: Job, place: int) -> Callable[[str, int, int], None]:
        """Return what writes down how far a job is, now and then, and stops it when somebody asks."""
        last = -1.0

        def note(name: str, done: int, total: int) -> None:
            nonlocal last
            if self._closing.is_set() or job.id in self._stopping:
                raise _Stopped
            if done == total or time.monotonic() - last > _SECONDS_BETWEEN_NOTES:
                last = time.monotonic()
                whole = total * len(job.order.models)
                kept(replace(job, model=name, done=place * total + done, total=whole))

        return note


def _saved(job: Job, suite: Suite, results: list[Result]) -> Run:
    """Save the results as a run, as the command line would, with the sentences beside them."""
    asked = ["evaluate", job.order.suite, *(part for name in job.order.models for part in ("--model", name))]
    asked += ["--by", job.order.by] if job.order.by else []
    signatures = [result.signature for result in results]
    run = save_run("serve", shlex.join(asked), [each.row() for each in results], unit_rows(results), signatures)
    write_jsonl(suite, run.folder / SENTENCES)
    return run


def _logged(done: Future[None]) -> None:
    if not done.cancelled() and (error := done.exception()):
        _log.error("a job broke off", exc_info=error)
