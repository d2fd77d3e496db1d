"""Training the classifiers of the NPI paper: what to train as plain data, and running that plan.

Warstadt et al. (2019), section 5: a bag of words over GloVe vectors, and fine-tuned encoders, optionally after
intermediate training on another task. Each is trained in every configuration: on CoLA, on each environment, on all but
one, and on all. The paper does not print epochs, learning rates or batch sizes; these are ours.

``run_plan`` trains every classifier into a folder of its own, ``DIR/MODEL/CONFIGURATION/KIND-SEED``, and scores the
test sentences with it, where CONFIGURATION is ``other``, ``one/ENVIRONMENT``, ``all-but/ENVIRONMENT`` or ``all``.
Completed classifiers are skipped and scores are stored, so that an interrupted plan resumes. ``DIR/plan.json`` records
the models, for ``acceptability study npi --restarts DIR``; such a folder may come from a stranger (``confine_plan``).
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from acceptability.api.scoring import ProgressCallback, score
from acceptability.errors import ModelError, SpecError, TrainError
from acceptability.papers import adapt_progress, check_references, confine_model, confine_suite
from acceptability.papers.npi.npi_data import (
    ALL,
    ALL_BUT,
    ENVIRONMENT,
    ONE,
    OTHER,
    Configuration,
    filter_groups,
    list_configurations,
    load_npi_data,
    subsample_suite,
)
from acceptability.paths import TrustBoundary, home_folder
from acceptability.probing.representations import GLOVE_PREFIX
from acceptability.suites import load_suite
from acceptability.train.checkpoint import atomic_write
from acceptability.train.classifiers.random_restarts import run_in_parallel
from acceptability.train.classifiers.recipe import train_classifier
from acceptability.train.recipe import TrainingProgress, TrainingProgressCallback, make_recipe, rename_stored_options
from acceptability.types import Sentence, Suite

_log = logging.getLogger(__name__)

NpiPlanSize = Literal["quick", "full"]

BAG_OF_WORDS = "bag-of-words"
QUICK_MODELS = ("mini-masked",)
"""The encoders that are fine-tuned when none are given: one that comes with the package."""

# The models that come with the package are far smaller than BERT and need a higher learning rate.
_SMALL_MODEL_RATE, _LEARNING_RATE = 2e-4, 2e-5
_SMALL_MODELS = ("mini-masked", "mini-causal")

PLAN_FILE = "plan.json"
_MAX_WORKERS = 8
WILCOX_SUITE = "npi/wilcox"
ENCODER_FOLDER = "encoder"


@dataclass(frozen=True)
class PlannedModel:
    """A model that is trained in every configuration.

    Args:
        name: The name of its rows and of its folder.
        kind: The recipe.
        options: The options of the recipe.
        by_kind: Further options, by the kind of configuration.
        start: The spec of the pretrained model, for the cloze test and the probes; empty for a bag of words.
        after: The file of an intermediate task that it is trained on first; empty if there is none.
        most: The largest number of training sentences of a classifier; 0 means all.
        judged: About how many test sentences of each environment it is evaluated on; 0 means all, and all pairs.
        probed: About how many training sentences of each environment its probes are trained on.
    """

    # The fields are the keys of plan.json: renaming one would make the folders of earlier plans unreadable.

    name: str
    kind: str
    options: Mapping[str, object] = field(default_factory=dict)
    by_kind: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    start: str = ""
    after: str = ""
    most: int = 0
    judged: int = 0
    probed: int = 2000


@dataclass(frozen=True)
class PlannedRun:
    """One classifier: a model, the configuration it is trained in, and the seed."""

    model: PlannedModel
    configuration: Configuration
    seed: int

    @property
    def folder(self) -> Path:
        """The folder of the classifier, relative to that of the plan."""
        return Path(self.model.name) / self.configuration.folder / f"{self.model.kind}-{self.seed}"

    @property
    def options(self) -> dict[str, object]:
        """The options of its recipe."""
        return {
            **self.model.options,
            **self.model.by_kind.get(self.configuration.kind, {}),
            "seed": self.seed,
        }


@dataclass(frozen=True)
class _PlanModels:
    """The settings of a plan of one size: for bags of words, and for encoders."""

    bag: PlannedModel
    encoder: PlannedModel


_BAG_OPTIONS = {"pool": "max", "activation": "relu", "hidden": 512, "words": "punctuation", "patience": 2}
# One epoch instead of three where the training set is eight or nine times as large ("all-but" and "all"). It is then
# evaluated twice in that epoch, or there would be only one set of weights to choose the best from.
_OPTIONS_BY_KIND: dict[str, Mapping[str, object]] = {
    kind: {"epochs": epochs, "evaluations_per_epoch": evaluations}
    for kind, epochs, evaluations in ((OTHER, 3, 2), (ONE, 3, 1), (ALL_BUT, 1, 2), (ALL, 1, 2))
}
_SCALES: dict[NpiPlanSize, _PlanModels] = {
    "quick": _PlanModels(
        PlannedModel(BAG_OF_WORDS, "cbow", {**_BAG_OPTIONS, "epochs": 5, "batch_size": 64}, most=10_000, probed=240),
        PlannedModel(
            "",
            "transformer",
            {"epochs": 2, "batch_size": 16, "evaluations_per_epoch": 1},
            most=320,
            judged=64,
            probed=64,
        ),
    ),
    "full": _PlanModels(
        PlannedModel(BAG_OF_WORDS, "cbow", {**_BAG_OPTIONS, "epochs": 10, "batch_size": 64}),
        PlannedModel("", "transformer", {"batch_size": 64}, _OPTIONS_BY_KIND),
    ),
}


def plan_models(
    size: NpiPlanSize, encoders: Sequence[str], *, vectors: str = "", intermediate: Sequence[str] = ()
) -> list[PlannedModel]:
    """Return the models of a plan: the bag of words, each encoder, and each encoder after an intermediate task.

    Args:
        size: ``quick`` or ``full``.
        encoders: The specs of the models to fine-tune.
        vectors: A file of word vectors for the bag of words; by default they are trained with it.
        intermediate: Files of labelled sentence pairs or tagged words, for intermediate training.
    """
    if size not in _SCALES:
        raise SpecError(f"there is no plan {size!r}; there are {', '.join(_SCALES)}")
    scale = _SCALES[size]
    bag_options = {**scale.bag.options, "vectors": vectors} if vectors else scale.bag.options
    models = [replace(scale.bag, options=bag_options)]
    for model in encoders:
        models += _plan_encoder(scale.encoder, model, intermediate)
    # Names are folders: two models of one name would overwrite each other.
    names = [model.name for model in models]
    if len(set(names)) < len(names):
        raise SpecError(f"two models of the plan would be called the same: {', '.join(sorted(names))}")
    return models


def _plan_encoder(base: PlannedModel, model: str, intermediate: Sequence[str]) -> Iterator[PlannedModel]:
    """Yield an encoder as it was pretrained, and after each intermediate task."""
    short = short_model_name(model)
    rate = {"learning_rate": _SMALL_MODEL_RATE if short in _SMALL_MODELS else _LEARNING_RATE}
    for file in ("", *intermediate):
        name = f"{short}+{Path(file).name.partition('.')[0]}" if file else short
        options = {**base.options, **rate, "model": model}
        yield replace(base, name=name, options=options, start=model, after=file)


def short_model_name(model: str) -> str:
    """Return the name of a model in rows and folders.

    >>> short_model_name("masked:/models/bert-large-cased"), short_model_name("mini-masked")
    ('bert-large-cased', 'mini-masked')
    """
    return model.partition("(")[0].rpartition(":")[2].rstrip("/").rpartition("/")[2]


def plan_runs(models: Sequence[PlannedModel], groups: Sequence[str], restarts: int = 1) -> list[PlannedRun]:
    """Return every classifier, those that take longest to train first.

    Args:
        models: The models of the plan.
        groups: The environments.
        restarts: The number of seeds for each classifier.
    """
    if restarts < 1:
        raise SpecError(f"--restarts-each is {restarts}; expected a whole number from 1")
    # Longest first is the classic heuristic for balancing parallel workers: a long run that starts last would keep one
    # worker busy while the others have nothing left to do.
    order = {ALL: 0, ALL_BUT: 1, ONE: 2, OTHER: 3}
    runs = [
        PlannedRun(model, configuration, seed)
        for model in models
        for configuration in list_configurations(groups)
        for seed in range(1, restarts + 1)
    ]
    return sorted(runs, key=lambda run: (run.model.kind == "cbow", order[run.configuration.kind]))


@dataclass(frozen=True)
class PlanFolder:
    """A folder of classifiers that a plan has trained.

    Args:
        path: The folder.
        suite: The file of the sentences; empty for the published ones.
        restarts: The number of seeds of each classifier.
        models: The models of the plan.
    """

    path: Path
    suite: str
    restarts: int
    models: tuple[PlannedModel, ...]


@dataclass(frozen=True)
class _RunTask:
    """A classifier to train, in a form that can be sent to another process or machine."""

    run: PlannedRun
    suite: str
    root: Path

    @property
    def out(self) -> Path:
        """The folder of the classifier."""
        return self.root / self.run.folder

    @property
    def encoder(self) -> Path:
        """The folder of the encoder after intermediate training, which the classifier starts from."""
        return self.root / self.run.model.name / ENCODER_FOLDER


def run_plan(
    size: NpiPlanSize,
    out: str | Path,
    models: Sequence[str],
    *,
    suite: str = "",
    vectors: str = "",
    intermediate: Sequence[str] = (),
    restarts: int = 1,
    workers: int | None = None,
    engine: str = "local",
    progress: TrainingProgressCallback = lambda _: None,
) -> PlanFolder:
    """Train the classifiers of a plan, score the test sentences with them, and return the folder.

    If some trainings fail, the others are kept, and an error names the failures at the end.

    Args:
        size: ``quick`` or ``full``.
        out: The folder for the classifiers.
        models: The specs of the encoders to fine-tune.
        suite: A file of sentences in place of the published ones.
        vectors: A file of word vectors for the bag of words.
        intermediate: Files for intermediate training.
        restarts: The number of seeds for each classifier.
        workers: How many are trained at once; by default half the number of cores, at most eight.
        engine: Where they are trained: ``local`` or ``ray(...)``.
        progress: Called with the progress of each training.
    """
    planned_models = plan_models(size, models, vectors=vectors, intermediate=intermediate)
    folder = PlanFolder(Path(out).resolve(), suite, restarts, tuple(planned_models))
    runs = plan_runs(planned_models, load_npi_data(suite).environments, restarts)
    # Before training, so that ``--restarts`` can show what is finished while the plan is still running.
    _write_plan(folder)
    tasks = [_RunTask(run, suite, folder.path) for run in runs]
    # All classifiers of a model start from the same encoder: it is trained once, before any of them.
    intermediate_tasks = {task.run.model.name: task for task in tasks if task.run.model.after}
    n_workers = workers or default_workers()
    for function, stage_tasks in ((train_intermediate, list(intermediate_tasks.values())), (train_and_score, tasks)):
        if problems := _run_tasks(function, stage_tasks, engine, n_workers, progress):
            raise TrainError(f"{len(problems)} of {len(stage_tasks)} trainings failed: {'; '.join(problems[:3])}")
    return folder


def train_study_classifiers(
    size: NpiPlanSize,
    models: Sequence[str] = (),
    *,
    out: Path | None = None,
    suite: str = "",
    vectors: str = "",
    workers: int | None = None,
    training_engine: str = "local",
    restarts_each: int = 1,
    intermediate: Sequence[str] = (),
    progress: ProgressCallback | None = None,
) -> tuple[list[str], Path]:
    """Train the classifiers of the study; return the encoders that were fine-tuned, and the folder.

    A quick plan goes into a folder of ours if none is given; without models, the package's own is fine-tuned.
    """
    if out is None and size == "full":
        raise SpecError("--train needs --out DIR, the folder for the classifiers")
    out, encoders = out or home_folder() / "npi-quick", list(models or QUICK_MODELS)
    _log.info("classifiers: %s", out)
    run_plan(
        size,
        out,
        encoders,
        suite=suite,
        vectors=vectors,
        intermediate=intermediate,
        restarts=restarts_each,
        workers=workers or (2 if size == "quick" else None),
        engine=training_engine,
        progress=adapt_progress(progress),
    )
    return encoders, out


def default_workers() -> int:
    """Return the default number of parallel trainings or probes: half the number of cores, at most eight."""
    return max(1, min(_MAX_WORKERS, (os.cpu_count() or 2) // 2))


def _run_tasks(
    function: Callable[[_RunTask, TrainingProgressCallback], None],
    tasks: Sequence[_RunTask],
    engine: str,
    workers: int,
    progress: TrainingProgressCallback,
) -> list[str]:
    """Run a function on each task in parallel processes, and return a line for each that failed."""
    if not tasks:
        return []

    def report_task_progress(index: int, update: TrainingProgress) -> None:
        progress(replace(update, stage=f"{tasks[index].run.folder}: {update.stage}"))

    problems, done = [], 0
    with closing(
        run_in_parallel(function, tasks, workers=workers, engine=engine, on_progress=report_task_progress)
    ) as outcomes:
        for outcome in outcomes:
            done += 1
            name = tasks[outcome.item_index].run.folder
            if outcome.problem is not None:
                problems.append(f"{name}: {outcome.problem}")
            progress(TrainingProgress(f"{name}: {'failed' if outcome.problem else 'finished'}", 1, 1))
            progress(TrainingProgress("classifiers", done, len(tasks)))
    return problems


def train_and_score(task: _RunTask, progress: TrainingProgressCallback) -> None:
    """Train one classifier and score the sentences of the study with it; runs in a process of its own."""
    run = task.run
    # After intermediate training, the starting point is the folder of that encoder in place of the pretrained model.
    options = {**run.options, "model": str(task.encoder)} if run.model.after else run.options
    train_classifier(_build_recipe(run, options), [select_training_suite(run, task.suite)], task.out, progress=progress)
    # The scores go to the store, where the study finds them: scoring here uses the parallel workers.
    score(load_judged_suite(task.suite, run.model.judged), f"classifier:{task.out}")
    progress(TrainingProgress("scoring", 1, 1))


def train_intermediate(task: _RunTask, progress: TrainingProgressCallback) -> None:
    """Train an encoder on its intermediate task, for all classifiers of the model; runs in a process of its own."""
    # Imported here because these modules import PyTorch, which planning does not need.
    from acceptability.train.classifiers.finetuning_task import resolve_device
    from acceptability.train.classifiers.intermediate import train_and_save_encoder

    # Seed 1 whatever the seed of the classifier: all restarts share this encoder.
    recipe = _build_recipe(task.run, {**task.run.model.options, "intermediate": task.run.model.after, "seed": 1})
    train_and_save_encoder(recipe, task.encoder, resolve_device(recipe.device), progress)


def _build_recipe(run: PlannedRun, options: Mapping[str, object]) -> Any:
    return make_recipe(run.model.kind, options)


def select_training_suite(run: PlannedRun, suite: str) -> Suite:
    """Return the training set of a classifier."""
    if run.configuration.kind == OTHER:
        return subsample_suite(load_suite("cola/train"), "source", run.model.most)
    data = load_npi_data(suite)
    environments = run.configuration.select_groups(data.environments)
    return subsample_suite(filter_groups(data.train, ENVIRONMENT, environments), ENVIRONMENT, run.model.most)


# Cached: it is the same for all classifiers of a model, of which there are 20 or more.
@cache
def load_judged_suite(suite: str, per_environment: int) -> Suite:
    """Return every distinct text to score: the test sentences, those of the pairs, and the handcrafted ones.

    Args:
        suite: The file of the sentences; empty for the published ones.
        per_environment: About how many test sentences of each environment; 0 means all.
    """
    data = load_npi_data(suite).limit_test_sentences(per_environment)
    sentences = (*data.test.sentences, *data.pairs.sentences, *load_suite(WILCOX_SUITE).sentences)
    # Most texts occur both as a test sentence and in several pairs: a dict drops the duplicates and keeps the order.
    texts = dict.fromkeys(sentence.text for sentence in sentences)
    return Suite("judged", tuple(Sentence(str(number), text) for number, text in enumerate(texts, start=1)))


def read_plan_folder(path: str | Path) -> PlanFolder:
    """Return the plan that a folder of classifiers was trained with, from its ``plan.json``."""
    file = Path(path) / PLAN_FILE
    try:
        plan = json.loads(file.read_text(encoding="utf-8"))
        models = tuple(_read_model(fields) for fields in plan["models"])
        return PlanFolder(Path(path).resolve(), str(plan["suite"]), int(plan["restarts"]), models)
    # TypeError: ``PlannedModel`` does not know a key of the file, which another version wrote.
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"cannot read {file}: {error}. `acceptability study npi --train --out DIR` makes such a folder."
        ) from error


def confine_plan(folder: PlanFolder, allow: Sequence[str] = ()) -> PlanFolder:
    """Return a plan that names only what its folder holds, suites of the catalog, named models, and what is allowed.

    Args:
        folder: The folder, which may come from a stranger, with its plan.
        allow: What the plan may name besides, see ``TrustBoundary``.
    """
    boundary = TrustBoundary(folder.path / PLAN_FILE, allow)
    suite = confine_suite(boundary, folder.suite) if folder.suite else ""
    return replace(
        folder, suite=suite, models=tuple(_confine_planned_model(boundary, folder, model) for model in folder.models)
    )


def _confine_planned_model(boundary: TrustBoundary, folder: PlanFolder, model: PlannedModel) -> PlannedModel:
    # The name is a path: that of the model's classifiers.
    boundary.check_path(str(folder.path / model.name))
    check_references(boundary, folder.path / model.name)
    vectors, start = model.options.get("vectors", ""), model.start
    options = {**model.options, "vectors": boundary.confine_path(str(vectors))} if vectors else model.options
    if start.startswith(GLOVE_PREFIX):
        start = GLOVE_PREFIX + boundary.confine_path(start.removeprefix(GLOVE_PREFIX))
    return replace(model, options=options, start=confine_model(boundary, start) if start else "")


def _read_model(fields: dict[str, Any]) -> PlannedModel:
    """Return a model of ``plan.json``, with the present names of its options."""
    model = PlannedModel(**fields)
    # Names become paths, and the file may be anybody's.
    if not all(isinstance(text, str) for text in (model.name, model.kind, model.start)):
        raise TypeError(f"the name, the kind and the start of a model are texts, not {fields}")
    if not all(isinstance(options, dict) for options in (model.options, model.by_kind)):
        raise TypeError(f"options and by_kind of a model are tables, not {fields}")
    by_kind = {kind: rename_stored_options(model.kind, options) for kind, options in model.by_kind.items()}
    return replace(model, options=rename_stored_options(model.kind, model.options), by_kind=by_kind)


def _write_plan(folder: PlanFolder) -> None:
    """Write ``plan.json``; models of an earlier plan in the same folder stay, unless this plan has them too."""
    names = {model.name for model in folder.models}
    earlier_models: tuple[PlannedModel, ...] = ()
    # Models may be added to a folder one plan at a time. Mixing two suites in it would show their numbers as one
    # table's.
    if (folder.path / PLAN_FILE).is_file():
        earlier = read_plan_folder(folder.path)
        if earlier.suite != folder.suite:
            raise TrainError(f"{folder.path} holds classifiers of other sentences ({earlier.suite or 'the published'})")
        earlier_models = tuple(model for model in earlier.models if model.name not in names)
    plan = {
        "suite": folder.suite,
        "restarts": folder.restarts,
        "models": [asdict(model) for model in (*earlier_models, *folder.models)],
    }
    folder.path.mkdir(parents=True, exist_ok=True)
    with atomic_write(folder.path / PLAN_FILE) as file:
        file.write(json.dumps(plan, indent=1, ensure_ascii=False).encode())
