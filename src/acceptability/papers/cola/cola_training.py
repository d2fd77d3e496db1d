"""Training the classifiers of the CoLA paper: what to train as plain data, and running that plan.

Warstadt, Singh and Bowman (2019), sections 4.3 and 6: 20 classifiers of each kind with random hyper-parameters; for
transfer learning the 5 best encoders of the real/fake task, with 10 classifiers on each; 20 restarts on the best
ELMo-style encoder for every split and every size. Transformers are those of the ADC paper's Table 5. ``plan_restarts``
returns that plan in three sizes: for two cores, for half an hour of a GPU, and the paper's own.

The options of a plan may contain placeholders for what is known only when it runs: ``{lm}``, ``{vectors}``, and
``{encoder:STYLE:RANK}``, an encoder by the rank of its MCC on held-out sentences.

``run_plan`` fills in the placeholders and trains everything into one folder, which ``acceptability study cola
--restarts`` reads. Completed restarts are skipped, so that an interrupted plan resumes. ``score_in_parallel`` then
scores the sentences of the study with many classifiers at once; the study finds these scores in the store.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from acceptability.api.scoring import ProgressCallback
from acceptability.engine.processes import map_unordered
from acceptability.errors import ModelError, SpecError, TrainError
from acceptability.models import expand_named_model
from acceptability.papers import adapt_progress
from acceptability.papers.cells import read_published_values
from acceptability.papers.cola.classifier_tables import load_both_dev_sets, load_scored_suites
from acceptability.papers.cola.corpus_tables import build_split_suites, find_split, list_paper_splits
from acceptability.papers.cola.learning_curve import SIZES, draw_nested_subsets, suites_by_column
from acceptability.papers.cola.restart_groups import RestartGroup, find_groups
from acceptability.papers.niu_penn.user_models import StudyModel
from acceptability.paths import home_folder
from acceptability.specs import parse_model_spec
from acceptability.suites import load_suite
from acceptability.train.checkpoint import atomic_write
from acceptability.train.classifiers.random_restarts import (
    RestartTask,
    describe_failures,
    find_hyperparameter_sampler,
    make_restart_tasks,
    run_tasks,
)
from acceptability.train.ngram_recipes import NGramRecipe
from acceptability.train.recipe import TrainingProgress, TrainingProgressCallback, make_recipe
from acceptability.types import Suite

_log = logging.getLogger(__name__)

ColaPlanSize = Literal["quick", "short", "full"]

STYLES = {"bnc": "BNC", "glove": "GloVe", "elmo-style": "ELMo-Style"}
"""The kinds of word embeddings: their folder names, and their names in Table 4."""

INPUT_HINTS = {
    "lm": "a language model: --model recurrent:DIR",
    "vectors": "word vectors: --vectors FILE",
    "text": "text to make real and fake sentences of: --corpus FILE",
    "dev": "other such text, to stop by and to rank encoders: --dev FILE",
}
"""The inputs that a part of the plan may need, and how to give them on the command line."""

NGRAM_ORDERS = (2, 3, 4)
CLASSIFIERS_FOLDER, LANGUAGE_MODELS_FOLDER = "classifiers", "language-models"
"""The sub-folders of a plan; the first is what ``--restarts`` reads."""

QUICK_MODELS = ("mini-lstm", "mini-masked")
"""The models of a quick plan when none are given: they come with the package."""

_STYLE_VECTORS = {"bnc": "{lm}", "glove": "{vectors}", "elmo-style": "elmo:{lm}"}
_BEST_STYLE = "elmo-style"
_ENCODER_PLACEHOLDER = re.compile(r"\{encoder:([a-z-]+):(\d+)\}")
_TRANSFORMER_KINDS = ("masked", "causal")
_VOCABULARY_SIZE = 30_000

# The size of the hidden layer on top of an encoder. The recipe's default, no such layer, is an error with an encoder;
# the random search replaces it.
_HEAD_SIZE = 200


@dataclass(frozen=True)
class RestartPlan:
    """Restarts of one classifier.

    Args:
        name: The folder of the restarts, below that of the plan; two plans may share one if their seeds differ.
        kind: The name of the recipe.
        data: The training data: ``train``, ``split NAME``, ``size N``, or ``text``.
        restarts: The number of restarts.
        fills_rows: The rows of the paper that they fill, for messages.
        options: The options of the recipe that differ from its defaults.
        random_search: Whether every restart draws its own hyper-parameters from the paper's ranges.
        required_inputs: The inputs that must be given, as keys of ``INPUT_HINTS``.
    """

    name: str
    kind: str
    data: str
    restarts: int
    fills_rows: str
    options: Mapping[str, object] = field(default_factory=dict)
    random_search: bool = False
    required_inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class _PlanScale:
    """The scale of a plan.

    Args:
        restarts: How many restarts a classifier has.
        encoders_trained: How many encoders of each style are trained on text.
        encoders_used: How many of them, the best, get classifiers on top.
        restarts_per_encoder: How many classifiers each of these gets.
        sizes: The points of the learning curve.
        splits: The splits of Table 5.
        options: Options by kind of run, where they differ from the recipe's.
        random_search: Whether hyper-parameters are drawn at random.
    """

    restarts: int
    encoders_trained: int
    encoders_used: int
    restarts_per_encoder: int
    sizes: tuple[int, ...]
    splits: tuple[str, ...]
    options: Mapping[str, Mapping[str, object]]
    random_search: bool

    def options_for(self, kind: str, **options: object) -> dict[str, object]:
        """Return the options of a kind of run: those of this scale, and the given ones, which take precedence."""
        return {**self.options.get(kind, {}), **options}


_ON_ENCODER = "pooling on an encoder"
_QUICK_OPTIONS: dict[str, dict[str, object]] = {
    "cbow": {"epochs": 5},
    "pooling": {"epochs": 3, "hidden": 100},
    _ON_ENCODER: {"epochs": 10, "learning_rate": 3e-3},
    "real-fake": {"epochs": 1, "hidden": 100, "sentences": 4000, "dev_sentences": 500},
    "transformer": {"epochs": 1},
}
# Options for "real-fake" also switch off its random search (see ``_plan_encoders``), which would replace them.
_SHORT_OPTIONS: dict[str, dict[str, object]] = {
    "real-fake": {"epochs": 4, "hidden": 1000, "batch_size": 512, "learning_rate": 1.5e-3, "sentences": 1_000_000},
    "transformer": {"epochs": 5},
}
_SPLIT_NAMES = tuple(split.name for split in list_paper_splits())
_SCALES: dict[ColaPlanSize, _PlanScale] = {
    "quick": _PlanScale(2, 1, 1, 2, (100, 300, 1000), ("orig.", "4", "random-0"), _QUICK_OPTIONS, random_search=False),
    "short": _PlanScale(
        5, 1, 1, 10, SIZES, (*_SPLIT_NAMES, "random-0", "random-1"), _SHORT_OPTIONS, random_search=True
    ),
    "full": _PlanScale(
        20, 20, 5, 10, SIZES, (*_SPLIT_NAMES, *(f"random-{seed}" for seed in range(5))), {}, random_search=True
    ),
}


def plan_restarts(size: ColaPlanSize, transformers: Sequence[str] = ()) -> list[RestartPlan]:
    """Return what to train, in this order: encoders come before the classifiers on top of them.

    Args:
        size: ``quick``, ``short`` or ``full``.
        transformers: Networks to fine-tune, and to probe with frozen weights: folders or names.
    """
    if size not in _SCALES:
        raise SpecError(f"there is no plan {size!r}; there are {', '.join(_SCALES)}")
    scale = _SCALES[size]
    return [
        *_plan_encoders(scale),
        *_plan_table_4(scale),
        *_plan_table_5(scale),
        *_plan_figure_3(scale),
        *_plan_transformers(scale, transformers),
    ]


def _plan_encoders(scale: _PlanScale) -> Iterator[RestartPlan]:
    for style, style_name in STYLES.items():
        yield RestartPlan(
            f"real-fake/{style}",
            "real-fake",
            "text",
            scale.encoders_trained,
            f"Table 4: Pooling, {style_name}, Real/Fake, Real/Fake",
            scale.options_for("real-fake", vectors=_STYLE_VECTORS[style], lm="{lm}"),
            scale.random_search and "real-fake" not in scale.options,
            _list_required_inputs(style),
        )


def _plan_table_4(scale: _PlanScale) -> Iterator[RestartPlan]:
    cbow_options = scale.options_for("cbow", vectors=_STYLE_VECTORS["bnc"])
    yield RestartPlan(
        "table-4/cbow", "cbow", "train", scale.restarts, "Table 4: CBOW", cbow_options, scale.random_search, ("lm",)
    )
    fills = "beside Table 4: CBOW, with word vectors learnt from CoLA"
    yield RestartPlan(
        "table-4/cbow-alone", "cbow", "train", scale.restarts, fills, scale.options_for("cbow"), scale.random_search
    )
    yield RestartPlan(
        "table-4/elmo-style-cola",
        "pooling",
        "train",
        scale.restarts,
        "Tables 4 and 6: Pooling, ELMo-Style, CoLA, CoLA",
        scale.options_for("pooling", vectors=_STYLE_VECTORS["elmo-style"]),
        scale.random_search,
        ("lm",),
    )
    for style, style_name in STYLES.items():
        for rank in range(scale.encoders_used):
            # The classifiers of all encoders share a folder, whose sub-folders are named by seed: no seed may repeat.
            options = scale.options_for(
                _ON_ENCODER, **_encoder_options(style, rank + 1), seed=1 + rank * scale.restarts_per_encoder
            )
            yield RestartPlan(
                f"table-4/{style}-real-fake-cola",
                "pooling",
                "train",
                scale.restarts_per_encoder,
                f"Tables 4 and 6, Figure 4: Pooling, {style_name}, Real/Fake, CoLA",
                options,
                scale.random_search,
                _list_required_inputs(style),
            )


def _plan_table_5(scale: _PlanScale) -> Iterator[RestartPlan]:
    # Folders are named split-NAME, and those of Figure 3 by a number: that is how ``find_groups`` recognises them.
    for name in scale.splits:
        yield from _plan_pooling_and_cbow(scale, f"table-5/split-{name}", f"split {name}", f"Table 5: {name}")


def _plan_figure_3(scale: _PlanScale) -> Iterator[RestartPlan]:
    for size in scale.sizes:
        yield from _plan_pooling_and_cbow(scale, f"figure-3/{size}", f"size {size}", f"Figure 3: {size} sentences")


def _plan_pooling_and_cbow(scale: _PlanScale, name: str, data: str, fills: str) -> Iterator[RestartPlan]:
    """Yield the paper's classifier for its design experiments, and a bag of words for comparison."""
    # The bag of words needs no input, so that even a plan without any shows a learning curve and the splits.
    options = scale.options_for(_ON_ENCODER, **_encoder_options(_BEST_STYLE, 1))
    yield RestartPlan(
        name, "pooling", data, scale.restarts, fills, options, scale.random_search, _list_required_inputs(_BEST_STYLE)
    )
    fills = f"{fills}, a bag of words beside"
    yield RestartPlan(name, "cbow", data, scale.restarts, fills, scale.options_for("cbow"), scale.random_search)


