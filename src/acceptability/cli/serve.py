"""``acceptability serve``: the page in a browser."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from acceptability.cli.shown import Json, print_json, talk
from acceptability.errors import MissingExtra, SpellingError
from acceptability.models.files import is_importable

_NEEDS = ("fastapi", "uvicorn", "python_multipart")


def command(
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="A model besides those that come with the package.")
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="Where to listen; any but 127.0.0.1 needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes any that is free.")] = 8765,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="ACCEPTABILITY_TOKEN", help="What visitors must know to come in."),
    ] = None,
    most_megabytes: Annotated[float, typer.Option("--most-megabytes", help="The largest upload.")] = 5.0,
    most_sentences: Annotated[int, typer.Option("--most-sentences", help="The longest table.")] = 20_000,
    per_minute: Annotated[
        int, typer.Option("--per-minute", help="How many requests for work one address may send in a minute.")
    ] = 600,
    as_json: Json = False,
) -> None:
    """Open a page in the browser: judge sentences, evaluate tables, look through suites and runs."""
    if not all(map(is_importable, _NEEDS)):
        raise MissingExtra("acceptability serve", "fastapi, uvicorn and python-multipart", "'acceptability[web]'")
    for name, value in (
        ("--most-megabytes", most_megabytes),
        ("--most-sentences", most_sentences),
        ("--per-minute", per_minute),
    ):
        if not value > 0:
            raise SpellingError(f"{name} is {value}; expected more than 0")
    # Threads of PyTorch that wait by spinning take the cores from those that answer: much slower on busy ones.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from acceptability.serve.judging import installed
    from acceptability.serve.limits import Limits
    from acceptability.serve.server import serve
    from acceptability.serve.settings import Settings

    limits = Limits(upload_bytes=int(most_megabytes * 1_000_000), table_sentences=most_sentences, per_minute=per_minute)

    def tell(address: str) -> None:
        if as_json:
            print_json({"address": address})
            sys.stdout.flush()
        talk(f"open {address} in a browser; Ctrl-C ends the server")

    serve(Settings(host, port, token, installed(model or ()), limits), tell)
