"""Classifiers on CoLA: Tables 4 and 6 and Figure 4, and Table 5 and Figures 2 and 3 of the ADC paper.

Warstadt, Singh and Bowman (2019); Vázquez Martínez (2021), appendix D, after Warstadt and Bowman (2019). The papers
evaluate on the test sets, whose labels are not public. We evaluate on the development sets, which play no part in
tuning, early stopping or the choice of a run here. Our numbers therefore stand beside the papers', compared with none.

The first half of the module computes accuracy and MCC of any model. A classifier accepts a sentence whose log-odds are
above 0. The scores of a language model need a threshold, which is fitted by ten-fold cross-validation within a set, as
Warstadt et al. (2019) do, or on another set. The second half turns these numbers into the cells of the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from acceptability.errors import Undefined
from acceptability.measures.classification import (
    DEFAULT_SPLITS,
    MCC,
    best_threshold,
    majority_vote,
    matthews,
    mcc_at_thresholds,
    stack_predictions,
    summarise_restarts,
)
from acceptability.papers.cells import (
    Cell,
    CellKey,
    PublishedValue,
    PublishedValues,
    make_cell,
    make_uncompared_cell,
    read_published_values,
)
from acceptability.papers.cola.corpus_tables import FEATURES, TARGETED_SUITES, list_features, select_by_feature
from acceptability.papers.cola.restart_groups import RestartGroup, TrainedClassifier, find_adc_row, find_table_4_row
from acceptability.papers.niu_penn.pbc_tables import NumberOrReason
from acceptability.papers.niu_penn.user_models import StudyModel
from acceptability.specs import fingerprint
from acceptability.suites import load_suite
from acceptability.train.classifiers.recipe import LabelledSentences
from acceptability.types import Floats, Scores, Sentence, Suite

DOMAINS = {"In-domain": "cola/in_domain_dev", "Out-of-domain": "cola/out_of_domain_dev"}
"""The columns of Table 4, and the sets on which our numbers are computed."""

MEASURES = ("Acc.", "MCC")
CHOSEN, MEAN, DEVIATION, BEST, ENSEMBLE = "chosen run", "mean", "standard deviation", "max", "ensemble"
"""The statistics over restarts, as rows and columns name them."""

ADC_TABLE = "ADC paper, Table 5"
_ADC_FIGURES = {"major": "ADC paper, Figure 2", "minor": "ADC paper, Figure 3"}
_DEV_SET_SOURCE = (
    "development sets, chosen by a tenth held out of the training set; the paper: test sets, chosen on development sets"
)
_MEAN_SOURCE = "development sets; the paper: test sets"
_LOG_ODDS = "log_odds"

CROSS_VALIDATED_MCC = MCC(threshold="cv", seeds=DEFAULT_SPLITS)
"""The measure of a language model's scores: one split into folds can be .04 off the mean of many."""

# ``majority_vote`` gives 1 or 0 and not log-odds; 0.5 is as far as can be from both.
_VOTE_THRESHOLD = 0.5


def load_both_dev_sets() -> Suite:
    """Return the two development sets as one suite of 1,043 sentences."""
    sentences = tuple(sentence for name in DOMAINS.values() for sentence in load_suite(name).sentences)
    return Suite("cola, development sets", sentences)


def load_scored_suites() -> tuple[Suite, ...]:
    """Return every suite that the tables need a classifier's scores of."""
    return tuple(map(load_suite, (*DOMAINS.values(), *TARGETED_SUITES.values(), "cola/analysis")))


def measure_at_threshold(
    sentences: Sequence[Sentence], scores: Scores, threshold: float = 0.0
) -> dict[str, NumberOrReason]:
    """Return accuracy and MCC where a score above the threshold means "acceptable"; MCC needs both labels."""
    predicted = (scores.of(sentence.id for sentence in sentences) > threshold).astype(np.float64)
    return _measure_predictions(predicted, make_label_array(sentences))


def measure_cross_validated(suite: Suite, scores: Scores) -> dict[str, NumberOrReason]:
    """Return accuracy and MCC of predictions whose thresholds maximise MCC on nine of ten folds in turn.

    Both are means over several splits into folds, and each has a note on its spread over them.
    """
    # Both from the same predictions. A second threshold, fitted for accuracy, would make the two columns of Table 4
    # describe two different classifiers.
    units = CROSS_VALIDATED_MCC.units(suite, scores)
    splits = [_measure_predictions(predicted, units["label"]) for predicted in stack_predictions(units)]
    numbers: dict[str, NumberOrReason] = {}
    for measure in MEASURES:
        values = [value for numbers_of_split in splits if (value := numbers_of_split[measure][0]) is not None]
        spread = f"sd over {len(values)} splits into folds {np.std(values, ddof=1):.4f}"
        numbers[measure] = float(np.mean(values)), f"{spread}, {min(values):.4f} to {max(values):.4f}"
    return numbers


def fit_threshold(suite: Suite, scores: Scores) -> float:
    """Return the threshold with the highest MCC on a suite."""
    return best_threshold(
        scores.of(sentence.id for sentence in suite.sentences), make_label_array(suite.sentences), mcc_at_thresholds
    )


def make_label_array(sentences: Sequence[Sentence]) -> Floats:
    """Return the labels as numbers, 1 for acceptable and 0 for not."""
    return np.array([float(sentence.label or 0) for sentence in sentences])


def _measure_predictions(predicted: Floats, labels: Floats) -> dict[str, NumberOrReason]:
    accuracy: NumberOrReason = (float((predicted == labels).mean()), "")
    try:
        return {"Acc.": accuracy, "MCC": (matthews(predicted, labels), "")}
    except Undefined as error:
        return {"Acc.": accuracy, "MCC": (None, str(error))}


def summarise_runs(
    sentences: Sequence[Sentence], runs: Sequence[Scores], best_run_index: int | None
) -> Iterator[tuple[str, str, NumberOrReason]]:
    """Yield statistic, measure and number over the restarts of a classifier.

    A single run has no statistics: its numbers come with an empty name.

    Args:
        runs: The log-odds of each restart.
        best_run_index: The restart with the best held-out MCC; None if that is not known.
    """
    run_numbers = [measure_at_threshold(sentences, run) for run in runs]
    if len(runs) == 1:
        yield from (("", measure, run_numbers[0][measure]) for measure in MEASURES)
        return
    # A tied vote, which an even number of runs can have, counts as a rejection.
    ensemble_numbers = measure_at_threshold(sentences, majority_vote(runs), _VOTE_THRESHOLD)
    # The chosen run is that with the best held-out MCC. If that is unknown, none is chosen: picking the best on the set
    # itself would report its maximum under another name.
    for measure in MEASURES:
        yield (
            CHOSEN,
            measure,
            (None, "no held-out MCC") if best_run_index is None else run_numbers[best_run_index][measure],
        )
        yield from (
            (name, measure, number)
            for name, number in _summarise_numbers([numbers[measure] for numbers in run_numbers]).items()
        )
        yield ENSEMBLE, measure, ensemble_numbers[measure]


def _summarise_numbers(numbers: Sequence[NumberOrReason]) -> Mapping[str, NumberOrReason]:
    values = [value for value, _ in numbers if value is not None]
    # One run without an MCC (it predicts a single class) leaves the mean undefined: averaging the others would report
    # only the runs that did not collapse.
    if len(values) < len(numbers):
        reason = next(note for value, note in numbers if value is None)
        return dict.fromkeys((MEAN, DEVIATION, BEST), (None, reason))
    summary = summarise_restarts(values)
    selection_note = "the best of the runs on the set that it is measured on: too good by what chance gives"
    return {MEAN: (summary.mean, ""), DEVIATION: (summary.std, "n - 1"), BEST: (summary.max, selection_note)}


