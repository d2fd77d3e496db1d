"""``acceptability evaluate``: models on suites; ``acceptability measure``: scores from a file, without a model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from acceptability.api.evaluation import evaluate_suites, measure_file
from acceptability.cli.console import (
    DEFAULT_READING,
    AddressOption,
    ByOption,
    Display,
    DtypeOption,
    EngineOption,
    IntervalOption,
    JsonOption,
    MeasuresOption,
    ModelsOption,
    PartialOption,
    ReductionsOption,
    RegionOption,
    ResampleByOption,
    ResamplesOption,
    SeedOption,
    SuiteArgument,
    SuiteReading,
    WhereOption,
    complete_model_specs,
    load_cli_engine,
    load_cli_suite,
    make_bootstrap,
    make_suite_input,
    measure_width,
    print_json,
    print_message,
    print_notes,
    print_signatures,
    print_table,
    read_columns,
    read_where,
    record_run,
    show_progress,
    with_display,
    with_reading,
    with_reading_options,
)
from acceptability.cli.parallel_start import start_in_parallel
from acceptability.cli.report import ReportFileOption, check_report, write_run_report
from acceptability.models import set_spec_dtype
from acceptability.report.terminal import build_result_tables, collect_footnotes
from acceptability.report.text_table import make_table, render_table
from acceptability.store.runs import RunInputs
from acceptability.store.unit_rows import collect_unit_rows
from acceptability.timings import Timings, collect_timings, time_stage
from acceptability.types import Result


@with_display
@with_reading
def command(
    suites: Annotated[list[str], typer.Argument(help="Suites of the catalog, files, or hf:OWNER/NAME.")],
    model: ModelsOption,
    reduce: ReductionsOption = None,
    measure: MeasuresOption = None,
    by: ByOption = None,
    region: RegionOption = None,
    dtype: DtypeOption = None,
    resamples: ResamplesOption = 1000,
    resample_by: ResampleByOption = None,
    seed: SeedOption = 0,
    interval: IntervalOption = "auto",
    engine: EngineOption = "local",
    address: AddressOption = None,
    reading: SuiteReading = DEFAULT_READING,
    report: ReportFileOption = None,
    show_timings: Annotated[
        bool, typer.Option("--timings", help="Show the seconds of each stage, on stderr; with --json, in the JSON.")
    ] = False,
    as_json: JsonOption = False,
    *,
    display: Display,
) -> None:
    """Evaluate models on suites: the values of measures, with confidence intervals."""
    check_report(report)
    model = complete_model_specs(model)
    with collect_timings(since_start=True) if show_timings else nullcontext() as timings:
        bootstrap, runner = make_bootstrap(resamples, resample_by, seed, interval), load_cli_engine(engine, address)
        start_in_parallel(suites, model)
        with time_stage("read"):
            loaded = [load_cli_suite(name, reading) for name in suites]
        with show_progress() as progress:
            results = evaluate_suites(
                loaded,
                [set_spec_dtype(spec, dtype) for spec in model] if dtype else model,
                reductions=reduce or (),
                measures=measure or (),
                by=by,
                region=region,
                bootstrap=bootstrap,
                engine=runner,
                progress=progress,
            )
        rows, signatures = [result.row() for result in results], [result.signature for result in results]
        # Of JSON, the timings are a part, which end after the run was saved.
        is_one_document = as_json and timings is not None
        if not is_one_document:
            with time_stage("print"):
                print_results(results, as_json, display)
        # Saved before the report is written, so that a failing report loses no results.
        inputs = RunInputs(
            [make_suite_input(one, name, reading) for one, name in zip(loaded, suites, strict=True)], model
        )
        try:
            with time_stage("write"):
                run = record_run("evaluate", rows, signatures, collect_unit_rows(results), inputs)
                write_run_report(report, run, loaded)
        finally:
            # Also if the run cannot be saved: the results are all that the command has to show for its time.
            if timings is not None and is_one_document:
                print_json({"results": rows, "timings": timings.rows()})
        if timings is not None and not as_json:
            print_timings(timings)


@with_display
@with_reading_options(columns="--suite-columns")
def measure_command(
    suite: SuiteArgument,
    scores: Annotated[Path, typer.Option("--scores", help="A CSV, TSV or JSONL file with sentence_id and score.")],
    measure: MeasuresOption = None,
    by: ByOption = None,
    score_columns: Annotated[
        list[str] | None,
        typer.Option(
            "--score-columns",
            help="The columns of the file: id=…,score=… [,text=…,model=…]. Give it twice for a file of pairs.",
        ),
    ] = None,
    reading: SuiteReading = DEFAULT_READING,
    partial: PartialOption = False,
    where: WhereOption = None,
    resamples: ResamplesOption = 1000,
    resample_by: ResampleByOption = None,
    seed: SeedOption = 0,
    interval: IntervalOption = "auto",
    as_json: JsonOption = False,
    *,
    display: Display,
) -> None:
    """Measure scores from a file on a suite; no model is run."""
    loaded = load_cli_suite(suite, reading)
    column_maps = [read_columns(text) for text in score_columns or [""]]
    results = measure_file(
        loaded,
        scores,
        measure or (),
        columns=column_maps,
        by=by,
        bootstrap=make_bootstrap(resamples, resample_by, seed, interval),
        partial=partial,
        where=read_where(where),
    )
    print_results(results, as_json, display)
    inputs = RunInputs([make_suite_input(loaded, suite, reading)], files=[scores], columns=column_maps)
    rows, signatures = [result.row() for result in results], [result.signature for result in results]
    record_run("measure", rows, signatures, collect_unit_rows(results), inputs)


def print_timings(timings: Timings) -> None:
    """Print the time of each stage on stderr."""
    rows = [(stage, wall, cpu) for stage, (wall, cpu) in timings.seconds().items()]
    rows.append(("all", sum(wall for _, wall, _ in rows), sum(cpu for _, _, cpu in rows)))
    cells = [[stage, f"{wall:.2f}", f"{cpu:.2f}"] for stage, wall, cpu in rows]
    for line in render_table(make_table(["stage", "seconds", "CPU seconds"], cells), measure_width(sys.stderr)):
        print_message(line)


def print_results(results: Sequence[Result], as_json: bool, display: Display) -> None:
    """Print results as JSON, or as tables with notes below them."""
    if as_json:
        print_json([result.row() for result in results])
        return
    print_table(*build_result_tables(results, display.style))
    print_notes(collect_footnotes(results))
    # Those of groups differ from that of the whole only in the group.
    print_signatures((result.signature for result in results if not result.group), display)
