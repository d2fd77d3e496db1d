"""Security of the web application: access, forged requests, limits, and the headers and rendering of responses.

- Access: on loopback everybody on the machine may use the server. On any other address a token is needed. Programs
  send it as ``Authorization: Bearer TOKEN``; people type it once, and their browser keeps a cookie derived from it.
- Cross-site request forgery (CSRF): every form carries the random value of a cookie that only our own pages can read,
  and the browser's headers must say that the request comes from our own origin. The name in the Host header is checked
  against DNS rebinding.
- Limits: on the size and duration of requests, on sentences and tables, and a rate limit by address (token bucket).
- Rendering: templates escape everything, responses have a strict content security policy, and errors are one line.

``SecurityMiddleware`` applies all of this to every request before it reaches the application.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from acceptability import __version__
from acceptability.errors import SpecError, to_one_line
from acceptability.report.terminal import format_interval, format_number

CSRF_COOKIE = "acceptability_visitor"
ACCESS_COOKIE = "acceptability_access"
# 16 random characters cannot be guessed at ten attempts per minute.
_MIN_TOKEN_LENGTH = 16
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_token(host: str, token: str | None) -> None:
    """Refuse a weak token, and an address that others can reach without a token."""
    if is_loopback(host) and not token:
        return
    if not token:
        raise SpecError(
            f"other machines can reach {host}, so a token is needed. Make one with `python -c 'import "
            "secrets; print(secrets.token_urlsafe())'` and give it as --token or in ACCEPTABILITY_TOKEN, or omit "
            "--host to listen on this machine only"
        )
    # Headers carry ASCII only, and a space would end the token there.
    if len(token) < _MIN_TOKEN_LENGTH or not (token.isascii() and token.isprintable()) or " " in token:
        raise SpecError(
            f"the token is weak; expected at least {_MIN_TOKEN_LENGTH} letters, digits and punctuation without spaces"
        )


def make_access_cookie(token: str) -> str:
    """Return the value of the access cookie for a token, from which the token cannot be recovered."""
    return hmac.new(token.encode(), b"acceptability serve", hashlib.sha256).hexdigest()


def is_same_secret(given: str, expected: str) -> bool:
    """Return whether two secrets are equal, in constant time."""
    # An ordinary comparison stops at the first difference, and its duration shows how much of a guess is right.
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode("utf-8", "replace"))


def is_authorized(headers: Mapping[str, str], cookies: Mapping[str, str], token: str | None) -> bool:
    """Return whether a request carries the token, or the cookie derived from it."""
    if not token:
        return True
    scheme, _, given = headers.get("authorization", "").partition(" ")
    is_known = scheme.lower() == "bearer" and is_same_secret(given, token)
    return is_known or is_same_secret(cookies.get(ACCESS_COOKIE, ""), make_access_cookie(token))


def has_credentials(headers: Mapping[str, str], cookies: Mapping[str, str]) -> bool:
    """Return whether a request carries a token or an access cookie, valid or not."""
    return bool(headers.get("authorization") or cookies.get(ACCESS_COOKIE))


def check_host(header: str, *, loopback: bool) -> None:
    """Refuse a Host header that does not name this machine, if only this machine can reach the server."""
    # DNS rebinding: a site can let its own name point to 127.0.0.1, and its scripts would then be of our origin.
    if loopback and parse_host_name(header) not in _LOOPBACK_NAMES and not is_loopback(parse_host_name(header)):
        raise HTTPException(421, "this server answers only to the names 127.0.0.1 and localhost. Use one of them.")


def parse_host_name(header: str) -> str:
    """Return the host name of a Host header, without the port.

    >>> parse_host_name("localhost:8000"), parse_host_name("[::1]:8000"), parse_host_name("")
    ('localhost', '::1', '')
    """
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def new_csrf_token() -> str:
    """Return a new random value for the CSRF cookie."""
    return secrets.token_urlsafe(24)


def is_from_browser(headers: Mapping[str, str]) -> bool:
    """Return whether a request was sent by a web page."""
    # Browsers send Origin with every POST; Sec-Fetch-Site and cookies cover older ones.
    return bool(headers.get("origin") or headers.get("sec-fetch-site") or headers.get("cookie"))


def check_csrf(headers: Mapping[str, str], cookies: Mapping[str, str], given: str) -> None:
    """Refuse a form that another site has sent, or that lacks the value of the visitor's cookie.

    Args:
        given: The value in the form.
    """
    # "none" is a request that the user made, such as a bookmark; programs send no such header.
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none") or not _is_own_origin(headers):
        raise HTTPException(403, "the form was sent by another site. Open this page yourself and send it from there.")
    visitor = cookies.get(CSRF_COOKIE, "")
    if not visitor or not is_same_secret(given, visitor):
        raise HTTPException(
            403, "the form does not belong to this browser. Allow cookies, reload the page, and try again."
        )


def _is_own_origin(headers: Mapping[str, str]) -> bool:
    origin = headers.get("origin")
    # A malformed address makes urlsplit fail, and is not ours.
    try:
        return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    except ValueError:
        return False


LOGIN_ATTEMPTS_PER_MINUTE = 10
"""How many wrong tokens one address may send in a minute."""

# Beyond this, idle addresses are dropped, so that requests from ever new addresses do not fill the memory.
_MAX_ADDRESSES = 10_000


@dataclass(frozen=True)
class Limits:
    """The limits of the server.

    Args:
        upload_bytes: The size of the largest request, and so of the largest table.
        characters: The length of the longest sentence.
        sentences: The number of sentences in one judgement.
        table_sentences: The number of sentences in a table or a suite.
        per_minute: The number of requests for work from one address in a minute.
        waiting: The number of judgements that may wait for one model.
        jobs: The number of unfinished evaluations.
        body_seconds: How long a request may take to arrive, in seconds.
    """

    upload_bytes: int = 5_000_000
    characters: int = 2_000
    sentences: int = 50
    table_sentences: int = 20_000
    per_minute: int = 600
    waiting: int = 1_000
    jobs: int = 20
    body_seconds: float = 60.0


def check_sentences(sentences: Sequence[str], limits: Limits) -> None:
    """Refuse too many or too long sentences for one judgement."""
    if len(sentences) > limits.sentences:
        raise HTTPException(
            413,
            f"{len(sentences)} sentences are too many at once; the limit is {limits.sentences}. "
            "Evaluate a table instead.",
        )
    for text in sentences:
        if len(text) > limits.characters:
            raise HTTPException(
                413, f"a sentence has {len(text):,} characters; the limit is {limits.characters:,}. Shorten it."
            )


def check_table(sentences: int, limits: Limits) -> None:
    """Refuse a table or a suite with too many sentences."""
    if sentences > limits.table_sentences:
        raise HTTPException(
            413,
            f"there are {sentences:,} sentences; the limit is {limits.table_sentences:,}. Take a part, raise the limit "
            "with --max-sentences, or use the command line: acceptability evaluate",
        )


def make_too_large_error(limits: Limits) -> HTTPException:
    """Return the error of a request with too many bytes."""
    return HTTPException(
        413,
        f"this is larger than {limits.upload_bytes / 1e6:,.1f} MB, the limit for an upload. Take a part of the table, "
        "raise the limit with --max-megabytes, or use the command line: acceptability evaluate",
    )


def make_timeout_error(limits: Limits) -> HTTPException:
    """Return the error of a request that takes too long to arrive."""
    # The connection is closed: clients that send a byte now and then (slow loris) would otherwise hold all connections.
    return HTTPException(
        408,
        f"the request did not arrive within {limits.body_seconds:g} seconds. Send it again, or a smaller one.",
        headers={"Connection": "close"},
    )


class RateLimiter:
    """Limits the requests of each address (token bucket): so many per minute, and as many at once after a pause.

    Args:
        per_minute: The number of requests per minute.
    """

    def __init__(self, per_minute: int) -> None:
        self._capacity = float(per_minute)
        self._buckets: dict[str, tuple[float, float]] = {}
        self._lock = Lock()

    def check(self, address: str) -> None:
        """Count a request; raise an error if there were too many."""
        # Monotonic, since the clock of the system may be set back or forth.
        now = time.monotonic()
        with self._lock:
            left = self._count_remaining(address, now)
            if left >= 1:
                self._buckets[address] = (left - 1, now)
                if len(self._buckets) > _MAX_ADDRESSES:
                    self._drop_idle_addresses(now)
                return
        raise self._make_error()

    def check_remaining(self, address: str) -> None:
        """Raise an error if there were too many requests, without counting one."""
        with self._lock:
            left = self._count_remaining(address, time.monotonic())
        if left < 1:
            raise self._make_error()

    def _count_remaining(self, address: str, now: float) -> float:
        """Return how many requests an address may send now."""
        # The bucket refills continuously; only the time of the last request is stored, from which the refill follows.
        left, last = self._buckets.get(address, (self._capacity, now))
        return min(self._capacity, left + (now - last) * self._capacity / 60)

    def _make_error(self) -> HTTPException:
        return HTTPException(
            429,
            f"too many requests from your address; the limit is {self._capacity:.0f} a minute. Wait a moment.",
        )

    def _drop_idle_addresses(self, now: float) -> None:
        """Drop addresses without requests for a minute: their buckets are full again, like those of new ones."""
        self._buckets = {address: (left, last) for address, (left, last) in self._buckets.items() if now - last < 60}


@dataclass(frozen=True)
class Settings:
    """The settings of a server.

    Args:
        host: The address to listen on.
        port: The port to listen on; 0 for any free one.
        token: The secret of visitors; optional on loopback.
        models: The names or specs of the models.
        limits: The limits on requests.
    """

    host: str
    port: int
    token: str | None
    models: tuple[str, ...]
    limits: Limits = field(default_factory=Limits)


# The titles of error pages by status.
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


def render_page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page; a new browser gets the CSRF cookie, whose value is in the page's forms too.

    Args:
        template: The file name of the template.
        status: The HTTP status.
        values: The variables of the template.
    """
    visitor = request.cookies.get(CSRF_COOKIE, "")
    is_new = not visitor
    visitor = visitor or new_csrf_token()
    page = (
        _make_environment()
        .get_template(template)
        .render(visitor=visitor, version=__version__, here=request.url.path, **values)
    )
    response = HTMLResponse(page, status_code=status)
    if is_new:
        # Strict: other sites cannot make the browser send it. Not marked as secure, since the server speaks plain HTTP.
        response.set_cookie(CSRF_COOKIE, visitor, httponly=True, samesite="strict", path="/")
    return response