def _plan_transformers(scale: _PlanScale, models: Sequence[str]) -> Iterator[RestartPlan]:
    for model in models:
        # Folders are named by the last part of the path, which for a spec with options is not the last part of the
        # text.
        short = Path(parse_model_spec(model)[1] if ":" in model else model).name.removesuffix(".gguf")
        for name, frozen in ((short, False), (f"{short}-probe", True)):
            options = scale.options_for("transformer", model=model, frozen=frozen)
            fills = "ADC paper, Table 5 and Figures 2 and 3"
            yield RestartPlan(f"transformers/{name}", "transformer", "train", scale.restarts, fills, options)


def _encoder_options(style: str, rank: int) -> dict[str, object]:
    return {"encoder": f"{{encoder:{style}:{rank}}}", "head_hidden": _HEAD_SIZE}


def _list_required_inputs(style: str) -> tuple[str, ...]:
    """Return the inputs of an encoder: the real/fake task needs a language model, which generates fakes, and text."""
    return ("lm", "text", "dev", "vectors") if style == "glove" else ("lm", "text", "dev")


@dataclass(frozen=True)
class PlanInputs:
    """The inputs that a plan runs with.

    Args:
        lm: The spec of the language model whose hidden states are embeddings, and which generates fake sentences.
        vectors: A file of word vectors.
        text: Text to make real and fake sentences of.
        dev: Other such text, for early stopping and for ranking encoders.
        workers: How many classifiers are trained at once.
        engine: Where they are trained.
    """

    lm: str = ""
    vectors: str = ""
    text: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    workers: int | None = None
    engine: str = "local"


