"""What the commands share: options that mean the same everywhere, and output.

Data goes to stdout, where a program may read it; messages and progress go to stderr. Texts come from files of others
and may contain the control sequences of a terminal, so everything that is meant for people is escaped.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from acceptability import registry
from acceptability.api.scoring import ProgressCallback
from acceptability.engine import load_engine
from acceptability.errors import SpecError, escape_control_chars
from acceptability.models.kinds import complete_model_spec
from acceptability.protocols import Engine
from acceptability.report.display_names import DEFAULT_STYLE, NumberFormat
from acceptability.report.text_table import TextTable, make_table, render_table, wrap_text
from acceptability.specs import format_spec, parse_signature, parse_spec, shorten_signature
from acceptability.stats.bootstrap import Bootstrap
from acceptability.stats.sampling_units import parse_sampling_unit
from acceptability.store.runs import RunInputs, SavedRun, SuiteInput, save_run
from acceptability.store.unit_rows import RunRow
from acceptability.suites import load_suite
from acceptability.suites.brackets import read_marks
from acceptability.suites.column_names import parse_labels
from acceptability.suites.table_files import TableOptions
from acceptability.types import Suite

SuiteArgument = Annotated[str, typer.Argument(help="A suite of the catalog, a file, or hf:OWNER/NAME.")]
AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="WHAT",
        help="What the file may open outside its folder: hub, remote:HOST, plugin:NAME or a path. Repeatable.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
_MODEL_HELP = "A model: a name, a folder, an id on the Hugging Face Hub, or KIND:PATH."
ModelOption = Annotated[str | None, typer.Option("--model", "-m", metavar="MODEL", help=_MODEL_HELP)]
RequiredModelOption = Annotated[str, typer.Option("--model", "-m", metavar="MODEL", help=_MODEL_HELP)]
ModelsOption = Annotated[list[str], typer.Option("--model", "-m", metavar="MODEL", help=f"{_MODEL_HELP} Repeatable.")]
OptionalModelsOption = Annotated[
    list[str] | None, typer.Option("--model", "-m", metavar="MODEL", help=f"{_MODEL_HELP} Repeatable.")
]
ReductionsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--reduce",
        "-r",
        help="A reduction, such as lp, mean_lp or slor(…). Repeatable. Default: lp, or log_odds for classifiers.",
    ),
]
MeasuresOption = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-M",
        help="A measure, such as PBC or ADC(delta=0.5). Repeatable. Default: PairAccuracy for pairs, and those of "
        "ratings or labels for other sentences.",
    ),
]
ByOption = Annotated[
    str | None,
    typer.Option("--by", help="Also report the results for each value of this tag, and their macro mean."),
]
DtypeOption = Annotated[
    str | None, typer.Option("--dtype", help="The floating-point precision: float32 (default), bfloat16 or float16.")
]
RegionOption = Annotated[
    str | None, typer.Option("--region", help="Score only this region of each sentence, given the rest of it.")
]
EntropyOption = Annotated[
    bool,
    typer.Option("--entropy", help="Add the entropy of the next token (bits) before each row, and its reduction."),
]
RankOption = Annotated[
    bool,
    typer.Option("--rank", help="Add the rank of the token, and the probability of all tokens up to this rank."),
]
TopOption = Annotated[
    int,
    typer.Option("--top", metavar="N", min=0, help="Add the N most probable tokens in its place, 100 at most."),
]
StrideOption = Annotated[
    int | None,
    typer.Option(
        "--stride",
        metavar="N",
        help="Read texts that are longer than the model's window in overlapping windows, N tokens apart.",
    ),
]
WindowOption = Annotated[
    int | None,
    typer.Option(
        "--window",
        metavar="N",
        help="With --stride: tokens in a window. Default: as many as the model was trained on, or reads.",
    ),
]
SpacesOption = Annotated[
    str | None,
    typer.Option("--spaces", help="For a causal model: the word that a space counts towards, leading or trailing."),
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine", help="Where models run: local, or ray for a cluster; ray(workers=8) sets the number of workers."
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option("--address", help="The address of the Ray cluster, HOST:PORT, or auto for one on this machine."),
]
PartialOption = Annotated[
    bool,
    typer.Option("--partial", help="Leave sentences that a file of scores lacks out of the results, and say how many."),
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option("--where", help="Only the part of the suite with this value of a tag: TAG=VALUE. Repeatable."),
]
ResamplesOption = Annotated[
    int, typer.Option("--resamples", help="The number of bootstrap resamples for the intervals; 0 for no intervals.")
]
ResampleByOption = Annotated[
    str | None,
    typer.Option(
        "--resample-by",
        metavar="TAG",
        help="What intervals, tests and folds keep together: a tag, two (paradigm/item), or row for single rows. "
        "Default: the suite's sampling unit.",
    ),
]
IntervalOption = Annotated[
    str,
    typer.Option(
        "--interval",
        help="How intervals are computed: auto, a closed form where the measure has one; or by the bootstrap: "
        "percentile, or bca, corrected for bias and skewness.",
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", help="The seed of the resampling.")]

SignaturesOption = Annotated[bool, typer.Option("--signatures", help="Print signatures in full.")]


@dataclass(frozen=True)
class Display:
    """How results are printed for people.

    Args:
        style: How numbers are printed.
        signatures: Whether signatures are printed in full.
    """

    style: NumberFormat = DEFAULT_STYLE
    signatures: bool = False


_DISPLAY_PARAMETERS = (
    Parameter(
        "digits",
        Parameter.KEYWORD_ONLY,
        default=3,
        annotation=Annotated[
            int, typer.Option("--digits", metavar="N", min=0, max=15, help="Decimals in tables.", show_default=True)
        ],
    ),
    Parameter(
        "percent",
        Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, typer.Option("--percent", help="Print shares, such as accuracies, in per cent.")],
    ),
    Parameter("signatures", Parameter.KEYWORD_ONLY, default=False, annotation=SignaturesOption),
)


def with_display(command: Callable[..., None], *, shares: bool = True) -> Callable[..., None]:
    """Return a command with the options ``--digits``, ``--percent`` and ``--signatures``.

    Args:
        command: A command with a parameter ``display``, which the values of these options are passed to.
        shares: Whether some of its numbers are shares, which ``--percent`` is for.
    """
    given = signature(command, eval_str=True)
    others = [parameter for name, parameter in given.parameters.items() if name != "display"]

    def run(*, digits: int = 3, percent: bool = False, signatures: bool = False, **options: Any) -> None:
        command(**options, display=Display(NumberFormat(digits, percent), signatures))

    own = [parameter for parameter in _DISPLAY_PARAMETERS if shares or parameter.name != "percent"]
    # Typer reads the options of a command from the signature and the annotations of a function.
    parameters = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in (*others, *own)]
    run.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    return run


@dataclass(frozen=True)
class SuiteReading:
    """How the suite of a command is read.

    Args:
        table: What the user says about a table.
        marks: The labels of judgement marks in a .txt file of examples.
        unit: The sampling unit, if not that of the suite.
    """

    table: TableOptions = field(default_factory=TableOptions)
    marks: Mapping[str, int | None] = field(default_factory=dict)
    unit: str | None = None


DEFAULT_READING = SuiteReading()
_PANEL = "How the suite is read"


def _make_reading_parameter(name: str, default: object, kind: object, *words: str, **settings: Any) -> Parameter:
    return Parameter(
        name,
        Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, typer.Option(*words, rich_help_panel=_PANEL, **settings)],
    )


_TEXT = str | None
_READING_PARAMETERS = (
    _make_reading_parameter(
        "columns", None, _TEXT, "--columns", "--suite-columns",
        help="For a table: its columns by meaning, MEANING=COLUMN,… such as text=Sentence; - for none.",
    ),
    _make_reading_parameter(
        "labels", None, _TEXT, "--labels",
        help="For a table: what its labels mean, WORD=1,WORD=0,WORD=none; empty=1 for empty cells.",
    ),
    _make_reading_parameter("pair_by", None, _TEXT, "--pair-by", metavar="TAG", help=(
        "For a table with a sentence a row: contrast acceptable and unacceptable rows of the same item, or "
        "paradigm/item."
    )),
    _make_reading_parameter("sheet", None, _TEXT, "--sheet", help="For a spreadsheet: the sheet. Default: the first."),
    _make_reading_parameter(
        "quoting", True, bool, "--quoting/--no-quoting", show_default=False,
        help="For a text table: --no-quoting if quotation marks are a part of the text.",
    ),
    _make_reading_parameter("separator", None, _TEXT, "--separator", help=(
        "For a text table: comma, semicolon or tab. Default: recognised."
    )),
    _make_reading_parameter("decimal", None, _TEXT, "--decimal", help=(
        "For a text table: point or comma. Default: recognised."
    )),
    _make_reading_parameter("encoding", None, _TEXT, "--encoding", help=(
        "For a text table: its encoding, such as cp1250. Default: UTF-8, or recognised."
    )),
    _make_reading_parameter(
        "marks", None, _TEXT, "--marks",
        help="For a .txt file of examples: the labels of judgement marks, such as ?=1,#=drop; none if it has none.",
    ),
    _make_reading_parameter(
        "unit", None, _TEXT, "--unit", metavar="TAG",
        help="The sampling unit of the suite: a tag, two (paradigm/item), or row. Default: that of the catalog or the "
        "file; for a table set or item, if all rows have it.",
    ),
)  # fmt: skip


def with_reading(
    command: Callable[..., None], *, without: Sequence[str] = (), columns: str = "--columns"
) -> Callable[..., None]:
    """Return a command with the options that say how its suite is read, as its parameter ``reading``.

    Args:
        command: The command.
        without: The options that it does not have.
        columns: What the option for the columns of the suite is called, if the command has another ``--columns``.
    """
    given = signature(command, eval_str=True)
    own = [parameter for parameter in _READING_PARAMETERS if parameter.name not in without]
    if columns != "--columns":
        renamed = _make_reading_parameter(
            "suite_columns", None, _TEXT, columns, help="For a table: the columns of the suite, MEANING=COLUMN,…"
        )
        own = [renamed, *(parameter for parameter in own if parameter.name != "columns")]

    def run(**options: Any) -> None:
        values = {parameter.name: options.pop(parameter.name) for parameter in own}
        command(**options, reading=_build_reading(values))

    # They stand where the parameter stands.
    parameters: list[Parameter] = []
    for parameter in given.parameters.values():
        parameters += own if parameter.name == "reading" else [parameter.replace(kind=Parameter.KEYWORD_ONLY)]
    run.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    return run


def with_reading_options(
    *, without: Sequence[str] = (), columns: str = "--columns"
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the decorator ``with_reading`` with its arguments."""
    return partial(with_reading, without=without, columns=columns)


def _build_reading(values: Mapping[str, Any]) -> SuiteReading:
    given = {name: value for name, value in values.items() if value is not None}
    columns = given.pop("columns", given.pop("suite_columns", None))
    marks, unit, labels = given.pop("marks", None), given.pop("unit", None), given.pop("labels", None)
    table = TableOptions(columns=read_columns(columns), labels=parse_labels(labels) if labels else {}, **given)
    return SuiteReading(table, read_marks(marks) if marks else {}, unit)


# A table that is piped into a file or a pager has no terminal to fit into.
_WIDTH_WITHOUT_TERMINAL = 220
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def print_message(message: str) -> None:
    """Print a message for people on stderr."""
    # Not wrapped and without markup: a signature or a path must be one line that can be copied, brackets included.
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        escape_control_chars(message), markup=False, emoji=False
    )


def print_line(line: str) -> None:
    """Print a line for people on stdout, with control characters escaped."""
    print(escape_control_chars(line))


def print_data(text: str) -> None:
    """Print data unchanged to a file or a pipe; on a terminal, control characters are escaped."""
    sys.stdout.write(escape_control_chars(text) if sys.stdout.isatty() else text)


def print_json(data: object) -> None:
    """Print data as JSON."""
    # In ASCII, so that no encoding of the terminal or of the pipe can fail on a character. NaN is not JSON.
    print(json.dumps(data, ensure_ascii=True, indent=1, allow_nan=False))


def print_notes(lines: Iterable[str]) -> None:
    """Print what stands below a table on stderr, each line once, and wrapped at words on a terminal."""
    for line in dict.fromkeys(lines):
        wrapped = wrap_text(escape_control_chars(line), measure_width(sys.stderr)) if sys.stderr.isatty() else [line]
        for part in wrapped:
            print_message(part)


def print_signatures(signatures: Iterable[str], display: Display) -> None:
    """Print signatures in full, if that was asked for; their short forms stand in the line about the run."""
    for text in dict.fromkeys(signatures) if display.signatures else ():
        print_message(text)


def measure_width(stream: TextIO) -> int:
    """Return the width that output has to fit into: COLUMNS, or that of the terminal; a file takes long lines."""
    if (columns := os.environ.get("COLUMNS", "")).isdecimal() and int(columns) > 0:
        return int(columns)
    return shutil.get_terminal_size().columns if stream.isatty() else _WIDTH_WITHOUT_TERMINAL


def print_table(*tables: TextTable) -> None:
    """Print tables, an empty line between two of them: as wide as the terminal, and no number is cut."""
    # A terminal of ASCII gets a line that it has.
    rule = "─" if _can_print("─") else "-"
    # https://no-color.org, and terminals that would print the sequences.
    plain = not sys.stdout.isatty() or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    for number, table in enumerate(tables):
        if number:
            print()
        lines = render_table(table, measure_width(sys.stdout), rule=rule)
        print("\n".join(lines if plain else _embolden_headers(lines, rule)))


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _embolden_headers(lines: Sequence[str], rule: str) -> list[str]:
    """Return the lines of a table with its titles and headers in bold: those between an empty line and a rule."""
    rules = [index for index, line in enumerate(lines) if line and not line.strip(f"{rule} ")]
    bold: set[int] = set()
    for index in rules:
        start = index
        while start and lines[start - 1]:
            start -= 1
        bold.update(range(start, index))
    return [f"{_BOLD}{line}{_PLAIN}" if index in bold else line for index, line in enumerate(lines)]


