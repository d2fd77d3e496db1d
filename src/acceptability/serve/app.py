"""The application: which address gives which page."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from acceptability import __version__
from acceptability.errors import AcceptabilityError, UnknownName
from acceptability.serve.api import Api
from acceptability.serve.browsing import find_entry, find_run, item_page, listed_suites, unit_page
from acceptability.serve.forms import form_of, ordered_suite, ordered_table
from acceptability.serve.guard import REPORT_POLICY, Guard
from acceptability.serve.jobs import Job, all_jobs, find_job
from acceptability.serve.judging import Judges
from acceptability.serve.limits import TRIES_A_MINUTE, Rate, check_sentences
from acceptability.serve.pages import refused, shown
from acceptability.serve.reports import has_report, report_of, rows_of
from acceptability.serve.settings import Settings
from acceptability.serve.shown import summary, verdicts
from acceptability.serve.tokens import ACCESS, access_cookie, same
from acceptability.serve.working import Worker
from acceptability.store.runs import saved_runs
from acceptability.suites.fetch import is_here

_STATIC = Path(__file__).with_name("static")
_log = logging.getLogger(__name__)


def application(settings: Settings) -> ASGIApp:
    """Return the whole application, with models that are loaded when somebody asks them."""
    judges = Judges(settings.models, settings.limits.waiting)
    worker = Worker(judges, settings.limits.jobs)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        worker.start()
        yield
        await run_in_threadpool(worker.close)
        judges.close()

    app = FastAPI(
        title="acceptability",
        version=__version__,
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.mount("/static", StaticFiles(directory=_STATIC), name="static")
    Site(settings, judges, worker).add_to(app)
    Api(settings, judges, worker).add_to(app)
    _say_problems(app)
    # Outermost, so that what it says of every answer holds for faults too.
    return Guard(app, settings)


class Site:
    """The pages for people."""

    def __init__(self, settings: Settings, judges: Judges, worker: Worker) -> None:
        self._settings, self._limits = settings, settings.limits
        self._judges, self._worker = judges, worker
        self._tries = Rate(TRIES_A_MINUTE)

    def add_to(self, app: FastAPI) -> None:
        """Add every page to an application."""
        for address, page in (
            ("/", self.home),
            ("/enter", self.door),
            ("/table", self.table),
            ("/suites", self.suites),
            ("/suites/{name:path}", self.suite),
            ("/jobs/{name}", self.job),
            ("/runs", self.runs),
            ("/runs/{name}", self.run),
            ("/runs/{name}/report", self.report),
        ):
            app.add_api_route(address, page, methods=["GET"], include_in_schema=False, response_model=None)
        for address, action in (
            ("/", self.judge),
            ("/enter", self.enter),
            ("/table", self.send_table),
            ("/suites/{name:path}", self.evaluate_suite),
            ("/jobs/{name}/stop", self.stop),
        ):
            app.add_api_route(address, action, methods=["POST"], include_in_schema=False, response_model=None)

    async def home(self, request: Request) -> HTMLResponse:
        """Show the form for a sentence or a pair."""
        return shown(request, "judge.html", judges=self._judges, asked=self._judges.names, texts=["", ""], found=[])

    async def judge(self, request: Request) -> HTMLResponse:
        """Show what the models make of the sentences that were typed."""
        form = await form_of(request, self._limits)
        texts = [form.text("first"), form.text("second")]
        sentences = [text for text in texts if text]
        names = form.models(self._judges)
        if not sentences or not names:
            raise HTTPException(400, "there is nothing to judge. Type a sentence and tick at least one model.")
        check_sentences(sentences, self._limits)
        found = await verdicts(self._judges, names, sentences)
        part = "verdicts.html" if request.headers.get("x-part") == "verdicts" else "judge.html"
        return shown(request, part, judges=self._judges, asked=names, texts=texts, found=found, summary=summary(found))

    def table(self, request: Request) -> HTMLResponse:
        """Show the form for a table, and the evaluations so far."""
        return shown(request, "table.html", judges=self._judges, limits=self._limits, jobs=all_jobs()[:20])

    async def send_table(self, request: Request) -> RedirectResponse:
        """Take a table, and go to the page that shows how far its evaluation is."""
        form = await form_of(request, self._limits)
        self._worker.check_room()
        name, content = form.table()
        models, by = form.models(self._judges), form.text("by")
        return self._begun(await run_in_threadpool(ordered_table, name, content, models, by, self._limits))

    async def evaluate_suite(self, request: Request, name: str) -> RedirectResponse:
        """Evaluate a suite of the catalog."""
        form = await form_of(request, self._limits)
        self._worker.check_room()
        models, by = form.models(self._judges), form.text("by")
        entry = find_entry(name)
        return self._begun(await run_in_threadpool(ordered_suite, entry.id, models, by, self._limits))

    def job(self, request: Request, name: str) -> HTMLResponse:
        """Show how far an evaluation is, and in the end what came out."""
        job = _job(name)
        rows = rows_of(find_run(job.run), "results") if job.run else []
        return shown(request, "job.html", job=job, rows=rows)

    async def stop(self, request: Request, name: str) -> RedirectResponse:
        """End an evaluation."""
        await form_of(request, self._limits)
        self._worker.stop(_job(name))
        return RedirectResponse(f"/jobs/{name}", status_code=303)

    def suites(self, request: Request) -> HTMLResponse:
        """List the suites of the catalog."""
        return shown(request, "suites.html", suites=listed_suites())

    def suite(self, request: Request, name: str, page: int = 1, q: str = "") -> HTMLResponse:
        """Show one suite, with its sentences."""
        entry = find_entry(name)
        found = item_page(name, page, q) if is_here(entry) else None
        return shown(request, "suite.html", entry=entry, page=found, judges=self._judges, limits=self._limits)

    def runs(self, request: Request) -> HTMLResponse:
        """List what was computed before, here or on the command line, the newest first."""
        runs, problems = saved_runs()
        return shown(request, "runs.html", runs=runs[::-1], problems=problems)

    def run(self, request: Request, name: str, page: int = 1, q: str = "") -> HTMLResponse:
        """Show one run: its results and the rows behind them."""
        run = find_run(name)
        rows = rows_of(run, "results")
        return shown(request, "run.html", run=run, rows=rows, reported=has_report(rows), page=unit_page(run, page, q))

    def report(self, name: str) -> HTMLResponse:
        """Show the report of a run, shut off from everything else."""
        page = report_of(find_run(name)).read_text(encoding="utf-8")
        return HTMLResponse(page, headers={"Content-Security-Policy": REPORT_POLICY})

    async def door(self, request: Request) -> HTMLResponse:
        """Ask for the token."""
        return shown(request, "enter.html")

    async def enter(self, request: Request) -> RedirectResponse:
        """Let somebody in who knows the token."""
        self._tries.check(request.client.host if request.client else "")
        form = await form_of(request, self._limits)
        token = self._settings.token
        if not token or not same(form.text("token"), token):
            raise HTTPException(401, "that is not the token. Whoever started the server knows it.")
        response = RedirectResponse("/", status_code=303)
        response.set_cookie(ACCESS, access_cookie(token), httponly=True, samesite="strict", path="/")
        return response

    def _begun(self, job: Job) -> RedirectResponse:
        self._worker.add(job)
        return RedirectResponse(f"/jobs/{job.id}", status_code=303)


def _job(name: str) -> Job:
    job = find_job(name)
    if job is None:
        raise HTTPException(404, f"there is no evaluation {name!r}. It may have been deleted.")
    return job


def _say_problems(app: FastAPI) -> None:
    """Turn everything that can go wrong into one line."""

    async def ours(request: Request, error: Exception) -> Response:
        return refused(request, 404 if isinstance(error, UnknownName) else 400, str(error))

    async def refusal(request: Request, error: Exception) -> Response:
        assert isinstance(error, AnyHTTPException)
        known = {"Not Found": "there is no such page.", "Method Not Allowed": "this page cannot be asked that way."}
        answer = refused(request, error.status_code, known.get(str(error.detail), str(error.detail)))
        answer.headers.update(error.headers or {})
        return answer

    async def unread(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        return refused(request, 400, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")

    async def broken(request: Request, error: Exception) -> Response:
        _log.error("%s %s", request.method, request.url.path, exc_info=error)
        return refused(request, 500, "something broke in the server. Its log says what.")

    app.add_exception_handler(AcceptabilityError, ours)
    app.add_exception_handler(AnyHTTPException, refusal)
    app.add_exception_handler(RequestValidationError, unread)
    app.add_exception_handler(Exception, broken)
