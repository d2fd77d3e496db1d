"""Figures 1, 2 and 4 of the NPI paper, and 5 to 9 of its appendix: trained classifiers, by environment.

Rows are a model and a configuration (what it was trained on), columns the environments, like the two axes of a heat
map. Boolean acceptability (Figure 1) is the MCC of a classifier's decisions with the labels. Of a minimal pair (Figure
2), the absolute measure demands that both sentences are classified correctly, the gradient one only that the acceptable
sentence has the higher log-odds. Models that were fine-tuned on another task first appear in the figures of the
appendix, as in the paper. The table "Findings" compares what the paper says about its figures in words.

Figures 4 and 9 are of probes: how well logistic regression decodes the presence of licensor and NPI, and whether the
NPI is in the licensor's scope, from the hidden states of frozen encoders: of the encoder as it was pretrained, and
after fine-tuning in each configuration; with a bag of words and the majority class as baselines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean, stdev
from typing import Any

import numpy as np

from acceptability import probing
from acceptability.api.scoring import ProgressCallback, score
from acceptability.engine.processes import map_unordered
from acceptability.errors import MeasureError, Undefined
from acceptability.measures.classification import matthews
from acceptability.measures.pairs import AbsolutePair, GradientPair
from acceptability.papers.cells import Cell, PublishedValues
from acceptability.papers.npi.npi_data import (
    ALL,
    ALL_BUT,
    AVERAGE_OTHER,
    ENVIRONMENT,
    FACTORS,
    FIGURE_ROWS,
    ONE,
    OTHER,
    VARIED_FACTOR,
    Configuration,
    NpiData,
    environment_label,
    filter_groups,
    load_npi_data,
    select_configs_without_group,
    select_configurations,
    subsample_suite,
)
from acceptability.papers.npi.npi_training import (
    BAG_OF_WORDS,
    WILCOX_SUITE,
    PlanFolder,
    PlannedModel,
    PlannedRun,
    default_workers,
    load_judged_suite,
    plan_runs,
)
from acceptability.protocols import Measure
from acceptability.specs import fingerprint
from acceptability.suites import load_suite
from acceptability.train.recipe import RECIPE_FILE, TrainingProgressCallback
from acceptability.types import Scores, Sentence, Suite

MEASURES: dict[str, Measure] = {"absolute": AbsolutePair(threshold=0.0), "gradient": GradientPair()}

CONFIGURATION_NAMES = {
    OTHER: "CoLA",
    ONE: "1 NPI",
    AVERAGE_OTHER: "Avg Other NPI",
    ALL_BUT: "All-but-1 NPI",
    ALL: "All NPI",
}
"""The names of the configurations in the paper's figures."""

WILCOX_COLUMN = "Wilcox et al."
BY_TRAINING = "Boolean acceptability by training environment"
_APPENDIX_FIGURES = {
    "Figure 1": "Figure 5",
    "Figure 2, npi": "Figure 6",
    "Figure 2, licensor": "Figure 7",
    "Figure 2, scope": "Figure 8",
}
# The paper's model of each kind of recipe, whose numbers are shown in the rows of ours.
_PAPER_MODELS = {"cbow": "GloVe BoW", "transformer": "BERT"}

TABLE = "Findings"
"""The name of the table of statements that the paper makes in words."""

MAJORITY = "majority"
"""The row of the probe that always predicts the more frequent class."""

ProbeFunction = Callable[..., Sequence[Any]]
"""The type of ``acceptability.probing.probe``, which returns scores with factor, group, layer and MCC."""

LogOddsByText = Mapping[str, float]
"""A classifier's log-odds of "acceptable", by the text of the sentence."""


@dataclass(frozen=True)
class NotedValue:
    """A number with a note, or None with the reason."""

    value: float | None
    note: str = ""


