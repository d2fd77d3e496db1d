"""``acceptability restarts``: a classifier taught from several seeds, and what the runs reach."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from acceptability import registry
from acceptability.cli.shown import (
    Address,
    EngineName,
    Json,
    Resamples,
    arguments,
    bootstrap,
    chosen_engine,
    fail,
    print_data,
    print_json,
    print_rows,
    progress_bar,
    saved,
    talk,
)
from acceptability.errors import SpellingError
from acceptability.spelling import read
from acceptability.store.runs import save_run
from acceptability.suites import load_suite
from acceptability.train.classifiers.restarts import FAILED, FINISHED, Run, chosen, failures, restarts, sampler
from acceptability.train.classifiers.summaries import Summary, check_both_labels, summaries
from acceptability.train.options import read_options
from acceptability.train.tick import Tell, Tick


def command(
    kind: Annotated[str, typer.Argument(help="The recipe of a classifier; `acceptability recipes` lists them.")],
    data: Annotated[
        list[str], typer.Option("--data", help="Labelled sentences to learn from: a suite such as cola/train, a table.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the runs: each lies in KIND-SEED.")],
    on: Annotated[
        list[str] | None, typer.Option("--on", help="A labelled suite or table to report on; it chooses nothing.")
    ] = None,
    runs: Annotated[int, typer.Option("--runs", help="How many runs there are.")] = 20,
    search: Annotated[
        bool, typer.Option("--search", help="Let each run draw its hyper-parameters; what --set says stays.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option("--workers", help="How many runs work at once; on this machine 1 unless said.")
    ] = None,
    engine: EngineName = "local",
    address: Address = None,
    options: Annotated[
        list[str] | None, typer.Option("--set", "-s", help="An option of the recipe, as hidden=100; seed is the first.")
    ] = None,
    licence: Annotated[
        str, typer.Option("--licence", help="What the models' cards say of the rights in the text.")
    ] = "",
    resamples: Resamples = 1000,
    as_json: Json = False,
) -> None:
    """Teach a classifier from several seeds: mean (std), best, chosen one and majority vote on labelled suites.

    Finished runs are not taught again, so that the same command goes on after a stop. The run that is chosen is the one
    with the highest MCC on the tenth of --data that is held out.
    """
    recipe: Any = read_options(registry.find("recipe", kind), options or [])
    _check(kind, recipe, workers, engine)
    runner = chosen_engine(engine, address)
    suites, how = [load_suite(name) for name in on or []], bootstrap(resamples, "", 0)
    for suite in suites:
        check_both_labels(suite)
    draw = sampler(recipe, [each.partition("=")[0].strip() for each in options or []]) if search else None
    with _bars() as tell:
        ended = restarts(
            recipe, data, out, runs=runs, workers=workers, engine=runner, search=draw, licence=licence, tell=tell
        )
    for line in _lines(ended):
        talk(line)
    problem = failures(ended)
    taught = [each for each in ended if each.told is not None]
    if not taught:
        fail(str(problem))
    with progress_bar() as progress:
        found = summaries(taught, suites, bootstrap=how, progress=progress)
    _print(ended, found, as_json)
    saved(save_run("restarts", arguments(), [each.row() for each in found], [], [each.signature for each in found]))
    if problem:
        fail(problem)


def _check(kind: str, recipe: Any, workers: int | None, engine: str) -> None:
    if getattr(recipe, "reads", "text") != "labels":
        raise SpellingError(f"{kind} learns from text, and restarts are of classifiers: see `acceptability train`")
    if workers is not None and "workers" in read(engine).options:
        raise SpellingError(f"--engine {engine} says how many workers there are; leave --workers away")


def _lines(runs: Sequence[Run]) -> Iterator[str]:
    for each in runs:
        if each.told is None:
            yield f"{each.name}: {FAILED}: {each.problem}"
        else:
            yield f"{each.name}: held-out MCC {each.held['mcc']:.4f}, accuracy {each.held['accuracy']:.4f}"


def _print(runs: Sequence[Run], found: Sequence[Summary], as_json: bool) -> None:
    best = chosen(runs)
    if as_json:
        print_json(
            {
                "runs": [_run_row(each) for each in runs],
                "chosen": best.spelling,
                "results": [each.row() for each in found],
            }
        )
        return
    if found:
        print_rows([*_cells(found[0])], [_cells(each) for each in found])
        for note in dict.fromkeys(f"{each.suite}: {note}" for each in found for note in each.notes):
            talk(note)
    else:
        print_data(f"{best.spelling}\n")
    talk(f"chosen by the MCC on held-out sentences: {best.spelling}")


def _run_row(run: Run) -> dict[str, object]:
    return {
        "seed": run.seed,
        "folder": str(run.folder),
        "problem": run.problem,
        "recipe": run.told["recipe"] if run.told else None,
        "held out": dict(run.held) if run.told else None,
        "seconds": run.told["seconds"] if run.told else None,
    }


def _cells(each: Summary) -> dict[str, object]:
    std = "" if each.std is None else f" ({each.std:.3f})"
    interval = "" if each.low is None else f" [{each.low:.3f}, {each.high:.3f}]"
    return {
        "suite": each.suite,
        "measure": each.measure,
        "mean (std)": f"{each.mean:.3f}{std}",
        f"best of {each.runs} on this set": f"{each.max:.3f} (seed {each.max_seed})",
        "chosen by held-out MCC": f"{each.chosen:.3f} (seed {each.chosen_seed})",
        f"majority of {each.runs} [95% interval]": f"{each.ensemble:.3f}{interval}",
    }


@contextmanager
def _bars() -> Iterator[Tell]:
    """Show on stderr a bar for all runs, and one for each that is at work; yield what moves them."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[about]}"), TimeRemainingColumn())
    bars = Progress(*columns, console=Console(stderr=True))
    tasks: dict[str, TaskID] = {}

    def tell(tick: Tick) -> None:
        name, _, stage = tick.stage.partition(": ")
        if stage in (FINISHED, FAILED):
            if name in tasks:
                bars.remove_task(tasks.pop(name))
            return
        if name not in tasks:
            tasks[name] = bars.add_task(name, total=tick.total, about="")
        loss = "" if tick.loss is None else f", loss {tick.loss:.3f}"
        about = f"{stage}{loss}" if stage else f"{tick.done} of {tick.total}"
        bars.update(tasks[name], completed=tick.done, total=tick.total, about=about)

    try:
        with bars, redirect_stdout(sys.stderr):
            yield tell
    except KeyboardInterrupt:
        talk("stopped; the same command keeps the runs that are finished and goes on with the others")
        raise
