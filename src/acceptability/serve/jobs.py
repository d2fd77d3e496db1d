"""Evaluations that visitors asked for: what was asked, and how far it is, in a folder each.

``ACCEPTABILITY_HOME/jobs/ID/`` holds ``job.json`` and the table, if one was sent. A file is written beside its place
and then moved there, so that a killed server leaves every job whole.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from acceptability.errors import StoreError, SuiteError
from acceptability.home import home
from acceptability.suites import load_suite
from acceptability.suites.catalog import known_entries
from acceptability.suites.fetch import is_here
from acceptability.types import Suite

ENDINGS = (".csv", ".tsv", ".jsonl", ".txt")
UNFINISHED = ("waiting", "running")
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Order:
    """What a visitor asks for.

    Args:
        suite: The name of a suite of the catalog, or of the table that was sent.
        is_table: Whether it was sent; it then lies in the job's folder.
        by: A tag to group by; nothing for none.
    """

    suite: str
    is_table: bool
    models: tuple[str, ...]
    by: str = ""


@dataclass(frozen=True)
class Job:
    """An evaluation, and how far it is.

    Args:
        state: "waiting", "running", "done", "failed" or "stopped".
        model: The model that is asked now; done and total count the sentences of all models.
        problem: Why it failed, in one line.
        run: The id of the saved run, once it is done.
    """

    id: str
    made: str
    order: Order
    state: str = "waiting"
    model: str = ""
    done: int = 0
    total: int = 0
    problem: str = ""
    run: str = ""

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        return jobs_folder() / self.id

    @property
    def is_unfinished(self) -> bool:
        """Whether there is work left."""
        return self.state in UNFINISHED

    @property
    def percent(self) -> int:
        """How much of the sentences is scored, in per cent."""
        return 100 if self.state == "done" else 100 * self.done // self.total if self.total else 0


def jobs_folder() -> Path:
    """Return the folder of all jobs."""
    return home() / "jobs"


def new_job(order: Order, table: bytes = b"") -> Job:
    """Keep what a visitor asks for, with the table that was sent, and return the job."""
    now = datetime.now(UTC)
    job = Job(f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(6)}", now.isoformat(timespec="seconds"), order)
    with _guarded():
        job.folder.mkdir(parents=True)
        if order.is_table:
            (job.folder / order.suite).write_bytes(table)
    return kept(job)


def kept(job: Job) -> Job:
    """Write a job down, all or nothing, and return it."""
    draft = job.folder / f".job.{secrets.token_hex(4)}"
    with _guarded():
        draft.write_text(json.dumps(asdict(job), ensure_ascii=False, indent=1), encoding="utf-8")
        draft.replace(job.folder / "job.json")
    return job


def find_job(name: str) -> Job | None:
    """Return the job of an id; None if there is none."""
    if not _ID.fullmatch(name):
        return None
    try:
        return _read(jobs_folder() / name / "job.json")
    except (OSError, ValueError, TypeError, KeyError):
        return None


def all_jobs() -> list[Job]:
    """Return every job that can be read, the newest first."""
    names = sorted((path.parent.name for path in jobs_folder().glob("*/job.json")), reverse=True)
    return [job for job in map(find_job, names) if job]


def suite_of(job: Job) -> Suite:
    """Return the sentences of a job."""
    if not job.order.is_table:
        return known_suite(job.order.suite)
    try:
        return load_suite(str(job.folder / job.order.suite))
    except SuiteError as error:
        # The visitor knows the file by its name alone.
        raise SuiteError(str(error).replace(f"{job.folder}{os.sep}", "")) from error


def known_suite(name: str) -> Suite:
    """Return a suite of the catalog whose files are on this machine."""
    lacking = [entry.id for entry in known_entries(name) if not is_here(entry)]
    if lacking:
        raise SuiteError(f"{lacking[0]!r} is not on this machine. Run: acceptability suites fetch {lacking[0]}")
    return load_suite(name)


def table_name(given: str) -> str:
    """Return the name under which a table is kept: that of the file, without anything that leads elsewhere.

    >>> table_name("../../my pairs.CSV"), table_name("")
    ('my_pairs.csv', 'pasted.csv')
    """
    base = re.split(r"[/\\]", given)[-1] or "pasted.csv"
    stem, dot, ending = base.rpartition(".")
    if f"{dot}{ending.lower()}" not in ENDINGS:
        raise SuiteError(f"the file {base!r} ends in none of {', '.join(ENDINGS)}; save the table as one of these")
    clean = re.sub(r"[^\w-]+", "_", stem, flags=re.ASCII).strip("_")[:60] or "table"
    return f"{clean}.{ending.lower()}"


@contextmanager
def only_server() -> Iterator[None]:
    """Hold the folder of jobs: two servers would both go on with the same ones. It is let go of if we are killed."""
    with _guarded():
        jobs_folder().mkdir(parents=True, exist_ok=True)
    held = sqlite3.connect(jobs_folder() / "server.lock", timeout=0.2, isolation_level=None, check_same_thread=False)
    try:
        try:
            held.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise StoreError(
                f"another server works in {jobs_folder()} ({error}). Stop it, or name another folder in "
                "ACCEPTABILITY_HOME."
            ) from error
        yield
    finally:
        held.close()


def _read(path: Path) -> Job:
    about: Mapping[str, object] = json.loads(path.read_text(encoding="utf-8"))
    order = about["order"]
    if not isinstance(order, dict) or about["id"] != path.parent.name:
        raise ValueError(f"{path} is no job")
    job = Job(**{**about, "order": Order(**order)})  # type: ignore[arg-type]
    return replace(job, order=replace(job.order, models=tuple(job.order.models)))


@contextmanager
def _guarded() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write to {jobs_folder()}: {error.strerror}. Check that the folder can be written to and has "
            "space, or name another in ACCEPTABILITY_HOME."
        ) from error


def check_models(models: Sequence[str]) -> None:
    """Refuse an order without a model."""
    if not models:
        raise SuiteError("no model is chosen. Tick at least one.")