@dataclass(frozen=True, eq=False)
class ClassifierJudgements:
    """The log-odds that all classifiers of a model give to the test sentences.

    Args:
        model: The model, before training.
        data: The sentences and pairs.
        log_odds: The log-odds of each restart, by the configuration it was trained in.
        unfinished: The folders of classifiers whose training is not complete.
        signature: A fingerprint of the signatures of all classifiers.
    """

    model: PlannedModel
    data: NpiData
    log_odds: Mapping[Configuration, Sequence[LogOddsByText]]
    unfinished: Sequence[str] = ()
    signature: str = ""

    def boolean_mcc(self, configurations: Iterable[Configuration], environment: str) -> NotedValue:
        """Return the MCC on an environment, averaged over restarts and configurations."""
        sentences = [sentence for sentence in self.data.test.sentences if sentence.tags[ENVIRONMENT] == environment]
        return self._mean_over_classifiers(configurations, lambda log_odds: mcc_with_labels(sentences, log_odds))

    def wilcox_mcc(self, configurations: Iterable[Configuration]) -> NotedValue:
        """Return the MCC on the handcrafted sentences after Wilcox et al. (2019)."""
        return self._mean_over_classifiers(
            configurations, lambda log_odds: mcc_with_labels(load_suite(WILCOX_SUITE).sentences, log_odds)
        )

    def pair_accuracy(
        self, configurations: Iterable[Configuration], measure: str, factor: str, environment: str
    ) -> NotedValue:
        """Return the accuracy on the pairs of an environment that differ in a factor.

        Args:
            configurations: The configurations to average over.
            measure: ``absolute`` or ``gradient``.
            factor: The factor in which the sentences of a pair differ.
            environment: The environment of the pairs.
        """
        suite = select_pairs(self.data.pairs, factor, environment)
        if suite is None:
            return NotedValue(None, "there are no such pairs")
        # A list, because an iterator would be used up by the accuracies.
        all_configurations = list(configurations)
        accuracy = self._mean_over_classifiers(
            all_configurations, lambda log_odds: _measure_pairs(suite, measure, log_odds)
        )
        tie_share = self._mean_over_classifiers(all_configurations, lambda log_odds: _tie_share(suite, log_odds))
        # A bag of words gives two orders of the same words the same log-odds: its gradient accuracy on such pairs is 0,
        # where guessing would have 0.5. The note keeps that from being read as a preference for the wrong sentence.
        if measure != "gradient" or not tie_share.value:
            return accuracy
        note = f"{tie_share.value:.1%} of the pairs tie, which counts as wrong: chance would decide half of them"
        return NotedValue(accuracy.value, "; ".join(filter(None, (accuracy.note, note))))

    def _mean_over_classifiers(
        self, configurations: Iterable[Configuration], value: Callable[[LogOddsByText], float]
    ) -> NotedValue:
        all_configurations = list(configurations)
        # A mean over those that happen to be finished would be of other configurations than its row says.
        if any(not self.log_odds.get(configuration) for configuration in all_configurations):
            return NotedValue(None, "not every classifier that it needs is trained")
        try:
            return _average_values(
                [value(log_odds) for configuration in all_configurations for log_odds in self.log_odds[configuration]]
            )
        except Undefined as error:
            return NotedValue(None, str(error))


def _average_values(values: Sequence[float]) -> NotedValue:
    mean_note = f"mean of {len(values)} classifiers, standard deviation {stdev(values):.3f}" if len(values) > 1 else ""
    return NotedValue(fmean(values), mean_note)


def mcc_with_labels(sentences: Sequence[Sentence], log_odds: LogOddsByText) -> float:
    """Return the MCC of a classifier's decisions with the labels; log-odds above 0 mean "acceptable"."""
    predicted = np.array([log_odds[sentence.text] > 0 for sentence in sentences], np.float64)
    return matthews(predicted, np.array([float(sentence.label or 0) for sentence in sentences]))


def select_pairs(suite: Suite, factor: str, environment: str) -> Suite | None:
    """Return the pairs of an environment that differ in a factor; None if there are none."""
    pairs = tuple(
        pair for pair in suite.contrasts if pair.tags[VARIED_FACTOR] == factor and pair.tags[ENVIRONMENT] == environment
    )
    ids = {sentence_id for pair in pairs for sentence_id in (pair.better, pair.worse)}
    sentences = tuple(suite.by_id[sentence_id] for sentence_id in ids)
    return replace(suite, sentences=sentences, contrasts=pairs) if pairs else None


