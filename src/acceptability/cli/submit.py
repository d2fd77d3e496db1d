"""``acceptability submit``: files of predictions for test sets whose labels are kept elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from acceptability.cli.shown import (
    Address,
    EngineName,
    Json,
    Models,
    arguments,
    chosen_engine,
    print_data,
    print_json,
    progress_bar,
    saved,
    talk,
)
from acceptability.errors import UnknownName
from acceptability.store.runs import save_run
from acceptability.submitting import predictions, read_test_set, write_predictions

_KNOWN = ("cola",)


def command(
    benchmark: Annotated[str, typer.Argument(help="Whose test sets they are: cola.")],
    model: Models,
    test: Annotated[
        list[Path], typer.Option("--test", help="The test set: GLUE's test.tsv, or one of Kaggle's two .tsv files.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the files of predictions.")],
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="A score above it means acceptable; a classifier has 0.")
    ] = None,
    reduce: Annotated[str | None, typer.Option("--reduce", "-r", help="A reduction; default lp or log_odds.")] = None,
    engine: EngineName = "local",
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Write what GLUE and Kaggle take as predictions for CoLA; several models vote, and a tie means unacceptable."""
    if benchmark not in _KNOWN:
        raise UnknownName("benchmark", benchmark, _KNOWN, hint="There is cola.")
    tests, runner = [read_test_set(path) for path in test], chosen_engine(engine, address)
    with progress_bar() as progress:
        found = [
            predictions(each, model, threshold=threshold, reduce=reduce, engine=runner, progress=progress)
            for each in tests
        ]
    paths = write_predictions(found, out)
    rows = [each.row() | {"file": str(path)} for each, path in zip(found, paths, strict=True)]
    if as_json:
        print_json(rows)
    for each, path in zip(found, paths, strict=True):
        if not as_json:
            print_data(f"{path}\n")
        talk(f"{len(each.labels):,} predictions for {each.test.layout.name}, {sum(each.labels.values()):,} acceptable")
        for note in (*each.notes, each.signature):
            talk(note)
    saved(save_run("submit", arguments(), rows, [], [each.signature for each in found]))
