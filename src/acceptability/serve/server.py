"""The server itself: it listens, says where, and ends when asked to."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from acceptability.errors import EngineError
from acceptability.models import load_model
from acceptability.serve.app import application
from acceptability.serve.jobs import only_server
from acceptability.serve.judging import EMBEDDED
from acceptability.serve.settings import Settings
from acceptability.serve.tokens import check_token

_SECONDS_TO_END = 5


def serve(settings: Settings, tell: Callable[[str], None]) -> None:
    """Serve until Ctrl-C.

    Args:
        tell: Told the address once somebody can connect to it.
    """
    check_token(settings.host, settings.token)
    for name in settings.models:
        if name not in EMBEDDED:
            load_model(name)
    with _listening(settings) as listener, only_server():
        config = uvicorn.Config(
            application(settings),
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_SECONDS_TO_END,
        )
        tell(_address(settings.host, listener.getsockname()[1]))
        try:
            uvicorn.Server(config).run(sockets=[listener])
        except KeyboardInterrupt:
            # uvicorn ends in order first, and then passes the signal on.
            return


def _listening(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        raise EngineError(
            f"cannot listen on {settings.host}, port {settings.port}: {error}. Choose another with --port; 0 takes any "
            "that is free."
        ) from error


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
