"""``acceptability probe``: which factors can be read off the layers of an encoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from acceptability.cli.shown import (
    Json,
    Marks,
    Resamples,
    SuiteColumns,
    arguments,
    loaded_suite,
    print_json,
    print_rows,
    progress_bar,
    saved,
    talk,
)
from acceptability.errors import SpellingError
from acceptability.probing import BAG_OF_WORDS, MAJORITY, ProbeScore, factors_of, probe
from acceptability.report.rows import check_rows_file, write_sheet
from acceptability.report.table import number
from acceptability.store.runs import save_run

Limit = Annotated[
    int | None, typer.Option("--limit", help="Probe at most so many sentences of each group, whole items at random.")
]
Factors = Annotated[
    list[str] | None,
    typer.Option("--factor", "-f", help="A tag to be told; by default all that vary within items."),
]
Csv = Annotated[Path | None, typer.Option("--csv", help="Write the rows into this file too.")]


def command(
    suite: Annotated[str, typer.Argument(help="A suite of the catalog, or a file, whose tags are factors.")],
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="masked:…, causal:…, classifier:…, a name, or glove:FILE."),
    ] = None,
    factor: Factors = None,
    by: Annotated[str | None, typer.Option("--by", help="A tag: each group has probes of its own.")] = None,
    held_out: Annotated[
        str | None, typer.Option("--held-out", help="A tag: each group is tested by probes of all other groups.")
    ] = None,
    layers: Annotated[str, typer.Option("--layers", help="Which layers: all, or numbers as 0,6,-1.")] = "all",
    pooling: Annotated[
        str, typer.Option("--pooling", help="What stands for a sentence: auto, first, last, mean or max.")
    ] = "auto",
    control: Annotated[str, typer.Option("--control", help="The control task: words, items or none.")] = "words",
    baselines: Annotated[
        bool, typer.Option("--baselines/--no-baselines", help="Show majority and bag-of-words beside the models.")
    ] = True,
    limit: Limit = None,
    seed: Annotated[int, typer.Option("--seed", help="The seed of folds, control tasks and resampling.")] = 0,
    resamples: Resamples = 1000,
    columns: SuiteColumns = None,
    marks: Marks = None,
    csv: Csv = None,
    as_json: Json = False,
) -> None:
    """Probe encoders for the factors of a suite: light classifiers on every layer, with control tasks and baselines."""
    if csv:
        check_rows_file(csv)
    loaded, chosen = loaded_suite(suite, columns, marks), _layers(layers)
    factors = factor or list(factors_of(loaded))
    encoders = list(dict.fromkeys([*([MAJORITY, BAG_OF_WORDS] if baselines else []), *(model or [])]))
    scores: list[ProbeScore] = []
    with progress_bar() as tell:
        for encoder in encoders:
            scores += probe(
                loaded,
                encoder,
                factors=factors,
                by=by,
                held_out=held_out,
                layers=chosen,
                pooling=pooling if encoder not in (MAJORITY, BAG_OF_WORDS) else "auto",
                control=None if control == "none" else control,
                limit=limit,
                seed=seed,
                resamples=resamples,
                tell=tell,
            )
    rows = [each.row() for each in scores]
    if csv:
        write_sheet(csv, rows)
    if as_json:
        print_json(rows)
    else:
        _show(scores)
    saved(save_run("probe", arguments(), rows, [], [each.signature for each in scores]))


def _layers(text: str) -> list[int] | None:
    if text == "all":
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise SpellingError(f"--layers {text!r}: expected all, or numbers as 0,6,-1") from error


def _show(scores: Sequence[ProbeScore]) -> None:
    about = ["encoder", "layer", "factor", "group", "trained"]
    header = [*about, "MCC", "accuracy", "control", "selectivity", "train", "test"]
    shared = [name for name in ("group", "trained") if len({getattr(each, name) for each in scores}) == 1]
    print_rows([name for name in header if name not in shared], [_row(each) for each in scores])
    for line in dict.fromkeys(_notes(scores)):
        talk(line)


def _row(each: ProbeScore) -> dict[str, object]:
    bounds = "" if each.low is None or each.high is None else f" [{each.low:.2f}, {each.high:.2f}]"
    return {
        "encoder": each.encoder,
        "layer": each.layer,
        "factor": each.factor,
        "group": each.group,
        "trained": each.trained,
        "MCC": number(each.mcc) + bounds if each.mcc is not None else str(each.reason),
        "accuracy": number(each.accuracy),
        "control": number(each.control),
        "selectivity": number(each.selectivity),
        "train": each.train,
        "test": each.test,
    }


def _notes(scores: Sequence[ProbeScore]) -> Iterator[str]:
    for each in scores:
        yield from each.notes
    if any(each.encoder == MAJORITY for each in scores):
        yield "majority always says the most frequent value: its MCC is 0 by definition"
    yield "MCC of predicted and true values; control: the same for a random property of the same words"
    yield scores[-1].signature
