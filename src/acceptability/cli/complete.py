"""``acceptability complete``: what may follow the beginning of a sentence, and cloze probabilities of given words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from acceptability.api.psycholinguistics.cloze import complete
from acceptability.cli.console import (
    DtypeOption,
    JsonOption,
    SignaturesOption,
    check_one_output,
    describe_signatures,
    print_json,
    print_line,
    print_message,
    print_notes,
    print_table,
)
from acceptability.display import format_cell
from acceptability.errors import SpecError
from acceptability.models import default_model, list_named_models, set_spec_dtype
from acceptability.models.kinds import complete_model_spec
from acceptability.report.text_table import make_table
from acceptability.specs import shorten_signature
from acceptability.text.io import check_rows_file, write_rows


def command(
    text: Annotated[
        str,
        typer.Argument(
            help="The beginning of a sentence, up to a complete word; for a masked model, a sentence with [MASK]."
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="A causal, masked, recurrent or n-gram model. Default: mini-causal, or trigram without PyTorch.",
        ),
    ] = None,
    candidates: Annotated[
        str | None,
        typer.Option("--candidates", metavar="WORD,…", help="The probabilities of these words alone: a cloze."),
    ] = None,
    top: Annotated[int, typer.Option("--top", metavar="N", help="How many words are listed.")] = 10,
    by_token: Annotated[bool, typer.Option("--tokens", help="List the model's tokens instead of words.")] = False,
    dtype: DtypeOption = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the rows: .csv, .tsv or .jsonl.")] = None,
    signatures: SignaturesOption = False,
    as_json: JsonOption = False,
) -> None:
    """List what a model expects after the beginning of a sentence: words or tokens, with their probabilities."""
    check_one_output(out, as_json=as_json)
    if out:
        check_rows_file(out)
    name = complete_model_spec(model) if model else default_model()
    if model is None:
        print_message(f"model: {name}, {list_named_models()[name].about}")
    name = set_spec_dtype(name, dtype) if dtype else name
    words = [word for word in candidates.split(",") if word.strip()] if candidates is not None else []
    if candidates is not None and not words:
        raise SpecError("--candidates has no words: write --candidates are,is")
    result = complete(text, name, candidates=words, by="token" if by_token else "word", top=top)
    if as_json:
        print_json(
            {
                "text": result.text,
                "model": name,
                "completions": result.rows(),
                "covered": result.covered,
                "masses": result.masses,
                "notes": list(result.notes),
                "signature": result.signature,
            }
        )
        return
    if out:
        write_rows(out, result.rows())
        print_message(f"{len(result)} rows written to {out}")
    else:
        print_line(result.text if result.fills_mask else f"{result.text} …".strip())
        header = list(result[0]) if len(result) else [result.unit]
        cells = [[row[name] if name == header[0] else format_cell(row[name]) for name in header] for row in result]
        print_table(make_table(header, cells, unbroken=header[:1]))
    print_notes(result.notes)
    short = describe_signatures([shorten_signature(result.signature)], is_saved=False)
    print_message(result.signature if signatures else short)
