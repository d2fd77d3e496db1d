"""Binary judgements against labels: accuracy, Matthews' correlation, area under the ROC curve, and restarts.

A score above a decision threshold predicts "acceptable". The threshold is given, or taken from the scores: the pooled
mean (Niu and Penn 2020), the midpoint of the class means, or the best one of the other folds (cross-validation).
``summarise_restarts`` and ``majority_vote`` combine several trainings of the same model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import MeasureError, ScoreError, Undefined
from acceptability.measures.correlation import auc
from acceptability.measures.rows import check_count, mean, require_labelled, require_number
from acceptability.protocols import Measure
from acceptability.specs import format_spec
from acceptability.types import Floats, Scores, Suite, Units

FITTED_THRESHOLDS = ("cv", "pooled-mean", "class-midpoint")
"""The thresholds that are estimated from the scores themselves."""

ThresholdObjective = Callable[[Floats, Floats, float, float], Floats]
"""From hits and false alarms at each threshold, and the sizes of the classes, to the value to maximise."""

# Candidate thresholds whose objectives differ only by rounding error count as equally good. Without this the choice
# among them would depend on the order of floating-point operations.
_DIGITS = 12


def pooled_mean(scores: Floats) -> float:
    """Return the mean of all scores, whatever their labels (Niu and Penn 2020)."""
    return float(scores.mean())


def class_midpoint(scores: Floats, labels: Floats) -> float:
    """Return the midpoint between the mean scores of acceptable and of unacceptable sentences.

    >>> class_midpoint(np.array([4.0, 2.0, 1.0, 1.0]), np.array([1.0, 1.0, 0.0, 0.0]))
    2.0
    """
    # Halved before they are added: the sum of two very large means would overflow.
    return float(scores[labels == 1].mean() / 2 + scores[labels == 0].mean() / 2)


def best_threshold(scores: Floats, labels: Floats, objective: ThresholdObjective) -> float:
    """Return the threshold that maximises an objective.

    Candidates are a threshold below all scores, the midpoints of neighbouring scores, and one above all scores. Of
    several that are equally good (to twelve digits) the lowest is returned, which accepts most sentences.

    Args:
        labels: 1 for an acceptable sentence, 0 for an unacceptable one.
        objective: The value to maximise, such as ``accuracy_at_thresholds``.

    >>> best_threshold(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 1.0]), accuracy_at_thresholds)
    1.5
    """
    # All thresholds at once by cumulative sums over the sorted scores: n log n, where trying each would be quadratic.
    values, value_indices = np.unique(scores, return_inverse=True)
    good = np.bincount(value_indices, labels)
    bad = np.bincount(value_indices, 1 - labels)
    hits = good.sum() - np.concatenate([[0.0], np.cumsum(good)])
    false_alarms = bad.sum() - np.concatenate([[0.0], np.cumsum(bad)])
    objective_values = np.round(objective(hits, false_alarms, float(good.sum()), float(bad.sum())), _DIGITS)
    return float(_list_candidates(values)[int(np.argmax(objective_values))])


def accuracy_at_thresholds(hits: Floats, false_alarms: Floats, good: float, bad: float) -> Floats:
    """Return the accuracy at each threshold.

    Args:
        hits: How many acceptable sentences are predicted to be acceptable, at each threshold.
        false_alarms: How many unacceptable sentences are, at each threshold.
        good, bad: How many sentences of each class there are.
    """
    return (hits + bad - false_alarms) / (good + bad)


def mcc_at_thresholds(hits: Floats, false_alarms: Floats, good: float, bad: float) -> Floats:
    """Return Matthews' correlation at each threshold; 0 where all predictions are the same."""
    yes = hits + false_alarms
    spread = yes * (good + bad - yes) * good * bad
    top = hits * bad - false_alarms * good
    # The first and the last candidate predict one class only, which makes the formula 0/0.
    return np.divide(top, np.sqrt(spread), out=np.zeros_like(top), where=spread > 0)


