"""``acceptability restarts``: a classifier trained from several seeds, and the scores that the runs reach."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from acceptability.cli import fail
from acceptability.cli.console import (
    AddressOption,
    Display,
    EngineOption,
    JsonOption,
    ResamplesOption,
    load_cli_engine,
    make_bootstrap,
    print_data,
    print_json,
    print_message,
    print_notes,
    print_signatures,
    print_table,
    record_run,
    show_progress,
    with_display,
)
from acceptability.errors import SpecError
from acceptability.report.display_names import NumberFormat, name_measure
from acceptability.report.text_table import make_table
from acceptability.specs import parse_spec
from acceptability.suites import load_suite
from acceptability.train.classifiers.random_restarts import (
    FAILED,
    FINISHED,
    RestartRun,
    RestartSuiteSummary,
    check_both_labels,
    describe_failures,
    run_restarts_from_options,
    select_best_run,
    summarise_runs,
)
from acceptability.train.recipe import TrainingProgress, TrainingProgressCallback


@with_display
def command(
    kind: Annotated[str, typer.Argument(help="The recipe of a classifier; `acceptability recipes` lists them.")],
    data: Annotated[
        list[str],
        typer.Option("--data", help="Labelled training sentences: a suite such as cola/train, or a table. Repeatable."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the runs: each has a subfolder KIND-SEED.")],
    on: Annotated[
        list[str] | None,
        typer.Option(
            "--on", help="A labelled suite or table to report on; the choice among runs ignores it. Repeatable."
        ),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", help="The number of runs.")] = 20,
    search: Annotated[
        bool, typer.Option("--search", help="Draw the hyperparameters of each run at random, except those of --set.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option("--workers", help="The number of runs in parallel. Default: 1, or on a cluster all that fit."),
    ] = None,
    engine: EngineOption = "local",
    address: AddressOption = None,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            "-s",
            help="An option of the recipe, such as hidden=100; seed is that of the first run. Repeatable.",
        ),
    ] = None,
    licence: Annotated[
        str, typer.Option("--licence", help="For the model cards: the licence of the training data.")
    ] = "",
    resamples: ResamplesOption = 1000,
    as_json: JsonOption = False,
    *,
    display: Display,
) -> None:
    """Train a classifier from several seeds: mean (std), best run, chosen run and majority vote on labelled suites.

    Finished runs are not trained again, so that the same command resumes after a stop. The chosen run is the one with
    the highest MCC on the tenth of --data that is held out.
    """
    if workers is not None and "workers" in parse_spec(engine).options:
        raise SpecError(f"--engine {engine} already sets the number of workers: omit --workers")
    runner, bootstrap = load_cli_engine(engine, address), make_bootstrap(resamples, None, 0)
    suites = [load_suite(name) for name in on or []]
    # Checked before the training, which may take days; the suites are needed only after it.
    for suite in suites:
        check_both_labels(suite)
    with _progress_bars() as progress_callback:
        finished = run_restarts_from_options(
            kind,
            data,
            out,
            options=options or (),
            search=search,
            runs=runs,
            workers=workers,
            engine=runner,
            licence=licence,
            progress=progress_callback,
        )
    for line in _describe_runs(finished):
        print_message(line)
    problem = describe_failures(finished)
    trained = [run for run in finished if run.metadata is not None]
    # There is nothing to summarise; the reasons of all failures are the error.
    if not trained:
        fail(str(problem))
    with show_progress() as progress:
        summaries = summarise_runs(trained, suites, bootstrap=bootstrap, progress=progress)
    _print_summaries(finished, summaries, as_json, display)
    record_run("restarts", [summary.row() for summary in summaries], [summary.signature for summary in summaries])
    # After the results of the other runs, which are of use although some failed.
    if problem:
        fail(problem)


def _describe_runs(runs: Sequence[RestartRun]) -> Iterator[str]:
    for run in runs:
        if run.metadata is None:
            yield f"{run.name}: {FAILED}: {run.problem}"
        else:
            scores = run.held_out_scores
            yield f"{run.name}: held-out MCC {scores['mcc']:.4f}, accuracy {scores['accuracy']:.4f}"


def _print_summaries(
    runs: Sequence[RestartRun], summaries: Sequence[RestartSuiteSummary], as_json: bool, display: Display
) -> None:
    best = select_best_run(runs)
    if as_json:
        print_json(
            {
                "runs": [_make_run_row(run) for run in runs],
                "chosen": best.spec,
                "results": [summary.row() for summary in summaries],
            }
        )
        return
    if summaries:
        rows = [_make_summary_row(summary, display.style) for summary in summaries]
        print_table(make_table([*rows[0]], [list(row.values()) for row in rows], keys=2))
        print_notes(f"{summary.suite}: {note}" for summary in summaries for note in summary.notes)
        print_signatures((summary.signature for summary in summaries), display)
    else:
        print_data(f"{best.spec}\n")
    print_message(f"chosen by the MCC on held-out sentences: {best.spec}")


def _make_run_row(run: RestartRun) -> dict[str, object]:
    return {
        "seed": run.seed,
        "folder": str(run.folder),
        "problem": run.problem,
        "recipe": run.metadata["recipe"] if run.metadata else None,
        "held out": dict(run.held_out_scores) if run.metadata else None,
        "seconds": run.metadata["seconds"] if run.metadata else None,
    }


def _make_summary_row(summary: RestartSuiteSummary, style: NumberFormat) -> dict[str, str]:
    decimals = style.of_measure(summary.measure)
    std = "" if summary.std is None else f" ({NumberFormat(style.digits).number(summary.std)})"
    return {
        "suite": summary.suite,
        "measure": name_measure(summary.measure),
        "mean (std)": f"{decimals.number(summary.mean)}{std}",
        # The header says on what the best was chosen: a maximum over runs on the reported set itself is too high.
        f"best of {summary.runs} on this set": f"{decimals.number(summary.max)} (seed {summary.max_seed})",
        "chosen by held-out MCC": f"{decimals.number(summary.chosen)} (seed {summary.chosen_seed})",
        f"majority of {summary.runs} [95 % interval]": decimals.with_interval(
            summary.ensemble, summary.low, summary.high
        ),
    }


@contextmanager
def _progress_bars() -> Iterator[TrainingProgressCallback]:
    """Show on stderr a bar for all runs and one for each active run; yield the callback that updates them."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[about]}"), TimeRemainingColumn())
    bars = Progress(*columns, console=Console(stderr=True))
    tasks: dict[str, TaskID] = {}

    def update_bar(progress: TrainingProgress) -> None:
        # The stage is "RUN: STAGE" for one run, and "runs" for the number of finished ones.
        name, _, stage = progress.stage.partition(": ")
        if stage in (FINISHED, FAILED):
            if name in tasks:
                bars.remove_task(tasks.pop(name))
            return
        if name not in tasks:
            # Started at the first report, so that an error in the options is not preceded by empty lines.
            bars.start()
            tasks[name] = bars.add_task(name, total=progress.total, about="")
        loss = "" if progress.loss is None else f", loss {progress.loss:.3f}"
        about = f"{stage}{loss}" if stage else f"{progress.done} of {progress.total}"
        bars.update(tasks[name], completed=progress.done, total=progress.total, about=about)

    try:
        with redirect_stdout(sys.stderr):
            yield update_bar
    except KeyboardInterrupt:
        bars.stop()
        print_message("stopped; the same command keeps the runs that are finished and resumes the others")
        raise
    finally:
        if tasks:
            bars.stop()