TrainFunction = Callable[[Sequence[RestartTask], PlanInputs, TrainingProgressCallback], None]
"""Trains restarts in parallel."""


def run_plan(
    size: ColaPlanSize,
    out: str | Path,
    models: Sequence[str] = (),
    *,
    corpus: Sequence[str | Path] = (),
    dev: Sequence[str | Path] = (),
    vectors: str = "",
    workers: int | None = None,
    engine: str = "local",
    progress: TrainingProgressCallback = lambda _: None,
    train: TrainFunction | None = None,
) -> list[str]:
    """Train a plan, and return a line for each part that was left out, with the inputs it needs.

    Args:
        size: ``quick``, ``short`` or ``full``.
        out: The folder for the classifiers.
        models: A language model (``recurrent:DIR``), and networks to fine-tune (``masked:DIR``, ``causal:DIR``).
        corpus: Text to make real and fake sentences of.
        dev: Other such text, for early stopping and for ranking encoders.
        vectors: A file of word vectors.
        workers: How many classifiers are trained at once.
        engine: Where they are trained: ``local`` or ``ray(...)``.
        progress: Called with the progress of each training.
        train: Trains restarts, in place of the usual function; for tests.
    """
    kinds = [(parse_model_spec(spec)[0], spec) for spec in map(expand_named_model, models)]
    # The plan has one placeholder for a language model: of several, the first is used.
    lm = next((spec for kind, spec in kinds if kind == "recurrent"), "")
    inputs = PlanInputs(lm, vectors, tuple(map(str, corpus)), tuple(map(str, dev)), workers, engine)
    networks = [_network_spec(spec) for kind, spec in kinds if kind in _TRANSFORMER_KINDS]
    independent, dependent, skipped = _schedule_runs(plan_restarts(size, networks), inputs)
    folder = Path(out) / CLASSIFIERS_FOLDER
    train = train or _train_in_parallel
    # Two stages: placeholders for encoders can be filled only when the encoders are trained and ranked. Within a stage
    # no run depends on another, so that all of them can be trained in parallel.
    train([*_make_tasks(independent, inputs, folder), *_make_ngram_tasks(out, inputs.text)], inputs, progress)
    train(_make_tasks(dependent, inputs, folder), inputs, progress)
    return skipped


