"""``acceptability submit``: files of predictions for benchmarks with secret test labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from acceptability.api.submission import submit
from acceptability.cli.console import (
    AddressOption,
    EngineOption,
    JsonOption,
    ModelsOption,
    SignaturesOption,
    complete_model_specs,
    load_cli_engine,
    print_data,
    print_json,
    print_message,
    record_run,
    show_progress,
)


def command(
    benchmark: Annotated[str, typer.Argument(help="The benchmark of the test sets: cola.")],
    model: ModelsOption,
    test: Annotated[
        list[Path],
        typer.Option("--test", help="A test set: GLUE's test.tsv, or one of Kaggle's two .tsv files. Repeatable."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the files of predictions.")],
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold", help="Scores above it mean acceptable. Default: 0 for the log-odds of a classifier."
        ),
    ] = None,
    reduce: Annotated[
        str | None,
        typer.Option("--reduce", "-r", help="The reduction. Default: lp, or log_odds for a classifier."),
    ] = None,
    engine: EngineOption = "local",
    address: AddressOption = None,
    signatures: SignaturesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write predictions for CoLA in the formats of GLUE and Kaggle; several models vote, a tie means unacceptable."""
    model = complete_model_specs(model)
    runner = load_cli_engine(engine, address)
    with show_progress() as progress:
        written = submit(
            benchmark, model, test, out, threshold=threshold, reduce=reduce, engine=runner, progress=progress
        )
    rows = [predictions.row() | {"file": str(path)} for path, predictions in written]
    if as_json:
        print_json(rows)
    for path, predictions in written:
        if not as_json:
            print_data(f"{path}\n")
        accepted = sum(predictions.labels.values())
        print_message(
            f"{len(predictions.labels):,} predictions for {predictions.test.submission_format.name}, "
            f"{accepted:,} acceptable"
        )
        for note in (*predictions.notes, *[predictions.signature] * signatures):
            print_message(note)
    record_run("submit", rows, [predictions.signature for _, predictions in written])
