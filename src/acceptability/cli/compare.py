"""``acceptability compare``: how much better one model does than others on the same suite."""

from __future__ import annotations

from acceptability.cli.shown import (
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
    loaded_suite,
    print_json,
    print_table,
    progress_bar,
    saved,
    talk,
)
from acceptability.errors import MeasureError
from acceptability.measuring import checked_measures, compare, needs_regions
from acceptability.models import load_model
from acceptability.report.table import comparison_table
from acceptability.scoring import scored
from acceptability.store.runs import rows_of_units, save_run


def command(
    suite: str,
    model: Models,
    reduce: Reductions = None,
    measure: Measures = None,
    region: Region = None,
    resamples: Resamples = 1000,
    resample_by: ResampleBy = "",
    seed: Seed = 0,
    interval: IntervalMethod = "percentile",
    columns: SuiteColumns = None,
    marks: Marks = None,
    as_json: Json = False,
) -> None:
    """Compare the first model with each other one, over the same rows."""
    if len(model) * len(reduce or [""]) < 2:
        raise MeasureError("a comparison needs two models, or two reductions of one: give --model or --reduce twice")
    how = bootstrap(resamples, resample_by, seed, interval)
    loaded = loaded_suite(suite, columns, marks)
    measures = checked_measures(loaded, measure or (), resample_by=resample_by)
    by_region = needs_regions(measures, reduce or (), region)
    for name in model:
        load_model(name)
    asked: list[str | None] = [*(reduce or [])] or [None]
    with progress_bar() as progress:
        scores = [
            each
            for name in model
            for each in scored(loaded, name, asked, region=region, by_region=by_region, progress=progress)
        ]
    found = compare(loaded, scores, measure or (), bootstrap=how)
    rows = [each.row() for each in found]
    if as_json:
        print_json(rows)
    else:
        print_table(comparison_table(found))
        for each in found:
            for note in (*each.notes, each.signature):
                talk(note)
    units = [
        row
        for each in found
        for name, part in zip((each.first, each.second), each.units, strict=True)
        for row in rows_of_units(part, {"suite": each.suite, "measure": each.measure, "model": name})
    ]
    saved(save_run("compare", arguments(), rows, units, [each.signature for each in found]))
