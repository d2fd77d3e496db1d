"""What every command shares: options of the same name, data to stdout, talk to stderr."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from inspect import signature
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from acceptability import registry
from acceptability.engine import load_engine
from acceptability.errors import SpellingError, one_line, visible
from acceptability.protocols import Engine
from acceptability.report.table import add_row, plain, titled
from acceptability.scoring import Progress as Tell
from acceptability.spelling import read, write
from acceptability.stats.bootstrap import Bootstrap
from acceptability.store.runs import Run
from acceptability.suites import load_suite
from acceptability.suites.notation import read_marks
from acceptability.types import Suite

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Models = Annotated[list[str], typer.Option("--model", "-m", help="A model: KIND:PLACE(option=value), or a name.")]
Reductions = Annotated[
    list[str] | None,
    typer.Option("--reduce", "-r", help="A reduction, such as lp or slor(unigrams='wordfreq:en')."),
]
Measures = Annotated[
    list[str] | None,
    typer.Option("--measure", "-M", help="A measure, such as PairAccuracy or ADC(delta=0.5)."),
]
By = Annotated[str | None, typer.Option("--by", help="Group by this tag, with macro and micro means.")]
Dtype = Annotated[str | None, typer.Option("--dtype", help="The precision: float32 (default), bfloat16 or float16.")]
Region = Annotated[str | None, typer.Option("--region", help="Score only this region of each sentence.")]
EngineName = Annotated[
    str, typer.Option("--engine", help="Where models run: local, or ray for a cluster; ray(workers=8) sets how many.")
]
Address = Annotated[
    str | None, typer.Option("--address", help="The Ray cluster, as HOST:PORT; auto for this machine's own.")
]
SuiteColumns = Annotated[
    str | None,
    typer.Option(
        "--columns", "--suite-columns", help="For a file: which column means what, as text=Sentence,label=ok."
    ),
]
Marks = Annotated[
    str | None, typer.Option("--marks", help="For a .txt file of examples: labels of marks, as ?=1,#=drop.")
]
Resamples = Annotated[int, typer.Option("--resamples", help="Bootstrap resamples for the intervals; 0 for none.")]
ResampleBy = Annotated[str, typer.Option("--resample-by", help="Draw values of this tag instead of single rows.")]
IntervalMethod = Annotated[
    str, typer.Option("--interval", help="How intervals are made: percentile, or bca, corrected for bias and skewness.")
]
Seed = Annotated[int, typer.Option("--seed", help="The seed of the resampling.")]


def fail(message: str) -> NoReturn:
    """Print one line on stderr and stop with exit status 1."""
    print("error: " + one_line(message), file=sys.stderr)
    sys.exit(1)


def talk(message: str) -> None:
    """Say something to the person at the terminal; it is no data."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(visible(message), markup=False, emoji=False)


def say(line: str) -> None:
    """Print a line for people, in which nothing is a command to the terminal."""
    print(visible(line))


def print_data(text: str) -> None:
    """Print data as it is for a program or a file; a terminal gets nothing that it would take for a command."""
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)


def print_json(data: object) -> None:
    """Print data as JSON."""
    print(json.dumps(data, ensure_ascii=True, indent=1, allow_nan=False))


def print_table(table: Table) -> None:
    """Print a table; what is not a terminal gets one wide enough to lose nothing."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=220)
    console.print(table)


def print_rows(header: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    """Print rows as a table."""
    table = titled(None)
    for name in header:
        table.add_column(plain(name))
    for row in rows:
        add_row(table, *("" if row[name] is None else str(row[name]) for name in header))
    print_table(table)


def print_names(kind: str, as_json: bool) -> None:
    """Print everything registered of a kind: its name, its options, and what it is."""
    rows = [
        {
            "name": name,
            "options": ", ".join(
                option if each.default is each.empty else f"{option}={each.default!r}"
                for option, each in signature(found).parameters.items()
            ),
            "what it is": str(found.__doc__).strip().splitlines()[0],
        }
        for name, found in ((name, registry.find(kind, name)) for name in registry.names(kind))
    ]
    if as_json:
        print_json(rows)
    else:
        print_rows(["name", "options", "what it is"], rows)


def read_columns(text: str | None) -> dict[str, str]:
    """Return the columns that ``id=gramm_id,score=slor`` names.

    >>> read_columns("id=gramm_id,score=slor")
    {'id': 'gramm_id', 'score': 'slor'}
    """
    named: dict[str, str] = {}
    for part in text.split(",") if text else []:
        meaning, equals, column = part.partition("=")
        if not (meaning.strip() and equals and column.strip()):
            raise SpellingError(f"cannot read --columns {text!r}: write MEANING=COLUMN,MEANING=COLUMN")
        if meaning.strip() in named:
            raise SpellingError(f"cannot read --columns {text!r}: {meaning.strip()} comes twice")
        named[meaning.strip()] = column.strip()
    return named


def loaded_suite(name: str, columns: str | None = None, marks: str | None = None) -> Suite:
    """Return a suite, with its columns and marks as they were named."""
    return load_suite(name, columns=read_columns(columns), marks=read_marks(marks) if marks else None)


def chosen_engine(name: str, address: str | None) -> Engine:
    """Return the engine that was chosen, at its address.

    >>> chosen_engine("local", None)
    Local()
    """
    if address is None:
        return load_engine(name)
    spelled = read(name)
    if spelled.name != "ray":
        raise SpellingError(f"--address {address} names a Ray cluster, and the engine is {name}: add --engine ray")
    if spelled.args or "address" in spelled.options:
        raise SpellingError(f"--engine {name} has an address already; leave --address away")
    return load_engine(write("ray", {**spelled.options, "address": address}))


def bootstrap(resamples: int, by: str, seed: int, method: str = "percentile") -> Bootstrap:
    """Return how intervals are made."""
    return Bootstrap(resamples=resamples, by=by, seed=seed, method=method)


def saved(run: Run) -> None:
    """Say where a run was saved."""
    talk(f"run {run.id} saved in {run.folder}")


def arguments() -> str:
    """Return what was typed, for the run's record."""
    return shlex.join(sys.argv[1:]).encode("utf-8", "backslashreplace").decode()


@contextmanager
def progress_bar() -> Iterator[Tell]:
    """Show a bar for each model on stderr; yield the function that moves it."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("queries"),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=Console(stderr=True))
    tasks: dict[tuple[str, int], TaskID] = {}

    def tell(name: str, done: int, total: int) -> None:
        progress.start()
        task = tasks.get((name, total))
        if task is None:
            task = tasks[name, total] = progress.add_task(visible(name).replace("[", r"\["), total=total)
        progress.update(task, completed=done)

    try:
        # Whatever a library prints while models work is talk, and stdout is for data.
        with redirect_stdout(sys.stderr):
            yield tell
    except KeyboardInterrupt:
        progress.stop()
        talk("stopped; what was scored is kept, and the same command goes on from there")
        raise
    finally:
        if tasks:
            progress.stop()