def cross_validate_threshold(
    ids: Sequence[str], scores: Floats, labels: Floats, objective: ThresholdObjective, *, folds: int, seed: int
) -> tuple[Floats, Floats]:
    """Return the threshold of each sentence, fitted on the folds without it, and the threshold of each fold.

    Args:
        ids: The sentences' ids, by which they are ordered before they are shuffled.
        objective: The value to maximise on the training folds.
        folds: The number of folds.
        seed: The seed of the shuffle.
    """
    fold_masks = list(iter_stratified_folds(ids, labels, folds, seed))
    thresholds = np.empty(len(scores))
    fitted = np.empty(len(fold_masks))
    # No sentence takes part in choosing the threshold that classifies it.
    for number, inside in enumerate(fold_masks):
        fitted[number] = best_threshold(scores[~inside], labels[~inside], objective)
        thresholds[inside] = fitted[number]
    return thresholds, fitted


def iter_stratified_folds(ids: Sequence[str], labels: Floats, folds: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    """Return an iterator over stratified folds, each as a mask of the rows that it holds out.

    Each class is shuffled and dealt out in turn. The folds depend on ids, labels and seed, not on the order of rows.
    """
    fewest = int(min((labels == 0).sum(), (labels == 1).sum()))
    if fewest < 2 or folds > len(ids):
        raise MeasureError(
            f"{folds} folds of {len(ids)} sentences, {fewest} of the smaller class: "
            "cross-validation needs two sentences of each class, and no more folds than sentences"
        )
    generator = np.random.default_rng(seed)
    # Sorted by id before the shuffle, so that the same suite in another order gets the same folds.
    by_id = np.argsort(np.array(ids))
    classes = [generator.permutation(by_id[labels[by_id] == label]) for label in (0, 1)]
    fold = np.empty(len(ids), dtype=np.int64)
    # Dealing continues from one class to the next, so that the sizes of two folds differ by at most one.
    fold[np.concatenate(classes)] = np.arange(len(ids)) % folds
    return (fold == number for number in range(folds))


def _list_candidates(values: Floats) -> Floats:
    lower, upper = values[:-1], values[1:]
    # Halved before they are added, since the sum of the largest floats overflows. Between neighbouring floats the
    # midpoint may round up to the upper score, which would then no longer lie above its own threshold.
    middles = np.clip(lower / 2 + upper / 2, lower, np.nextafter(upper, -np.inf))
    return np.concatenate([[-np.inf], middles, [np.inf]])


@dataclass(frozen=True, repr=False)
class _ThresholdedMeasure(Measure):
    """A measure of predictions: "acceptable" for a score above a threshold, which is given or fitted."""

    threshold: float | str = 0.0
    folds: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        name = type(self).__name__
        check_count(f"{name}: folds", self.folds, 2)
        check_count(f"{name}: seed", self.seed, 0)
        # Refused rather than ignored: otherwise two measures with different reprs would be the same measure.
        if self.threshold != "cv" and (self.folds, self.seed) != (10, 0):
            raise MeasureError(f"{name}: folds and seed apply only to threshold='cv'; threshold is {self.threshold!r}")
        if isinstance(self.threshold, str):
            if self.threshold not in FITTED_THRESHOLDS:
                raise MeasureError(
                    f"{name}: threshold is {self.threshold!r}; "
                    f"expected a number, or one of {', '.join(FITTED_THRESHOLDS)}"
                )
        else:
            # Converted, so that threshold=0 and threshold=0.0 have the same repr, and thus the same signature.
            object.__setattr__(self, "threshold", require_number(f"{name}: threshold", self.threshold))

    def __repr__(self) -> str:
        # Without cross-validation the repr has no folds and no seed, as they cannot change the value.
        names = ("threshold", "folds", "seed") if self.threshold == "cv" else ("threshold",)
        return format_spec(type(self).__name__, {name: getattr(self, name) for name in names})

    def _build_prediction_units(
        self, suite: Suite, scores: Scores, objective: ThresholdObjective, *, both: bool
    ) -> Units:
        """Return a row per labelled sentence: its score, the prediction, its label, and whether the two are equal.

        Args:
            objective: The value that a cross-validated threshold maximises.
            both: Whether the measure is undefined for labels of one class.
        """
        kept, notes = require_labelled(suite, self)
        # Checked before the fit: cross-validation needs both classes, and would fail later with a less clear message.
        labels = np.array([float(sentence.label or 0) for sentence in kept])
        if (both or self.threshold in ("cv", "class-midpoint")) and labels.min() == labels.max():
            raise MeasureError(
                f"suite {suite.name!r}: all {len(labels)} labels are {labels[0]:g}; {self!r} needs both classes"
            )
        ids = tuple(sentence.id for sentence in kept)
        row_scores = scores.of(ids)
        threshold, threshold_notes = self._fit_threshold(ids, row_scores, labels, objective)
        # Strictly above: a log-odds of 0 is undecided, and counts as unacceptable.
        predicted = (row_scores > threshold).astype(np.float64)
        columns = {"score": row_scores, "predicted": predicted, "label": labels}
        columns["correct"] = (predicted == labels).astype(np.float64)
        return Units(ids, columns, tuple(sentence.tags for sentence in kept), notes + threshold_notes)

    def _fit_threshold(
        self, ids: tuple[str, ...], scores: Floats, labels: Floats, objective: ThresholdObjective
    ) -> tuple[Floats | float, tuple[str, ...]]:
        """Return the threshold (a scalar, or one per sentence), and a note on it if it was fitted."""
        if not isinstance(self.threshold, str):
            return self.threshold, ()
        if self.threshold == "cv":
            thresholds, fitted = cross_validate_threshold(
                ids, scores, labels, objective, folds=self.folds, seed=self.seed
            )
            return thresholds, (f"thresholds of {self.folds} folds: {fitted.min():.6g} to {fitted.max():.6g}",)
        # Noted, because the threshold depends on the whole suite and cannot be read off a signature.
        fitted_threshold = pooled_mean(scores) if self.threshold == "pooled-mean" else class_midpoint(scores, labels)
        return fitted_threshold, (f"threshold {fitted_threshold:.6g}",)


@dataclass(frozen=True, repr=False)
class MCC(_ThresholdedMeasure):
    """Matthews' correlation of predictions with labels; a score above the threshold predicts "acceptable".

    If all predictions are the same, the formula is 0/0, and by convention the value is 0: such predictions carry no
    information about the labels.

    Args:
        threshold: 0 suits a classifier's log-odds; other scores need one fitted on other data. "cv" fits it by
            stratified cross-validation: the best threshold on all folds but one (the lowest of equals) is applied to
            the held-out fold, and the predictions are pooled. "pooled-mean" is the mean score, "class-midpoint" the
            midpoint of the two class means: both are computed from the very sentences that they then classify.
        folds: The number of folds of "cv".
        seed: The seed with which "cv" shuffles sentences into folds.
    """

    needs = "labels"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per labelled sentence; labels of one class only are an error."""
        return self._build_prediction_units(suite, scores, mcc_at_thresholds, both=True)

    def value(self, units: Units) -> float:
        """Return Matthews' correlation."""
        return matthews(units["predicted"], units["label"])


@dataclass(frozen=True, repr=False)
class Accuracy(_ThresholdedMeasure):
    """The share of sentences whose label is predicted correctly; a score above the threshold predicts "acceptable".

    Args:
        threshold: A number, "cv", "pooled-mean" or "class-midpoint", as for MCC; "cv" maximises accuracy.
        folds: The number of folds of "cv".
        seed: The seed with which "cv" shuffles sentences into folds.
    """

    needs = "labels"
    mean_of = "correct"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per labelled sentence."""
        return self._build_prediction_units(suite, scores, accuracy_at_thresholds, both=False)

    def value(self, units: Units) -> float:
        """Return the share of correct predictions."""
        return mean(units["correct"])


@dataclass(frozen=True)
class AUC(Measure):
    """The area under the ROC curve: how often an acceptable sentence scores above an unacceptable one, over all pairs.

    A tie counts one half. No threshold is needed.
    """

    needs = "labels"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per labelled sentence."""
        kept, notes = require_labelled(suite, self)
        ids = tuple(sentence.id for sentence in kept)
        columns = {"score": scores.of(ids), "label": np.array([float(sentence.label or 0) for sentence in kept])}
        return Units(ids, columns, tuple(sentence.tags for sentence in kept), notes)

    def value(self, units: Units) -> float:
        """Return the area under the ROC curve."""
        good = units["label"] == 1
        return auc(units["score"][good], units["score"][~good])


def matthews(predicted: Floats, labels: Floats) -> float:
    """Return Matthews' correlation of predictions with labels, both arrays of 0 and 1.

    >>> matthews(np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0]))
    0.5773502691896258
    """
    if not len(labels) or labels.min() == labels.max():
        raise Undefined("all labels are of one class")
    # Labels of one class leave the correlation undefined; predictions of one class are merely uninformative.
    if predicted.min() == predicted.max():
        return 0.0
    hits = float(predicted @ labels)
    yes, good, n = float(predicted.sum()), float(labels.sum()), len(labels)
    return (hits * n - yes * good) / math.sqrt(yes * good * (n - yes) * (n - good))


@dataclass(frozen=True)
class RestartSummary:
    """Mean, standard deviation and maximum of a measure over several restarts of one training.

    Args:
        std: The standard deviation; None if there are too few restarts for it.
        ddof: The delta degrees of freedom: the deviation divides by n - ddof.
        n: The number of restarts.
    """

    mean: float
    std: float | None
    max: float
    ddof: int
    n: int


def summarise_restarts(values: Sequence[float], *, ddof: int = 1) -> RestartSummary:
    """Return mean, standard deviation and maximum of a measure over restarts.

    Args:
        values: The value of the measure for each restart.
        ddof: 1 for the standard deviation of a sample, 0 for that of a population.

    >>> summarise_restarts([0.5, 1.0], ddof=0)
    RestartSummary(mean=0.75, std=0.25, max=1.0, ddof=0, n=2)
    """
    check_count("summarise_restarts: ddof", ddof, 0)
    array = np.array([require_number("summarise_restarts: a value", value) for value in values])
    if not len(array):
        raise Undefined("there are no restarts")
    # With as many restarts as degrees of freedom lost the deviation would be 0/0.
    std = float(array.std(ddof=ddof)) if len(array) > ddof else None
    return RestartSummary(float(array.mean()), std, float(array.max()), ddof, len(array))


def majority_vote(restarts: Sequence[Scores], *, threshold: float = 0.0, tie: int = 0) -> Scores:
    """Return the majority vote of restarts: 1 for an acceptable sentence, else 0. Measure it with a threshold of 0.5.

    Args:
        restarts: The scores of each restart, of the same sentences.
        threshold: A score above it is a vote for "acceptable".
        tie: The vote on a sentence that exactly half of the restarts find acceptable: 0 or 1.

    >>> votes = [Scores({"a": a, "b": b}, "m") for a, b in ((1.0, -1.0), (2.0, 3.0), (0.0, -2.0))]
    >>> dict(majority_vote(votes).values)
    {'a': 1.0, 'b': 0.0}
    """
    if not restarts:
        raise MeasureError("a majority vote needs the scores of at least one restart; there are none")
    threshold = require_number("majority: threshold", threshold)
    # True and False equal 1 and 0, but the spec in the signature would then read ``tie=True``.
    if isinstance(tie, bool) or tie not in (0, 1):
        raise MeasureError(f"majority: tie is {tie!r}; expected 0 or 1")
    # A sentence missing from one restart would be decided by fewer votes than the others.
    first, *others = restarts
    for scores in others:
        if scores.values.keys() != first.values.keys():
            raise ScoreError(
                f"{first.model!r} and {scores.model!r} have scores of different sentences; "
                "a majority vote needs the same sentences in all restarts"
            )
    votes = np.mean([scores.of(first.values) > threshold for scores in restarts], axis=0)
    winners = np.where(votes == 0.5, float(tie), (votes > 0.5).astype(np.float64))
    vote_spec = f"majority(threshold={threshold!r}, tie={tie})"
    return Scores(
        dict(zip(first.values, winners.tolist(), strict=True)),
        f"{vote_spec} of {', '.join(scores.model for scores in restarts)}",
        reduction=first.reduction if len({scores.reduction for scores in restarts}) == 1 else "",
        # All restarts are in the signature, as each of them can change the result.
        signature=f"{vote_spec}[{'; '.join(scores.signature or scores.model for scores in restarts)}]",
    )
