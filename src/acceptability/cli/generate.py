"""``acceptability generate``: sentences that are made, written as a suite.

What can be made is a table in the registry, of the kind "subject": each name stands for a function that takes some of
the options of the command, and a tally that counts what it makes and leaves out, and returns sentences as a stream.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track

from acceptability import registry
from acceptability.cli.shown import Json, print_json, talk
from acceptability.generate.writing import check_out, write_sentences


def command(
    subject: Annotated[str, typer.Argument(help="What to make: real-fake.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file for the sentences, .jsonl.")],
    corpus: Annotated[
        list[Path] | None,
        typer.Option("--corpus", "-c", help="Text, one sentence a line: a file (.gz, .xz, .zst) or a folder."),
    ] = None,
    lm: Annotated[
        str | None,
        typer.Option(
            "--lm", help="The language model that half of the fakes are drawn from; without it all are permuted."
        ),
    ] = None,
    count: Annotated[int | None, typer.Option("--count", "-n", help="How many sentences.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of the random numbers; 0 if nothing is said.")] = None,
    lower: Annotated[bool | None, typer.Option("--lower", help="Put everything in lower case.")] = None,
    as_json: Json = False,
) -> None:
    """Make sentences and write them as a suite; real-fake: real ones, and fakes that are sampled or permuted."""
    maker = registry.find("subject", subject)
    check_out(out)
    tally: Counter[str] = Counter()
    options = {"corpus": corpus, "lm": lm, "count": count, "seed": seed, "lower": lower}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    with redirect_stdout(sys.stderr):
        made = registry.build(maker, subject, [], given | {"tally": tally})
        write_sentences(track(made, subject, total=count, console=Console(stderr=True)), out)
    if as_json:
        print_json({"file": str(out), **tally})
        return
    print(out)
    for line in sorted(tally):
        talk(f"{line}: {tally[line]:,}")
