"""What stands before every page: who may ask, by which name, how much, and what browsers are told to forbid."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import HTTPException, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from acceptability.serve.limits import Limits, Rate, too_large
from acceptability.serve.pages import refused
from acceptability.serve.settings import Settings
from acceptability.serve.tokens import check_host, is_loopback, may_enter

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
_OPEN = ("/enter", "/static/")


class Guard:
    """Lets a request through to the application, or refuses it."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._rate = Rate(settings.limits.per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        request, sender = Request(scope), _with_headers(send)
        try:
            self._check(request)
        except HTTPException as error:
            await refused(request, error.status_code, str(error.detail))(scope, receive, sender)
            return
        if away := self._sent_away(request):
            await away(scope, receive, sender)
            return
        await self._app(scope, _counted(receive, self._settings.limits), sender)

    def _check(self, request: Request) -> None:
        check_host(request.headers.get("host", ""), loopback=is_loopback(self._settings.host))
        length = request.headers.get("content-length", "0")
        # A number of thousands of digits would be refused by int() itself.
        if not length.isdecimal() or len(length) > _MOST_DIGITS or int(length) > self._settings.limits.upload_bytes:
            raise too_large(self._settings.limits)
        if request.method not in ("GET", "HEAD"):
            self._rate.check(request.client.host if request.client else "")

    def _sent_away(self, request: Request) -> Response | None:
        """Return where somebody without the token is sent; None for everybody else."""
        if request.url.path.startswith(_OPEN) or may_enter(request.headers, request.cookies, self._settings.token):
            return None
        if request.method == "GET" and not request.url.path.startswith("/api/"):
            return RedirectResponse("/enter", status_code=303)
        return refused(request, 401, "a token is needed here. Send it as: Authorization: Bearer TOKEN")


def _counted(receive: Receive, limits: Limits) -> Receive:
    """Return what receives a request and breaks off when it is longer than it said, or did not say."""
    total = 0

    async def counted() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
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
