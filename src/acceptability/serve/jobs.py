"""Jobs: the evaluations that visitors order, their queue on disk, the thread that runs them, and the order forms.

``ACCEPTABILITY_HOME/jobs/ID/`` holds ``job.json``, the order with its progress, and the uploaded table, if there is
one. ``job.json`` is replaced atomically, so that a killed server leaves no half-written job, and a restarted server
resumes the unfinished jobs: the outputs of the models are stored, and none is computed twice.

One thread runs the jobs sequentially (``JobWorker``). Forms are read by ``read_form``, which also checks that one of
our own pages sent them, and orders are checked by ``create_table_job`` and ``create_suite_job`` before they are queued.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import shlex
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from fastapi import HTTPException, Request

from acceptability.api.evaluation import evaluate, resolve_measures
from acceptability.errors import AcceptabilityError, StoreError, SuiteError
from acceptability.paths import home_folder
from acceptability.serve.model_worker import InterleavingEngine, ServedModels
from acceptability.serve.security import Limits, check_csrf, check_table
from acceptability.store.runs import RunInputs, SavedRun, SuiteInput, save_run
from acceptability.store.unit_rows import collect_unit_rows
from acceptability.suites import load_suite
from acceptability.suites.catalog import is_available, require_entries
from acceptability.suites.tables import write_jsonl
from acceptability.types import Result, Suite

TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".txt")
UNFINISHED_STATES = ("waiting", "running")
SENTENCES_FILE = "sentences.jsonl"
"""The file in the folder of a run with the sentences that it is about."""

_JOB_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{12}")
# How often progress is saved; the page asks for it every half second.
_PROGRESS_SECONDS = 0.3
# Far more than the checkboxes of all models; without a bound, a form of millions of tiny fields would fill the memory.
_MAX_FORM_FIELDS = 200
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class JobSpec:
    """The order of an evaluation.

    Args:
        suite: The name of a suite of the catalog, or of the uploaded table.
        is_table: Whether it is an uploaded table, which is in the folder of the job.
        models: The names of the models.
        by: A tag to group by; empty for none.
    """

    suite: str
    is_table: bool
    models: tuple[str, ...]
    by: str = ""


@dataclass(frozen=True)
class EvaluationJob:
    """An evaluation with its progress.

    Args:
        made: The time of the order, in ISO format.
        state: "waiting", "running", "done", "failed" or "stopped".
        model: The model that is running.
        done, total: The numbers of finished queries and of all queries, over all models.
        problem: Why the evaluation failed, in one line.
        run: The id of the saved run, once the evaluation is done.
    """

    id: str
    made: str
    order: JobSpec
    state: str = "waiting"
    model: str = ""
    done: int = 0
    total: int = 0
    problem: str = ""
    run: str = ""

    @property
    def folder(self) -> Path:
        """The folder of the job's files."""
        return jobs_folder() / self.id

    @property
    def is_unfinished(self) -> bool:
        """Whether the job is waiting or running."""
        return self.state in UNFINISHED_STATES

    @property
    def percent(self) -> int:
        """The share of finished queries, in per cent."""
        return 100 if self.state == "done" else 100 * self.done // self.total if self.total else 0


def jobs_folder() -> Path:
    """Return the folder of all jobs."""
    return home_folder() / "jobs"


def create_job(order: JobSpec, table: bytes = b"") -> EvaluationJob:
    """Save a new job with its table, and return it."""
    now = datetime.now(UTC)
    # The time sorts jobs by age. The random part makes ids unique and, as the addresses of jobs, hard to guess.
    job = EvaluationJob(f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(6)}", now.isoformat(timespec="seconds"), order)
    with _translate_os_errors():
        job.folder.mkdir(parents=True)
        if order.is_table:
            (job.folder / order.suite).write_bytes(table)
    return save_job(job)


def save_job(job: EvaluationJob) -> EvaluationJob:
    """Write the file of a job atomically, and return the job."""
    # Written to a temporary file and renamed: a reader, or a server after a crash, sees the old state or the new one.
    temporary = job.folder / f".job.{secrets.token_hex(4)}"
    with _translate_os_errors():
        temporary.write_text(json.dumps(asdict(job), ensure_ascii=False, indent=1), encoding="utf-8")
        temporary.replace(job.folder / "job.json")
    return job