@dataclass(frozen=True)
class ClassifierRestarts:
    """The restarts of a classifier, or a single classifier, ready to be scored.

    Args:
        name: What their rows are called.
        models: The models to run, one for each restart.
        metadata: The recipe of the first one; None for a classifier that was trained elsewhere.
        best_run_index: The restart with the best held-out MCC; None if that is not known.
    """

    name: str
    models: tuple[StudyModel, ...]
    metadata: TrainedClassifier | None = None
    best_run_index: int | None = None

    def score_suite(self, suite: Suite) -> list[Scores]:
        """Return the log-odds of each restart."""
        return [model.compute_scores(suite, {_LOG_ODDS: _LOG_ODDS})[_LOG_ODDS] for model in self.models]

    # Cached because three figures read these scores, one row for each of some 80 features.
    @cached_property
    def analysis_scores(self) -> list[Scores]:
        """The log-odds of each restart on the analysis set."""
        return self.score_suite(load_suite("cola/analysis"))

    @property
    def source(self) -> str:
        """Which models the numbers come from, for the column ``source``."""
        if len(self.models) == 1:
            return f"re-scored with {self.models[0].model}"
        return f"re-scored with {len(self.models)} restarts in {self.name}"

    @cached_property
    def data_warning(self) -> str:
        """A note if the classifiers were trained on other labelled sentences than CoLA's training set."""
        # Classifiers of the real/fake task are meant to be trained on other sentences.
        if self.metadata is None or self.metadata.kind == "real-fake":
            return ""
        cola_hash = LabelledSentences(load_suite("cola/train").sentences).data_hash
        warning = f"trained on other sentences than CoLA's training set (data {self.metadata.data or 'not recorded'})"
        return "" if self.metadata.data == cola_hash else warning

    def combined_signature(self, scores: Sequence[Scores]) -> str:
        """Return the signature of a single model, or a fingerprint of the signatures of all restarts."""
        if len(scores) == 1:
            return scores[0].signature
        signatures = (run_scores.signature.encode() for run_scores in scores)
        return f"restarts:{len(scores)}#{fingerprint(signatures)}.{scores[0].reduction}"


def load_group_restarts(group: RestartGroup, template: StudyModel) -> ClassifierRestarts:
    """Return the classifiers of a group, to be run with the engine and the progress callback of another model."""
    models = tuple(StudyModel(run.spec, template.engine, template.progress) for run in group.runs)
    return ClassifierRestarts(group.name, models, group.runs[0], group.best_run_index)


def compute_classifier_cells(restarts: ClassifierRestarts, values: PublishedValues) -> list[Cell]:
    """Return the rows of a classifier or of its restarts in every table and figure."""
    own_cells = [*_compute_table_4_cells(restarts), *_compute_table_6_cells(restarts)]
    return [
        *_compute_paper_row_cells(restarts, values, own_cells),
        *own_cells,
        *_compute_figure_4_cells(restarts),
        *_compute_adc_table_5_cells(restarts),
        *_compute_adc_figure_cells(restarts),
    ]


def _compute_table_4_cells(restarts: ClassifierRestarts) -> Iterator[Cell]:
    for title, suite_name in DOMAINS.items():
        suite = load_suite(suite_name)
        yield from _compute_statistic_cells(
            restarts, "Table 4", suite, restarts.score_suite(suite), {"Acc.": f"{title} Acc.", "MCC": f"{title} MCC"}
        )


def _compute_table_6_cells(restarts: ClassifierRestarts) -> Iterator[Cell]:
    for column, suite_name in TARGETED_SUITES.items():
        suite = load_suite(suite_name)
        yield from _compute_statistic_cells(restarts, "Table 6", suite, restarts.score_suite(suite), {"MCC": column})


def _compute_statistic_cells(
    restarts: ClassifierRestarts, table: str, suite: Suite, scores: Sequence[Scores], columns: Mapping[str, str]
) -> Iterator[Cell]:
    signature = restarts.combined_signature(scores)
    for statistic, measure, (value, note) in summarise_runs(suite.sentences, scores, restarts.best_run_index):
        if measure in columns:
            row = f"{restarts.name}, {statistic}" if statistic else restarts.name
            full_note = "; ".join(filter(None, (note, restarts.data_warning, signature)))
            yield make_cell({}, (table, row, columns[measure]), value, restarts.source, note=full_note)


