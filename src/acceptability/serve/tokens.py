"""Who may come in, and whether a form was sent from our own page.

On loopback everybody on the machine may come in. On any other address a token is needed: sent by programs as
``Authorization: Bearer TOKEN``, typed once by people, whose browser then keeps a cookie made from it.

Every form carries the random value of a cookie that only our own pages can read, and a browser must say that the
request comes from our own origin.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from urllib.parse import urlsplit

from fastapi import HTTPException

from acceptability.errors import SpellingError

VISITOR = "acceptability_visitor"
ACCESS = "acceptability_access"
_SHORTEST = 16
_NAMES_OF_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_token(host: str, token: str | None) -> None:
    """Refuse to listen on an address that others can reach without a token worth the name."""
    if is_loopback(host) and not token:
        return
    if not token:
        raise SpellingError(
            f"others can reach {host}, and there is no token to keep them out. Make one with `python -c 'import "
            "secrets; print(secrets.token_urlsafe())'` and give it as --token or in ACCEPTABILITY_TOKEN, or leave "
            "--host away to listen on this machine only"
        )
    if len(token) < _SHORTEST or not (token.isascii() and token.isprintable()) or " " in token:
        raise SpellingError(
            f"the token is weak; expected at least {_SHORTEST} letters, digits and signs without spaces"
        )


def access_cookie(token: str) -> str:
    """Return what a browser keeps for a token; the token cannot be told from it."""
    return hmac.new(token.encode(), b"acceptability serve", hashlib.sha256).hexdigest()


def same(given: str, expected: str) -> bool:
    """Tell whether two secrets are the same, in a time that tells nothing."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode("utf-8", "replace"))


def may_enter(headers: Mapping[str, str], cookies: Mapping[str, str], token: str | None) -> bool:
    """Tell whether a request carries the token, or the cookie made from it."""
    if not token:
        return True
    scheme, _, given = headers.get("authorization", "").partition(" ")
    is_known = scheme.lower() == "bearer" and same(given, token)
    return is_known or same(cookies.get(ACCESS, ""), access_cookie(token))


def has_credentials(headers: Mapping[str, str], cookies: Mapping[str, str]) -> bool:
    """Tell whether a request claims to know the token, rightly or not."""
    return bool(headers.get("authorization") or cookies.get(ACCESS))


def check_host(header: str, *, loopback: bool) -> None:
    """Refuse a name that is not ours: another site may have been made to point to this machine."""
    if loopback and host_name(header) not in _NAMES_OF_LOOPBACK and not is_loopback(host_name(header)):
        raise HTTPException(421, "this server answers only to the names 127.0.0.1 and localhost. Use one of them.")


def host_name(header: str) -> str:
    """Return the name in a Host header, without its port.

    >>> host_name("localhost:8000"), host_name("[::1]:8000"), host_name("")
    ('localhost', '::1', '')
    """
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def new_visitor() -> str:
    """Return a random value for a browser that has none yet."""
    return secrets.token_urlsafe(24)


def is_from_browser(headers: Mapping[str, str]) -> bool:
    """Tell whether a request was sent by a page; every browser says so when it posts."""
    return bool(headers.get("origin") or headers.get("sec-fetch-site") or headers.get("cookie"))


def check_form(headers: Mapping[str, str], cookies: Mapping[str, str], given: str) -> None:
    """Refuse a form that another site sent, or that lacks the visitor's value."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none") or not _is_own_origin(headers):
        raise HTTPException(403, "the form was sent by another site. Open this page yourself and send it from there.")
    visitor = cookies.get(VISITOR, "")
    if not visitor or not same(given, visitor):
        raise HTTPException(403, "the form does not belong to this browser. Allow cookies, reload the page, try again.")


def _is_own_origin(headers: Mapping[str, str]) -> bool:
    origin = headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    except ValueError:
        return False
