"""The web application: its pages, its JSON API, its error handlers, and the server that runs it.

The JSON API offers the functions of the pages to programs, and is described at ``/api/openapi.json``.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from acceptability import __version__
from acceptability.errors import AcceptabilityError, EngineError, UnknownName
from acceptability.models import load_model
from acceptability.serve.browsing import (
    ensure_report,
    find_entry,
    find_run,
    get_item_page,
    get_unit_page,
    has_report,
    list_catalog_suites,
    read_rows,
)
from acceptability.serve.jobs import (
    EvaluationJob,
    JobWorker,
    all_jobs,
    clean_table_name,
    create_suite_job,
    create_table_job,
    encode_table,
    find_job,
    lock_jobs_folder,
    read_form,
)
from acceptability.serve.model_worker import BUNDLED_MODELS, ServedModels, Verdict, judge_sentences, summarise_verdicts
from acceptability.serve.security import (
    ACCESS_COOKIE,
    LOGIN_ATTEMPTS_PER_MINUTE,
    REPORT_POLICY,
    RateLimiter,
    SecurityMiddleware,
    Settings,
    check_csrf,
    check_sentences,
    check_token,
    is_from_browser,
    is_same_secret,
    make_access_cookie,
    render_error,
    render_page,
)
from acceptability.store.runs import list_saved_runs
from acceptability.suites.catalog import is_available


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


_STATIC = Path(__file__).with_name("static")
_MAX_LISTED_JOBS = 20
# How long open requests may take after Ctrl-C; an evaluation resumes at the next start anyway.
_SHUTDOWN_SECONDS = 5
_log = logging.getLogger(__name__)


def create_app(settings: Settings) -> ASGIApp:
    """Return the application; models are loaded when they are first used."""
    models = ServedModels(settings.models, settings.limits.waiting)
    worker = JobWorker(models, settings.limits.jobs)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        worker.start()
        yield
        # Waits for the batch that is being scored, and must not block the event loop meanwhile: pages still answer.
        await run_in_threadpool(worker.close)
        models.close()

    app = FastAPI(
        title="acceptability",
        version=__version__,
        lifespan=lifespan,
        # FastAPI's documentation pages load scripts from elsewhere, which our content policy forbids.
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.mount("/static", StaticFiles(directory=_STATIC), name="static")
    WebPages(settings, models, worker).add_to(app)
    JsonApi(settings, models, worker).add_to(app)
    _add_error_handlers(app)
    # Outermost, so that its headers are on every response, including those of errors.
    return SecurityMiddleware(app, settings)


class WebPages:
    """The HTML pages, for people; the addresses for programs are in ``JsonApi``."""

    def __init__(self, settings: Settings, models: ServedModels, worker: JobWorker) -> None:
        self._settings, self._limits = settings, settings.limits
        self._models, self._worker = models, worker
        self._login_attempts = RateLimiter(LOGIN_ATTEMPTS_PER_MINUTE)

    def add_to(self, app: FastAPI) -> None:
        """Add the routes of all pages to an application."""
        for address, page in (
            ("/", self.show_judge_form),
            ("/enter", self.show_token_form),
            ("/table", self.show_table_form),
            ("/suites", self.show_suites),
            ("/suites/{name:path}", self.show_suite),
            ("/jobs/{name}", self.show_job),
            ("/runs", self.show_runs),
            ("/runs/{name}", self.show_run),
            ("/runs/{name}/report", self.show_report),
        ):
            app.add_api_route(address, page, methods=["GET"], include_in_schema=False, response_model=None)
        for address, action in (
            ("/", self.submit_judge_form),
            ("/enter", self.submit_token),
            ("/table", self.submit_table),
            ("/suites/{name:path}", self.submit_suite),
            ("/jobs/{name}/stop", self.stop_job),
        ):
            app.add_api_route(address, action, methods=["POST"], include_in_schema=False, response_model=None)

    async def show_judge_form(self, request: Request) -> HTMLResponse:
        """Return the form for a sentence or a pair."""
        return render_page(
            request, "judge.html", models=self._models, selected=self._models.names, texts=["", ""], verdicts=[]
        )

    async def submit_judge_form(self, request: Request) -> HTMLResponse:
        """Return the models' scores of the sentences that were typed."""
        form = await read_form(request, self._limits)
        texts = [form.text("first"), form.text("second")]
        sentences = [text for text in texts if text]
        names = form.selected_models(self._models)
        if not sentences or not names:
            raise HTTPException(400, "there is nothing to judge. Type a sentence and tick at least one model.")
        check_sentences(sentences, self._limits)
        verdicts = await judge_sentences(self._models, names, sentences)
        # The script of the page asks for the verdicts alone and replaces the old ones; without scripts, the browser
        # loads the whole page.
        template = "verdicts.html" if request.headers.get("x-part") == "verdicts" else "judge.html"
        return render_page(
            request,
            template,
            models=self._models,
            selected=names,
            texts=texts,
            verdicts=verdicts,
            summary=summarise_verdicts(verdicts),
        )

    def show_table_form(self, request: Request) -> HTMLResponse:
        """Return the form for a table, and the latest evaluations."""
        jobs = all_jobs()[:_MAX_LISTED_JOBS]
        return render_page(request, "table.html", models=self._models, limits=self._limits, jobs=jobs)

    async def submit_table(self, request: Request) -> RedirectResponse:
        """Start the evaluation of a table, and redirect to the page of its progress."""
        form = await read_form(request, self._limits)
        self._worker.check_capacity()
        name, content = form.read_table()
        models, by = form.selected_models(self._models), form.text("by")
        # In a thread: a table of thousands of rows is read and checked, while other requests are answered.
        return self._start_job(await run_in_threadpool(create_table_job, name, content, models, by, self._limits))

    async def submit_suite(self, request: Request, name: str) -> RedirectResponse:
        """Start the evaluation of a suite of the catalog, and redirect to the page of its progress."""
        form = await read_form(request, self._limits)
        self._worker.check_capacity()
        models, by = form.selected_models(self._models), form.text("by")
        entry = find_entry(name)
        return self._start_job(await run_in_threadpool(create_suite_job, entry.id, models, by, self._limits))

    def show_job(self, request: Request, name: str) -> HTMLResponse:
        """Return the progress of an evaluation, or its results once it is done."""
        job = _get_job(name)
        rows = read_rows(find_run(job.run), "results") if job.run else []
        return render_page(request, "job.html", job=job, rows=rows)

    async def stop_job(self, request: Request, name: str) -> RedirectResponse:
        """Stop an evaluation."""
        # Only for its check that the form was sent by our own page.
        await read_form(request, self._limits)
        self._worker.stop(_get_job(name))
        return RedirectResponse(f"/jobs/{name}", status_code=303)

    def show_suites(self, request: Request) -> HTMLResponse:
        """Return the list of the suites of the catalog."""
        return render_page(request, "suites.html", suites=list_catalog_suites())

    def show_suite(self, request: Request, name: str, page: int = 1, q: str = "") -> HTMLResponse:
        """Return a page of a suite: its metadata and some of its sentences."""
        entry = find_entry(name)
        items = get_item_page(name, page, q) if is_available(entry) else None
        return render_page(request, "suite.html", entry=entry, page=items, models=self._models, limits=self._limits)

    def show_runs(self, request: Request) -> HTMLResponse:
        """Return the list of saved runs, from here and from the command line, the newest first."""
        runs, problems = list_saved_runs()
        return render_page(request, "runs.html", runs=runs[::-1], problems=problems)

    def show_run(self, request: Request, name: str, page: int = 1, q: str = "") -> HTMLResponse:
        """Return a page of a run: its results, and some of the rows that they are computed from."""
        run = find_run(name)
        rows = read_rows(run, "results")
        return render_page(
            request, "run.html", run=run, rows=rows, reported=has_report(rows), page=get_unit_page(run, page, q)
        )

    def show_report(self, name: str) -> HTMLResponse:
        """Return the report of a run, in a sandbox of its own."""
        page = ensure_report(find_run(name)).read_text(encoding="utf-8")
        return HTMLResponse(page, headers={"Content-Security-Policy": REPORT_POLICY})

    async def show_token_form(self, request: Request) -> HTMLResponse:
        """Return the page that asks a visitor for the access token."""
        return render_page(request, "enter.html")

    async def submit_token(self, request: Request) -> RedirectResponse:
        """Set the access cookie for a visitor who enters the token."""
        # Before anything else: somebody who guesses must not even send a form more often than this.
        self._login_attempts.check(request.client.host if request.client else "")
        form = await read_form(request, self._limits)
        token = self._settings.token
        if not token or not is_same_secret(form.text("token"), token):
            raise HTTPException(401, "that is not the token. The person who started the server knows it.")
        # 303: the browser follows with GET, and reloading the page does not send the form again.
        response = RedirectResponse("/", status_code=303)
        response.set_cookie(ACCESS_COOKIE, make_access_cookie(token), httponly=True, samesite="strict", path="/")
        return response

    def _start_job(self, job: EvaluationJob) -> RedirectResponse:
        self._worker.add(job)
        return RedirectResponse(f"/jobs/{job.id}", status_code=303)