def render_error(request: Request, status: int, problem: str) -> Response:
    """Return an error as one line: in JSON for programs, on a page for people."""
    line = to_one_line(problem)
    if request.url.path.startswith("/api/"):
        return JSONResponse({"problem": line}, status_code=status)
    title = _TITLES.get(status, "That did not work")
    return render_page(request, "problem.html", status=status, title=title, problem=line)


@cache
def _make_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("acceptability.serve"),
        autoescape=True,
        # A misspelt variable is an error and not an empty string.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = format_number
    environment.globals["interval_text"] = format_interval
    return environment


_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""The policy of reports, whose style and scripts are inline.

A report also has a policy of its own, which allows its scripts by their hashes; browsers enforce both. The sandbox
gives it an origin of its own, so that whatever is in a report cannot read our cookies or act on our pages."""

_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": _PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With "no-referrer" a browser would hide the origin of our own forms too.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
_MAX_LENGTH_DIGITS = 20
_STATIC = "/static/"
_LOGIN_PATH = "/enter"
# Pages that cost nothing to show.
_UNLIMITED_PATHS = ("/", _LOGIN_PATH, "/api/models")


class SecurityMiddleware:
    """The outermost layer of the application, which passes a request on or refuses it."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._rate_limiter = RateLimiter(settings.limits.per_minute)
        self._login_attempts = RateLimiter(LOGIN_ATTEMPTS_PER_MINUTE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            # The start and stop of the server pass through. There are no WebSockets, which are dropped.
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        request, send_headers = Request(scope), _add_headers(send)
        try:
            self._check(request)
            rejection = self._deny_access(request)
        except HTTPException as error:
            rejection = render_error(request, error.status_code, str(error.detail))
        if rejection:
            await rejection(scope, receive, send_headers)
            return
        await self._app(scope, _limit_body(receive, self._settings.limits), send_headers)

    def _check(self, request: Request) -> None:
        check_host(request.headers.get("host", ""), loopback=is_loopback(self._settings.host))
        length = request.headers.get("content-length", "0")
        # int() refuses a number of thousands of digits with an error of its own. A false length is noticed by
        # _limit_body; this check spares the reading of a request that is too large by its own account.
        if (
            not length.isdecimal()
            or len(length) > _MAX_LENGTH_DIGITS
            or int(length) > self._settings.limits.upload_bytes
        ):
            raise make_too_large_error(self._settings.limits)
        if _is_rate_limited(request):
            self._rate_limiter.check(_client_address(request))

    def _deny_access(self, request: Request) -> Response | None:
        """Return the response to a request without the token; None if access is granted."""
        path, token = request.scope["path"], self._settings.token
        if not token or path == _LOGIN_PATH or path.startswith(_STATIC):
            return None
        if has_credentials(request.headers, request.cookies):
            # Before the token is compared: after too many guesses, even a right one is not recognised.
            self._login_attempts.check_remaining(_client_address(request))
            if is_authorized(request.headers, request.cookies, token):
                return None
            self._login_attempts.check(_client_address(request))
        if request.method == "GET" and not path.startswith("/api/"):
            return RedirectResponse(_LOGIN_PATH, status_code=303)
        return render_error(request, 401, "a token is needed here. Send it as: Authorization: Bearer TOKEN")


def _client_address(request: Request) -> str:
    return request.client.host if request.client else ""


def _is_rate_limited(request: Request) -> bool:
    """Return whether a request counts for the rate limit."""
    if request.method not in ("GET", "HEAD"):
        return True
    path = request.scope["path"]
    # The progress of an evaluation costs little, and its page asks for it twice a second.
    return path not in _UNLIMITED_PATHS and not path.startswith((_STATIC, "/api/jobs/"))


def _limit_body(receive: Receive, limits: Limits) -> Receive:
    """Return a function that receives a request, and raises an error if it is too large or too slow."""
    total, is_whole = 0, False
    deadline = asyncio.get_running_loop().time() + limits.body_seconds

    async def receive_limited() -> Message:
        nonlocal total, is_whole
        try:
            # Once the request is complete, receive() waits until the client disconnects, which may take long.
            async with asyncio.timeout_at(None if is_whole else deadline):
                message = await receive()
        except TimeoutError as error:
            raise make_timeout_error(limits) from error
        total += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if total > limits.upload_bytes:
            raise make_too_large_error(limits)
        return message

    return receive_limited


def _add_headers(send: Send) -> Send:
    """Return a function that sends a response with the common headers; a header that is already set stays."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers
