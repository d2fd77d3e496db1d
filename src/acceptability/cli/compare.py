"""``acceptability compare``: how much better one model does than others on the same suite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from acceptability.cli.gathered import Asked, ScoreColumns, ScoreFiles, SomeModels, gathered
from acceptability.cli.report import ReportFile, check_report, report_run
from acceptability.cli.shown import (
    Address,
    By,
    EngineName,
    IntervalMethod,
    Json,
    Marks,
    Measures,
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
    saved,
    talk,
)
from acceptability.comparing import Comparison, Tests, compare
from acceptability.differing import differing
from acceptability.errors import MeasureError
from acceptability.measuring import checked_measures
from acceptability.protocols import Measure
from acceptability.report.rows import check_rows_file, write_sheet
from acceptability.report.table import comparison_table
from acceptability.store.runs import UnitRows, save_run
from acceptability.types import Scores, Suite


def command(
    suite: str,
    model: SomeModels = None,
    scores: ScoreFiles = None,
    score_columns: ScoreColumns = None,
    reduce: Reductions = None,
    measure: Measures = None,
    by: By = None,
    region: Region = None,
    resamples: Resamples = 1000,
    resample_by: ResampleBy = "",
    draws: Annotated[
        int, typer.Option("--draws", help="Swaps of the permutation test where they cannot all be counted; 0 for none.")
    ] = 2000,
    seed: Seed = 0,
    interval: IntervalMethod = "percentile",
    pairs: Annotated[
        Path | None,
        typer.Option("--differing", help="Write the contrasts that only one model meets here: .csv, .tsv or .jsonl."),
    ] = None,
    columns: SuiteColumns = None,
    marks: Marks = None,
    engine: EngineName = "local",
    address: Address = None,
    report: ReportFile = None,
    as_json: Json = False,
) -> None:
    """Compare the first model with each other one, over the same rows: intervals, tests, and where they differ."""
    check_report(report)
    if pairs:
        check_rows_file(pairs)
    how = bootstrap(resamples, resample_by, seed, interval)
    Tests(how, draws)  # which refuses what nobody can draw, before any model is asked
    loaded = loaded_suite(suite, columns, marks)
    measures = checked_measures(loaded, measure or (), by=by, resample_by=resample_by)
    if pairs:
        _met_or_not(measures)
    asked = Asked(model or (), reduce or (), scores or (), score_columns or (), chosen_engine(engine, address), region)
    given = gathered(loaded, asked, measures, least=2)
    found = compare(loaded, given, measure or (), by=by, bootstrap=how, draws=draws)
    rows = [each.row() for each in found]
    if as_json:
        print_json(rows)
    else:
        _show(found)
    if pairs:
        _write_differing(pairs, loaded, measures, given)
    overall = [each for each in found if not each.group]
    parts = [
        (part, {"suite": each.suite, "measure": each.measure, "model": name})
        for each in overall
        for name, part in zip((each.first, each.second), each.units, strict=True)
    ]
    run = save_run("compare", arguments(), rows, UnitRows(parts), [each.signature for each in overall])
    saved(run)
    report_run(report, run, [loaded])


def _show(found: Sequence[Comparison]) -> None:
    print_table(comparison_table(found))
    said = [f"{each.measure} {each.group or 'all'}: {each.reason}" for each in found if each.reason]
    said += [f"{each.measure} {each.group or 'all'}: {note}" for each in found for note in each.notes]
    for line in dict.fromkeys([*said, *(each.signature for each in found if not each.group)]):
        talk(line)


def _write_differing(path: Path, suite: Suite, measures: Sequence[Measure], given: Sequence[Scores]) -> None:
    """Write the contrasts that one model meets and the other does not, in both directions."""
    rows = []
    for measure in _met_or_not(measures):
        for other in given[1:]:
            names = {"first": _name(given[0]), "second": _name(other)}
            for met_by, first, second in (("first", given[0], other), ("second", other, given[0])):
                shared = {"measure": repr(measure), **names, "met_by": met_by}
                rows += [shared | _turned(each.as_row(), met_by) for each in differing(suite, measure, first, second)]
    write_sheet(path, rows, header=_HEADER)
    talk(f"{len(rows)} contrasts that one model meets and the other does not: {path}")


def _met_or_not(measures: Sequence[Measure]) -> list[Measure]:
    """Return the measures whose rows are contrasts that can be told apart one by one; none is an error."""
    asked = [each for each in measures if "contrasts" in each.needs and getattr(each, "mean_of", None)]
    if not asked:
        raise MeasureError("--differing needs a measure that a contrast meets or not, such as PairAccuracy or ADC")
    return asked


def _name(given: Scores) -> str:
    return f"{given.model} {given.reduction}".strip()


_HEADER = (
    *("measure", "first", "second", "met_by", "contrast", "better", "worse"),
    *("first_gap", "second_gap", "human_gap"),
)


def _turned(row: dict[str, object], met_by: str) -> dict[str, object]:
    """Return a row whose gaps are the first and the second model's, whichever of them meets the contrast."""
    if met_by == "first":
        return row
    return row | {"first_gap": row["second_gap"], "second_gap": row["first_gap"]}
