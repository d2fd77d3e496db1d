"""The command line: one module per command. A command parses its options, calls the package, and prints."""

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
from acceptability.cli.completion import complete_from_environment
from acceptability.cli.console import fail
from acceptability.errors import AcceptabilityError, escape_control_chars

_log = logging.getLogger(__name__)

# The commands in the groups and in the order of the help, each with an example.
_PANELS: dict[str, dict[str, str]] = {
    "Score and evaluate": {
        "score": "acceptability score starter --model trigram --words",
        "evaluate": "acceptability evaluate starter -m trigram --by phenomenon",
        "measure": "acceptability measure starter --scores mine.csv",
        "judge": 'acceptability judge "The boys were late." "The boys was late."',
        "contrasts": "acceptability contrasts starter -m trigram --by phenomenon",
        "methods": "acceptability methods npi/adverbs -m masked:FOLDER",
        "probe": "acceptability probe npi/adverbs -m masked:FOLDER --factor licensor",
    },
    "Compare": {
        "compare": "acceptability compare starter -m trigram -m uniform",
        "equivalence": "acceptability equivalence starter -m trigram -m mini-lstm --margin .05",
        "power": "acceptability power --items 50 --paradigms 67 --accuracy .8 --difference .02",
        "correlate": "acceptability correlate li_adger -m trigram --of gaps",
        "regress": "acceptability regress latest --formula 'correct ~ model + (1 | item)' --family binomial",
        "link": "acceptability link lau/bnc -m trigram --unigrams wordfreq:en",
    },
    "Papers and reports": {
        "study": "acceptability study adc",
        "report": "acceptability report latest --out report.html --latex tables.tex",
        "reproduce": "acceptability reproduce latest",
        "demo": "acceptability demo",
        "serve": "acceptability serve --model causal:FOLDER",
    },
    "Train": {
        "train": "acceptability train ngram --corpus corpus.txt --out model --set order=3",
        "restarts": "acceptability restarts cbow --data cola/train --on cola/in_domain_dev --out runs",
        "perplexity": "acceptability perplexity --model ngram:model --corpus held-out.txt",
        "calibrate": "acceptability calibrate cola/in_domain_dev -m classifier:FOLDER",
        "submit": "acceptability submit cola -m classifier:FOLDER --test test.tsv --out predictions",
    },
    "Data": {
        "suites": "acceptability suites show blimp",
        "generate": "acceptability generate agreement --count 100 --out agreement.jsonl",
        "ratings": "acceptability ratings answers.csv --kind likert --out ratings.csv",
    },
    "What is available": {
        "models": "acceptability models",
        "measures": "acceptability measures --json",
        "reductions": "acceptability reductions",
        "recipes": "acceptability recipes",
        "runs": "acceptability runs",
        "store": "acceptability store forget --older-than 2026-01-31",
        "doctor": "acceptability doctor",
    },
}
_PANEL_OF = {name: panel for panel, examples in _PANELS.items() for name in examples}
_EXAMPLES = {name: example for examples in _PANELS.values() for name, example in examples.items()}
COMMANDS = tuple(_PANEL_OF)

# Short commands that share a module with a related one; every other command has a module of its own name.
_SHARED_MODULES = {
    "correlate": "compare",
    "link": "compare",
    "measure": "evaluate",
    "perplexity": "train",
    "measures": "listing",
    "models": "listing",
    "recipes": "listing",
    "reductions": "listing",
    "runs": "listing",
}

# Options that had another name in the version before: accepted for one release, with a line that names the new one.
_RENAMED_OPTIONS = {
    "demo": {"--page": "--report"},
    "generate": {"--lm": "--model"},
    "measure": {"--columns": "--score-columns"},
    "ratings": {"--least-responses": "--min-responses", "--least-catch": "--min-catch"},
    "serve": {"--most-megabytes": "--max-megabytes", "--most-sentences": "--max-sentences"},
}


