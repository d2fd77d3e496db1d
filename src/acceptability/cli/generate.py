"""``acceptability generate``: generate sentences, and write them as a suite.

The generators are in the registry, under the kind "subject". A generator is a function that takes some of the options
of the command and a tally, in which it counts what it makes and leaves out; it returns an iterator over sentences. A
subject that ends in .toml is a user's own file of paradigms.
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
from acceptability.cli.console import AllowOption, JsonOption, print_data, print_json, print_message, print_rows
from acceptability.errors import SpecError
from acceptability.generate import generate_paradigms, is_paradigm_file, list_titles
from acceptability.generate.generator import check_output_path, write_sentences
from acceptability.models.kinds import complete_model_spec

_REAL_FAKE = "Real sentences, and fakes that are sampled from a model or permuted"


def command(
    subject: Annotated[
        str | None,
        typer.Argument(
            help="What to generate: a name, or a file of paradigms, FILE.toml. Without it, the names are listed."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The .jsonl file for the sentences.")] = None,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(
            "--corpus",
            "-c",
            help="For real-fake: text, one sentence per line, as a file (.gz, .xz, .zst) or a folder. Repeatable.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="For real-fake: the language model that samples half of the fakes. Default: none.",
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", help="The number of sentences; for paradigms, per template.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="The seed of the random numbers. Default: 0.")] = None,
    lower: Annotated[bool | None, typer.Option("--lower", help="For real-fake: lower-case everything.")] = None,
    paper_counts: Annotated[
        bool | None,
        typer.Option("--paper-counts", help="For npi: 136,000 sentences, as in the paper, instead of 144,000."),
    ] = None,
    allow: AllowOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Generate sentences and write them as a suite: real and fake ones, or the paradigms of a phenomenon."""
    if subject is None:
        _print_names(as_json)
        return
    generator = _find_generator(subject)
    if out is None:
        raise SpecError(f"the file for the sentences is missing: acceptability generate {subject} --out FILE.jsonl")
    # Before a generator starts: it may sample from a language model for hours.
    check_output_path(out, force=force)
    # Filled by the generator while its sentences are written, and complete only after that.
    tally: Counter[str] = Counter()
    lm = complete_model_spec(model) if model else None
    options = {
        "corpus": corpus, "lm": lm, "count": count, "seed": seed, "lower": lower, "paper_counts": paper_counts,
        "allow": allow,
    }  # fmt: skip
    # Only the options that were given: a generator refuses one that it does not know.
    options_given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    # Language models print messages while they load, and stdout is for data.
    with redirect_stdout(sys.stderr):
        sentences = registry.call_factory(generator, subject, [], options_given | {"tally": tally})
        # Of paradigms, --count is per template, and the total unknown.
        total = count if corpus else None
        write_sentences(track(sentences, subject, total=total, console=Console(stderr=True)), out)
    if as_json:
        print_json({"file": str(out), **tally})
        return
    print_data(f"{out}\n")
    for name in sorted(tally):
        print_message(f"{name}: {tally[name]:,}")


def _find_generator(subject: str) -> Callable[..., Any]:
    if is_paradigm_file(subject):
        return partial(generate_paradigms, subject)
    generator: Callable[..., Any] = registry.find("subject", subject)
    return generator


def _print_names(as_json: bool) -> None:
    """Print the names of the generators, with what they make."""
    titles_by_name = {"real-fake": _REAL_FAKE} | list_titles()
    rows = [{"name": name, "what it makes": titles_by_name.get(name, "")} for name in registry.names("subject")]
    if as_json:
        print_json(rows)
    else:
        print_rows(["name", "what it makes"], rows)
