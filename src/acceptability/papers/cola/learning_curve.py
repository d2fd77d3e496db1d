"""Section 6 of Warstadt, Singh and Bowman (2019) for classifiers of our own: Table 5, and the curve of Figure 3.

Table 5 repeats the experiment with other sources of CoLA held out as out-of-domain data. Figure 3 shows how MCC grows
with the size of the training set: 100, 300, 1,000, 3,000 and all 8,551 sentences. We draw nested subsets, so that a
larger set only adds sentences, and fit a least-squares line through MCC against the logarithm of the size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from acceptability.errors import ModelError, SuiteError, Undefined
from acceptability.papers.cells import Cell, PublishedValues, make_cell, make_uncompared_cell
from acceptability.papers.cola.classifier_tables import (
    MEAN,
    ClassifierRestarts,
    load_both_dev_sets,
    load_group_restarts,
    measure_at_threshold,
    summarise_runs,
)
from acceptability.papers.cola.corpus_tables import SplitSuites, build_split_suites, find_split
from acceptability.papers.cola.restart_groups import (
    DESIGN_ROW,
    RestartGroup,
    TrainedClassifier,
    find_table_4_row,
    parse_seed,
)
from acceptability.papers.niu_penn.user_models import StudyModel
from acceptability.stats.samples import check_level
from acceptability.train.classifiers.recipe import LabelledSentences
from acceptability.types import Sentence, Suite

SIZES = (100, 300, 1000, 3000, 8551)
"""The sizes of the training sets in Figure 3."""

_FIGURE = "Figure 3"
_DEPENDENCE_NOTE = "restarts of one size share their sentences, and are less independent than the interval takes them"
_SPLIT_NOTE = (
    "public sentences, a tenth of the training part held out to stop by; the paper: half of larger sets, as test sets"
)

# A residual sum of squares below this share of the total means residuals below 1e-12 of the values. That is rounding
# error, and an interval made of it would look like certainty.
_ROUNDING_SHARE = 1e-24


@dataclass(frozen=True)
class CurvePoint:
    """The MCC of one restart that was trained on a number of sentences."""

    size: int
    seed: int
    mcc: float


@dataclass(frozen=True)
class RegressionLine:
    """A least-squares line through MCC against the logarithm (base 10) of the size.

    Args:
        slope: How much MCC grows when the training set becomes ten times as large.
        low, high: The confidence interval of the slope.
        n: The number of points.
        level: The confidence level of the intervals.
    """

    intercept: float
    slope: float
    low: float
    high: float
    n: int
    level: float
    _mean_x: float
    _ss_x: float
    _residual_std: float

    def predict(self, size: int) -> tuple[float, float, float]:
        """Return the expected MCC for a size, and the lower and upper end of its confidence interval."""
        # The interval of the mean, not of a new observation: the variance has no term for the error of a single run.
        x = math.log10(size)
        fitted = self.intercept + self.slope * x
        margin = _t_quantile(self.level, self.n - 2) * self._residual_std
        margin *= math.sqrt(1 / self.n + (x - self._mean_x) ** 2 / self._ss_x)
        return fitted, fitted - margin, fitted + margin


def draw_nested_subsets(suite: Suite, sizes: Sequence[int] = SIZES, *, seed: int = 0) -> dict[int, Suite]:
    """Return nested training sets by their size: every one is a subset of all larger ones.

    They are stratified: labels have the proportions of the whole suite to the nearest sentence, sources approximately.
    Sentences stay in the order of the suite. A size equal to that of the suite gives the suite itself.

    Args:
        suite: The labelled sentences to draw from.
        sizes: How many sentences each training set has.
        seed: Seeds the draw; the same seed gives the same sets.
    """
    n_sentences = len(suite.sentences)
    for size in sizes:
        if not 2 <= size <= n_sentences:
            raise SuiteError(f"{size} sentences cannot be drawn from the {n_sentences:,} of suite {suite.name!r}")
    rng = np.random.default_rng(seed)
    # The draw is a single ordering of each label, of which every size takes a prefix: that makes the sets nested.
    good, bad = (_order_by_source(suite.sentences, label, rng) for label in (1, 0))
    return {size: _take_subset(suite, size, seed, good, bad) for size in sizes}


def _take_subset(suite: Suite, size: int, seed: int, good: Sequence[int], bad: Sequence[int]) -> Suite:
    if size == len(suite.sentences):
        return suite
    n_good = round(size * len(good) / len(suite.sentences))
    indices = sorted((*good[:n_good], *bad[: size - n_good]))
    return Suite(f"{suite.name}, {size} by seed {seed}", tuple(suite.sentences[index] for index in indices))


def _order_by_source(sentences: Sequence[Sentence], label: int, rng: np.random.Generator) -> list[int]:
    """Return the indices of a label's sentences in an order of which every prefix is stratified by source."""
    by_source: dict[str, list[int]] = {}
    for index, sentence in enumerate(sentences):
        if sentence.label == label:
            by_source.setdefault(sentence.tags.get("source", ""), []).append(index)
    position: dict[int, float] = {}
    # Sorted, so that the draws of the random generator do not depend on the order of the sources in the file.
    for source in sorted(by_source):
        indices = rng.permutation(by_source[source]).tolist()
        # Systematic sampling: the sentences of a source are spread evenly over [0, 1), from a random offset. Sorting by
        # position then interleaves the sources in proportion to their sizes.
        offset = rng.random()
        position |= {index: (rank + offset) / len(indices) for rank, index in enumerate(indices)}
    return sorted(position, key=lambda index: (position[index], index))