def _get_job(name: str) -> EvaluationJob:
    job = find_job(name)
    if job is None:
        raise HTTPException(404, f"there is no evaluation {name!r}. It may have been deleted.")
    return job


def _add_error_handlers(app: FastAPI) -> None:
    """Turn every error into a response of one line."""

    async def handle_own_error(request: Request, error: Exception) -> Response:
        return render_error(request, 404 if isinstance(error, UnknownName) else 400, str(error))

    async def handle_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, AnyHTTPException)
        # Errors that Starlette raises itself have the names of HTTP as their text.
        messages = {
            "Not Found": "there is no such page.",
            "Method Not Allowed": "this page does not accept such a request.",
        }
        response = render_error(request, error.status_code, messages.get(str(error.detail), str(error.detail)))
        response.headers.update(error.headers or {})
        return response

    async def handle_validation_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        # One line only: the first error is usually the cause of the others.
        first = error.errors()[0]
        return render_error(request, 400, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")

    async def handle_unexpected_error(request: Request, error: Exception) -> Response:
        # The traceback is for the log only: it could show paths and data of this machine to a visitor.
        _log.error("%s %s", request.method, request.url.path, exc_info=error)
        return render_error(request, 500, "the server failed unexpectedly. See its log.")

    app.add_exception_handler(AcceptabilityError, handle_own_error)
    app.add_exception_handler(AnyHTTPException, handle_http_error)
    app.add_exception_handler(RequestValidationError, handle_validation_error)
    app.add_exception_handler(Exception, handle_unexpected_error)


def serve(settings: Settings, on_ready: Callable[[str], None]) -> None:
    """Run the server until Ctrl-C.

    Args:
        on_ready: Called with the address once the server accepts connections.
    """
    check_token(settings.host, settings.token)
    # Opened now, without weights: a misspelt model must fail at the start, not for the first visitor.
    for name in settings.models:
        if name not in BUNDLED_MODELS:
            load_model(name)
    with _open_socket(settings) as listener, lock_jobs_folder():
        config = uvicorn.Config(
            create_app(settings),
            log_level="warning",
            access_log=False,
            server_header=False,
            # The headers of a proxy could be forged, and rate limits count by address.
            proxy_headers=False,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
        # The socket listens already: connections wait in its backlog until uvicorn accepts them.
        on_ready(_format_url(settings.host, listener.getsockname()[1]))
        try:
            uvicorn.Server(config).run(sockets=[listener])
        except KeyboardInterrupt:
            # uvicorn shuts down gracefully first, and then raises the signal again.
            return


def _open_socket(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        raise EngineError(
            f"cannot listen on {settings.host}, port {settings.port}: {error}. Choose another with --port; 0 takes any "
            "that is free."
        ) from error


def _format_url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
