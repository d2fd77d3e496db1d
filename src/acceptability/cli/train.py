"""``acceptability train``: train a language model or a classifier; ``acceptability perplexity``: evaluate on text."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from acceptability import registry
from acceptability.cli.console import (
    JsonOption,
    ModelOption,
    SignaturesOption,
    describe_signatures,
    print_data,
    print_json,
    print_message,
    show_progress,
    take_former_model,
)
from acceptability.errors import SpecError
from acceptability.models.kinds import complete_model_spec
from acceptability.specs import shorten_signature
from acceptability.train import train_from_options
from acceptability.train.corpus import open_corpus
from acceptability.train.perplexity import Perplexity, PseudoPerplexity, perplexity, pseudo_perplexity
from acceptability.train.recipe import TrainingProgress, TrainingProgressCallback, find_model_kind

# A loss above this is a diverged training; e to its power would overflow.
_MAX_LOSS = 50


def command(
    kind: Annotated[str, typer.Argument(help="The recipe, such as ngram; `acceptability recipes` lists them.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the model.")],
    corpus: Annotated[
        list[Path] | None,
        typer.Option(
            "--corpus",
            "-c",
            help="For a language model: text, one sentence per line, a file (.gz, .xz, .zst) or a folder. Repeatable.",
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data", help="For a classifier: labelled sentences, a suite such as cola/train or a table. Repeatable."
        ),
    ] = None,
    dev: Annotated[
        list[Path] | None, typer.Option("--dev", help="Held-out text to measure the perplexity on. Repeatable.")
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", help="An option of the recipe, such as order=3 or lower=true. Repeatable."),
    ] = None,
    intermediate: Annotated[
        str,
        typer.Option(
            "--intermediate",
            help="For transformer: the file of an intermediate task to train on first (MNLI's, .conllu, …).",
        ),
    ] = "",
    licence: Annotated[
        str, typer.Option("--licence", help="For the model card: the licence of the training data.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Train a model: from text (--corpus) or, for a classifier, from labelled sentences (--data).

    If training is interrupted, run the same command again: it resumes from the last checkpoint.
    """
    first = [f"intermediate={intermediate}"] if intermediate else []
    # Also needed before the training, which reports a perplexity only for language models.
    model_kind = find_model_kind(registry.find("recipe", kind))
    with _progress_bar(is_language_model=model_kind != "classifier") as progress_callback:
        metadata = train_from_options(
            kind,
            out,
            corpus=corpus or (),
            data=data or (),
            dev=dev or (),
            options=[*(options or []), *first],
            licence=licence,
            progress=progress_callback,
        )
    if as_json:
        print_json(metadata)
        return
    # The spec of the new model, ready for --model.
    print_data(f"{model_kind}:{out}\n")
    for line in _describe_training(metadata):
        print_message(line)


