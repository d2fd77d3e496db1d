"""``acceptability generate``: sentences that are made, written as a suite.

What can be made is a table in the registry, of the kind "subject": each name stands for a function that takes some of
the options of the command, and a tally that counts what it makes and leaves out, and returns sentences as a stream. A
name that ends in .toml is a user's own file of paradigms.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track

from acceptability import registry
from acceptability.cli.shown import Json, print_data, print_json, print_rows, talk
from acceptability.errors import SpellingError
from acceptability.generate.phenomena import is_file, paradigms, titles
from acceptability.generate.writing import check_out, write_sentences

_REAL_FAKE = "Real sentences, and fakes that are sampled from a model or permuted"


def command(
    subject: Annotated[
        str | None,
        typer.Argument(help="What to make: a name, or a file of paradigms, FILE.toml; nothing lists the names."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file for the sentences, .jsonl.")] = None,
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
    count: Annotated[
        int | None, typer.Option("--count", "-n", help="How many sentences; of paradigms: how many of each template.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of the random numbers; 0 if nothing is said.")] = None,
    lower: Annotated[bool | None, typer.Option("--lower", help="Put everything in lower case.")] = None,
    paper_counts: Annotated[
        bool | None, typer.Option("--paper-counts", help="For npi: 136,000 sentences, as the paper says, not 144,000.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    as_json: Json = False,
) -> None:
    """Make sentences and write them as a suite: real and fake ones, or the paradigms of a phenomenon."""
    if subject is None:
        _list(as_json)
        return
    maker = _maker(subject)
    if out is None:
        raise SpellingError(
            f"where to? Name the file for the sentences: acceptability generate {subject} --out FILE.jsonl"
        )
    check_out(out, force=force)
    tally: Counter[str] = Counter()
    options = {
        "corpus": corpus, "lm": lm, "count": count, "seed": seed, "lower": lower, "paper_counts": paper_counts
    }  # fmt: skip
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    with redirect_stdout(sys.stderr):
        made = registry.build(maker, subject, [], given | {"tally": tally})
        total = count if corpus else None
        write_sentences(track(made, subject, total=total, console=Console(stderr=True)), out)
    if as_json:
        print_json({"file": str(out), **tally})
        return
    print_data(f"{out}\n")
    for line in sorted(tally):
        talk(f"{line}: {tally[line]:,}")


def _maker(subject: str) -> Callable[..., Any]:
    if is_file(subject):
        return partial(paradigms, subject)
    maker: Callable[..., Any] = registry.find("subject", subject)
    return maker


def _list(as_json: bool) -> None:
    """Print what can be made."""
    known = {"real-fake": _REAL_FAKE} | titles()
    rows = [{"name": name, "what it makes": known.get(name, "")} for name in registry.names("subject")]
    if as_json:
        print_json(rows)
    else:
        print_rows(["name", "what it makes"], rows)