def _measure_pairs(suite: Suite, measure: str, log_odds: LogOddsByText) -> float:
    scores = Scores(
        {sentence.id: log_odds[sentence.text] for sentence in suite.sentences}, "classifier", "log_odds", ""
    )
    chosen_measure = MEASURES[measure]
    return float(chosen_measure.value(chosen_measure.units(suite, scores)))


def _tie_share(suite: Suite, log_odds: LogOddsByText) -> float:
    """Return the share of pairs whose sentences have equal log-odds, such as two orders of a bag of words."""
    by_id = suite.by_id
    return fmean(log_odds[by_id[pair.better].text] == log_odds[by_id[pair.worse].text] for pair in suite.contrasts)


def load_judgements(folder: PlanFolder, progress: ProgressCallback | None = None) -> list[ClassifierJudgements]:
    """Return the judgements of the classifiers in a folder; scores that are in the store are not computed again."""
    return [_load_model_judgements(folder, model, progress) for model in folder.models]


def _load_model_judgements(
    folder: PlanFolder, model: PlannedModel, progress: ProgressCallback | None
) -> ClassifierJudgements:
    data = load_npi_data(folder.suite)
    runs = plan_runs([model], data.environments, folder.restarts)
    # Training writes the recipe file last: a folder without it is of a run that was interrupted.
    finished = [run for run in runs if (folder.path / run.folder / RECIPE_FILE).is_file()]
    log_odds_by_configuration: dict[Configuration, list[LogOddsByText]] = {}
    signatures = []
    for number, run in enumerate(finished, start=1):
        log_odds, signature = _score_run(folder, run)
        log_odds_by_configuration.setdefault(run.configuration, []).append(log_odds)
        signatures.append(signature)
        if progress:
            progress(f"{model.name}: classifiers", number, len(finished))
    unfinished = [str(run.folder) for run in runs if run not in finished]
    # Sorted, so that the signature does not depend on the order of the plan.
    combined_signature = (
        f"restarts:{len(finished)}#{fingerprint(signature.encode() for signature in sorted(signatures))}.log_odds"
    )
    return ClassifierJudgements(
        # The same limit as in training, so that every sentence asked for below has been scored.
        model,
        data.limit_test_sentences(model.judged),
        log_odds_by_configuration,
        unfinished,
        combined_signature,
    )


def _score_run(folder: PlanFolder, run: PlannedRun) -> tuple[LogOddsByText, str]:
    # Training has stored these scores (``train_and_score``): as a rule, nothing runs here.
    suite = load_judged_suite(folder.suite, run.model.judged)
    scores = score(suite, f"classifier:{folder.path / run.folder}")
    return {sentence.text: scores[sentence.id] for sentence in suite.sentences}, scores.signature


def compute_figure_cells(judgements: ClassifierJudgements, values: PublishedValues) -> Iterator[Cell]:
    """Yield Figures 1 and 2 for one model, or those of the appendix, and its MCC by training environment."""
    yield from _compute_figure_1_cells(judgements, values)
    yield from _compute_by_training_cells(judgements)
    yield from _compute_figure_2_cells(judgements, values)


def _compute_figure_1_cells(judgements: ClassifierJudgements, values: PublishedValues) -> Iterator[Cell]:
    groups = judgements.data.environments
    for row in FIGURE_ROWS:
        for group in groups:
            yield _make_figure_cell(
                judgements,
                values,
                "Figure 1",
                (row, ""),
                group,
                judgements.boolean_mcc(select_configurations(row, group, groups), group),
            )
        # These sentences belong to no environment: a row whose configurations depend on the environment of the test set
        # has no number for them, or the mean over all environments.
        if configurations := select_configs_without_group(row, groups):
            number = judgements.wilcox_mcc(configurations)
            mean_note = f"the mean over {len(configurations)} classifiers, since these sentences are of no environment"
            note = "; ".join(filter(None, (number.note, mean_note if len(configurations) > 1 else "")))
            yield _make_figure_cell(
                judgements, values, "Figure 1", (row, ""), WILCOX_COLUMN, replace(number, note=note)
            )


