"""``acceptability measure``: scores from a file, measured; no model is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from acceptability.cli.evaluate import show
from acceptability.cli.shown import (
    By,
    IntervalMethod,
    Json,
    Measures,
    ResampleBy,
    Resamples,
    Seed,
    bootstrap,
    loaded_suite,
    read_columns,
)
from acceptability.measuring import measure as measured
from acceptability.store.scorefile import read_scores


def command(
    suite: str,
    scores: Annotated[Path, typer.Option("--scores", help="CSV, TSV or JSONL with sentence_id and score.")],
    measure: Measures = None,
    by: By = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", help="Which columns hold what: id=…,score=…[,model=…]. Twice for a file of pairs."),
    ] = None,
    suite_columns: Annotated[
        str | None, typer.Option("--suite-columns", help="For a suite in a file: text=…,label=…")
    ] = None,
    resamples: Resamples = 1000,
    resample_by: ResampleBy = "",
    seed: Seed = 0,
    interval: IntervalMethod = "percentile",
    as_json: Json = False,
) -> None:
    """Measure the scores in a file against a suite."""
    how = bootstrap(resamples, resample_by, seed, interval)
    loaded = loaded_suite(suite, suite_columns)
    found = read_scores(scores, loaded, [read_columns(each) for each in columns or [""]])
    results = [result for each in found for result in measured(loaded, each, measure or (), by=by, bootstrap=how)]
    show(results, as_json)
