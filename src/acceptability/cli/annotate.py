"""``acceptability annotate``: the words of a table with surprisals and other predictors of reading times."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated

import typer

from acceptability.api.psycholinguistics.annotation import annotate
from acceptability.cli.console import (
    AddressOption,
    DtypeOption,
    EngineOption,
    EntropyOption,
    JsonOption,
    ModelOption,
    RankOption,
    SignaturesOption,
    SpacesOption,
    StrideOption,
    TopOption,
    WindowOption,
    check_one_output,
    describe_signatures,
    load_cli_engine,
    print_data,
    print_json,
    print_message,
    print_notes,
    read_columns,
    show_progress,
)
from acceptability.errors import SpecError
from acceptability.models import set_spec_dtype, set_spec_options
from acceptability.models.kinds import complete_model_spec
from acceptability.specs import shorten_signature
from acceptability.text.io import check_rows_file, write_rows, write_table


def command(
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE", help="A table with a word a row: a column word, perhaps item and zone (or position)."
        ),
    ],
    model: ModelOption = None,
    scores: Annotated[
        Path | None,
        typer.Option("--scores", metavar="FILE", help="Instead of a model: published log-probabilities of tokens."),
    ] = None,
    entropy: EntropyOption = False,
    rank: RankOption = False,
    top: TopOption = 0,
    unigrams: Annotated[
        str | None,
        typer.Option(
            "--unigrams", metavar="TABLE", help="Add length and log frequency by this table, such as wordfreq:en."
        ),
    ] = None,
    spillover: Annotated[
        int,
        typer.Option("--spillover", metavar="N", help="Add surprisal, length and frequency of the N words before."),
    ] = 0,
    region: Annotated[
        str | None,
        typer.Option("--region", metavar="COLUMN", help="One row for each region: words with one value of a column."),
    ] = None,
    stride: StrideOption = None,
    window: WindowOption = None,
    spaces: SpacesOption = None,
    suffix: Annotated[
        str, typer.Option("--suffix", help="What the names of the new columns end in, such as _gpt2.")
    ] = "",
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows without a value in a new column, for a regression.")
    ] = False,
    columns: Annotated[
        str | None,
        typer.Option("--columns", help="The table's columns by meaning: word=Token,item=story,position=n."),
    ] = None,
    score_columns: Annotated[
        str | None,
        typer.Option("--score-columns", help="The columns of --scores by meaning: token=…,logprob=…,item=…."),
    ] = None,
    dtype: DtypeOption = None,
    engine: EngineOption = "local",
    address: AddressOption = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the rows: .csv, .tsv or .jsonl.")] = None,
    signatures: SignaturesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Annotate a table with a word a row: surprisal, entropy, rank, length, frequency, spill-over."""
    check_one_output(out, as_json=as_json)
    if out:
        check_rows_file(out)
    if (model is None) == (scores is None):
        raise SpecError(
            f"give a model or published scores: acceptability annotate {table} --model mini-causal --stride 16"
        )
    if model is None and any(option is not None for option in (stride, window, spaces, dtype)):
        raise SpecError("--stride, --window, --spaces and --dtype are options of a model: leave them out with --scores")
    spec = None
    if model is not None:
        spec = complete_model_spec(model)
        spec = set_spec_dtype(spec, dtype) if dtype else spec
        spec = set_spec_options(spec, stride=stride, window=window, spaces=spaces)
    with show_progress() as progress:
        result = annotate(
            table,
            spec,
            scores=scores,
            entropy=entropy,
            rank=rank,
            top=top,
            unigrams=unigrams,
            spillover=spillover,
            region=region,
            suffix=suffix,
            drop_missing=drop_missing,
            columns=read_columns(columns),
            score_columns=read_columns(score_columns),
            engine=load_cli_engine(engine, address),
            progress=progress,
        )
    if out:
        write_rows(out, result.rows())
        print_message(f"{len(result)} rows written to {out}")
    elif as_json:
        print_json(result.rows())
    else:
        text = io.StringIO()
        write_table(text, result.rows(), list(result[0]), "\t")
        print_data(text.getvalue())
    print_notes(result.notes)
    if signatures:
        print_message(result.signature)
    else:
        print_message(describe_signatures([shorten_signature(result.signature)], is_saved=False))