def _compute_by_training_cells(judgements: ClassifierJudgements) -> Iterator[Cell]:
    """Yield a matrix of MCC: rows are the environment of the training set, columns that of the test set."""
    groups = judgements.data.environments
    for trained_on in groups:
        for group in groups:
            number = judgements.boolean_mcc([Configuration(ONE, trained_on)], group)
            row = f"{judgements.model.name}: {environment_label(trained_on)} only"
            yield Cell(
                BY_TRAINING,
                row,
                environment_label(group),
                None,
                number.value,
                _describe_source(judgements),
                None,
                _join_notes(judgements, number),
            )


def _compute_figure_2_cells(judgements: ClassifierJudgements, values: PublishedValues) -> Iterator[Cell]:
    groups = judgements.data.environments
    for factor in FACTORS:
        for measure in MEASURES:
            for row in FIGURE_ROWS:
                for group in groups:
                    number = judgements.pair_accuracy(select_configurations(row, group, groups), measure, factor, group)
                    yield _make_figure_cell(judgements, values, f"Figure 2, {factor}", (row, measure), group, number)


def _make_figure_cell(
    judgements: ClassifierJudgements,
    values: PublishedValues,
    table: str,
    row: tuple[str, str],
    group: str,
    number: NotedValue,
) -> Cell:
    """Return a number beside the paper's for its model of the same kind; the two are not compared."""
    configuration, measure = row
    tail = ", ".join(filter(None, (measure, CONFIGURATION_NAMES[configuration])))
    published = values.get((table, f"{_PAPER_MODELS[judgements.model.kind]}: {tail}", environment_label(group)))
    figure = _APPENDIX_FIGURES[table] if judgements.model.after else table
    note = _join_notes(judgements, number)
    if published:
        note = "; ".join(
            filter(None, (note, f"the paper's is of {_PAPER_MODELS[judgements.model.kind]}", published.note))
        )
    paper = published.value if published else None
    return Cell(
        figure,
        f"{judgements.model.name}: {tail}",
        environment_label(group),
        paper,
        number.value,
        _describe_source(judgements),
        None,
        note,
    )


def _describe_source(judgements: ClassifierJudgements) -> str:
    model = judgements.model
    vectors = f" over {model.options['vectors']}" if model.options.get("vectors") else ""
    after = f" after {model.after}" if model.after else ""
    description = f"a bag of words{vectors}" if model.name == BAG_OF_WORDS else f"{model.name}, fine-tuned{after}"
    return f"{description}; sentences: {'published' if judgements.data.name == 'npi' else judgements.data.name}"


def _join_notes(judgements: ClassifierJudgements, number: NotedValue) -> str:
    training_note = f"trained on at most {judgements.model.most} sentences" if judgements.model.most else ""
    test_note = (
        f"measured on about {judgements.model.judged} test sentences of each environment"
        if judgements.model.judged
        else ""
    )
    return "; ".join(filter(None, (number.note, training_note, test_note, judgements.signature)))


def compute_finding_cells(all_judgements: Sequence[ClassifierJudgements], values: PublishedValues) -> Iterator[Cell]:
    """Yield means over all configurations and environments, and how often an encoder exceeds the bag of words."""
    for judgements in all_judgements:
        for factor in FACTORS:
            for measure in MEASURES:
                accuracies = _pair_accuracies(judgements, factor, measure)
                row = f"{factor}, {measure}"
                yield _make_finding_cell(
                    values, judgements, row, "mean", fmean(accuracies) if accuracies else None, len(accuracies)
                )
    bag = next((judgements for judgements in all_judgements if judgements.model.name == BAG_OF_WORDS), None)
    for judgements in all_judgements if bag else ():
        if bag and judgements is not bag:
            yield _above_bag_cell(values, judgements, bag)