def fit_line(points: Sequence[CurvePoint], *, level: float = 0.95) -> RegressionLine:
    """Return the least-squares line; its interval assumes independent errors of equal variance.

    >>> sizes, mccs = (100, 1000, 1000, 10000), (0.1, 0.25, 0.15, 0.3)
    >>> line = fit_line([CurvePoint(size, 0, mcc) for size, mcc in zip(sizes, mccs)])
    >>> round(line.slope, 6), round(line.predict(100)[0], 6)
    (0.1, 0.1)
    """
    check_level(level)
    # In powers of ten, so that the slope reads as the gain from ten times as many sentences.
    x, y = np.log10([point.size for point in points]), np.array([point.mcc for point in points])
    if len(points) < 3 or x.min() == x.max():
        raise Undefined(
            f"{len(points)} points of {len(set(x.tolist()))} sizes: a line with an interval needs three of two"
        )
    mean_x, ss_x = float(x.mean()), float(((x - x.mean()) ** 2).sum())
    slope = float((x - mean_x) @ (y - y.mean())) / ss_x
    intercept = float(y.mean()) - slope * mean_x
    residual_ss = float(((y - intercept - slope * x) ** 2).sum())
    if residual_ss <= _ROUNDING_SHARE * float(y @ y):
        raise Undefined("all points lie on the line: without residuals there is no error to make an interval of")
    residual_std = math.sqrt(residual_ss / (len(points) - 2))
    margin = _t_quantile(level, len(points) - 2) * residual_std / math.sqrt(ss_x)
    return RegressionLine(
        intercept, slope, slope - margin, slope + margin, len(points), level, mean_x, ss_x, residual_std
    )


def _t_quantile(level: float, df: int) -> float:
    """Return the half-width of a confidence interval in standard errors, by Student's t."""
    return float(scipy.special.stdtrit(df, 0.5 + level / 2))


def compute_table_5_cells(
    groups: Sequence[RestartGroup], values: PublishedValues, template: StudyModel
) -> Iterator[Cell]:
    """Yield the rows of the splits that the classifiers were trained on: the mean over restarts, as in the paper."""
    for group in groups:
        split = find_split(group.split, values)
        split_suites = build_split_suites(split)
        # Before scoring: numbers of classifiers that saw the evaluation data would look excellent.
        _check_training_data(group, split_suites)
        restarts = load_group_restarts(group, template)
        for title, suite in suites_by_column(split_suites).items():
            yield from _compute_split_cells(restarts, split.name, title, suite, values)


def suites_by_column(split_suites: SplitSuites) -> dict[str, Suite]:
    """Return the evaluation sets of Table 5, by the name of its columns."""
    both = Suite(
        f"{split_suites.in_domain.name} and out",
        (*split_suites.in_domain.sentences, *split_suites.out_of_domain.sentences),
    )
    return {"In-Domain": split_suites.in_domain, "Out-of-Domain": split_suites.out_of_domain, "Overall": both}


def _compute_split_cells(
    restarts: ClassifierRestarts, split: str, title: str, suite: Suite, values: PublishedValues
) -> Iterator[Cell]:
    scores = restarts.score_suite(suite)
    signature = restarts.combined_signature(scores)
    for statistic, measure, (value, note) in summarise_runs(suite.sentences, scores, restarts.best_run_index):
        full_note = "; ".join(filter(None, (note, f"{len(suite.sentences):,} sentences", signature)))
        column = f"{title} {measure}"
        # The paper's row is of one design, and of its mean over restarts; any other classifier has rows of its own
        # only.
        if statistic in (MEAN, "") and restarts.metadata and find_table_4_row(restarts.metadata) == DESIGN_ROW:
            source = f"{len(scores)} restarts in {restarts.name}: {_SPLIT_NOTE}"
            yield make_uncompared_cell(values, ("Table 5", split, column), value, source, note=full_note)
        row = ", ".join(filter(None, (split, restarts.name, statistic)))
        yield make_cell({}, ("Table 5", row, column), value, restarts.source, note=full_note)