def find_job(name: str) -> EvaluationJob | None:
    """Return the job of an id; None if there is none."""
    # Before it becomes part of a path: a visitor could send "../.." as an id.
    if not _JOB_ID.fullmatch(name):
        return None
    try:
        return _read_job(jobs_folder() / name / "job.json")
    # A damaged file is treated as no job: it must not keep the server from starting or listing the others.
    except (OSError, ValueError, TypeError, KeyError):
        return None


def all_jobs() -> list[EvaluationJob]:
    """Return all jobs that can be read, the newest first."""
    names = sorted((path.parent.name for path in jobs_folder().glob("*/job.json")), reverse=True)
    return [job for job in map(find_job, names) if job]


def load_job_suite(job: EvaluationJob) -> Suite:
    """Return the suite of a job."""
    if not job.order.is_table:
        return load_local_suite(job.order.suite)
    try:
        return load_suite(str(job.folder / job.order.suite))
    except SuiteError as error:
        # Without the folder, which is of no use to a visitor and shows the paths of this machine.
        raise SuiteError(str(error).replace(f"{job.folder}{os.sep}", "")) from error


def load_local_suite(name: str) -> Suite:
    """Return a suite of the catalog, without downloading it."""
    # load_suite would download missing files, at the request of any visitor.
    missing = [entry.id for entry in require_entries(name) if not is_available(entry)]
    if missing:
        raise SuiteError(f"{missing[0]!r} is not on this machine. Run: acceptability suites fetch {missing[0]}")
    return load_suite(name)


def clean_table_name(given: str) -> str:
    """Return a safe file name for an uploaded table: its own name without folders and special characters.

    >>> clean_table_name("../../my pairs.CSV"), clean_table_name("")
    ('my_pairs.csv', 'pasted.csv')
    """
    # Both separators, since a browser on Windows may send a whole path.
    base = re.split(r"[/\\]", given)[-1] or "pasted.csv"
    stem, dot, ending = base.rpartition(".")
    if f"{dot}{ending.lower()}" not in TABLE_SUFFIXES:
        raise SuiteError(
            f"the name of the file {base!r} ends in none of {', '.join(TABLE_SUFFIXES)}; save the table as one of these"
        )
    clean = re.sub(r"[^\w-]+", "_", stem, flags=re.ASCII).strip("_")[:60] or "table"
    return f"{clean}.{ending.lower()}"


@contextmanager
def lock_jobs_folder() -> Iterator[None]:
    """Lock the folder of jobs: two servers on the same folder would both run its jobs."""
    with _translate_os_errors():
        jobs_folder().mkdir(parents=True, exist_ok=True)
    # A lock of SQLite and not a lock file: the system releases it when the process ends, even if it is killed, and it
    # works on every system.
    connection = sqlite3.connect(
        jobs_folder() / "server.lock", timeout=0.2, isolation_level=None, check_same_thread=False
    )
    try:
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise StoreError(
                f"another server uses {jobs_folder()} ({error}). Stop it, or name another folder in ACCEPTABILITY_HOME."
            ) from error
        yield
    finally:
        connection.close()


def _read_job(path: Path) -> EvaluationJob:
    job_fields: Mapping[str, object] = json.loads(path.read_text(encoding="utf-8"))
    order = job_fields["order"]
    if not isinstance(order, dict) or job_fields["id"] != path.parent.name:
        raise ValueError(f"{path} is not the file of a job")
    job = EvaluationJob(**{**job_fields, "order": JobSpec(**order)})  # type: ignore[arg-type]
    # JSON has no tuples.
    return replace(job, order=replace(job.order, models=tuple(job.order.models)))


@contextmanager
def _translate_os_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write to {jobs_folder()}: {error.strerror}. Check that the folder can be written to and has "
            "space, or name another in ACCEPTABILITY_HOME."
        ) from error


class _JobStopped(Exception):
    """Raised within an evaluation to stop it."""


