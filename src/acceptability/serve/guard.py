"""What stands before every page: who may ask, by which name, how much, and what browsers are told to forbid."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from fastapi import HTTPException, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from acceptability.serve.limits import TRIES_A_MINUTE, Limits, Rate, too_large, too_slow
from acceptability.serve.pages import refused
from acceptability.serve.settings import Settings
from acceptability.serve.tokens import check_host, has_credentials, is_loopback, may_enter

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""A report has style and scripts in itself, and a policy of its own that names the scripts by their hashes: both hold.

It is shut off from our own pages, whatever is in it."""

_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With "no-referrer" a browser would hide the origin of our own forms too.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
_MOST_DIGITS = 20
_STATIC = "/static/"
_DOOR = "/enter"
_CHEAP = ("/", _DOOR, "/api/models")
"""What costs nothing to show. How far an evaluation is costs little, and a page asks for it twice a second."""


class Guard:
    """Lets a request through to the application, or refuses it."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._rate = Rate(settings.limits.per_minute)
        self._tries = Rate(TRIES_A_MINUTE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        request, sender = Request(scope), _with_headers(send)
        try:
            self._check(request)
            away = self._sent_away(request)
        except HTTPException as error:
            away = refused(request, error.status_code, str(error.detail))
        if away:
            await away(scope, receive, sender)
            return
        await self._app(scope, _counted(receive, self._settings.limits), sender)

    def _check(self, request: Request) -> None:
        check_host(request.headers.get("host", ""), loopback=is_loopback(self._settings.host))
        length = request.headers.get("content-length", "0")
        # A number of thousands of digits would be refused by int() itself.
        if not length.isdecimal() or len(length) > _MOST_DIGITS or int(length) > self._settings.limits.upload_bytes:
            raise too_large(self._settings.limits)
        if _is_work(request):
            self._rate.check(_sender(request))

    def _sent_away(self, request: Request) -> Response | None:
        """Return where somebody without the token is sent; None for everybody else."""
        path, token = request.scope["path"], self._settings.token
        if not token or path == _DOOR or path.startswith(_STATIC):
            return None
        if has_credentials(request.headers, request.cookies):
            # Before the token is looked at: who guesses too often learns nothing, also not of a right guess.
            self._tries.check_left(_sender(request))
            if may_enter(request.headers, request.cookies, token):
                return None
            self._tries.check(_sender(request))
        if request.method == "GET" and not path.startswith("/api/"):
            return RedirectResponse(_DOOR, status_code=303)
        return refused(request, 401, "a token is needed here. Send it as: Authorization: Bearer TOKEN")


def _sender(request: Request) -> str:
    return request.client.host if request.client else ""


def _is_work(request: Request) -> bool:
    """Tell whether a request costs so much that it is counted."""
    if request.method not in ("GET", "HEAD"):
        return True
    path = request.scope["path"]
    return path not in _CHEAP and not path.startswith((_STATIC, "/api/jobs/"))


def _counted(receive: Receive, limits: Limits) -> Receive:
    """Return what receives a request and breaks off when it is longer than it said, or takes too long to arrive."""
    total, is_whole = 0, False
    ends = asyncio.get_running_loop().time() + limits.body_seconds

    async def counted() -> Message:
        nonlocal total, is_whole
        try:
            # After the whole of it, what is waited for is the visitor's leaving.
            async with asyncio.timeout_at(None if is_whole else ends):
                message = await receive()
        except TimeoutError as error:
            raise too_slow(limits) from error
        total += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if total > limits.upload_bytes:
            raise too_large(limits)
        return message

    return counted


def _with_headers(send: Send) -> Send:
    """Return what sends an answer with the headers that every answer has; one that is there already stays."""

    async def sender(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sender