def _schedule_runs(
    runs: Sequence[RestartPlan], inputs: PlanInputs
) -> tuple[list[RestartPlan], list[RestartPlan], list[str]]:
    """Return the runs that need no encoder of the plan, those that do, and a line for each that lacks an input."""
    independent: list[RestartPlan] = []
    dependent: list[RestartPlan] = []
    skipped: list[str] = []
    for run in runs:
        missing_inputs = [INPUT_HINTS[name] for name in run.required_inputs if not getattr(inputs, name)]
        if missing_inputs:
            skipped.append(f"{run.fills_rows} ({run.name}): needs {' and '.join(missing_inputs)}")
        else:
            (dependent if uses_planned_encoder(run) else independent).append(run)
    return independent, dependent, skipped


def uses_planned_encoder(run: RestartPlan) -> bool:
    """Return whether a run trains on top of an encoder that the same plan trains."""
    return any(_ENCODER_PLACEHOLDER.search(str(value)) for value in run.options.values())


def _network_spec(model: str) -> str:
    """Return a transformer as the recipe expects it: its path alone, or the whole spec if it has options."""
    _, path, options = parse_model_spec(model)
    return model if options else path


def _make_tasks(runs: Sequence[RestartPlan], inputs: PlanInputs, folder: Path) -> list[RestartTask]:
    return [
        task
        for run in runs
        for task in _make_restart_tasks(_fill_options(run, inputs, folder), inputs, folder / run.name)
    ]


def _fill_options(run: RestartPlan, inputs: PlanInputs, out: Path) -> RestartPlan:
    """Return a run whose options have values in the place of placeholders."""
    placeholders = {"{lm}": inputs.lm, "{vectors}": inputs.vectors}
    options = {name: _fill_placeholders(value, placeholders, out) for name, value in run.options.items()}
    return replace(run, options=options)