def print_rows(header: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    """Print rows as a table, the first column of which has names that are typed; None is an empty cell."""
    print_table(make_table(header, [[row[name] for name in header] for row in rows], unbroken=header[:1]))


def print_registered(kind: str, as_json: bool) -> None:
    """Print everything that is registered of a kind: names, options and descriptions."""
    rows = [
        {
            "name": name,
            "options": ", ".join(
                option if parameter.default is parameter.empty else f"{option}={parameter.default!r}"
                for option, parameter in signature(registered).parameters.items()
            ),
            "what it is": str(registered.__doc__).strip().splitlines()[0],
        }
        for name, registered in ((name, registry.find(kind, name)) for name in registry.names(kind))
    ]
    if as_json:
        print_json(rows)
    else:
        print_rows(["name", "options", "what it is"], rows)


def read_columns(text: str | None) -> dict[str, str]:
    """Return the names of columns by their meaning, as given in an option.

    >>> read_columns("id=gramm_id,score=slor")
    {'id': 'gramm_id', 'score': 'slor'}
    """
    columns: dict[str, str] = {}
    for part in text.split(",") if text else []:
        meaning, equals, column = part.partition("=")
        if not (meaning.strip() and equals and column.strip()):
            raise SpecError(f"cannot read --columns {text!r}: write MEANING=COLUMN,MEANING=COLUMN")
        if meaning.strip() in columns:
            raise SpecError(f"cannot read --columns {text!r}: {meaning.strip()} comes twice")
        columns[meaning.strip()] = column.strip()
    return columns


def read_where(texts: Sequence[str] | None) -> dict[str, str]:
    """Return the values of tags that ``--where`` asks for.

    >>> read_where(["phenomenon=npi", "item=1"])
    {'phenomenon': 'npi', 'item': '1'}
    """
    where: dict[str, str] = {}
    for text in texts or ():
        tag, equals, value = text.partition("=")
        if not (tag and equals):
            raise SpecError(f"cannot read --where {text!r}: write TAG=VALUE")
        if where.setdefault(tag, value) != value:
            raise SpecError(f"--where has two values of {tag!r}, {where[tag]!r} and {value!r}: choose one")
    return where


def take_former_model(command: str, subject: str, model: str | None, former: str | None) -> str:
    """Return the model of ``--model``; one in the position of the version before is reported.

    Args:
        command: The name of the command.
        subject: What stands before the model in it.
        model: The value of ``--model``.
        former: The argument in the former position.
    """
    if model and former:
        raise SpecError(f"a model is given twice, as --model {model} and as {former!r}: remove one")
    if former:
        new = " ".join(filter(None, ("acceptability", command, subject, "--model", shlex.quote(former))))
        print_message(f"write `{new}`; a model without --model will be refused from the next release")
    if not (model or former):
        raise SpecError(f"which model? Add --model, such as: acceptability {command} {subject or '…'} --model trigram")
    return str(model or former)


def complete_model_specs(models: Sequence[str] | None) -> list[str]:
    """Return the models of ``--model`` with their kinds, which are read from the files of models without one."""
    return [complete_model_spec(model) for model in models or ()]


def load_cli_suite(name: str, reading: SuiteReading | None = None) -> Suite:
    """Return a suite, read as the options say."""
    reading = reading or SuiteReading()
    others = {name: value for name, value in reading.table.describe().items() if name != "columns"}
    return load_suite(name, columns=reading.table.columns, marks=reading.marks or None, unit=reading.unit, **others)


def check_one_output(out: Path | None, *, as_json: bool) -> None:
    """Raise an error if rows are to be printed as JSON and written to a file."""
    if out and as_json:
        raise SpecError("--json prints rows and --out writes them: choose one")


def load_cli_engine(name: str, address: str | None) -> Engine:
    """Return the engine of ``--engine``, at the address of ``--address``.

    >>> load_cli_engine("local", None)
    Local()
    """
    if address is None:
        return load_engine(name)
    spec = parse_spec(name)
    if spec.name != "ray":
        raise SpecError(f"--address {address} is of a Ray cluster, but the engine is {name}: add --engine ray")
    if spec.args or "address" in spec.options:
        raise SpecError(f"--engine {name} has an address already: omit --address")
    return load_engine(format_spec("ray", {**spec.options, "address": address}))


def make_bootstrap(resamples: int, by: str | None, seed: int, method: str = "auto") -> Bootstrap:
    """Return the bootstrap of the options ``--resamples``, ``--resample-by``, ``--seed`` and ``--interval``."""
    tag, within = parse_sampling_unit(by)
    return Bootstrap(resamples=resamples, by=tag, seed=seed, method=method, within=within)


def make_suite_input(suite: Suite, name: str, reading: SuiteReading | None = None) -> SuiteInput:
    """Return a suite with the options that it was loaded by, for the record of a run."""
    reading = reading or SuiteReading()
    others = {name: value for name, value in reading.table.describe().items() if name != "columns"}
    return SuiteInput(suite, name, reading.table.columns, reading.marks, others)


# As many as are read at a glance; of more results, `reproduce latest` computes all.
_MAX_SHORT_FORMS = 6


def record_run(
    command: str,
    rows: Sequence[RunRow],
    signatures: Iterable[str],
    units: Iterable[RunRow] = (),
    inputs: RunInputs | None = None,
) -> SavedRun:
    """Save the results of a command as a run, print where, and return the run.

    Args:
        command: The name of the command.
        rows: The results.
        signatures: The signatures of the results.
        units: The rows that the results are computed from.
        inputs: What the command was given.
    """
    run = save_run(command, join_arguments(), rows, units, signatures, inputs)
    print_message(f"run {run.id} saved in {run.folder}")
    # In the order of the signatures above, of which those of groups are not printed.
    shown = [signature for signature in run.signatures if "group" not in parse_signature(signature)]
    forms = list(dict.fromkeys(map(shorten_signature, shown)))
    if forms:
        print_message(describe_signatures(forms))
    return run


def describe_signatures(forms: Sequence[str], *, is_saved: bool = True) -> str:
    """Return a line with the short forms of signatures, and what to do with them.

    Args:
        forms: The short forms.
        is_saved: Whether a run has the signatures, so that the short forms can be looked up.

    >>> describe_signatures(["90401bbf"])
    'signature 90401bbf (--signatures prints it in full, `acceptability reproduce 90401bbf` computes it again)'
    """
    if not is_saved:
        return f"signature {forms[0]} (--signatures prints it in full)"
    if len(forms) == 1:
        again = f"`acceptability reproduce {forms[0]}` computes it again"
        return f"signature {forms[0]} (--signatures prints it in full, {again})"
    listed = f"signatures {', '.join(forms)}" if len(forms) <= _MAX_SHORT_FORMS else f"{len(forms)} signatures"
    return f"{listed} (--signatures prints them in full, `acceptability reproduce latest` computes all again)"


def join_arguments() -> str:
    """Return the command line as it was typed, for the record of a run."""
    # Arguments that are no UTF-8 arrive as surrogates, which no file of ours could be written with.
    return shlex.join(sys.argv[1:]).encode("utf-8", "backslashreplace").decode()


# Beside the bar, the counts and the time that remains, 80 columns have room for so much.
_MAX_PROGRESS_NAME = 30


def shorten_model_name(name: str) -> str:
    """Return the spec of a model for a line of progress: a long one without its folders and options.

    >>> shorten_model_name("causal:/models/of/mine/and/of/others/gpt2-medium(bos=None)"), shorten_model_name("trigram")
    ('causal:gpt2-medium', 'trigram')
    """
    if len(name) <= _MAX_PROGRESS_NAME:
        return name
    kind, _, location = name.partition(":")
    file = Path(location.partition("(")[0] or kind.partition("(")[0]).name
    return f"{kind}:{file}"[:_MAX_PROGRESS_NAME] if location else file[:_MAX_PROGRESS_NAME]


@contextmanager
def show_progress() -> Iterator[ProgressCallback]:
    """Show a progress bar for each model on stderr; yield the callback that updates it."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("queries"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    progress = Progress(*columns, console=Console(stderr=True))
    # A model that scores two suites of different size gets two bars.
    tasks: dict[tuple[str, int], TaskID] = {}

    def update_bar(name: str, done: int, total: int) -> None:
        # Started at the first report, so that no empty bar flickers while models load, or if nothing is scored.
        progress.start()
        task = tasks.get((name, total))
        if task is None:
            # Specs contain brackets, which Rich would take for its markup.
            shown = escape_control_chars(shorten_model_name(name)).replace("[", r"\[")
            task = tasks[name, total] = progress.add_task(shown, total=total)
        progress.update(task, completed=done)

    try:
        # Libraries print messages while models run, and stdout is for data.
        with redirect_stdout(sys.stderr):
            yield update_bar
    except KeyboardInterrupt:
        progress.stop()
        print_message("stopped; the scores so far are stored, and the same command resumes from there")
        raise
    finally:
        if tasks:
            progress.stop()