def perplexity_command(
    corpus: Annotated[
        list[Path],
        typer.Option(
            "--corpus", "-c", help="Text, one sentence per line: a file (.gz, .xz, .zst) or a folder. Repeatable."
        ),
    ],
    former_model: Annotated[str | None, typer.Argument(metavar="MODEL", hidden=True)] = None,
    model: ModelOption = None,
    oov: Annotated[
        str | None,
        typer.Option("--oov", help="Words that the model does not know: include (the default) or exclude."),
    ] = None,
    eos: Annotated[
        str | None,
        typer.Option("--eos", help="The end of each sentence, as a word: include (the default) or exclude."),
    ] = None,
    words: Annotated[
        str, typer.Option("--words", help="What counts as a word: split, spaces, ...; default: the model's own rule.")
    ] = "",
    pseudo: Annotated[
        bool, typer.Option("--pseudo", help="The pseudo-perplexity of a masked model, which has no perplexity.")
    ] = False,
    improper: Annotated[
        bool, typer.Option("--improper", help="Also accept a model whose probabilities sum to more than 1.")
    ] = False,
    signatures: SignaturesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Measure the perplexity per word of a model on a text."""
    model = complete_model_spec(take_former_model("perplexity", "", model, former_model))
    if pseudo and (oov or eos or improper):
        raise SpecError("--pseudo counts all words and no ends of sentences: omit --oov, --eos and --improper")
    text = open_corpus(corpus)
    result: Perplexity | PseudoPerplexity
    with show_progress() as progress:
        if pseudo:
            result = pseudo_perplexity(model, text, words=words, progress=progress)
        else:
            counting = {"oov": oov or "include", "eos": eos or "include"}
            result = perplexity(model, text, **counting, words=words, improper=improper, progress=progress)
    if as_json:
        print_json(result.row())
        return
    number, *notes = _describe_perplexity(result, improper)
    short = describe_signatures([shorten_signature(result.signature)], is_saved=False)
    notes.append(result.signature if signatures else short)
    # The number alone goes to stdout, so that a script can read it; notes go to stderr.
    print(number)
    for line in notes:
        print_message(line)


def _describe_perplexity(result: Perplexity | PseudoPerplexity, improper: bool) -> Iterator[str]:
    """Yield the number, followed by notes on it."""
    size = f"{result.words:,} words in {result.sentences:,} sentences"
    if isinstance(result, PseudoPerplexity):
        yield from (f"{result.pseudo_perplexity:.2f}", f"{size}; a pseudo-perplexity, to compare with such only")
    else:
        unknown = "" if result.unknown is None else f", {result.unknown:,} of them unknown"
        yield from (f"{result.perplexity:.2f}", f"{size}{unknown}")
    if improper:
        yield "improper: the probabilities of all words sum to more than 1, so that this is no perplexity"


def _describe_training(metadata: dict[str, Any]) -> Iterator[str]:
    words = f", {metadata['words']:,} words" if "words" in metadata else ""
    yield f"{metadata['sentences']:,} sentences{words}; {metadata['seconds']:,} seconds"
    for name, value in metadata["facts"].items():
        yield f"{name}: {value}"
    for name, value in metadata["results"].get("held out", {}).items():
        yield f"{name} on the {metadata['held out']:,} sentences held out: {value:.4f}"
    if dev_result := metadata["results"].get("dev"):
        shown = "undefined" if dev_result["perplexity"] is None else f"{dev_result['perplexity']:.2f}"
        yield f"perplexity on the dev set: {shown} ({dev_result.get('signature') or dev_result['why']})"


@contextmanager
def _progress_bar(*, is_language_model: bool) -> Iterator[TrainingProgressCallback]:
    """Show a bar for each stage on stderr; yield the callback that updates it."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[about]}"), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True))
    # With each stage, when it started and at how many tokens: a resumed run starts at many, and they took no time.
    stages: dict[str, tuple[TaskID, float, int]] = {}

    def update_bar(progress: TrainingProgress) -> None:
        if progress.stage not in stages:
            bar.start()
            task = bar.add_task(progress.stage, total=progress.total, about="")
            stages[progress.stage] = (task, time.monotonic(), progress.tokens)
        task, start, first = stages[progress.stage]
        about = format_progress(progress, time.monotonic() - start, first, is_language_model=is_language_model)
        bar.update(task, completed=progress.done, total=progress.total, about=about)

    try:
        # Libraries print messages while models train, and stdout is for data.
        with redirect_stdout(sys.stderr):
            yield update_bar
    except KeyboardInterrupt:
        bar.stop()
        print_message("stopped; the same command resumes from the last checkpoint")
        raise
    finally:
        if stages:
            bar.stop()


def format_progress(progress: TrainingProgress, seconds: float, first: int, *, is_language_model: bool = True) -> str:
    """Return the text beside the bar: the loss, the perplexity of a language model, and the tokens per second.

    Args:
        seconds: The time since the first report of this stage.
        first: The number of tokens at that report.
        is_language_model: Whether e to the power of the loss is a perplexity.

    >>> format_progress(TrainingProgress("training", 5, 10, tokens=3000, loss=2.0), 2.0, first=1000)
    'loss 2.000, perplexity 7.4, 1,000 tokens/s'
    """
    parts = []
    if progress.loss is not None:
        parts.append(f"loss {progress.loss:.3f}")
        if is_language_model:
            parts.append(f"perplexity {math.exp(min(progress.loss, _MAX_LOSS)):,.1f}")
    if progress.tokens > first and seconds > 0:
        parts.append(f"{(progress.tokens - first) / seconds:,.0f} tokens/s")
    return ", ".join(parts)
