"""Restarts: the same recipe from several seeds, side by side, and which of the runs is chosen.

Each run lies in a folder of its own, ``OUT/KIND-SEED``, and is taught by ``teach``: one that is finished is not taught
again, so a set of runs that was stopped goes on, and more runs can be added. Runs side by side are the same, bit for
bit, as runs one after the other: every run works in a process with one thread of arithmetic, and draws from its own
seed. The run that is used further is the one that is best on the sentences held out of the training data; no
development set has a say in it.

A recipe can be searched if the module that its class is written in also has a function ``sampled(seed, recipe)``,
which returns the recipe with hyper-parameters drawn by a seed. Each run then draws its own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from acceptability.engine.processes import Call, Hear, Outcome
from acceptability.errors import EngineError, TrainError
from acceptability.protocols import Engine
from acceptability.scoring import as_engine, as_suite
from acceptability.train.classifiers.course import teach
from acceptability.train.classifiers.examples import held_out, read_examples
from acceptability.train.recipe import FILE, train
from acceptability.train.tick import Tell, Tick
from acceptability.types import Suite

Search = Callable[[int, Any], Any]
"""Returns a recipe with hyper-parameters drawn by a seed, from a seed and the recipe that says all else."""

FINISHED, FAILED = "finished", "failed"


@dataclass(frozen=True)
class Run:
    """One restart.

    Args:
        told: What its ``recipe.json`` says; None where it could not be taught, and ``problem`` says why.
    """

    seed: int
    folder: Path
    told: Mapping[str, Any] | None = None
    problem: str | None = None

    @property
    def name(self) -> str:
        """Its kind and seed: what its folder is called."""
        return self.folder.name

    @property
    def held(self) -> Mapping[str, float]:
        """What it reaches on the sentences that were held out: ``mcc`` and ``accuracy``; nothing if it failed."""
        found: Mapping[str, float] = self.told["results"]["held out"] if self.told else {}
        return found

    @property
    def spelling(self) -> str:
        """How its classifier is written."""
        return f"classifier:{self.folder}"


@dataclass(frozen=True)
class Task:
    """What one run needs to know, wherever it works.

    Args:
        data: The labelled sentences of a classifier that learns from such.
        text: The files of a recipe that learns from text, and ``dev`` those that tell it when to stop.
    """

    recipe: Any
    out: Path
    data: tuple[Suite, ...] = ()
    text: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    licence: str = ""


def restarts(
    recipe: Any,
    data: Sequence[str | Suite],
    out: str | Path,
    *,
    runs: int = 20,
    workers: int | None = None,
    engine: str | Engine = "local",
    search: Search | None = None,
    licence: str = "",
    tell: Tell = lambda _: None,
) -> list[Run]:
    """Teach a recipe from several seeds, and return the runs in the order of their seeds, also those that failed.

    The first seed is the recipe's own, the others follow it. In a script, call this under
    ``if __name__ == "__main__":``, since new processes read the script again.

    Args:
        workers: How many runs work at once: 1 unless it is said, on a cluster one for each GPU or core.
        engine: ``local`` for processes of this machine, ``ray(...)`` for a cluster whose nodes share the folder.
        search: What draws the hyper-parameters of each run, such as ``sampler(recipe)``; None where all runs have
            those of the recipe.
        tell: Told how far each run is ("cbow-3: learning"), how it ended ("cbow-3: finished"), and how many have ended
            ("runs").
    """
    suites = tuple(as_suite(each) for each in data)
    # What is wrong with the sentences would be wrong in every run.
    held_out(read_examples(suites))
    tasks = tasks_of(recipe, out, runs=runs, search=search, data=suites, licence=licence)
    return carried_out(tasks, workers=workers, engine=engine, tell=tell)


def tasks_of(recipe: Any, out: str | Path, *, runs: int, search: Search | None = None, **known: Any) -> list[Task]:
    """Return the restarts of a recipe, as yet to be taught; ``known`` is what else a task says."""
    if "seed" not in {each.name for each in fields(recipe)}:
        raise TrainError(f"the recipe {recipe.kind} has no seed, so that every restart would be the same")
    _check_count("runs", runs)
    asked = [_drawn(recipe, recipe.seed + number, search) for number in range(runs)]
    return [Task(each, Path(out).resolve() / f"{each.kind}-{each.seed}", **known) for each in asked]


def sampler(recipe: Any, keep: Sequence[str] = ()) -> Search:
    """Return what draws hyper-parameters for a recipe: ``sampled(seed, recipe)`` in the module of its class.

    Args:
        keep: Options that stay as the recipe has them.
    """
    module = import_module(type(recipe).__module__)
    found: Search | None = getattr(module, "sampled", None)
    if found is None:
        raise TrainError(
            f"the recipe {recipe.kind} cannot be searched: {module.__name__} has no function sampled(seed, recipe). "
            "Leave --search away, and set its options yourself."
        )
    return partial(_sampled, found, tuple(keep))


def chosen(runs: Sequence[Run]) -> Run:
    """Return the run with the highest MCC on what was held out; of equals the one with the lowest seed."""
    taught = [each for each in runs if each.told is not None]
    if not taught:
        raise TrainError("no run is finished, so that none can be chosen")
    return max(taught, key=lambda each: (each.held["mcc"], -each.seed))


def failures(runs: Sequence[Run]) -> str | None:
    """Return which runs failed and why, for people; None where all are finished."""
    failed = [each for each in runs if each.problem is not None]
    if not failed:
        return None
    why = "; ".join(f"seed {each.seed}: {each.problem}" for each in failed)
    return f"{len(failed)} of {len(runs)} runs failed: {why}. The same command repeats these and keeps the others."


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise TrainError(f"{name} is {value!r}; expected a whole number from 1")


def _drawn(recipe: Any, seed: int, search: Search | None) -> Any:
    return replace(search(seed, recipe) if search else recipe, seed=seed)


def _sampled(found: Search, keep: Sequence[str], seed: int, recipe: Any) -> Any:
    return replace(found(seed, recipe), **{name: getattr(recipe, name) for name in keep})


def carried_out(
    tasks: Sequence[Task],
    *,
    workers: int | None = None,
    engine: str | Engine = "local",
    tell: Tell = lambda _: None,
) -> list[Run]:
    """Return the runs when all have ended, in the order of the tasks, also those that failed."""
    _check_count("workers", 1 if workers is None else workers)

    def hear(place: int, tick: Tick) -> None:
        tell(replace(tick, stage=f"{tasks[place].out.name}: {tick.stage}"))

    ended: dict[int, Run] = {}
    tell(Tick("runs", 0, len(tasks)))
    with closing(side_by_side(_taught, tasks, workers=workers, engine=engine, hear=hear)) as outcomes:
        for outcome in outcomes:
            ended[outcome.place] = run = _run(tasks[outcome.place], outcome.value, outcome.problem)
            tell(Tick(f"{run.name}: {FAILED if run.problem else FINISHED}", 1, 1))
            tell(Tick("runs", len(ended), len(tasks)))
    return [ended[place] for place in range(len(tasks))]


def side_by_side(
    function: Call, items: Sequence[Any], *, workers: int | None, engine: str | Engine, hear: Hear
) -> Generator[Outcome, None, None]:
    """Return how the calls of a function end that teaches, wherever the engine runs them."""
    runner: Any = as_engine(engine)
    if not hasattr(runner, "calls"):
        raise EngineError(f"the engine {engine!r} scores, but cannot run a training. Take local, or ray.")
    found: Generator[Outcome, None, None] = runner.calls(function, items, workers=workers, hear=hear)
    return found


def _taught(task: Task, tell: Tell) -> dict[str, Any]:
    """Teach one run; called in a process of its own."""
    if task.text:
        return train(task.recipe, task.text, task.out, dev=task.dev, licence=task.licence, tell=tell)
    return teach(task.recipe, task.data, task.out, licence=task.licence, tell=tell)


def _run(task: Task, told: dict[str, Any] | None, problem: str | None) -> Run:
    """Return the run that a task has become; what was taught elsewhere must have come here."""
    seed: int = getattr(task.recipe, "seed", 0)
    if told is not None and not (task.out / FILE).is_file():
        problem = f"it was taught, but {task.out} is not on this machine: --out must be a folder that all nodes share"
    return Run(seed, task.out, None if problem else told, problem)