def _check_training_data(group: RestartGroup, split_suites: SplitSuites) -> None:
    """Refuse classifiers that were trained on other data: it may contain the sentences they would be evaluated on."""
    # The published training set, for one, contains sources that a different split holds out as out of domain.
    expected_hash = LabelledSentences(split_suites.train.sentences).data_hash
    for classifier in group.runs:
        if classifier.data != expected_hash:
            raise ModelError(
                f"{classifier.folder} was not trained on the training part of split {group.split} (data "
                f"{classifier.data}, not {expected_hash}), and may have seen the sentences it would be evaluated on. "
                "Train it with study cola --train."
            )


def compute_figure_3_cells(groups: Sequence[RestartGroup], template: StudyModel) -> list[Cell]:
    """Return the points of the learning curve, their means and the line through them, for every kind of classifier."""
    curve_cells: list[Cell] = []
    # A curve for each kind of classifier: folders of one size may hold several kinds.
    for kind in dict.fromkeys(_name_classifier(group.runs[0]) for group in groups):
        points = {
            classifier.folder.parent.name + "/" + classifier.folder.name: point
            for classifier, point in _curve_points(groups, kind, template)
        }
        curve_cells += [
            make_cell(
                {}, (_FIGURE, f"{kind}, {point.size}", f"MCC, seed {point.seed}"), point.mcc, f"re-scored with {name}"
            )
            for name, point in points.items()
        ]
        curve_cells += [
            *_compute_mean_cells(kind, list(points.values())),
            *_compute_line_cells(kind, list(points.values())),
        ]
    return curve_cells


def _name_classifier(classifier: TrainedClassifier) -> str:
    return find_table_4_row(classifier) or classifier.description


def _curve_points(
    groups: Sequence[RestartGroup], kind: str, template: StudyModel
) -> Iterator[tuple[TrainedClassifier, CurvePoint]]:
    """Yield the MCC of every restart on both development sets together, as in the paper's figure."""
    suite = load_both_dev_sets()
    for group in sorted(groups, key=lambda group: group.size or 0):
        # All runs of a group are of one kind, so that the first one stands for them.
        if _name_classifier(group.runs[0]) != kind:
            continue
        for classifier, scores in zip(group.runs, load_group_restarts(group, template).score_suite(suite), strict=True):
            value, _ = measure_at_threshold(suite.sentences, scores)["MCC"]
            assert value is not None
            assert group.size is not None
            yield classifier, CurvePoint(group.size, parse_seed(classifier.folder)[0], value)


def _compute_mean_cells(kind: str, points: Sequence[CurvePoint]) -> Iterator[Cell]:
    for size in sorted({point.size for point in points}):
        values = [point.mcc for point in points if point.size == size]
        source, row = f"{len(values)} restarts", f"{kind}, {size}"
        yield make_cell({}, (_FIGURE, row, "MCC, mean"), float(np.mean(values)), source)
        if len(values) > 1:
            spread = float(np.std(values, ddof=1))
            yield make_cell({}, (_FIGURE, row, "MCC, standard deviation"), spread, source, note="n - 1")


def _compute_line_cells(kind: str, points: Sequence[CurvePoint]) -> Iterator[Cell]:
    source = f"least squares over {len(points)} restarts"
    try:
        line = fit_line(points)
    except Undefined as error:
        yield make_cell({}, (_FIGURE, f"{kind}, line", "slope"), None, source, note=str(error))
        return
    estimates = {"intercept": line.intercept, "slope": line.slope, "slope, low": line.low, "slope, high": line.high}
    for column, value in estimates.items():
        yield make_cell(
            {},
            (_FIGURE, f"{kind}, line", column),
            value,
            source,
            note=f"MCC for ten times as many sentences; {_DEPENDENCE_NOTE}",
        )
    for size in sorted({point.size for point in points}):
        for column, value in zip(("fitted", "fitted, low", "fitted, high"), line.predict(size), strict=True):
            yield make_cell(
                {}, (_FIGURE, f"{kind}, {size}", column), value, f"{source}, 95 % interval", note=_DEPENDENCE_NOTE
            )
