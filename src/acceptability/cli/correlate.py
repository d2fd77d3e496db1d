"""``acceptability correlate``: every two among models and people."""

from __future__ import annotations

from typing import Annotated

import typer

from acceptability.cli.gathered import Asked, ScoreColumns, ScoreFiles, SomeModels, gathered
from acceptability.cli.shown import (
    Address,
    EngineName,
    Json,
    Marks,
    Reductions,
    Region,
    SuiteColumns,
    arguments,
    chosen_engine,
    loaded_suite,
    print_json,
    print_table,
    saved,
    talk,
)
from acceptability.correlating import check_correlations, correlate_all
from acceptability.report.table import correlation_table
from acceptability.store.runs import save_run


def command(
    suite: str,
    model: SomeModels = None,
    scores: ScoreFiles = None,
    score_columns: ScoreColumns = None,
    reduce: Reductions = None,
    of: Annotated[
        str, typer.Option("--of", help="scores, over sentences, or gaps, better minus worse, over contrasts.")
    ] = "scores",
    kind: Annotated[str, typer.Option("--kind", help="pearson, spearman or kendall.")] = "pearson",
    region: Region = None,
    columns: SuiteColumns = None,
    marks: Marks = None,
    engine: EngineName = "local",
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Correlate the scores of models with people's ratings and with each other."""
    loaded = loaded_suite(suite, columns, marks)
    check_correlations(loaded, of, kind)
    asked = Asked(model or (), reduce or (), scores or (), score_columns or (), chosen_engine(engine, address), region)
    found = correlate_all(loaded, gathered(loaded, asked, (), least=1), of=of, kind=kind)
    rows = [each.row() for each in found]
    if as_json:
        print_json(rows)
    else:
        print_table(correlation_table(found, f"{kind} of {of}, {loaded.name}"))
        for line in (
            *(f"{each.first}, {each.second}: {each.reason}" for each in found if each.reason),
            *found[0].notes,
        ):
            talk(line)
        talk(found[0].signature)
    saved(save_run("correlate", arguments(), rows, [], [found[0].signature]))
