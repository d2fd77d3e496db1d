"""The command line: one file per command. A command parses, calls one function, prints."""

from __future__ import annotations

import io
import logging
import os
import sys

import typer

from acceptability import __version__
from acceptability.cli import (
    calibrate,
    compare,
    contrasts,
    correlate,
    demo,
    doctor,
    evaluate,
    generate,
    judge,
    link,
    measure,
    measures,
    methods,
    models,
    perplexity,
    probe,
    ratings,
    recipes,
    reductions,
    report,
    restarts,
    runs,
    score,
    serve,
    study,
    submit,
    suites,
    train,
)
from acceptability.cli.shown import fail
from acceptability.errors import AcceptabilityError

app = typer.Typer(
    name="acceptability",
    help="Measure how much a language model knows about which sentences are acceptable.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(suites.app, name="suites")
_ASKING = (score, evaluate, measure, compare, correlate, contrasts, judge, study)
_PROBING = (methods, probe)
_MAKING = (train, generate, perplexity, link, ratings, demo, report, serve)
_LISTS = (models, measures, reductions, recipes, runs, doctor)
_CLASSIFYING = (restarts, calibrate, submit)
for _module in (*_ASKING, *_PROBING, *_MAKING, *_CLASSIFYING, *_LISTS):
    app.command(name=_module.__name__.rpartition(".")[2])(_module.command)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"acceptability {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: bool = typer.Option(
        False, "--version", help="Print the version and stop.", is_eager=True, callback=_print_version
    ),
) -> None:
    """Options of the program itself, before any command."""


def main() -> None:
    """Run the command line: an error of ours is one line on stderr and exit status 1."""
    # Other libraries' bars and chatter would tear our own apart.
    os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    log = logging.getLogger("acceptability")
    log.setLevel(logging.INFO)
    log.addHandler(logging.StreamHandler())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except AcceptabilityError as error:
        fail(str(error))
    except OSError as error:
        # Nothing can be written any more, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        fail(f"cannot write the output: {error.strerror or error}")
