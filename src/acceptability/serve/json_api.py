"""The JSON API: the functions of the pages for programs, described at ``/api/openapi.json``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from acceptability.serve.browsing import find_run, list_catalog_suites, read_rows
from acceptability.serve.jobs import (
    EvaluationJob,
    JobWorker,
    all_jobs,
    clean_table_name,
    create_suite_job,
    create_table_job,
    encode_table,
    find_job,
)
from acceptability.serve.model_worker import ServedModels, Verdict, judge_sentences
from acceptability.serve.security import Settings, check_csrf, check_sentences, is_from_browser
from acceptability.store.runs import list_saved_runs


class JudgeRequest(BaseModel):
    """Sentences to score."""

    # A misspelt field is an error instead of being ignored.
    model_config = ConfigDict(extra="forbid")
    sentences: list[str] = Field(min_length=1, description="One sentence, or several to compare.")
    models: list[str] = Field(default=[], description="The names of the models; empty for all.")


class JudgeResponse(BaseModel):
    """The verdict of each model."""

    models: list[Verdict]


class JobRequest(BaseModel):
    """The order of an evaluation: of a table or of a suite."""

    model_config = ConfigDict(extra="forbid")
    name: str = Field(
        description="The file name of the table, such as pairs.csv, or the name of a suite of the catalog."
    )
    table: str = Field(default="", description="The content of the table; empty for a suite of the catalog.")
    models: list[str] = Field(default=[], description="The names of the models; empty for all.")
    by: str = Field(default="", description="A tag to group by; empty for none.")


class JobResponse(BaseModel):
    """An evaluation with its progress."""

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


class JsonApi:
    """The addresses for programs, under ``/api/``."""

    def __init__(self, settings: Settings, models: ServedModels, worker: JobWorker) -> None:
        self._limits, self._models, self._worker = settings.limits, models, worker

    def add_to(self, app: FastAPI) -> None:
        """Add the routes of all addresses to an application."""
        app.add_api_route("/api/models", self.list_models, methods=["GET"])
        app.add_api_route("/api/judge", self.judge, methods=["POST"], response_model=JudgeResponse)
        app.add_api_route("/api/suites", self.list_suites, methods=["GET"])
        app.add_api_route("/api/jobs", self.list_jobs, methods=["GET"])
        app.add_api_route("/api/jobs", self.add_job, methods=["POST"], status_code=201, response_model=JobResponse)
        app.add_api_route("/api/jobs/{name}", self.get_job, methods=["GET"], response_model=JobResponse)
        app.add_api_route("/api/runs", self.list_runs, methods=["GET"])
        app.add_api_route("/api/runs/{name}", self.get_run, methods=["GET"])

    def list_models(self) -> list[dict[str, str]]:
        """List the models of the server."""
        return [{"name": model.name, "about": model.about} for model in self._models]

    async def judge(self, request: Request, body: JudgeRequest) -> JudgeResponse:
        """Score sentences with each model: scores, surprisals of tokens, and which sentence is better."""
        _check_csrf_header(request)
        check_sentences(body.sentences, self._limits)
        return JudgeResponse(
            models=await judge_sentences(self._models, self._select_models(body.models), body.sentences)
        )

    def list_suites(self) -> list[dict[str, Any]]:
        """List the suites of the catalog."""
        return [
            {"id": entry.id, "title": entry.title, "language": entry.language, "licence": entry.licence}
            | {"sentences": entry.sentences, "contrasts": entry.contrasts, "is_here": is_here}
            for entry, is_here in list_catalog_suites()
        ]

    def list_jobs(self) -> list[JobResponse]:
        """List the evaluations, the newest first."""
        return [_make_response(job) for job in all_jobs()]

    def get_job(self, name: str) -> JobResponse:
        """Return an evaluation with its progress."""
        job = find_job(name)
        if job is None:
            raise HTTPException(404, f"there is no evaluation {name!r}.")
        return _make_response(job)

    async def add_job(self, request: Request, body: JobRequest) -> JobResponse:
        """Start the evaluation of a table, or of a suite of the catalog."""
        _check_csrf_header(request)
        self._worker.check_capacity()
        models = self._select_models(body.models)
        if body.table:
            content = encode_table(body.table)
            # In a thread: reading a table takes a while, and the event loop has to answer other requests.
            job = await run_in_threadpool(
                create_table_job, clean_table_name(body.name), content, models, body.by, self._limits
            )
        else:
            job = await run_in_threadpool(create_suite_job, body.name, models, body.by, self._limits)
        self._worker.add(job)
        return _make_response(job)

    def list_runs(self) -> list[dict[str, Any]]:
        """List the saved runs, the oldest first."""
        return [
            {"id": run.id, "made": run.made, "results": run.results, "arguments": run.arguments}
            for run in list_saved_runs()[0]
        ]

    def get_run(self, name: str) -> dict[str, Any]:
        """Return the results of a run."""
        run = find_run(name)
        return {"id": run.id, "made": run.made, "arguments": run.arguments, "results": read_rows(run, "results")}

    def _select_models(self, names: list[str]) -> tuple[str, ...]:
        return self._models.select(names) or self._models.names


def _check_csrf_header(request: Request) -> None:
    """Refuse a request of a web page that lacks the visitor's value in the header ``X-Visitor``."""
    # Only browsers send requests on behalf of other sites. Programs have no cookies, and so nothing to abuse.
    if is_from_browser(request.headers):
        check_csrf(request.headers, request.cookies, request.headers.get("x-visitor", ""))


def _make_response(job: EvaluationJob) -> JobResponse:
    job_fields = asdict(job)
    order = job_fields.pop("order")
    response_fields = {name: job_fields[name] for name in ("id", "state", "model", "done", "total", "problem", "run")}
    return JobResponse(**response_fields, suite=order["suite"], models=list(order["models"]), percent=job.percent)
