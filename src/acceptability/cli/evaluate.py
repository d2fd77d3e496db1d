"""``acceptability evaluate``: models on suites, measured."""

from __future__ import annotations

from typing import Annotated

import typer

from acceptability.cli.report import ReportFile, check_report, report_run
from acceptability.cli.shown import (
    Address,
    By,
    Dtype,
    EngineName,
    IntervalMethod,
    Json,
    Marks,
    Measures,
    Models,
    Reductions,
    Region,
    ResampleBy,
    Resamples,
    Seed,
    SuiteColumns,
    arguments,
    bootstrap,
    chosen_engine,
    loaded_suite,
    print_json,
    print_table,
    progress_bar,
    saved,
    talk,
)
from acceptability.measuring import evaluate_all
from acceptability.models import in_precision
from acceptability.report.table import footnotes, result_table
from acceptability.store.runs import save_run, unit_rows
from acceptability.types import Result


def command(
    suites: Annotated[list[str], typer.Argument(help="Suites of the catalog, or files.")],
    model: Models,
    reduce: Reductions = None,
    measure: Measures = None,
    by: By = None,
    region: Region = None,
    dtype: Dtype = None,
    resamples: Resamples = 1000,
    resample_by: ResampleBy = "",
    seed: Seed = 0,
    interval: IntervalMethod = "percentile",
    engine: EngineName = "local",
    address: Address = None,
    columns: SuiteColumns = None,
    marks: Marks = None,
    report: ReportFile = None,
    as_json: Json = False,
) -> None:
    """Evaluate models on suites: a table of values with confidence intervals."""
    check_report(report)
    how, runner = bootstrap(resamples, resample_by, seed, interval), chosen_engine(engine, address)
    loaded = [loaded_suite(name, columns, marks) for name in suites]
    with progress_bar() as progress:
        results = evaluate_all(
            loaded,
            [in_precision(each, dtype) for each in model] if dtype else model,
            reductions=reduce or (),
            measures=measure or (),
            by=by,
            region=region,
            bootstrap=how,
            engine=runner,
            progress=progress,
        )
    show(results, as_json)
    rows = [each.row() for each in results]
    run = save_run("evaluate", arguments(), rows, unit_rows(results), _signed(results))
    saved(run)
    report_run(report, run, loaded)


def show(results: list[Result], as_json: bool) -> None:
    """Print results as a table, with their signatures below it, or as JSON."""
    if as_json:
        print_json([result.row() for result in results])
        return
    print_table(result_table(results))
    for note in footnotes(results):
        talk(note)


def _signed(results: list[Result]) -> list[str]:
    return [result.signature for result in results]