def _pair_accuracies(judgements: ClassifierJudgements, factor: str, measure: str) -> list[float]:
    groups = judgements.data.environments
    numbers = (
        judgements.pair_accuracy(select_configurations(row, group, groups), measure, factor, group)
        for row in FIGURE_ROWS
        for group in groups
    )
    return [number.value for number in numbers if number.value is not None]


def _above_bag_cell(values: PublishedValues, judgements: ClassifierJudgements, bag: ClassifierJudgements) -> Cell:
    groups = judgements.data.environments
    both = []
    for row in FIGURE_ROWS:
        for group in groups:
            model_mcc = judgements.boolean_mcc(select_configurations(row, group, groups), group).value
            bag_mcc = bag.boolean_mcc(select_configurations(row, group, groups), group).value
            if model_mcc is not None and bag_mcc is not None:
                both.append((model_mcc, bag_mcc))
    above = sum(model_mcc > bag_mcc for model_mcc, bag_mcc in both)
    return _make_finding_cell(
        values, judgements, "Boolean: above the bag of words", "places", f"{above} of {len(both)}", len(both)
    )


def _make_finding_cell(
    values: PublishedValues,
    judgements: ClassifierJudgements,
    row: str,
    column: str,
    ours: float | str | None,
    n_numbers: int,
) -> Cell:
    published = values.get((TABLE, f"{_PAPER_MODELS[judgements.model.kind]}: {row}", column))
    note = f"over {n_numbers} places: configurations by environments"
    full_note = f"{note}; the paper's is of {_PAPER_MODELS[judgements.model.kind]}" if published else note
    name = f"{judgements.model.name}: {row}"
    return Cell(
        TABLE, name, column, published.value if published else None, ours, judgements.model.name, None, full_note
    )


@dataclass(frozen=True)
class _ProbedEncoder:
    """An encoder to probe.

    Args:
        row: The name of its row.
        spec: The spec of the model.
        groups: The environments to probe it in: all of them, or the one that its row is about.
    """

    row: str
    spec: str
    groups: tuple[str, ...]


@dataclass(frozen=True)
class _ProbeTask:
    """An encoder and its data, in a form that can be sent to another process."""

    encoder: _ProbedEncoder
    table: str
    suite: str
    per_environment: int


def compute_probing_cells(
    folder: PlanFolder, progress: ProgressCallback | None = None, probe: ProbeFunction | None = None
) -> Iterator[Cell]:
    """Yield the probing results of the encoders of a folder; several are probed in parallel if there are cores for it.

    Args:
        folder: The folder of trained classifiers.
        progress: Called with the progress of probing.
        probe: The function that probes; by default ``acceptability.probing.probe``.
    """
    data = load_npi_data(folder.suite)
    tasks = [
        _ProbeTask(encoder, "Figure 9" if model.after else "Figure 4", folder.suite, model.probed)
        for model in folder.models
        for encoder in _list_encoders(folder, model, data)
    ]
    workers = default_workers()
    scores: Iterable[Sequence[Any]]
    # A function given by the caller may not survive pickling, which sending it to another process needs.
    if probe is not None or workers == 1:
        scores = (_probe_encoder(task, progress, probe) for task in tasks)
    else:
        scores = _probe_in_parallel(tasks, workers, progress)
    for task, encoder_scores in zip(tasks, scores, strict=True):
        yield from _probe_cells(task.encoder, task.table, encoder_scores)


def _probe_in_parallel(
    tasks: Sequence[_ProbeTask], workers: int, progress: ProgressCallback | None
) -> list[Sequence[Any]]:
    """Return the probe scores of every encoder, in the order of the tasks; a failure is an error."""
    # Outcomes arrive in the order in which the processes end, hence the index.
    scores_by_index: dict[int, Sequence[Any]] = {}
    with closing(map_unordered(probe_in_process, tasks, workers=workers, on_progress=lambda *_: None)) as outcomes:
        for outcome in outcomes:
            if outcome.problem is not None:
                raise MeasureError(f"cannot probe {tasks[outcome.item_index].encoder.spec}: {outcome.problem}")
            scores_by_index[outcome.item_index] = outcome.value
            if progress:
                progress("probed encoders", len(scores_by_index), len(tasks))
    return [scores_by_index[index] for index in range(len(tasks))]