def _fill_placeholders(value: object, placeholders: Mapping[str, str], out: Path) -> object:
    if not isinstance(value, str):
        return value
    # Replaced within the value, since a placeholder may be part of a longer spec, such as "elmo:{lm}".
    for name, replacement in placeholders.items():
        value = value.replace(name, replacement)
    return _ENCODER_PLACEHOLDER.sub(lambda match: str(_find_encoder(out, match[1], int(match[2]))), value)


def _find_encoder(out: Path, style: str, rank: int) -> Path:
    """Return the folder of the encoder with the best (rank 1), second best, ... MCC on held-out sentences."""
    (group,) = find_groups([out / "real-fake" / style])
    without_mcc = [run.folder for run in group.runs if run.held_out_mcc is None]
    if without_mcc:
        raise TrainError(
            f"{without_mcc[0]} has no MCC on a dev set, by which encoders are ranked: train it with --dev FILE"
        )
    # The sort is stable: of equal encoders, the one with the lower seed comes first, in every run of the plan.
    ranked = sorted(group.runs, key=lambda run: -(run.held_out_mcc or 0.0))
    if rank > len(ranked):
        raise TrainError(f"{out / 'real-fake' / style} has {len(ranked)} encoders, and the plan wants number {rank}")
    return ranked[rank - 1].folder


def _make_restart_tasks(run: RestartPlan, inputs: PlanInputs, folder: Path) -> list[RestartTask]:
    """Return the restarts of a run."""
    recipe: Any = make_recipe(run.kind, run.options)
    search = find_hyperparameter_sampler(recipe) if run.random_search else None
    # The real/fake task makes its own labelled sentences from plain text; all other recipes are given labelled ones.
    is_text = run.data == "text"
    training_data: dict[str, Any] = (
        {"text": inputs.text, "dev": inputs.dev} if is_text else {"data": (load_training_suite(run.data),)}
    )
    return make_restart_tasks(recipe, folder, runs=run.restarts, search=search, **training_data)


def load_training_suite(data: str) -> Suite:
    """Return the labelled sentences that a plan calls ``train``, ``split NAME`` or ``size N``."""
    kind, _, name = data.partition(" ")
    # The default seeds, which the study uses too: it refuses classifiers that were trained on other sentences.
    if kind == "split":
        return build_split_suites(find_split(name, read_published_values("cola"))).train
    train_set = load_suite("cola/train")
    return draw_nested_subsets(train_set, [int(name)])[int(name)] if kind == "size" else train_set


def _make_ngram_tasks(out: str | Path, text: tuple[str, ...]) -> list[RestartTask]:
    # The n-gram models are independent of the classifiers, but Table 4 has rows for them, and the text is at hand.
    models_folder = Path(out).resolve() / LANGUAGE_MODELS_FOLDER
    recipes = {
        f"ngram-{order}": NGramRecipe(order=order, vocabulary=_VOCABULARY_SIZE) for order in NGRAM_ORDERS if text
    }
    return [RestartTask(recipe, models_folder / name, text=text) for name, recipe in recipes.items()]


def _train_in_parallel(tasks: Sequence[RestartTask], inputs: PlanInputs, progress: TrainingProgressCallback) -> None:
    """Train restarts in parallel; raise an error that names the failed ones when all have ended."""
    # Not at the first failure: the others are worth keeping, and a resumed plan trains only what is missing.
    runs = run_tasks(tasks, workers=inputs.workers, engine=inputs.engine, progress=progress)
    if problem := describe_failures(runs):
        raise TrainError(problem)


def list_ngram_models(out: str | Path) -> list[str]:
    """Return the n-gram models of a plan that ran with text: those of Table 4, of order 2, 3 and 4."""
    folders = [Path(out) / LANGUAGE_MODELS_FOLDER / f"ngram-{order}" for order in NGRAM_ORDERS]
    return [f"ngram:{folder}" for folder in folders if folder.is_dir()]


def write_default_text(out: str | Path) -> tuple[Path, Path]:
    """Write text and dev text made of CoLA's acceptable sentences, and return the two paths.

    Every tenth sentence is dev text. There are only a few thousand sentences, and none from elsewhere: enough to see
    that everything works, not enough for results.
    """
    lines = [sentence.text for sentence in load_suite("cola/train").sentences if sentence.label]
    lines_by_name = {"text": [line for index, line in enumerate(lines) if index % 10], "dev": lines[::10]}
    paths = {name: Path(out) / f"{name}.txt" for name in lines_by_name}
    for name, part_lines in lines_by_name.items():
        with atomic_write(paths[name]) as file:
            file.write(("\n".join(part_lines) + "\n").encode())
    return paths["text"], paths["dev"]


