"""``acceptability serve``: the local web application."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from acceptability.cli.console import JsonOption, complete_model_specs, print_json, print_message
from acceptability.errors import MissingExtra, SpecError
from acceptability.models.files import is_importable

_REQUIRED_MODULES = ("fastapi", "uvicorn", "python_multipart")


def command(
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="Offer this model besides those that come with the package. Repeatable."),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="The address to listen on; any other than 127.0.0.1 needs --token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port to listen on; 0 for any free one.")
    ] = 8765,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="ACCEPTABILITY_TOKEN", help="The secret that visitors have to enter."),
    ] = None,
    max_megabytes: Annotated[float, typer.Option("--max-megabytes", help="The largest upload, in megabytes.")] = 5.0,
    max_sentences: Annotated[
        int, typer.Option("--max-sentences", help="The largest number of sentences in a table or suite.")
    ] = 20_000,
    per_minute: Annotated[
        int, typer.Option("--per-minute", help="The rate limit: requests for work per minute and address.")
    ] = 600,
    as_json: JsonOption = False,
) -> None:
    """Start a web application on this machine: judge sentences, evaluate tables, browse suites and runs."""
    if not all(map(is_importable, _REQUIRED_MODULES)):
        raise MissingExtra("acceptability serve", "fastapi, uvicorn and python-multipart", "'acceptability[web]'")
    for name, value in (
        ("--max-megabytes", max_megabytes),
        ("--max-sentences", max_sentences),
        ("--per-minute", per_minute),
    ):
        # Not `value <= 0`, which is false for NaN.
        if not value > 0:
            raise SpecError(f"{name} is {value}; expected more than 0")
    # The threads of OpenMP spin while they wait for work. With several models in one process they would take the cores
    # from those that compute, which is many times slower on a busy machine. It is read when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # Imported here, since the packages that they need are optional.
    from acceptability.serve.app import serve
    from acceptability.serve.model_worker import list_served_models
    from acceptability.serve.security import Limits, Settings

    limits = Limits(upload_bytes=int(max_megabytes * 1_000_000), table_sentences=max_sentences, per_minute=per_minute)

    def print_address(address: str) -> None:
        if as_json:
            print_json({"address": address})
            # The program that started the server waits for this line, and a pipe is buffered.
            sys.stdout.flush()
        print_message(f"open {address} in a browser; Ctrl-C stops the server")

    serve(Settings(host, port, token, list_served_models(complete_model_specs(model)), limits), print_address)
