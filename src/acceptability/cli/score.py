"""``acceptability score``: one number for each sentence of a suite, or the output of the model for each part of it."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from acceptability.api.interface.prediction_columns import PredictionColumns
from acceptability.api.psycholinguistics.word_tables import is_word_table
from acceptability.api.scoring import PrecisionDifference, compare_precisions, score_rows
from acceptability.cli.console import (
    DEFAULT_READING,
    AddressOption,
    DtypeOption,
    EngineOption,
    EntropyOption,
    JsonOption,
    ModelOption,
    RankOption,
    RegionOption,
    SignaturesOption,
    SpacesOption,
    StrideOption,
    SuiteArgument,
    SuiteReading,
    TopOption,
    WindowOption,
    check_one_output,
    load_cli_engine,
    load_cli_suite,
    make_suite_input,
    print_data,
    print_json,
    print_message,
    print_notes,
    record_run,
    show_progress,
    take_former_model,
    with_reading_options,
)
from acceptability.errors import ReportError, SpecError
from acceptability.models import set_spec_dtype, set_spec_options
from acceptability.models.kinds import complete_model_spec
from acceptability.store.runs import RunInputs
from acceptability.text.io import check_writable, write_table

_SUFFIXES = (".csv", ".tsv", ".jsonl")


@with_reading_options(without=("unit",))
def command(
    suite: SuiteArgument,
    former_model: Annotated[str | None, typer.Argument(metavar="MODEL", hidden=True)] = None,
    model: ModelOption = None,
    reduce: Annotated[
        str | None,
        typer.Option("--reduce", "-r", help="The reduction. Default: lp, or log_odds for a classifier."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the rows: .csv, .tsv or .jsonl.")] = None,
    by_token: Annotated[bool, typer.Option("--tokens", help="One row per token instead of one per sentence.")] = False,
    by_word: Annotated[bool, typer.Option("--words", help="One row per word instead of one per sentence.")] = False,
    by_region: Annotated[
        bool, typer.Option("--regions", help="One row per region instead of one per sentence.")
    ] = False,
    region: RegionOption = None,
    entropy: EntropyOption = False,
    rank: RankOption = False,
    top: TopOption = 0,
    stride: StrideOption = None,
    window: WindowOption = None,
    spaces: SpacesOption = None,
    dtype: DtypeOption = None,
    precisions: Annotated[
        bool, typer.Option("--precisions", help="Also report how far scores in lower precisions differ from float32.")
    ] = False,
    engine: EngineOption = "local",
    address: AddressOption = None,
    reading: SuiteReading = DEFAULT_READING,
    signatures: SignaturesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Score every sentence of a suite with a model."""
    if by_word and is_word_table(Path(suite)):
        raise SpecError(f"{suite} has a word a row, with columns of its own: acceptability annotate {suite}")
    model = complete_model_spec(take_former_model("score", suite, model, former_model))
    check_one_output(out, as_json=as_json)
    if out:
        _check_out(out)
    parts = [
        name
        for name, is_chosen in (("token", by_token), ("word", by_word), ("region", by_region))
        if is_chosen
    ]  # fmt: skip
    if parts and (reduce or region or precisions):
        raise SpecError(
            "--tokens, --words and --regions print the model's output itself: omit --reduce, --region and --precisions"
        )
    if len(parts) > 1:
        raise SpecError("--tokens, --words and --regions: choose one")
    if precisions and dtype:
        raise SpecError("--precisions compares all precisions: omit --dtype")
    model = set_spec_dtype(model, dtype) if dtype else model
    model = set_spec_options(model, stride=stride, window=window, spaces=spaces)
    predictions = PredictionColumns(entropy, rank, top)
    if predictions.is_wanted and not parts:
        raise SpecError("--entropy, --rank and --top are of tokens: add --tokens, --words or --regions")
    runner, loaded = load_cli_engine(engine, address), load_cli_suite(suite, reading)
    per = parts[0] if parts else "sentence"
    with show_progress() as progress:
        scores = score_rows(
            loaded, model, reduce, per=per, region=region, predictions=predictions, engine=runner, progress=progress
        )
    _write_rows(scores.rows, out, as_json)
    print_notes(scores.notes)
    if signatures:
        print_message(scores.signature)
    if precisions:
        with show_progress() as progress:
            # After the scores, so that these are printed even if a lower precision fails.
            differences = compare_precisions(loaded, model, reduce, progress=progress)
        for difference in differences:
            print_message(_describe_difference(difference))
    inputs = RunInputs([make_suite_input(loaded, suite, reading)], [model])
    record_run("score", scores.rows, [scores.signature], inputs=inputs)


def _check_out(out: Path) -> None:
    if out.suffix.lower() not in _SUFFIXES:
        raise SpecError(f"--out {out}: expected a name that ends in {', '.join(_SUFFIXES)}")
    # Scoring may take hours, so a folder that does not exist is reported before it starts.
    check_writable(out)


def _describe_difference(difference: PrecisionDifference) -> str:
    return (
        f"{difference.dtype} against {difference.against}: largest difference {difference.largest:.4g} "
        f"(sentence {difference.sentence}), mean {difference.mean:.4g}; "
        f"{difference.changed} of {difference.contrasts} contrasts are decided otherwise"
    )


def _write_rows(rows: Sequence[Mapping[str, object]], out: Path | None, as_json: bool) -> None:
    if out is None and as_json:
        print_json(rows)
    elif out is None:
        print_data(_format_delimited(rows, "\t"))
    else:
        try:
            # The same bytes on every system: text files on Windows would otherwise get carriage returns.
            out.write_text(_format_rows(rows, out.suffix.lower()), encoding="utf-8", newline="\n")
        except OSError as error:
            raise ReportError(f"cannot write {out}: {error.strerror}") from error
        print_message(f"{len(rows)} rows written to {out}")


def _format_rows(rows: Sequence[Mapping[str, object]], suffix: str) -> str:
    if suffix == ".jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return _format_delimited(rows, "," if suffix == ".csv" else "\t")


def _format_delimited(rows: Sequence[Mapping[str, object]], delimiter: str) -> str:
    out = io.StringIO()
    write_table(out, rows, list(rows[0]), delimiter)
    return out.getvalue()
