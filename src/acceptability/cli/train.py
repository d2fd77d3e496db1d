"""``acceptability train``: a language model from plain text, or a classifier from labelled sentences."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from acceptability import registry
from acceptability.cli.shown import Json, print_data, print_json, talk
from acceptability.errors import SpellingError
from acceptability.train import train
from acceptability.train.classifiers import teach
from acceptability.train.options import read_options
from acceptability.train.tick import Tell, Tick


def command(
    kind: Annotated[str, typer.Argument(help="The recipe, such as ngram; `acceptability recipes` lists them.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the model.")],
    corpus: Annotated[
        list[Path] | None,
        typer.Option("--corpus", "-c", help="Text, one sentence a line: a file (.gz, .xz, .zst) or a folder."),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", help="Labelled sentences for a classifier: a suite such as cola/train, or a table."),
    ] = None,
    dev: Annotated[list[Path] | None, typer.Option("--dev", help="Text to measure the perplexity on.")] = None,
    options: Annotated[
        list[str] | None, typer.Option("--set", "-s", help="An option of the recipe, as order=3 or lower=true.")
    ] = None,
    intermediate: Annotated[
        str,
        typer.Option(
            "--intermediate", help="For transformer: a file of another task to learn first: MNLI's, .conllu, …"
        ),
    ] = "",
    licence: Annotated[
        str, typer.Option("--licence", help="What the model's card says of the rights in the text.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Train a model: from text (--corpus) or, for a classifier, from labelled sentences (--data).

    A run on text that was stopped goes on when the same command is given again; one on labelled sentences begins anew.
    """
    first = [f"intermediate={intermediate}"] if intermediate else []
    recipe: Any = read_options(registry.find("recipe", kind), [*(options or []), *first])
    reads = getattr(recipe, "reads", "text")
    _check(kind, reads, corpus, data)
    is_language = getattr(recipe, "opened_as", "classifier") != "classifier"
    with _bar(is_language=is_language, goes_on=reads == "text") as tell:
        if reads == "labels":
            told = teach(recipe, data or [], out, licence=licence, tell=tell)
        else:
            told = train(recipe, corpus or [], out, dev=dev or [], licence=licence, tell=tell)
    if as_json:
        print_json(told)
        return
    print_data(f"{getattr(recipe, 'opened_as', 'classifier')}:{out}\n")
    for line in _summary(told):
        talk(line)


def _check(kind: str, reads: str, corpus: Sequence[Path] | None, data: Sequence[str] | None) -> None:
    """Refuse a recipe's wrong kind of reading."""
    if reads == "labels" and (corpus or not data):
        raise SpellingError(
            f"{kind} learns from labelled sentences: give --data, such as --data cola/train, no --corpus"
        )
    if reads == "text" and (data or not corpus):
        raise SpellingError(f"{kind} learns from text: give --corpus FILE_OR_FOLDER, no --data")


def _summary(told: dict[str, Any]) -> Iterator[str]:
    words = f", {told['words']:,} words" if "words" in told else ""
    yield f"{told['sentences']:,} sentences{words}; {told['seconds']:,} seconds"
    for name, value in told["facts"].items():
        yield f"{name}: {value}"
    for name, value in told["results"].get("held out", {}).items():
        yield f"{name} on the {told['held out']:,} sentences held out: {value:.4f}"
    if found := told["results"].get("dev"):
        shown = "undefined" if found["perplexity"] is None else f"{found['perplexity']:.2f}"
        yield f"perplexity on the dev set: {shown} ({found.get('signature') or found['why']})"


@contextmanager
def _bar(*, is_language: bool, goes_on: bool) -> Iterator[Tell]:
    """Show a bar for each stage on stderr; yield what moves it."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[about]}"), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True))
    tasks: dict[str, tuple[TaskID, float, int]] = {}

    def tell(tick: Tick) -> None:
        if tick.stage not in tasks:
            bar.start()
            task = bar.add_task(tick.stage, total=tick.total, about="")
            tasks[tick.stage] = (task, time.monotonic(), tick.tokens)
        task, began, first = tasks[tick.stage]
        about = shown(tick, time.monotonic() - began, first, is_language=is_language)
        bar.update(task, completed=tick.done, total=tick.total, about=about)

    try:
        with redirect_stdout(sys.stderr):
            yield tell
    except KeyboardInterrupt:
        bar.stop()
        talk(f"stopped; the same command {'goes on from the last checkpoint' if goes_on else 'begins anew'}")
        raise
    finally:
        if tasks:
            bar.stop()


def shown(tick: Tick, seconds: float, first: int, *, is_language: bool = True) -> str:
    """Return what stands beside the bar: loss, perplexity if it is a language model's, and the pace.

    >>> shown(Tick("training", 5, 10, tokens=3000, loss=2.0), 2.0, first=1000)
    'loss 2.000, perplexity 7.4, 1,000 tokens/s'
    """
    parts: Sequence[str] = (
        *(
            [f"loss {tick.loss:.3f}", *([f"perplexity {math.exp(min(tick.loss, 50)):,.1f}"] if is_language else [])]
            if tick.loss is not None
            else []
        ),
        *([f"{(tick.tokens - first) / seconds:,.0f} tokens/s"] if tick.tokens > first and seconds > 0 else []),
    )
    return ", ".join(parts)