class JobWorker:
    """The thread that runs the jobs, in the order in which they were added.

    Args:
        models: The models of the server.
        max_waiting: How many unfinished jobs there may be.
    """

    # One thread: two evaluations at once would compete for the same cores, and each model runs one batch at a time.

    def __init__(self, models: ServedModels, max_waiting: int) -> None:
        self._models, self._max_waiting = models, max_waiting
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="jobs")
        self._closing = Event()
        self._stopping: set[str] = set()

    def start(self) -> None:
        """Resume the jobs that an earlier server left unfinished, the oldest first."""
        for job in reversed(all_jobs()):
            if job.is_unfinished:
                self.add(job)

    def check_capacity(self) -> None:
        """Refuse another job if too many are unfinished."""
        waiting = sum(job.is_unfinished for job in all_jobs())
        if waiting >= self._max_waiting:
            raise HTTPException(429, f"{waiting} evaluations are already waiting. Try again when some are done.")

    def add(self, job: EvaluationJob) -> None:
        """Add a job to the end of the queue."""
        self._thread.submit(self._run_job, job.id).add_done_callback(_log_failure)

    def stop(self, job: EvaluationJob) -> None:
        """Stop a job; the outputs of the models so far stay in the store."""
        self._stopping.add(job.id)
        # A running job stops, and saves its state, at its next report of progress; a waiting one reports none.
        if job.state == "waiting":
            save_job(replace(job, state="stopped"))

    def close(self) -> None:
        """Stop the thread after the current batch; unfinished jobs resume when a server starts again."""
        self._closing.set()
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _run_job(self, name: str) -> None:
        # Read again: it may have been stopped while it waited.
        job = find_job(name)
        if job is None or not job.is_unfinished:
            return
        job = save_job(replace(job, state="running", problem=""))
        # The state after an unexpected error, which is logged: without it, the job would be "running" for ever.
        finished_job = replace(job, state="failed", problem="it failed unexpectedly. See the log of the server.")
        try:
            finished_job = self._evaluate_job(job)
        except _JobStopped:
            # A job that is interrupted because the server stops is not stopped but waits for the next start.
            finished_job = replace(find_job(name) or job, state="waiting" if self._closing.is_set() else "stopped")
        except AcceptabilityError as error:
            finished_job = replace(job, state="failed", problem=" ".join(str(error).split()))
        finally:
            save_job(finished_job)
            self._stopping.discard(name)

    def _evaluate_job(self, job: EvaluationJob) -> EvaluationJob:
        """Run every model, save the results as a run, and return the finished job."""
        suite = load_job_suite(job)
        results: list[Result] = []
        for model_index, name in enumerate(job.order.models):
            # Loaded through the server's own model, which keeps the weights in memory for later requests.
            self._models[name].load()
            results += evaluate(
                suite,
                [name],
                by=job.order.by or None,
                engine=InterleavingEngine(self._models),
                progress=self._make_progress_callback(job, model_index),
            )
        run = _save_results(job, suite, results)
        return replace(find_job(job.id) or job, state="done", run=run.id, model="")

    def _make_progress_callback(self, job: EvaluationJob, model_index: int) -> Callable[[str, int, int], None]:
        """Return a callback that saves the progress of a job at intervals, and stops the job if that is requested."""
        last = -1.0

        def save_progress(name: str, done: int, total: int) -> None:
            nonlocal last
            if self._closing.is_set() or job.id in self._stopping:
                raise _JobStopped
            # Not after every batch: small models run hundreds of batches per second, and each save is a file.
            if done == total or time.monotonic() - last > _PROGRESS_SECONDS:
                last = time.monotonic()
                # The other models are assumed to have as many queries: theirs are counted only when they start.
                whole = total * len(job.order.models)
                save_job(replace(job, model=name, done=model_index * total + done, total=whole))

        return save_progress


def _save_results(job: EvaluationJob, suite: Suite, results: list[Result]) -> SavedRun:
    """Save the results as a run, together with the sentences."""
    # The command line that gives the same results, for the list of runs.
    command = ["evaluate", job.order.suite, *(part for name in job.order.models for part in ("--model", name))]
    command += ["--by", job.order.by] if job.order.by else []
    signatures = [result.signature for result in results]
    inputs = RunInputs([SuiteInput(suite, job.order.suite)], job.order.models)
    rows = [result.row() for result in results]
    run = save_run("serve", shlex.join(command), rows, collect_unit_rows(results), signatures, inputs)
    # The report of the run needs the sentences, and an uploaded table is found nowhere else.
    write_jsonl(suite, run.folder / SENTENCES_FILE)
    return run


def _log_failure(done: Future[None]) -> None:
    # A pool of threads keeps an exception to itself until somebody asks for the result, which nobody does here.
    if not done.cancelled() and (error := done.exception()):
        _log.error("a job failed", exc_info=error)


