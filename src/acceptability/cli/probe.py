"""``acceptability probe``: which factors linear probes can read off the layers of an encoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from acceptability.cli.console import (
    DEFAULT_READING,
    Display,
    JsonOption,
    ResamplesOption,
    SuiteReading,
    complete_model_specs,
    load_cli_suite,
    make_suite_input,
    print_json,
    print_notes,
    print_signatures,
    print_table,
    record_run,
    show_progress,
    with_display,
    with_reading_options,
)
from acceptability.errors import SpecError
from acceptability.probing import MAJORITY, ProbeScore, probe_encoders
from acceptability.report.display_names import NumberFormat
from acceptability.report.text_table import make_table
from acceptability.store.runs import RunInputs
from acceptability.text.io import check_rows_file, write_spreadsheet

LimitOption = Annotated[
    int | None,
    typer.Option("--limit", help="The largest number of sentences per group; whole items are sampled at random."),
]
FactorsOption = Annotated[
    list[str] | None,
    typer.Option("--factor", "-f", help="A tag to predict. Repeatable. Default: all that vary within items."),
]
CsvOption = Annotated[Path | None, typer.Option("--csv", help="Also write the rows to this file.")]


@with_display
@with_reading_options(without=("unit",))
def command(
    suite: Annotated[str, typer.Argument(help="A suite of the catalog, or a file, whose tags are factors.")],
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model", "-m", help="An encoder: masked:…, causal:…, classifier:…, a name, or glove:FILE. Repeatable."
        ),
    ] = None,
    factor: FactorsOption = None,
    by: Annotated[
        str | None, typer.Option("--by", help="A tag: probes are trained and tested within each of its groups.")
    ] = None,
    held_out: Annotated[
        str | None,
        typer.Option("--held-out", help="A tag: each of its groups is tested by probes trained on all the others."),
    ] = None,
    layers: Annotated[
        str, typer.Option("--layers", help="The layers to probe: all, or numbers such as 0,6,-1.")
    ] = "all",
    pooling: Annotated[
        str, typer.Option("--pooling", help="The sentence vector over tokens: auto, first, last, mean or max.")
    ] = "auto",
    control: Annotated[
        str, typer.Option("--control", help="The control task, a random property to predict: of words, items or none.")
    ] = "words",
    baselines: Annotated[
        bool, typer.Option("--baselines/--no-baselines", help="Also probe the baselines majority and bag-of-words.")
    ] = True,
    limit: LimitOption = None,
    seed: Annotated[
        int, typer.Option("--seed", help="The seed of the folds, the control task and the resampling.")
    ] = 0,
    resamples: ResamplesOption = 1000,
    reading: SuiteReading = DEFAULT_READING,
    csv: CsvOption = None,
    as_json: JsonOption = False,
    *,
    display: Display,
) -> None:
    """Probe encoders for the factors of a suite: linear classifiers on each layer, with control tasks and baselines."""
    # A file that cannot be written must be reported before the encoders run.
    if csv:
        check_rows_file(csv)
    model = complete_model_specs(model)
    loaded, layer_numbers = load_cli_suite(suite, reading), _parse_layers(layers)
    with show_progress() as progress:
        scores = probe_encoders(
            loaded,
            model,
            baselines=baselines,
            factors=factor or (),
            by=by,
            held_out=held_out,
            layers=layer_numbers,
            pooling=pooling,
            control=None if control == "none" else control,
            limit=limit,
            seed=seed,
            resamples=resamples,
            progress=progress,
        )
    rows = [probe_score.row() for probe_score in scores]
    if csv:
        write_spreadsheet(csv, rows)
    if as_json:
        print_json(rows)
    else:
        _print_scores(scores, display)
    inputs = RunInputs([make_suite_input(loaded, suite, reading)], model)
    record_run("probe", rows, [probe_score.signature for probe_score in scores], inputs=inputs)


def _parse_layers(text: str) -> list[int] | None:
    # None stands for all layers, whose number only the encoder knows.
    if text == "all":
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise SpecError(f"--layers {text!r}: expected all, or numbers such as 0,6,-1") from error


def _print_scores(scores: Sequence[ProbeScore], display: Display) -> None:
    # A column with the same value in every row is left out, so that the table fits a terminal.
    names = ["encoder", "layer", "factor", "group", "trained"]
    varying = [name for name in ("group", "trained") if len({getattr(score, name) for score in scores}) > 1]
    keys = [name for name in names if name not in ("group", "trained") or name in varying]
    header = [*keys, "MCC", "accuracy", "control", "selectivity", "train", "test"]
    rows = [[*(getattr(score, name) for name in keys), *_list_numbers(score, display.style)] for score in scores]
    print_table(make_table(header, rows, keys=len(keys)))
    print_notes(_iter_notes(scores))
    print_signatures([scores[-1].signature], display)


def _list_numbers(score: ProbeScore, style: NumberFormat) -> list[object]:
    decimals = NumberFormat(style.digits)
    interval = decimals.interval(score.low, score.high)
    return [
        decimals.number(score.mcc) + ("" if interval == "–" else f"\n{interval}"),
        *(style.number(share) for share in (score.accuracy, score.control)),
        style.signed(score.selectivity),
        score.train,
        score.test,
    ]


def _iter_notes(scores: Sequence[ProbeScore]) -> Iterator[str]:
    for probe_score in scores:
        if probe_score.mcc is None:
            yield f"{probe_score.encoder}, {probe_score.factor}: {probe_score.reason}"
        yield from probe_score.notes
    if any(probe_score.encoder == MAJORITY for probe_score in scores):
        yield "majority always predicts the most frequent value: its MCC is 0 by definition"
    yield "MCC of predicted and true values; control: the same for a random property of the same words"
