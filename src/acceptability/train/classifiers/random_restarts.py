"""Random restarts: the same recipe with several seeds, in parallel, and the choice among the runs.

Every run has a folder of its own, ``OUT/KIND-SEED``, and is trained by ``train_classifier``: a finished one is not
trained again, so that an interrupted set of runs resumes, and more runs can be added. Parallel runs give the same bytes
as sequential ones: every run has a process with one CPU thread, and all its random numbers come from its seed. The
chosen run is the one that is best on the sentences held out of the training data; no development set is looked at.

For a random search, the module of the recipe's class has a function ``sample_hyperparameters(seed, recipe)``, which
returns the recipe with hyperparameters drawn by a seed. Every run then draws its own.

``summarise_runs`` reports what the runs reach on labelled suites, as Warstadt et al. (2019) and later tables do: mean
and standard deviation, the best run, the chosen run, and the majority vote. The best of N runs on a suite is chosen on
that suite itself, and so is too high by what chance gives; the chosen run next to it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from acceptability import registry
from acceptability.api.evaluation import measure
from acceptability.api.interface.arguments import as_engine, as_model, as_suite
from acceptability.api.scoring import ProgressCallback, score
from acceptability.engine.processes import CallOutcome, ProgressListener, WorkerFunction
from acceptability.errors import EngineError, MeasureError, SpecError, TrainError, Undefined
from acceptability.measures.classification import MCC, Accuracy, majority_vote, summarise_restarts
from acceptability.protocols import Engine
from acceptability.stats.bootstrap import Bootstrap
from acceptability.train.classifiers.recipe import read_labelled_sentences, split_held_out, train_classifier
from acceptability.train.recipe import (
    RECIPE_FILE,
    TrainingProgress,
    TrainingProgressCallback,
    find_present_option,
    read_declared,
    read_options,
    reads_labels,
    train,
)
from acceptability.types import Result, Scores, Suite

HyperparameterSampler = Callable[[int, Any], Any]
"""From a seed and a recipe to the recipe with hyperparameters drawn by the seed."""

FINISHED, FAILED = "finished", "failed"
_MEASURES = (MCC, Accuracy)
# A vote is the share of runs that accept a sentence, not log-odds: the majority is above one half.
_VOTE_THRESHOLD = 0.5
_LOG_ODDS_THRESHOLD = 0.0


@dataclass(frozen=True)
class RestartRun:
    """One restart.

    Args:
        metadata: The contents of its ``recipe.json``; None if the training failed.
        problem: Why the training failed.
    """

    seed: int
    folder: Path
    metadata: Mapping[str, Any] | None = None
    problem: str | None = None

    @property
    def name(self) -> str:
        """Its kind and seed, which are the name of its folder."""
        return self.folder.name

    @property
    def held_out_scores(self) -> Mapping[str, float]:
        """``mcc`` and ``accuracy`` on the held-out sentences; empty if the run failed."""
        scores: Mapping[str, float] = self.metadata["results"]["held out"] if self.metadata else {}
        return scores

    @property
    def spec(self) -> str:
        """The spec of its classifier."""
        return f"classifier:{self.folder}"


@dataclass(frozen=True)
class RestartTask:
    """One run to be trained, in a form that can be sent to another process or machine.

    Args:
        data: The labelled sentences, for a recipe that reads such.
        text: The files, for a recipe that reads plain text.
        dev: The files of held-out text, for a recipe that reads plain text.
    """

    recipe: Any
    out: Path
    data: tuple[Suite, ...] = ()
    text: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    licence: str = ""


def run_restarts(
    recipe: Any,
    data: Sequence[str | Suite],
    out: str | Path,
    *,
    runs: int = 20,
    workers: int | None = None,
    engine: str | Engine = "local",
    search: HyperparameterSampler | None = None,
    licence: str = "",
    progress: TrainingProgressCallback = lambda _: None,
) -> list[RestartRun]:
    """Train a recipe with several seeds, and return the runs in the order of their seeds, including failed ones.

    The first seed is the recipe's own, the others follow it. In a script, call this under
    ``if __name__ == "__main__":``, since the worker processes import the script again.

    Args:
        data: Suites or tables of labelled sentences.
        out: The folder in which every run gets a folder.
        runs: The number of seeds.
        workers: How many runs are trained in parallel: by default 1, and on a cluster one per GPU or core.
        engine: ``local`` for processes of this machine, ``ray(...)`` for a cluster whose nodes share the folder.
        search: Draws the hyperparameters of every run, such as ``find_hyperparameter_sampler(recipe)``; without it all
            runs have those of the recipe.
        licence: What users of the classifiers must know about the rights in the sentences.
        progress: Called with the progress of every run ("cbow-3: training"), its end ("cbow-3: finished"), and the
            number of runs that have ended ("runs").
    """
    suites = tuple(as_suite(source) for source in data)
    # Checked once here: an error in the sentences would otherwise be reported by every run.
    split_held_out(read_labelled_sentences(suites))
    tasks = make_restart_tasks(recipe, out, runs=runs, search=search, data=suites, licence=licence)
    return run_tasks(tasks, workers=workers, engine=engine, progress=progress)


def run_restarts_from_options(
    kind: str,
    data: Sequence[str | Suite],
    out: str | Path,
    *,
    options: Sequence[str] = (),
    search: bool = False,
    **run_options: Any,
) -> list[RestartRun]:
    """Train a recipe that is given by its name with several seeds, and return the runs.

    Args:
        kind: The name of the recipe in the registry.
        data: Suites or tables of labelled sentences.
        out: The folder in which every run gets a folder.
        options: Options of the recipe, each as ``name=value``.
        search: Draw the hyperparameters of every run, except those that are in ``options``.
        run_options: The other arguments of ``run_restarts``.
    """
    recipe: Any = read_options(registry.find("recipe", kind), options)
    if not reads_labels(recipe):
        raise SpecError(f"{kind} learns from text, and restarts are of classifiers: see `acceptability train`")
    given = [find_present_option(recipe, option.partition("=")[0].strip()) for option in options]
    sampler = find_hyperparameter_sampler(recipe, given) if search else None
    return run_restarts(recipe, data, out, search=sampler, **run_options)


def make_restart_tasks(
    recipe: Any, out: str | Path, *, runs: int, search: HyperparameterSampler | None = None, **task_options: Any
) -> list[RestartTask]:
    """Return the restarts of a recipe, to be trained.

    Args:
        task_options: The other fields of ``RestartTask``.
    """
    if "seed" not in {option.name for option in fields(recipe)}:
        raise TrainError(f"the recipe {recipe.kind} has no seed, so that all restarts would be equal")
    _check_count("runs", runs)
    recipes = [_sample_recipe(recipe, recipe.seed + number, search) for number in range(runs)]
    # Resolved, since workers need not have the same current directory.
    folder = Path(out).resolve()
    return [RestartTask(seeded, folder / f"{seeded.kind}-{seeded.seed}", **task_options) for seeded in recipes]


def find_hyperparameter_sampler(recipe: Any, keep: Sequence[str] = ()) -> HyperparameterSampler:
    """Return a function of a seed and a recipe that draws hyperparameters by the recipe's ``sample_hyperparameters``.

    Args:
        keep: The names of options that are not drawn.
    """
    # A recipe that cannot be searched says so here, and not in each of the runs.
    _sample_keeping((), 0, recipe)
    return partial(_sample_keeping, tuple(keep))


def select_best_run(runs: Sequence[RestartRun]) -> RestartRun:
    """Return the run with the highest MCC on the held-out sentences; of several, the one with the lowest seed."""
    finished_runs = [run for run in runs if run.metadata is not None]
    if not finished_runs:
        raise TrainError("no run is finished, so that none can be chosen")
    return max(finished_runs, key=lambda run: (run.held_out_scores["mcc"], -run.seed))


def describe_failures(runs: Sequence[RestartRun]) -> str | None:
    """Return a message that lists the failed runs with their reasons; None if all are finished."""
    failed = [run for run in runs if run.problem is not None]
    if not failed:
        return None
    reasons = "; ".join(f"seed {run.seed}: {run.problem}" for run in failed)
    return f"{len(failed)} of {len(runs)} runs failed: {reasons}. The same command repeats these and keeps the others."


def _check_count(name: str, value: object) -> None:
    # True is an int in Python, and would pass as 1.
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise TrainError(f"{name} is {value!r}; expected a whole number from 1")


def _sample_recipe(recipe: Any, seed: int, search: HyperparameterSampler | None) -> Any:
    # Set after the search too: folders are named by the seed, and a sampler need not set it.
    return replace(search(seed, recipe) if search else recipe, seed=seed)


def _sample_keeping(keep: Sequence[str], seed: int, recipe: Any) -> Any:
    sample = read_declared(type(recipe), "sample_hyperparameters")
    return replace(sample(recipe, seed), **{name: getattr(recipe, name) for name in keep})


def run_tasks(
    tasks: Sequence[RestartTask],
    *,
    workers: int | None = None,
    engine: str | Engine = "local",
    progress: TrainingProgressCallback = lambda _: None,
) -> list[RestartRun]:
    """Train all tasks, and return their runs in the order of the tasks, including failed ones."""
    _check_count("workers", 1 if workers is None else workers)

    def report_task_progress(task_index: int, update: TrainingProgress) -> None:
        progress(replace(update, stage=f"{tasks[task_index].out.name}: {update.stage}"))

    finished_runs: dict[int, RestartRun] = {}
    progress(TrainingProgress("runs", 0, len(tasks)))
    # Closed even if the progress callback raises KeyboardInterrupt: the worker processes must not outlive this one.
    with closing(
        run_in_parallel(_run_training, tasks, workers=workers, engine=engine, on_progress=report_task_progress)
    ) as outcomes:
        for outcome in outcomes:
            finished_runs[outcome.item_index] = run = _make_run(
                tasks[outcome.item_index], outcome.value, outcome.problem
            )
            progress(TrainingProgress(f"{run.name}: {FAILED if run.problem else FINISHED}", 1, 1))
            progress(TrainingProgress("runs", len(finished_runs), len(tasks)))
    return [finished_runs[task_index] for task_index in range(len(tasks))]


def run_in_parallel(
    function: WorkerFunction,
    items: Sequence[Any],
    *,
    workers: int | None,
    engine: str | Engine,
    on_progress: ProgressListener,
) -> Generator[CallOutcome, None, None]:
    """Yield the outcomes of calling a training function on some items, in the order in which they end.

    Args:
        function: Called with an item and a progress callback; it must be importable by other processes.
        workers: How many calls run in parallel; None leaves it to the engine.
        on_progress: Called with the index of the item and its progress.
    """
    runner: Any = as_engine(engine)
    # The protocol of engines asks for scoring only; running other functions is optional.
    if not hasattr(runner, "map_unordered"):
        raise EngineError(f"the engine {engine!r} scores, but cannot run a training. Use local or ray.")
    outcomes: Generator[CallOutcome, None, None] = runner.map_unordered(
        function, items, workers=workers, on_progress=on_progress
    )
    return outcomes


def _run_training(task: RestartTask, progress: TrainingProgressCallback) -> dict[str, Any]:
    """Train one run; called in a worker process."""
    if task.text:
        return train(task.recipe, task.text, task.out, dev=task.dev, licence=task.licence, progress=progress)
    return train_classifier(task.recipe, task.data, task.out, licence=task.licence, progress=progress)


def _make_run(task: RestartTask, metadata: dict[str, Any] | None, problem: str | None) -> RestartRun:
    """Return the run of a task; a model that was trained on another machine must be visible on this one."""
    # Recipes for plain text may do without random numbers.
    seed: int = asdict(task.recipe).get("seed", 0)
    if metadata is not None and not (task.out / RECIPE_FILE).is_file():
        problem = f"it was trained, but {task.out} is not on this machine: --out must be a folder that all nodes share"
    return RestartRun(seed, task.out, None if problem else metadata, problem)


@dataclass(frozen=True)
class RestartSuiteSummary:
    """One measure of N restarts on a suite.

    Args:
        n: The number of labelled sentences.
        runs: The number of restarts.
        std: The standard deviation over restarts, with n - 1; None for a single one.
        max: The best restart on this suite, chosen on the suite itself; ``max_seed`` is its seed.
        chosen: The restart that is best on the held-out sentences; ``chosen_seed`` is its seed.
        ensemble: The majority vote of all restarts; ``low`` and ``high`` are its bootstrap interval.
        ties: On how many sentences the vote is a tie; they count as unacceptable.
    """

    suite: str
    measure: str
    n: int
    runs: int
    mean: float
    std: float | None
    max: float
    max_seed: int
    chosen: float
    chosen_seed: int
    ensemble: float
    low: float | None
    high: float | None
    ties: int
    signature: str
    notes: tuple[str, ...] = ()

    def row(self) -> dict[str, object]:
        """Return the summary as one flat row, for JSON and tables."""
        return asdict(self) | {"notes": "; ".join(self.notes)}


def summarise_runs(
    runs: Sequence[RestartRun],
    suites: Sequence[Suite],
    *,
    bootstrap: Bootstrap | None = None,
    progress: ProgressCallback | None = None,
) -> list[RestartSuiteSummary]:
    """Return the MCC and the accuracy of finished runs on labelled suites.

    Args:
        bootstrap: For the interval of the majority vote.
    """
    finished_runs = [run for run in runs if run.metadata is not None]
    best_run = select_best_run(finished_runs)
    # All suites are checked before the first is scored, which may take long.
    for suite in suites:
        check_both_labels(suite)
    scores_of_suites: list[list[Scores]] = [[] for _ in suites]
    for run in finished_runs if suites else ():
        # Loaded once for all suites: score() finds the model in memory while a reference to it exists.
        _, loaded_model = as_model(run.spec)
        for suite, scores in zip(suites, scores_of_suites, strict=True):
            scores.append(score(suite, run.spec, "log_odds", progress=progress))
        # Released before the next run is loaded, so that one model at a time is in memory.
        del loaded_model
    seeds = [run.seed for run in finished_runs]
    return [
        summary
        for suite, scores in zip(suites, scores_of_suites, strict=True)
        for summary in summarise_scores(suite, scores, seeds, best_run.seed, bootstrap=bootstrap)
    ]


def summarise_scores(
    suite: Suite, scores: Sequence[Scores], seeds: Sequence[int], best_seed: int, *, bootstrap: Bootstrap | None = None
) -> list[RestartSuiteSummary]:
    """Return the MCC and the accuracy of restarts on a suite, from their log-odds.

    Args:
        scores: The log-odds of every restart.
        seeds: The seeds of the restarts, in the same order.
        best_seed: The seed of the restart that is best on the held-out sentences.
        bootstrap: For the interval of the majority vote.
    """
    # Scores carry no seed, and are matched to the seeds by position: a missing one would shift all others.
    if len(scores) != len(seeds) or best_seed not in seeds:
        raise TrainError(
            f"{len(scores)} restarts have scores, with the seeds {list(seeds)}; the chosen seed is {best_seed}"
        )
    vote, ties = majority_vote(scores), count_ties(scores)
    tie_notes = (f"{ties} sentences are accepted by half of the restarts: they count as unacceptable",) if ties else ()
    restart_summaries = []
    for measure_class in _MEASURES:
        values = [
            # Without intervals: only the ensemble's is reported, and resampling is the slow part.
            _require_value(
                measure(
                    suite, run_scores, [measure_class(threshold=_LOG_ODDS_THRESHOLD)], bootstrap=Bootstrap(resamples=0)
                )[0]
            )
            for run_scores in scores
        ]
        (ensemble,) = measure(suite, vote, [measure_class(threshold=_VOTE_THRESHOLD)], bootstrap=bootstrap)
        statistics = summarise_restarts(values)
        restart_summaries.append(
            RestartSuiteSummary(
                suite.name,
                measure_class.__name__,
                ensemble.n,
                statistics.n,
                statistics.mean,
                statistics.std,
                statistics.max,
                seeds[values.index(statistics.max)],
                values[seeds.index(best_seed)],
                best_seed,
                _require_value(ensemble),
                ensemble.low,
                ensemble.high,
                ties,
                ensemble.signature,
                (*ensemble.notes, *tie_notes),
            )
        )
    return restart_summaries


def count_ties(scores: Sequence[Scores]) -> int:
    """Return the number of sentences that exactly half of the restarts accept.

    >>> count_ties([Scores({"a": 1.0, "b": 1.0}, "m"), Scores({"a": -1.0, "b": 2.0}, "m")])
    1
    """
    # A tie is a sentence whose vote depends on how ties are broken.
    ties_rejected, ties_accepted = (majority_vote(scores, tie=side).values for side in (0, 1))
    return sum(ties_rejected[sentence_id] != ties_accepted[sentence_id] for sentence_id in ties_rejected)


def check_both_labels(suite: Suite) -> None:
    """Refuse a suite on which restarts cannot be compared: it needs sentences of both labels."""
    labels = {sentence.label for sentence in suite.sentences} - {None}
    if labels != {0, 1}:
        label_description = "no labels" if not labels else f"only labels {labels.pop()}"
        raise MeasureError(
            f"suite {suite.name!r} has {label_description}: restarts are compared on suites that have both 0 and 1"
        )


def _require_value(result: Result) -> float:
    if result.value is None:
        raise Undefined(f"{result.measure} on {result.suite}: {result.reason}")
    return result.value