def probe_in_process(task: _ProbeTask, progress: TrainingProgressCallback) -> Sequence[Any]:
    """Return the probe scores of one encoder; runs in a process of its own."""
    return _probe_encoder(task, None, None)


def _probe_encoder(task: _ProbeTask, progress: ProgressCallback | None, probe: ProbeFunction | None) -> Sequence[Any]:
    # Only the environments of its row: a model that was fine-tuned on all environments but one is probed on that one.
    probe_function = probe or probing.probe
    suite = filter_groups(_load_probing_suite(task.suite, task.per_environment), ENVIRONMENT, task.encoder.groups)
    scores: Sequence[Any] = probe_function(
        suite, task.encoder.spec, factors=FACTORS, by=ENVIRONMENT, layers=[-1], progress=progress
    )
    return scores


@cache
def _load_probing_suite(path: str, per_environment: int) -> Suite:
    """Return about so many training sentences of each environment, and at most as many test sentences."""
    data = load_npi_data(path)
    n_sentences = per_environment * len(data.environments)
    parts = (subsample_suite(split, ENVIRONMENT, n_sentences) for split in (data.train, data.test))
    return replace(data.train, sentences=tuple(sentence for part in parts for sentence in part.sentences))


def _list_encoders(folder: PlanFolder, model: PlannedModel, data: NpiData) -> Iterator[_ProbedEncoder]:
    """Yield the encoders of a model: as it was pretrained, and the first restart of each configuration."""
    if model.name == BAG_OF_WORDS:
        vectors = str(model.options.get("vectors", ""))
        yield _ProbedEncoder(
            f"{BAG_OF_WORDS}: untouched", f"glove:{vectors}" if vectors else BAG_OF_WORDS, data.environments
        )
        # The majority baseline is the same for all models: it is listed with the bag of words, which a plan has once.
        yield _ProbedEncoder(MAJORITY, MAJORITY, data.environments)
        return
    # The pretrained encoder is the same whether or not another task follows: it has one row, in Figure 4.
    if not model.after:
        yield _ProbedEncoder(f"{model.name}: untouched", model.start, data.environments)
    for run in plan_runs([model], data.environments):
        if (folder.path / run.folder / RECIPE_FILE).is_file():
            yield _make_fine_tuned_encoder(folder, run, data.environments)


def _make_fine_tuned_encoder(folder: PlanFolder, run: PlannedRun, groups: tuple[str, ...]) -> _ProbedEncoder:
    kind, group = run.configuration.kind, run.configuration.group
    name = f"{run.model.name}: {CONFIGURATION_NAMES[kind]}"
    return _ProbedEncoder(name, f"classifier:{folder.path / run.folder}", (group,) if group else groups)


def _probe_cells(encoder: _ProbedEncoder, table: str, scores: Sequence[Any]) -> Iterator[Cell]:
    """Yield the MCC of probes, a row for each factor; there is none if the factor does not vary in an environment."""
    order = {(factor, group): (i, j) for i, factor in enumerate(FACTORS) for j, group in enumerate(encoder.groups)}
    for probe_score in sorted(scores, key=lambda result: order[result.factor, result.group]):
        reason = probe_score.reason or ""
        control = "" if probe_score.control is None else f"the control task has {probe_score.control:.3f}"
        sizes = f"trained on {probe_score.train} sentences, evaluated on {probe_score.test}"
        note = "; ".join(filter(None, (reason, f"layer {probe_score.layer}", sizes, control)))
        row, source = f"{encoder.row}, {probe_score.factor}", f"probes of {encoder.spec}"
        yield Cell(table, row, environment_label(probe_score.group), None, probe_score.mcc, source, None, note)
