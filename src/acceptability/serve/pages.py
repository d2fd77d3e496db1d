"""From templates to answers: pages for people, and refusals that are one clear line."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from acceptability import __version__
from acceptability.errors import one_line
from acceptability.report.table import interval_text, number
from acceptability.serve.tokens import VISITOR, new_visitor

_TITLES = {
    400: "That did not work",
    401: "Please enter",
    403: "Not allowed",
    404: "Not found",
    405: "Not possible",
    408: "Too slow",
    413: "Too much",
    421: "Wrong name",
    429: "Too often",
    500: "Something broke",
}


def shown(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page; a browser that is new here gets the value that its forms must carry."""
    visitor = request.cookies.get(VISITOR, "")
    is_new = not visitor
    visitor = visitor or new_visitor()
    page = (
        _environment()
        .get_template(template)
        .render(visitor=visitor, version=__version__, here=request.url.path, **values)
    )
    response = HTMLResponse(page, status_code=status)
    if is_new:
        response.set_cookie(VISITOR, visitor, httponly=True, samesite="strict", path="/")
    return response


def refused(request: Request, status: int, problem: str) -> Response:
    """Return a refusal: JSON for programs, a page for people. Never more than one line."""
    line = one_line(problem)
    if request.url.path.startswith("/api/"):
        return JSONResponse({"problem": line}, status_code=status)
    title = _TITLES.get(status, "That did not work")
    return shown(request, "problem.html", status=status, title=title, problem=line)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("acceptability.serve"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    environment.globals["interval_text"] = interval_text
    return environment
