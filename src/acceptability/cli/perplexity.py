"""``acceptability perplexity``: how well a model foretells text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from acceptability.cli.shown import Json, print_json, progress_bar, talk
from acceptability.errors import SpellingError
from acceptability.train.corpus import open_corpus
from acceptability.train.perplexity import Perplexity, PseudoPerplexity, perplexity, pseudo_perplexity


def command(
    model: str,
    corpus: Annotated[
        list[Path],
        typer.Option("--corpus", "-c", help="Text, one sentence a line: a file (.gz, .xz, .zst) or a folder."),
    ],
    oov: Annotated[
        str | None, typer.Option("--oov", help="Words that the model does not know: include (the default) or exclude.")
    ] = None,
    eos: Annotated[
        str | None, typer.Option("--eos", help="The end of each sentence, as a word: include (the default) or exclude.")
    ] = None,
    words: Annotated[
        str, typer.Option("--words", help="What counts as a word: split, spaces, ...; default: the model's own rule.")
    ] = "",
    pseudo: Annotated[
        bool, typer.Option("--pseudo", help="The pseudo-perplexity of a masked model, which has no other.")
    ] = False,
    improper: Annotated[
        bool, typer.Option("--improper", help="Also for a model whose probabilities sum to more than 1.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure a model's perplexity for a word of a text."""
    if pseudo and (oov or eos or improper):
        raise SpellingError(
            "--pseudo counts all words and no ends of sentences: leave --oov, --eos and --improper away"
        )
    text = open_corpus(corpus)
    found: Perplexity | PseudoPerplexity
    with progress_bar() as progress:
        if pseudo:
            found = pseudo_perplexity(model, text, words=words, progress=progress)
        else:
            counted = {"oov": oov or "include", "eos": eos or "include"}
            found = perplexity(model, text, **counted, words=words, improper=improper, progress=progress)
    if as_json:
        print_json(found.row())
        return
    number, *about = _lines(found, improper)
    print(number)
    for line in about:
        talk(line)


def _lines(found: Perplexity | PseudoPerplexity, improper: bool) -> Iterator[str]:
    """Yield the number, and what to know about it."""
    told = f"{found.words:,} words in {found.sentences:,} sentences"
    if isinstance(found, PseudoPerplexity):
        yield from (f"{found.pseudo_perplexity:.2f}", f"{told}; a pseudo-perplexity, to compare with such only")
    else:
        unknown = "" if found.unknown is None else f", {found.unknown:,} of them unknown"
        yield from (f"{found.perplexity:.2f}", f"{told}{unknown}")
    if improper:
        yield "improper: the probabilities of all words sum to more than 1, so that this is no perplexity"
    yield found.signature
