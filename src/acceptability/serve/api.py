"""The same for programs: JSON in and out, described at ``/api/openapi.json``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from acceptability.serve.browsing import find_run, listed_suites
from acceptability.serve.forms import coded, ordered_suite, ordered_table
from acceptability.serve.jobs import Job, all_jobs, find_job, table_name
from acceptability.serve.judging import Judges
from acceptability.serve.limits import check_sentences
from acceptability.serve.reports import rows_of
from acceptability.serve.settings import Settings
from acceptability.serve.shown import Verdict, verdicts
from acceptability.serve.tokens import check_form, is_from_browser
from acceptability.serve.working import Worker
from acceptability.store.runs import saved_runs


class JudgeAsked(BaseModel):
    """Sentences to be judged."""

    model_config = ConfigDict(extra="forbid")
    sentences: list[str] = Field(min_length=1, description="One sentence, or several to compare.")
    models: list[str] = Field(default=[], description="Which models; none means all.")


class JudgeAnswer(BaseModel):
    """What each model makes of the sentences."""

    models: list[Verdict]


class JobAsked(BaseModel):
    """A table or a suite to be evaluated."""

    model_config = ConfigDict(extra="forbid")
    name: str = Field(description="The name of the table, as pairs.csv, or of a suite of the catalog.")
    table: str = Field(default="", description="What the table holds; nothing for a suite of the catalog.")
    models: list[str] = Field(default=[], description="Which models; none means all.")
    by: str = Field(default="", description="A tag to group by.")


class JobAnswer(BaseModel):
    """How far an evaluation is."""

    id: str
    state: str
    suite: str
    models: list[str]
    model: str
    done: int
    total: int
    percent: int
    problem: str
    run: str


class Api:
    """The addresses for programs."""

    def __init__(self, settings: Settings, judges: Judges, worker: Worker) -> None:
        self._limits, self._judges, self._worker = settings.limits, judges, worker

    def add_to(self, app: FastAPI) -> None:
        """Add every address to an application."""
        app.add_api_route("/api/models", self.models, methods=["GET"])
        app.add_api_route("/api/judge", self.judge, methods=["POST"], response_model=JudgeAnswer)
        app.add_api_route("/api/suites", self.suites, methods=["GET"])
        app.add_api_route("/api/jobs", self.jobs, methods=["GET"])
        app.add_api_route("/api/jobs", self.add_job, methods=["POST"], status_code=201, response_model=JobAnswer)
        app.add_api_route("/api/jobs/{name}", self.job, methods=["GET"], response_model=JobAnswer)
        app.add_api_route("/api/runs", self.runs, methods=["GET"])
        app.add_api_route("/api/runs/{name}", self.run, methods=["GET"])

    def models(self) -> list[dict[str, str]]:
        """List the models that can be asked."""
        return [{"name": each.name, "about": each.about} for each in self._judges]

    async def judge(self, request: Request, asked: JudgeAsked) -> JudgeAnswer:
        """Score sentences in each model, with the surprisal of each token, and say which is better."""
        _check_sender(request)
        check_sentences(asked.sentences, self._limits)
        return JudgeAnswer(models=await verdicts(self._judges, self._chosen(asked.models), asked.sentences))

    def suites(self) -> list[dict[str, Any]]:
        """List the suites of the catalog."""
        return [
            {"id": entry.id, "title": entry.title, "language": entry.language, "licence": entry.licence}
            | {"sentences": entry.sentences, "contrasts": entry.contrasts, "is_here": here}
            for entry, here in listed_suites()
        ]

    def jobs(self) -> list[JobAnswer]:
        """List the evaluations, the newest first."""
        return [_answer(job) for job in all_jobs()]

    def job(self, name: str) -> JobAnswer:
        """Say how far an evaluation is."""
        job = find_job(name)
        if job is None:
            raise HTTPException(404, f"there is no evaluation {name!r}.")
        return _answer(job)

    async def add_job(self, request: Request, asked: JobAsked) -> JobAnswer:
        """Begin to evaluate a table, or a suite of the catalog."""
        _check_sender(request)
        self._worker.check_room()
        models = self._chosen(asked.models)
        if asked.table:
            content = coded(asked.table)
            job = await run_in_threadpool(
                ordered_table, table_name(asked.name), content, models, asked.by, self._limits
            )
        else:
            job = await run_in_threadpool(ordered_suite, asked.name, models, asked.by, self._limits)
        self._worker.add(job)
        return _answer(job)

    def runs(self) -> list[dict[str, Any]]:
        """List the saved runs, the oldest first."""
        return [
            {"id": run.id, "made": run.made, "results": run.results, "arguments": run.arguments}
            for run in saved_runs()[0]
        ]

    def run(self, name: str) -> dict[str, Any]:
        """Give the results of a run."""
        run = find_run(name)
        return {"id": run.id, "made": run.made, "arguments": run.arguments, "results": rows_of(run, "results")}

    def _chosen(self, names: list[str]) -> tuple[str, ...]:
        return self._judges.chosen(names) or self._judges.names


def _check_sender(request: Request) -> None:
    """Ask a page for the value that our forms carry, as the header X-Visitor; programs have no such thing."""
    if is_from_browser(request.headers):
        check_form(request.headers, request.cookies, request.headers.get("x-visitor", ""))


def _answer(job: Job) -> JobAnswer:
    about = asdict(job)
    order = about.pop("order")
    known = {name: about[name] for name in ("id", "state", "model", "done", "total", "problem", "run")}
    return JobAnswer(**known, suite=order["suite"], models=list(order["models"]), percent=job.percent)