def build_application(names: Sequence[str] = COMMANDS) -> typer.Typer:
    """Return the program with the given commands, and import their modules only."""
    program = typer.Typer(
        name="acceptability",
        help="Measure how much a language model knows about which sentences are acceptable.",
        no_args_is_help=True,
        # Errors of ours are shown by main() as one line; those of others need an ordinary traceback to be reported.
        pretty_exceptions_enable=False,
        add_completion=True,
    )
    program.callback()(_program_options)
    for name in names:
        module = import_module(f"acceptability.cli.{_SHARED_MODULES.get(name, name)}")
        panel, epilog = _PANEL_OF[name], f"Example: {_EXAMPLES[name]}"
        function = getattr(module, f"{name}_command" if name in _SHARED_MODULES else "command", None)
        if function is not None:
            program.command(name=name, rich_help_panel=panel, epilog=epilog)(function)
        else:
            # A group of subcommands, such as `suites`, is an application of its own.
            program.add_typer(module.app, name=name, rich_help_panel=panel, epilog=epilog)
    return program


def __getattr__(name: str) -> Any:
    """Build ``app``, the program with all its commands, on its first use: importing all commands takes a while."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["app"] = build_application()
    return globals()["app"]


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"acceptability {__version__}")
        raise typer.Exit


def _program_options(
    version: bool = typer.Option(
        False, "--version", help="Print the version and exit.", is_eager=True, callback=_print_version
    ),
) -> None:
    """Options of the program itself, which stand before the command."""


def replace_old_options(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of the program with options by the names that they have now; old names are reported.

    >>> replace_old_options(["ratings", "answers.csv", "--min-responses=3"])
    ['ratings', 'answers.csv', '--min-responses=3']
    """
    renamed = _RENAMED_OPTIONS.get(arguments[0], {}) if arguments else {}
    current = []
    for argument in arguments:
        # `--option=value` is one argument, of which only the name changes.
        option, equals, value = argument.partition("=")
        if option in renamed:
            _log.warning(
                "%s is now called %s; the old name will be refused from the next release", option, renamed[option]
            )
        current.append(renamed.get(option, option) + equals + value)
    return current


class EscapingFormatter(logging.Formatter):
    """Escapes control characters in log messages, which may quote the texts of others."""

    def format(self, record: logging.LogRecord) -> str:
        return escape_control_chars(super().format(record))


def main() -> None:
    """Run the command line; an expected error is one line on stderr and exit status 1."""
    # Python sets a stream to None if it was closed when the program started (`acceptability … >&-`), and any print
    # would then fail.
    sys.stdout, sys.stderr = (stream or Path(os.devnull).open("w") for stream in (sys.stdout, sys.stderr))  # noqa: SIM115
    if complete_from_environment(os.environ):
        return
    # Progress bars and warnings of other libraries would be drawn into our own bars.
    for name in ("TQDM_DISABLE", "HF_HUB_DISABLE_PROGRESS_BARS", "HF_DATASETS_DISABLE_PROGRESS_BARS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("DATASETS_VERBOSITY", "error")
    _log_to_stderr()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character that the terminal's encoding lacks is printed as an escape instead of ending the program.
            stream.reconfigure(errors="backslashreplace")
    sys.argv[1:] = replace_old_options(sys.argv[1:])
    try:
        try:
            # Only the module of the given command is imported, so that it starts sooner. Without one, help or shell
            # completion is requested, which need all of them.
            build_application(sys.argv[1:2] if sys.argv[1:2] and sys.argv[1] in COMMANDS else COMMANDS)()
        finally:
            # Flushed here: at exit, Python would report a full disk with a traceback that nobody can catch.
            sys.stdout.flush()
    except AcceptabilityError as error:
        fail(str(error))
    except MemoryError:
        fail("there is not enough memory for this. Take a part of the file, or a machine with more.")
    except OSError as error:
        # Python flushes stdout once more at exit, which would fail again unless it leads to nowhere by then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        fail(f"cannot write the output: {error.strerror or error}")


def _log_to_stderr() -> None:
    log = logging.getLogger("acceptability")
    log.setLevel(logging.INFO)
    handler = logging.StreamHandler()
    handler.setFormatter(EscapingFormatter())
    log.addHandler(handler)
