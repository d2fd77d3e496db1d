"""Carrying out the plan of ``npi_plan``: each classifier is taught, judges, and lies in a folder of its own.

``DIR/MODEL/other|one/ENVIRONMENT|all-but/ENVIRONMENT|all/KIND-SEED``. What is finished is not taught again, and what it
said is in the store, so that a plan that was stopped goes on. ``DIR/plan.json`` says what there is, for
``acceptability study npi --restarts DIR``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from acceptability import registry
from acceptability.errors import ModelError, TrainError
from acceptability.scoring import score
from acceptability.studies.npi_data import ENVIRONMENT, material
from acceptability.studies.npi_plan import Planned, Size, Taught, planned, taught_models
from acceptability.suites import load_suite
from acceptability.train.checkpoint import atomic
from acceptability.train.classifiers.configurations import OTHER, chosen, some_of
from acceptability.train.classifiers.course import teach
from acceptability.train.classifiers.restarts import side_by_side
from acceptability.train.tick import Tell, Tick
from acceptability.types import Sentence, Suite

PLAN = "plan.json"
_MOST_WORKERS = 8
WILCOX = "npi/wilcox"
ENCODER = "encoder"


@dataclass(frozen=True)
class Folder:
    """A folder of classifiers that a plan has left.

    Args:
        suite: The file of the sentences, empty for the published ones.
        restarts: From how many seeds each classifier was taught.
    """

    path: Path
    suite: str
    restarts: int
    models: tuple[Taught, ...]


@dataclass(frozen=True)
class _Task:
    """What one classifier needs to know, wherever it is taught."""

    run: Planned
    suite: str
    root: Path

    @property
    def out(self) -> Path:
        """The folder of the classifier."""
        return self.root / self.run.folder

    @property
    def encoder(self) -> Path:
        """The folder of what it begins with, where that has learnt another task first."""
        return self.root / self.run.model.name / ENCODER


def carry_out(
    size: Size,
    out: str | Path,
    models: Sequence[str],
    *,
    suite: str = "",
    vectors: str = "",
    intermediate: Sequence[str] = (),
    restarts: int = 1,
    workers: int | None = None,
    engine: str = "local",
    tell: Tell = lambda _: None,
) -> Folder:
    """Teach what the plan has and let it judge; return the folder. One that fails is an error, and the others stay.

    Args:
        models: Encoders to be fine-tuned, as they are written.
        suite: A file of sentences of one's own in place of the published ones.
        vectors: Word vectors for the bag of words.
        intermediate: Files that encoders learn from first.
        restarts: From how many seeds each is taught.
        workers: How many are taught at once; half as many as there are cores if it is not said, eight at most.
    """
    taught = taught_models(size, models, vectors=vectors, intermediate=intermediate)
    folder = Folder(Path(out).resolve(), suite, restarts, tuple(taught))
    runs = planned(taught, material(suite).groups, restarts)
    _write(folder)
    tasks = [_Task(each, suite, folder.path) for each in runs]
    first = {task.run.model.name: task for task in tasks if task.run.model.after}
    at_once = workers or workers_here()
    for function, some in ((learnt_first, list(first.values())), (taught_and_judged, tasks)):
        if problems := _ended(function, some, engine, at_once, tell):
            raise TrainError(f"{len(problems)} of {len(some)} trainings failed: {'; '.join(problems[:3])}")
    return folder


def workers_here() -> int:
    """Return how many trainings or probes work at once where nobody says so: half as many as there are cores."""
    return max(1, min(_MOST_WORKERS, (os.cpu_count() or 2) // 2))


def _ended(
    function: Callable[[_Task, Tell], None], tasks: Sequence[_Task], engine: str, workers: int, tell: Tell
) -> list[str]:
    """Return what went wrong when all trainings have ended."""
    if not tasks:
        return []

    def hear(place: int, tick: Tick) -> None:
        tell(replace(tick, stage=f"{tasks[place].run.folder}: {tick.stage}"))

    problems, done = [], 0
    with closing(side_by_side(function, tasks, workers=workers, engine=engine, hear=hear)) as outcomes:
        for outcome in outcomes:
            done += 1
            name = tasks[outcome.place].run.folder
            if outcome.problem is not None:
                problems.append(f"{name}: {outcome.problem}")
            tell(Tick(f"{name}: {'failed' if outcome.problem else 'finished'}", 1, 1))
            tell(Tick("classifiers", done, len(tasks)))
    return problems


def taught_and_judged(task: _Task, tell: Tell) -> None:
    """Teach one classifier, and let it judge all that the study asks of it; called in a process of its own."""
    run = task.run
    options = {**run.options, "model": str(task.encoder)} if run.model.after else run.options
    teach(_recipe(run, options), [lesson(run, task.suite)], task.out, tell=tell)
    score(judged_suite(task.suite, run.model.judged), f"classifier:{task.out}")
    tell(Tick("judging", 1, 1))


def learnt_first(task: _Task, tell: Tell) -> None:
    """Teach an encoder another task, once for all classifiers that begin with it; called in a process of its own."""
    from acceptability.train.classifiers.finetuned_teaching import chosen_device
    from acceptability.train.classifiers.intermediate_teaching import write_encoder

    recipe = _recipe(task.run, {**task.run.model.options, "intermediate": task.run.model.after, "seed": 1})
    write_encoder(recipe, task.encoder, chosen_device(recipe.device), tell)


def _recipe(run: Planned, options: Mapping[str, object]) -> Any:
    return registry.build(registry.find("recipe", run.model.kind), run.model.kind, [], options)


def lesson(run: Planned, suite: str) -> Suite:
    """Return the sentences that a classifier learns from."""
    if run.configuration.kind == OTHER:
        return some_of(load_suite("cola/train"), "source", run.model.most)
    found = material(suite)
    wanted = run.configuration.groups(found.groups)
    return some_of(chosen(found.learn, ENVIRONMENT, wanted), ENVIRONMENT, run.model.most)


@cache
def judged_suite(suite: str, most: int) -> Suite:
    """Return every different text that classifiers judge: test sentences, those of pairs, and the hand-made ones."""
    found = material(suite).judged(most)
    several = (*found.test.sentences, *found.pairs.sentences, *load_suite(WILCOX).sentences)
    texts = dict.fromkeys(each.text for each in several)
    return Suite("judged", tuple(Sentence(str(place), text) for place, text in enumerate(texts, start=1)))


def read_folder(path: str | Path) -> Folder:
    """Return what lies in a folder, as its ``plan.json`` says."""
    file = Path(path) / PLAN
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        models = tuple(Taught(**each) for each in told["models"])
        return Folder(Path(path).resolve(), told["suite"], told["restarts"], models)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"cannot read {file}: {error}. `acceptability study npi --train --out DIR` makes such a folder."
        ) from error


def _write(folder: Folder) -> None:
    """Write what there is; models of an earlier plan in the same folder stay, unless they are taught anew."""
    names = {each.name for each in folder.models}
    before: tuple[Taught, ...] = ()
    if (folder.path / PLAN).is_file():
        known = read_folder(folder.path)
        if known.suite != folder.suite:
            raise TrainError(f"{folder.path} holds classifiers of other sentences ({known.suite or 'the published'})")
        before = tuple(each for each in known.models if each.name not in names)
    told = {
        "suite": folder.suite,
        "restarts": folder.restarts,
        "models": [asdict(e) for e in (*before, *folder.models)],
    }
    folder.path.mkdir(parents=True, exist_ok=True)
    with atomic(folder.path / PLAN) as file:
        file.write(json.dumps(told, indent=1, ensure_ascii=False).encode())