@dataclass(frozen=True)
class TrainedPlan:
    """What training leaves for the study: the folder of classifiers, and the text to measure perplexities on."""

    folder: Path
    dev: tuple[str | Path, ...]


def train_study_classifiers(
    size: ColaPlanSize,
    models: Sequence[str] = (),
    *,
    out: Path | None = None,
    corpus: Sequence[str | Path] = (),
    dev: Sequence[str | Path] = (),
    vectors: str = "",
    workers: int | None = None,
    training_engine: str = "local",
    progress: ProgressCallback | None = None,
) -> tuple[list[str], TrainedPlan]:
    """Train the classifiers of the study and score its sentences with them; log what was left out.

    A quick plan takes the package's own models, CoLA's own sentences and a folder of ours where none are given.

    Returns:
        The language models that the study can measure, and where the classifiers are.
    """
    if size == "quick":
        workers, models = workers or 2, models or list(QUICK_MODELS)
    elif out is None:
        raise SpecError("--train needs --out DIR, the folder for the classifiers")
    out = out or home_folder() / "cola-quick"
    if size == "quick":
        _log.info("classifiers: %s", out)
    if size == "quick" and not corpus:
        text, dev_text = write_default_text(out)
        corpus, dev = [text], [dev_text]
        _log.info("text: CoLA's own acceptable sentences, since no --corpus is given")
    options: dict[str, Any] = {"vectors": vectors, "workers": workers, "engine": training_engine}
    report = adapt_progress(progress)
    skipped = run_plan(size, out, models, corpus=corpus, dev=dev, progress=report, **options)
    folder = out / CLASSIFIERS_FOLDER
    score_in_parallel(find_groups([folder]), workers=workers or 1, progress=report)
    for line in skipped:
        _log.info("not trained: %s", line)
    # The other models of the user were fine-tuned, and have no rows of their own.
    language_models = [model for model in models if expand_named_model(model).startswith(("recurrent:", "ngram:"))]
    return [*(list_ngram_models(out) if corpus else []), *language_models], TrainedPlan(folder, tuple(dev))


@dataclass(frozen=True)
class _ScoringTask:
    """One classifier, and the suites to score with it."""

    model: str
    suites: tuple[Suite, ...]


def score_in_parallel(
    groups: Sequence[RestartGroup], *, workers: int, progress: TrainingProgressCallback = lambda _: None
) -> None:
    """Score the sentences of the study with the classifiers of all groups, in parallel processes.

    Args:
        groups: The classifiers.
        workers: How many processes run at once.
        progress: Called when a classifier is done.
    """
    tasks = [
        _ScoringTask(run.spec, suites)
        for group in groups
        for suites in [_load_group_suites(group)]
        for run in group.runs
    ]
    # ``closing`` ends the worker processes at once if an error leaves the loop early.
    with closing(
        # Scoring sends no progress reports, so the callback has nothing to do; progress is the number completed.
        map_unordered(_score_suites, tasks, workers=workers, on_progress=lambda item_index, news: None)
    ) as outcomes:
        for done, outcome in enumerate(outcomes, 1):
            if outcome.problem:
                raise ModelError(f"{tasks[outcome.item_index].model}: {outcome.problem}")
            progress(TrainingProgress("classifiers scored", done, len(tasks)))


def _load_group_suites(group: RestartGroup) -> tuple[Suite, ...]:
    # Exactly the suites that the tables of this group read: fewer would leave scoring to a single process later.
    if group.split:
        return tuple(
            suites_by_column(build_split_suites(find_split(group.split, read_published_values("cola")))).values()
        )
    return (load_both_dev_sets(),) if group.size is not None else load_scored_suites()


def _score_suites(task: _ScoringTask, _: Any) -> None:
    """Score the suites with one classifier; runs in a process of its own."""
    # The scores are not returned: they go to the store, from which the study reads them.
    for suite in task.suites:
        StudyModel(task.model).compute_scores(suite, {"log_odds": "log_odds"})
