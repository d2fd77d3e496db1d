"""The command line: one module per command. A command parses its options, calls the package, and prints."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from acceptability import __version__
from acceptability.cli.completion import complete_from_environment
from acceptability.errors import AcceptabilityError, escape_control_chars, to_one_line

_log = logging.getLogger(__name__)

# The commands in the groups and in the order of the help, each with a summary and an example. The summary repeats the
# first paragraph of the command's own help, which stands in its module: the help of the program imports none of them.
_PANELS: dict[str, dict[str, tuple[str, str]]] = {
    "Score and evaluate": {
        "score": (
            "Score every sentence of a suite with a model.",
            "acceptability score starter --model trigram --words",
        ),
        "evaluate": (
            "Evaluate models on suites: the values of measures, with confidence intervals.",
            "acceptability evaluate starter -m trigram --by phenomenon",
        ),
        "measure": (
            "Measure scores from a file on a suite; no model is run.",
            "acceptability measure starter --scores mine.csv",
        ),
        "judge": (
            "Score sentences, show the surprisal of each token, and rank them.",
            'acceptability judge "The boys were late." "The boys was late."',
        ),
        "annotate": (
            "Annotate a table with a word a row: surprisal, entropy, rank, length, frequency, spill-over.",
            "acceptability annotate words.csv -m mini-causal --entropy --unigrams wordfreq:en",
        ),
        "complete": (
            "List what a model expects after the beginning of a sentence: words or tokens, with their probabilities.",
            'acceptability complete "The keys to the cabinet" --candidates are,is',
        ),
        "contrasts": (
            "Compare the surprisals of the words in which contrasting sentences differ: directionality and repulsion.",
            "acceptability contrasts starter -m trigram --by phenomenon",
        ),
        "methods": (
            "Evaluate models by five methods: Boolean, absolute pair, gradient pair, cloze, and feature probing.",
            "acceptability methods npi/adverbs -m masked:FOLDER",
        ),
        "probe": (
            "Probe encoders for the factors of a suite: linear classifiers on each layer, "
            "with control tasks and baselines.",
            "acceptability probe npi/adverbs -m masked:FOLDER --factor licensor",
        ),
    },
    "Compare": {
        "compare": (
            "Compare every two models on the same rows: differences, intervals and tests, corrected for their number.",
            "acceptability compare starter -m trigram -m uniform",
        ),
        "equivalence": (
            "Test whether the first model is equivalent to each of the others, up to a margin (TOST).",
            "acceptability equivalence starter -m trigram -m mini-lstm --margin .05",
        ),
        "power": (
            "Estimate the power of a comparison of models by simulation, or the number of items that it takes.",
            "acceptability power --items 50 --paradigms 67 --accuracy .8 --difference .02",
        ),
        "correlate": (
            "Correlate the scores of models with human ratings and with each other.",
            "acceptability correlate li_adger -m trigram --of gaps",
        ),
        "regress": (
            "Fit a mixed model: how an outcome depends on predictors where rows share items, paradigms or people.",
            "acceptability regress latest --formula 'correct ~ model + (1 | item)' --family binomial",
        ),
        "link": (
            "Fit MORCELA or SLLN-LP to ratings, cross-validate it along with unfitted scores, and test it against one.",
            "acceptability link lau/bnc -m trigram --unigrams wordfreq:en",
        ),
    },
    "Papers and reports": {
        "study": (
            "Recompute a paper's tables, or run a study of your own.",
            "acceptability study adc",
        ),
        "report": (
            "Make a report of saved runs: tables, figures and an item browser in one file, and files for a paper.",
            "acceptability report latest --out report.html --latex tables.tex",
        ),
        "reproduce": (
            "Compute a result again from its signature, and say whether the number is the same.",
            "acceptability reproduce latest",
        ),
        "demo": (
            "Evaluate the installed models on minimal pairs, offline: tables with intervals, and a report.",
            "acceptability demo",
        ),
        "serve": (
            "Start a web application on this machine: judge sentences, evaluate tables, browse suites and runs.",
            "acceptability serve --model causal:FOLDER",
        ),
    },
    "Train": {
        "train": (
            "Train a model: from text (--corpus) or, for a classifier, from labelled sentences (--data).",
            "acceptability train ngram --corpus corpus.txt --out model --set order=3",
        ),
        "restarts": (
            "Train a classifier from several seeds: mean (std), best run, chosen run and "
            "majority vote on labelled suites.",
            "acceptability restarts cbow --data cola/train --on cola/in_domain_dev --out runs",
        ),
        "perplexity": (
            "Measure the perplexity per word of a model on a text.",
            "acceptability perplexity --model ngram:model --corpus held-out.txt",
        ),
        "calibrate": (
            "Measure the calibration of a classifier, before and after its probabilities are recalibrated.",
            "acceptability calibrate cola/in_domain_dev -m classifier:FOLDER",
        ),
        "submit": (
            "Write predictions for CoLA in the formats of GLUE and Kaggle; several models "
            "vote, a tie means unacceptable.",
            "acceptability submit cola -m classifier:FOLDER --test test.tsv --out predictions",
        ),
    },
    "Data": {
        "suites": (
            "List, show, fetch, verify, check, pair and export suites.",
            "acceptability suites show blimp",
        ),
        "generate": (
            "Generate sentences and write them as a suite: real and fake ones, or the paradigms of a phenomenon.",
            "acceptability generate agreement --count 100 --out agreement.jsonl",
        ),
        "ratings": (
            "Turn responses into ratings: means with intervals, reliability, and agreement with labels.",
            "acceptability ratings answers.csv --kind likert --out ratings.csv",
        ),
    },
    "What is available": {
        "models": (
            "List the kinds of models, and the models that need no download.",
            "acceptability models",
        ),
        "measures": (
            "List the measures and their options.",
            "acceptability measures --json",
        ),
        "reductions": (
            "List the reductions and their options.",
            "acceptability reductions",
        ),
        "recipes": (
            "List the training recipes and their options.",
            "acceptability recipes",
        ),
        "runs": (
            "List the saved runs, the oldest first, or write the rows behind the results of one as CSV.",
            "acceptability runs latest --csv rows.csv",
        ),
        "store": (
            "List the stored outputs of models, and forget some.",
            "acceptability store forget --older-than 2026-01-31",
        ),
        "doctor": (
            "Report the state of the installation: packages, models, data, stored scores, device and threads.",
            "acceptability doctor",
        ),
    },
}
_PANEL_OF = {name: panel for panel, commands in _PANELS.items() for name in commands}
_SUMMARIES = {name: summary for commands in _PANELS.values() for name, (summary, _) in commands.items()}
_EXAMPLES = {name: example for commands in _PANELS.values() for name, (_, example) in commands.items()}
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
    program = _make_program(TyperGroup)
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


def _make_program(group: type[TyperGroup]) -> typer.Typer:
    """Return the program without commands, which belong to a group of this class."""
    program = typer.Typer(
        name="acceptability",
        cls=group,
        help="Measure how much a language model knows about which sentences are acceptable.",
        no_args_is_help=True,
        # Errors of ours are shown by main() as one line; those of others need an ordinary traceback to be reported.
        pretty_exceptions_enable=False,
        add_completion=True,
    )
    program.callback()(_program_options)
    return program


class _LazyGroup(TyperGroup):
    """The commands as their summaries, until one is run or completed: only then is its module imported."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name, with its module."""
        if args and args[0] in COMMANDS:
            self.commands[args[0]] = typer.main.get_group(build_application(args[:1])).commands[args[0]]
        return super().resolve_command(ctx, args)


def build_outline() -> typer.Typer:
    """Return the program with all its commands, whose modules are imported only when they are used."""
    program = _make_program(_LazyGroup)
    for name in COMMANDS:
        settings = {"help": _SUMMARIES[name], "rich_help_panel": _PANEL_OF[name]}
        program.command(name=name, **settings)(_stand_in)  # type: ignore[arg-type]
    return program


def _stand_in() -> None:
    """Stand for a command whose module is not imported; never called, since the command is resolved first."""


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
            # completion is requested, which need the names of all, and the module of one at most.
            program = build_application(sys.argv[1:2]) if set(sys.argv[1:2]) & set(COMMANDS) else build_outline()
            program()
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


def fail(message: str) -> NoReturn:
    """Print an error as one line on stderr and exit with status 1."""
    print("error: " + to_one_line(message), file=sys.stderr)
    sys.exit(1)


def _log_to_stderr() -> None:
    log = logging.getLogger("acceptability")
    log.setLevel(logging.INFO)
    handler = logging.StreamHandler()
    handler.setFormatter(EscapingFormatter())
    log.addHandler(handler)