def _compute_paper_row_cells(
    restarts: ClassifierRestarts, values: PublishedValues, own_cells: Sequence[Cell]
) -> Iterator[Cell]:
    """Yield the numbers of the chosen run in the paper's row for a classifier of the same kind."""
    row = find_table_4_row(restarts.metadata) if restarts.metadata else None
    if row is None or restarts.metadata is None:
        return
    # The paper reports the single run that did best on development data, not a mean: ours is chosen likewise, by the
    # held-out tenth of the training set.
    chosen_row = restarts.name if len(restarts.models) == 1 else f"{restarts.name}, {CHOSEN}"
    description = ", ".join(filter(None, (restarts.metadata.description, restarts.metadata.input_description)))
    source = f"{restarts.name}, our {description}: {_DEV_SET_SOURCE}"
    for cell in own_cells:
        key = cell.table, row, cell.column
        if cell.row == chosen_row and key in values:
            yield make_uncompared_cell(values, key, cell.ours, source, note=cell.note)


def _compute_figure_4_cells(restarts: ClassifierRestarts) -> Iterator[Cell]:
    sentences = load_suite("cola/analysis").sentences
    yield from _compute_feature_cells(restarts, "Figure 4", "every sentence", sentences)
    for name in FEATURES:
        yield from _compute_feature_cells(restarts, "Figure 4", name, select_by_feature(sentences, "major", name))


def _compute_adc_figure_cells(restarts: ClassifierRestarts) -> Iterator[Cell]:
    sentences = load_suite("cola/analysis").sentences
    for grain, figure in _ADC_FIGURES.items():
        for name in list_features(sentences, grain):
            yield from _compute_feature_cells(restarts, figure, name, select_by_feature(sentences, grain, name))


def _compute_feature_cells(
    restarts: ClassifierRestarts, figure: str, name: str, sentences: Sequence[Sentence]
) -> Iterator[Cell]:
    """Yield the MCC on the sentences that have a feature, one column for each statistic."""
    size_note = f"{len(sentences)} sentences of the analysis set"
    signature = restarts.combined_signature(restarts.analysis_scores)
    # A few features have sentences of one label only, so that their MCC is undefined; the note then has the reason.
    for statistic, measure, (value, note) in summarise_runs(
        sentences, restarts.analysis_scores, restarts.best_run_index
    ):
        if measure == "MCC":
            column = f"MCC, {statistic}" if statistic else "MCC"
            full_note = "; ".join(filter(None, (size_note, note, signature)))
            yield make_cell({}, (figure, f"{restarts.name}: {name}", column), value, restarts.source, note=full_note)


def _compute_adc_table_5_cells(restarts: ClassifierRestarts) -> Iterator[Cell]:
    """Yield mean, deviation, maximum and ensemble over both development sets, also in the paper's row of that kind."""
    values = read_adc_values()
    suite = load_both_dev_sets()
    scores = restarts.score_suite(suite)
    row = find_adc_row(restarts.metadata) if restarts.metadata else None
    signature = restarts.combined_signature(scores)
    for statistic, measure, (value, note) in summarise_runs(suite.sentences, scores, restarts.best_run_index):
        if measure == "MCC":
            full_note = "; ".join(filter(None, (note, signature)))
            column = statistic or "MCC"
            yield make_cell({}, (ADC_TABLE, restarts.name, column), value, restarts.source, note=full_note)
            if row and (ADC_TABLE, row, column) in values:
                source = f"{restarts.name}: both {_MEAN_SOURCE}"
                yield make_uncompared_cell(values, (ADC_TABLE, row, column), value, source, note=full_note)


def read_adc_values() -> dict[CellKey, PublishedValue]:
    """Return the values of the ADC paper's Table 5, under the name that the table has here."""
    # Renamed because the CoLA paper has a Table 5 of its own, and both are shown in one study.
    return {
        (ADC_TABLE, *key[1:]): published
        for key, published in read_published_values("adc").items()
        if key[0] == "Table 5"
    }