@dataclass(frozen=True)
class SubmittedForm:
    """The content of a form: text fields, which may have several values, and an uploaded file."""

    fields: Mapping[str, Sequence[str]]
    file_name: str = ""
    file: bytes = b""

    def text(self, name: str) -> str:
        """Return the text of a field; empty if the field is missing."""
        return next(iter(self.fields.get(name, ())), "").strip()

    def selected_models(self, models: ServedModels) -> tuple[str, ...]:
        """Return the names of the models that were ticked, without repetition; an unknown one is an error."""
        return models.select(self.fields.get("model", ()))

    def read_table(self) -> tuple[str, bytes]:
        """Return the name and the content of the uploaded table, or else of the pasted one."""
        if self.file_name:
            return clean_table_name(self.file_name), self.file
        pasted = self.text("table")
        if not pasted:
            raise SuiteError("there is no table. Choose a file, or paste one with a line of column names above it.")
        return clean_table_name(f"pasted.{_guess_table_suffix(pasted)}"), encode_table(pasted)


def encode_table(table: str) -> bytes:
    """Return the text of a table in UTF-8; a text that UTF-8 cannot represent is an error.

    >>> encode_table("text")
    b'text'
    """
    try:
        return table.encode()
    # JSON can carry half of a surrogate pair, as "\\ud800".
    except UnicodeEncodeError as error:
        bad_character = ascii(table[error.start])
        raise SuiteError(
            f"the table holds {bad_character}, half of a character, which UTF-8 cannot hold. Take it out."
        ) from error


async def read_form(request: Request, limits: Limits) -> SubmittedForm:
    """Return the form of a request, which must come from one of our own pages."""
    async with request.form(max_files=1, max_fields=_MAX_FORM_FIELDS, max_part_size=limits.upload_bytes) as form_data:
        fields: dict[str, list[str]] = {}
        file_name, file = "", b""
        for name, value in form_data.multi_items():
            if isinstance(value, str):
                fields.setdefault(name, []).append(value)
            elif name == "file" and value.filename:
                file_name, file = value.filename, await value.read()
    form = SubmittedForm(fields, file_name, file)
    check_csrf(request.headers, request.cookies, form.text("visitor"))
    return form


def create_table_job(name: str, content: bytes, models: tuple[str, ...], by: str, limits: Limits) -> EvaluationJob:
    """Return a new job for an uploaded table; a table that cannot be evaluated is refused at once."""
    _check_models(models)
    job = create_job(JobSpec(name, True, models, by), content)
    try:
        return save_job(_check_job(job, load_job_suite(job), limits))
    # Whatever the error is: the folder of a table that did not become a job would never be deleted.
    except BaseException:
        _delete_job(job)
        raise


def create_suite_job(name: str, models: tuple[str, ...], by: str, limits: Limits) -> EvaluationJob:
    """Return a new job for a suite of the catalog."""
    _check_models(models)
    suite = load_local_suite(name)
    check_table(len(suite.sentences), limits)
    resolve_measures(suite, (), by=by or None)
    return create_job(JobSpec(name, False, models, by))


def _check_models(models: Sequence[str]) -> None:
    if not models:
        raise SuiteError("no model is chosen. Tick at least one.")


def _check_job(job: EvaluationJob, suite: Suite, limits: Limits) -> EvaluationJob:
    check_table(len(suite.sentences), limits)
    resolve_measures(suite, (), by=job.order.by or None)
    longest = max(suite.sentences, key=lambda sentence: len(sentence.text))
    if len(longest.text) > limits.characters:
        raise SuiteError(
            f"sentence {longest.id!r} has {len(longest.text):,} characters; the limit is {limits.characters:,}"
        )
    return job


def _delete_job(job: EvaluationJob) -> None:
    for path in sorted(job.folder.iterdir()):
        path.unlink()
    job.folder.rmdir()


def _guess_table_suffix(text: str) -> str:
    """Return the suffix of the format of a pasted table.

    >>> _guess_table_suffix('{"text": "Cats sleep."}'), _guess_table_suffix("good\\tbad")
    ('jsonl', 'tsv')
    >>> _guess_table_suffix("text,label"), _guess_table_suffix("He [has/*have] left.")
    ('csv', 'txt')
    """
    first = text.strip().splitlines()[0]
    if first.startswith("{"):
        return "jsonl"
    # Cells that are copied from a spreadsheet are pasted with tabs.
    if "\t" in first:
        return "tsv"
    # A comma alone does not make a CSV, since sentences have commas too.
    names = {name.strip().strip('"').lower() for name in first.split(",")}
    is_header = names & {"text", "sentence", "good", "bad", "sentence_good", "sentence_bad"}
    return "csv" if is_header else "txt"
