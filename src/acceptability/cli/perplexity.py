"""``acceptability perplexity``: how well a model foretells text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from acceptability.cli.shown import Json, print_json, progress_bar, talk
from acceptability.train.corpus import open_corpus
from acceptability.train.perplexity import perplexity


def command(
    model: str,
    corpus: Annotated[
        list[Path],
        typer.Option("--corpus", "-c", help="Text, one sentence a line: a file (.gz, .xz, .zst) or a folder."),
    ],
    oov: Annotated[
        str, typer.Option("--oov", help="Words that the model does not know: include or exclude.")
    ] = "include",
    eos: Annotated[
        str, typer.Option("--eos", help="The end of each sentence, as a word: include or exclude.")
    ] = "include",
    words: Annotated[
        str, typer.Option("--words", help="What counts as a word: split, spaces, ...; default: the model's own rule.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Measure a model's perplexity for a word of a text."""
    with progress_bar() as progress:
        found = perplexity(model, open_corpus(corpus), oov=oov, eos=eos, words=words, progress=progress)
    if as_json:
        print_json(found.row())
        return
    unknown = "" if found.unknown is None else f", {found.unknown:,} of them unknown"
    print(f"{found.perplexity:.2f}")
    talk(f"{found.words:,} words in {found.sentences:,} sentences{unknown}")
    talk(found.signature)
