"""The command line: one file per command. A command parses, calls one function, prints."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from acceptability import __version__
from acceptability.cli.shown import fail
from acceptability.errors import AcceptabilityError, visible

_ASKING = ("suites", "score", "evaluate", "measure", "compare", "correlate", "contrasts", "judge", "study")
_PROBING = ("methods", "probe")
_MAKING = ("train", "generate", "perplexity", "link", "ratings", "demo", "report", "serve")
_CLASSIFYING = ("restarts", "calibrate", "submit")
_LISTS = ("models", "measures", "reductions", "recipes", "runs", "doctor")
COMMANDS = (*_ASKING, *_PROBING, *_MAKING, *_CLASSIFYING, *_LISTS)


def application(names: Sequence[str] = COMMANDS) -> typer.Typer:
    """Return the program with some of its commands, whose modules are loaded."""
    made = typer.Typer(
        name="acceptability",
        help="Measure how much a language model knows about which sentences are acceptable.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
    )
    made.callback()(_common)
    for name in names:
        module = import_module(f"acceptability.cli.{name}")
        if hasattr(module, "command"):
            made.command(name=name)(module.command)
        else:
            made.add_typer(module.app, name=name)
    return made


def __getattr__(name: str) -> Any:
    """Make ``app``, the program with all its commands, when it is first asked for."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["app"] = application()
    return globals()["app"]


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"acceptability {__version__}")
        raise typer.Exit


def _common(
    version: bool = typer.Option(
        False, "--version", help="Print the version and stop.", is_eager=True, callback=_print_version
    ),
) -> None:
    """Options of the program itself, before any command."""


class _Visible(logging.Formatter):
    """Writes what is logged so that nothing in it is a command to the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def main() -> None:
    """Run the command line: an error of ours is one line on stderr and exit status 1."""
    # A program that is started with its output closed writes to nowhere.
    sys.stdout, sys.stderr = (stream or Path(os.devnull).open("w") for stream in (sys.stdout, sys.stderr))  # noqa: SIM115
    # Other libraries' bars and chatter would tear our own apart.
    os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    log = logging.getLogger("acceptability")
    log.setLevel(logging.INFO)
    handler = logging.StreamHandler()
    handler.setFormatter(_Visible())
    log.addHandler(handler)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            # A command that is named is loaded alone, so that it starts sooner.
            application(sys.argv[1:2] if sys.argv[1:2] and sys.argv[1] in COMMANDS else COMMANDS)()
        finally:
            sys.stdout.flush()
    except AcceptabilityError as error:
        fail(str(error))
    except MemoryError:
        fail("there is not enough memory for this. Take a part of the file, or a machine with more.")
    except OSError as error:
        # Nothing can be written any more, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        fail(f"cannot write the output: {error.strerror or error}")
