"""Binary judgements against labels: accuracy, Matthews' correlation, area under the ROC curve, and restarts.

A score above a decision threshold predicts "acceptable". A classifier has a threshold of its own. For all other scores
it is fitted by cross-validation, the best threshold of the other folds, and the value is averaged over several splits
into folds. It may also be given, or be the pooled mean (Niu and Penn 2020) or the midpoint of the class means. Whatever
is fitted to the rows is fitted again in every resample of the bootstrap (``Units.refit``).
``summarise_restarts`` and ``majority_vote`` combine several trainings of the same model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import MeasureError, ScoreError, Undefined
from acceptability.measures.correlation import auc
from acceptability.measures.rows import check_count, mean, require_labelled, require_number
from acceptability.measures.weighting import weigh_auc
from acceptability.protocols import Measure, Moments, RowWeighting
from acceptability.specs import format_spec
from acceptability.types import SINGLE_ROWS, Floats, Scores, Suite, Tags, Units

FITTED_THRESHOLDS = ("cv", "pooled-mean", "class-midpoint")
"""The thresholds that are estimated from the scores themselves."""

NATURAL_THRESHOLDS = {"log_odds": 0.0, "p_acceptable": 0.5, "signed_confidence": 0.0}
"""The reductions of a classifier's output, and the score at which it is undecided."""

DEFAULT_SPLITS = 10
"""How many splits into folds are averaged by default."""

FoldIndices = NDArray[np.int64]
"""The fold of each row, from 0."""

ThresholdObjective = Callable[[Floats, Floats, Floats | float, Floats | float], Floats]
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


def accuracy_at_thresholds(hits: Floats, false_alarms: Floats, good: Floats | float, bad: Floats | float) -> Floats:
    """Return the accuracy at each threshold.

    Args:
        hits: How many acceptable sentences are predicted to be acceptable, at each threshold.
        false_alarms: How many unacceptable sentences are, at each threshold.
        good, bad: How many sentences of each class there are.
    """
    # A resample may hold rows of one fold only, which leaves nothing to fit its threshold to: 0/0 otherwise.
    return np.asarray((hits + bad - false_alarms) / np.maximum(good + bad, 1))


def mcc_at_thresholds(hits: Floats, false_alarms: Floats, good: Floats | float, bad: Floats | float) -> Floats:
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
    fold_of_row = assign_folds(ids, labels, folds, seed)
    search = ThresholdSearch(scores, labels, fold_of_row[None], objective)
    fitted = search.fit(np.ones(len(scores)))[0]
    # No sentence takes part in choosing the threshold that classifies it.
    return fitted[fold_of_row], fitted


def assign_folds(keys: Sequence[str], labels: Floats, folds: int, seed: int) -> FoldIndices:
    """Return the fold of each row, stratified by label; rows with the same key share a fold.

    Sampling units (rows, or all rows of an item) with equally many acceptable and unacceptable sentences are shuffled
    and dealt out in turn. The folds depend on keys, labels and seed, not on the order of rows.

    Args:
        keys: The sampling unit of each row: its id, or its value of a tag.
        labels: 1 for an acceptable sentence, 0 for an unacceptable one.
        folds: The number of folds.
        seed: The seed of the shuffle.
    """
    # Sorted by key before the shuffle, so that the same suite in another order gets the same folds.
    names, unit_of_row = np.unique(np.array(keys), return_inverse=True)
    good = np.bincount(unit_of_row, labels)
    bad = np.bincount(unit_of_row, 1 - labels)
    fewest = int(min(np.count_nonzero(good), np.count_nonzero(bad)))
    if fewest < 2 or folds > len(names):
        what = "sentences" if len(names) == len(keys) else "groups of sentences"
        raise MeasureError(
            f"{folds} folds of {len(names)} {what}, {fewest} of the smaller class: "
            "cross-validation needs two sentences of each class, and no more folds than sentences"
        )
    generator = np.random.default_rng(seed)
    strata, stratum_of_unit = np.unique(np.stack([good, bad], axis=1), axis=0, return_inverse=True)
    dealt = [
        generator.permutation(np.flatnonzero(stratum_of_unit.ravel() == stratum)) for stratum in range(len(strata))
    ]
    fold_of_unit = np.empty(len(names), dtype=np.int64)
    # Dealing continues from one stratum to the next, so that the sizes of two folds differ by at most one unit.
    fold_of_unit[np.concatenate(dealt)] = np.arange(len(names)) % folds
    return fold_of_unit[unit_of_row]


def iter_stratified_folds(ids: Sequence[str], labels: Floats, folds: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    """Return an iterator over the folds of ``assign_folds``, each as a mask of the rows that it holds out."""
    fold_of_row = assign_folds(ids, labels, folds, seed)
    return (fold_of_row == number for number in range(folds))


class ThresholdSearch:
    """The best thresholds of cross-validation, for any weights of the rows.

    The bootstrap fits them again in each of its resamples, where the weight of a row is how often it is drawn. Folds
    belong to rows, so that all copies of a row are in the same fold, and none decides about another.

    Args:
        scores: The score of each row.
        labels: 1 for an acceptable sentence, 0 for an unacceptable one.
        fold_of_row: The fold of each row, for each of several splits: (splits, rows).
        objective: The value to maximise on the training folds.
    """

    def __init__(self, scores: Floats, labels: Floats, fold_of_row: FoldIndices, objective: ThresholdObjective) -> None:
        self._order = np.argsort(scores, kind="stable")
        self._scores, self._labels = scores[self._order], labels[self._order]
        self._fold_of_row = fold_of_row[:, self._order]
        self._folds = int(fold_of_row.max()) + 1
        self._objective = objective
        self._starts = _find_candidate_rows(self._scores, self._labels)
        segments = len(self._starts) - 1
        segment_of_row = np.searchsorted(self._starts, np.arange(len(scores)), side="right") - 1
        # The first candidate accepts all rows: none lies below it.
        segment_of_row = np.minimum(segment_of_row, segments - 1)
        self._cell_of_row = self._fold_of_row * segments + segment_of_row

    def fit(self, weights: Floats) -> Floats:
        """Return the best threshold of each split and fold, (splits, folds), on the rows of the other folds.

        Args:
            weights: The weight of each row, such as how often a resample contains it.
        """
        ordered = weights[self._order]
        candidates = np.stack([self._choose_candidates(cells, ordered) for cells in self._cell_of_row])
        return self._locate_thresholds(self._starts[candidates], ordered)

    def _choose_candidates(self, cell_of_row: FoldIndices, weights: Floats) -> NDArray[np.int64]:
        """Return the index of the best candidate of each fold of one split."""
        shape = self._folds, len(self._starts) - 1
        cells = shape[0] * shape[1]
        good_weights = weights * self._labels
        good = np.bincount(cell_of_row, good_weights, minlength=cells).reshape(shape)
        bad = np.bincount(cell_of_row, weights - good_weights, minlength=cells).reshape(shape)
        # What a fold does not hold out is what all folds have, less its own.
        good, bad = good.sum(axis=0) - good, bad.sum(axis=0) - bad
        all_good, all_bad = good.sum(axis=1, keepdims=True), bad.sum(axis=1, keepdims=True)
        hits = np.concatenate([all_good, all_good - np.cumsum(good, axis=1)], axis=1)
        false_alarms = np.concatenate([all_bad, all_bad - np.cumsum(bad, axis=1)], axis=1)
        return np.asarray(np.argmax(np.round(self._objective(hits, false_alarms, all_good, all_bad), _DIGITS), axis=1))

    def _locate_thresholds(self, starts: NDArray[np.int64], weights: Floats) -> Floats:
        """Return the thresholds halfway between the nearest training rows below and above the chosen candidates."""
        n = len(self._scores)
        splits, folds = np.indices(starts.shape)

        def is_absent(rows: NDArray[np.int64]) -> NDArray[np.bool_]:
            # Clipped, as rows beyond the ends are no rows; these are not asked for.
            inside = np.clip(rows, 0, n - 1)
            is_held_out = self._fold_of_row[splits, inside] == folds
            return np.asarray((rows >= 0) & (rows < n) & (is_held_out | (weights[inside] == 0)))

        below, above = starts - 1, starts.copy()
        # Rows that are held out, or not drawn, are passed over: on average less than two on either side.
        while (absent := is_absent(below)).any():
            below -= absent
        while (absent := is_absent(above)).any():
            above += absent
        middles = _compute_midpoints(self._scores[np.maximum(below, 0)], self._scores[np.minimum(above, n - 1)])
        return np.where(below < 0, -np.inf, np.where(above >= n, np.inf, middles))


def _find_candidate_rows(scores: Floats, labels: Floats) -> NDArray[np.int64]:
    """Return the sorted rows below which a best threshold can lie, and the number of rows for one above all.

    Only between an unacceptable sentence and a better-scored acceptable one: anywhere else a neighbouring threshold
    classifies more sentences correctly. For random labels that leaves a fifth of the rows, or less.
    """
    starts = np.flatnonzero(np.concatenate([[True], scores[1:] > scores[:-1]]))
    has_good = np.add.reduceat(labels, starts) > 0
    has_bad = np.add.reduceat(1 - labels, starts) > 0
    inner = starts[1:][has_bad[:-1] & has_good[1:]]
    return np.concatenate([[0], inner, [len(scores)]]).astype(np.int64)


def _list_candidates(values: Floats) -> Floats:
    return np.concatenate([[-np.inf], _compute_midpoints(values[:-1], values[1:]), [np.inf]])


def _compute_midpoints(lower: Floats, upper: Floats) -> Floats:
    # Halved before they are added, since the sum of the largest floats overflows. Between neighbouring floats the
    # midpoint may round up to the upper score, which would then no longer lie above its own threshold.
    return np.maximum(lower, np.minimum(lower / 2 + upper / 2, np.nextafter(upper, -np.inf)))


def find_natural_threshold(scores: Scores) -> float | None:
    """Return the score at which a classifier is undecided; None for scores of anything else, or of unknown origin.

    >>> find_natural_threshold(Scores({}, "m", "p_acceptable(temperature=2.0)"))
    0.5
    >>> find_natural_threshold(Scores({}, "m", "lp()")) is None
    True
    """
    return NATURAL_THRESHOLDS.get(scores.reduction.partition("(")[0])


@dataclass(frozen=True, repr=False)
class _ThresholdedMeasure(Measure):
    """A measure of predictions: "acceptable" for a score above a threshold, which is given or fitted."""

    threshold: float | str = "auto"
    folds: int = 10
    seed: int = 0
    seeds: int | None = None
    by: str = ""

    def __post_init__(self) -> None:
        name = type(self).__name__
        is_folded = self.threshold in ("auto", "cv")
        # A cross-validation that was asked for by name has one split, as it always had; the default averages several.
        default_splits = DEFAULT_SPLITS if self.threshold == "auto" else 1
        object.__setattr__(self, "seeds", default_splits if self.seeds is None else self.seeds)
        check_count(f"{name}: folds", self.folds, 2)
        check_count(f"{name}: seed", self.seed, 0)
        check_count(f"{name}: seeds", self.seeds, 1)
        if not isinstance(self.by, str):
            raise MeasureError(f"{name}: by is {self.by!r}; expected the name of a tag")
        # Refused rather than ignored: otherwise two measures with different reprs would be the same measure.
        if not is_folded and (self.folds, self.seed, self.seeds, self.by) != (10, 0, 1, ""):
            raise MeasureError(
                f"{name}: folds, seed, seeds and by apply only to threshold='cv'; threshold is {self.threshold!r}"
            )
        if isinstance(self.threshold, str):
            if self.threshold not in ("auto", *FITTED_THRESHOLDS):
                raise MeasureError(
                    f"{name}: threshold is {self.threshold!r}; "
                    f"expected a number, or one of auto, {', '.join(FITTED_THRESHOLDS)}"
                )
        else:
            # Converted, so that threshold=0 and threshold=0.0 have the same repr, and thus the same signature.
            object.__setattr__(self, "threshold", require_number(f"{name}: threshold", self.threshold))

    def __repr__(self) -> str:
        options: dict[str, object] = {"threshold": self.threshold}
        # Without cross-validation the repr has no folds and no seeds, as they cannot change the value.
        if self.threshold in ("auto", "cv"):
            options["folds"] = self.folds
            if self.seed or self.seeds == 1:
                options["seed"] = self.seed
            if self.seeds != 1:
                options["seeds"] = self.seeds
            if self.by:
                options["by"] = self.by
        return format_spec(type(self).__name__, options)

    def resolve(self, scores: Sequence[Scores], by: str) -> Self:
        """Return the measure with the threshold that "auto" means for scores, and with folds that keep units together.

        Where classifiers are compared with other models each has a threshold of another kind: "auto" then remains.
        """
        if self.threshold not in ("auto", "cv"):
            return self
        folded = replace(self, by=self.by or by)
        if self.threshold == "cv":
            return folded
        natural_thresholds = {find_natural_threshold(given) for given in scores}
        return folded._choose_threshold(natural_thresholds.pop()) if len(natural_thresholds) == 1 else folded

    def _choose_threshold(self, natural: float | None) -> Self:
        """Return the measure with the natural threshold of a classifier, or by cross-validation if there is none."""
        return replace(self, threshold="cv") if natural is None else type(self)(threshold=natural)

    def _repeat_for_splits(self, units: Units) -> Units:
        """Return the rows of a classifier with a column for each split, to be compared with rows that differ in them.

        A permutation test swaps whole rows of two models, which therefore need the same columns.
        """
        if self.seeds == 1:
            return units
        return replace(units, columns={**units.columns, **dict.fromkeys(self._name_splits(), units["predicted"])})

    def _list_seeds(self) -> range:
        return range(self.seed, self.seed + (self.seeds or 1))

    def _name_splits(self) -> list[str]:
        return [f"predicted_{seed}" for seed in self._list_seeds()]

    def _build_prediction_units(
        self, suite: Suite, scores: Scores, objective: ThresholdObjective, *, both: bool
    ) -> Units:
        """Return a row per labelled sentence: its score, the prediction, its label, and whether the two are equal.

        With several splits into folds, a prediction is the share of them that accept the sentence, and each split has
        a column of its own as well.

        Args:
            objective: The value that a cross-validated threshold maximises.
            both: Whether the measure is undefined for labels of one class.
        """
        if self.threshold == "auto":
            resolved = self._choose_threshold(find_natural_threshold(scores))
            units = resolved._build_prediction_units(suite, scores, objective, both=both)
            return units if units.refit else self._repeat_for_splits(units)
        kept, notes = require_labelled(suite, self)
        # Checked before the fit: cross-validation needs both classes, and would fail later with a less clear message.
        labels = np.array([float(sentence.label or 0) for sentence in kept])
        if (both or self.threshold in ("cv", "class-midpoint")) and labels.min() == labels.max():
            raise MeasureError(
                f"suite {suite.name!r}: all {len(labels)} labels are {labels[0]:g}; {self!r} needs both classes"
            )
        ids = tuple(sentence.id for sentence in kept)
        tags = tuple(sentence.tags for sentence in kept)
        row_scores = scores.of(ids)
        fold_of_row = self._assign_splits(ids, tags, labels)
        predict = self._make_predictor(fold_of_row, row_scores, labels, objective)
        thresholds, predicted = predict(np.ones(len(ids)))
        columns = {"score": row_scores, "predicted": predicted.mean(axis=0), "label": labels}
        columns["correct"] = (predicted == labels).mean(axis=0)
        if len(predicted) > 1:
            columns |= dict(zip(self._name_splits(), predicted, strict=True))
        if not isinstance(self.threshold, str):
            return Units(ids, columns, tags, notes)

        needs_both = both or self.threshold == "class-midpoint"

        def refit(weights: Floats, new_scores: Floats | None = None) -> float:
            # A class that no drawn sentence has leaves its mean, and Matthews' correlation, undefined.
            if needs_both and not 0 < weights @ labels < weights.sum():
                return math.nan
            # Folds depend on labels and not on scores, so that those of another model have the same ones.
            fit = predict
            if new_scores is not None:
                fit = self._make_predictor(fold_of_row, new_scores, labels, objective)
            _, accepted = fit(weights)
            return float(self._compute_values(accepted, labels, weights).mean())

        values = self._compute_values(predicted, labels, np.ones(len(ids)))
        return Units(ids, columns, tags, (*notes, self._describe_thresholds(thresholds, values)), refit)

    def _compute_values(self, predicted: Floats, labels: Floats, weights: Floats) -> Floats:
        """Return the value of each split, from its predictions (splits, rows) and the weights of the rows."""
        raise NotImplementedError

    def _assign_splits(self, ids: Sequence[str], tags: Sequence[Tags], labels: Floats) -> FoldIndices | None:
        """Return the fold of each row in each split, (splits, rows); None without cross-validation."""
        if self.threshold != "cv":
            return None
        keys = ids if self.by in ("", SINGLE_ROWS) else _list_sampling_units(ids, tags, self.by)
        try:
            return np.stack([assign_folds(keys, labels, self.folds, seed) for seed in self._list_seeds()])
        except MeasureError as error:
            raise MeasureError(f"{self!r}: {error}; give fewer folds, or a number as the threshold") from error

    def _make_predictor(
        self, fold_of_row: FoldIndices | None, scores: Floats, labels: Floats, objective: ThresholdObjective
    ) -> Callable[[Floats], tuple[Floats, Floats]]:
        """Return the function from the weights of the rows to thresholds, and predictions (splits, rows) of 0 and 1."""
        if fold_of_row is not None:
            search = ThresholdSearch(scores, labels, fold_of_row, objective)
            splits = np.arange(len(fold_of_row))[:, None]

            def predict(weights: Floats) -> tuple[Floats, Floats]:
                thresholds = search.fit(weights)
                # Strictly above: a log-odds of 0 is undecided, and counts as unacceptable.
                return thresholds, (scores > thresholds[splits, fold_of_row]).astype(np.float64)

            return predict

        def predict_by_one(weights: Floats) -> tuple[Floats, Floats]:
            threshold = self._compute_threshold(scores, labels, weights)
            return np.array([[threshold]]), (scores > threshold).astype(np.float64)[None]

        return predict_by_one

    def _compute_threshold(self, scores: Floats, labels: Floats, weights: Floats) -> float:
        """Return the one threshold of all rows, which is given, or computed from weighted scores."""
        if not isinstance(self.threshold, str):
            return self.threshold
        # Without weights the plain mean: published numbers rest on its last digits.
        is_plain = bool((weights == 1).all())
        if self.threshold == "pooled-mean":
            return pooled_mean(scores) if is_plain else float(np.average(scores, weights=weights))
        if is_plain:
            return class_midpoint(scores, labels)
        good, bad = labels == 1, labels == 0
        return float(
            np.average(scores[good], weights=weights[good]) / 2 + np.average(scores[bad], weights=weights[bad]) / 2
        )

    def _describe_thresholds(self, thresholds: Floats, values: Floats) -> str:
        """Return a note on fitted thresholds, which depend on the whole suite and cannot be read off a signature."""
        if self.threshold != "cv":
            return f"threshold {thresholds[0, 0]:.6g}"
        finite = thresholds[np.isfinite(thresholds)]
        splits = f"{len(values)} splits" if len(values) > 1 else "one split"
        parts = [f"threshold by cross-validation, {splits} into {self.folds} folds"]
        if len(finite):
            spread = f"sd {finite.std():.6g}, {finite.min():.6g} to {finite.max():.6g}"
            parts.append(f"mean threshold {finite.mean():.6g} ({spread})")
        for count, what in ((np.isneginf(thresholds).sum(), "accepted"), (np.isposinf(thresholds).sum(), "rejected")):
            if count:
                parts.append(f"in {count} of {thresholds.size} folds every sentence is {what}")
        if len(values) > 1:
            spread = f"{values.min():.4f} to {values.max():.4f} (sd {values.std(ddof=1):.4f})"
            parts.append(f"the splits give {spread}, and the value is their mean")
        else:
            parts.append(f"other splits give other values, of which threshold='auto' averages {DEFAULT_SPLITS}")
        return "; ".join(parts)


def _list_sampling_units(ids: Sequence[str], tags: Sequence[Tags], by: str) -> list[str]:
    """Return the value of a tag in each row; a row without the tag is an error."""
    if lacking := [name for name, row in zip(ids, tags, strict=True) if by not in row]:
        raise MeasureError(
            f"cannot divide the sentences into folds by {by!r}: {len(lacking)} of {len(ids)} lack that tag"
        )
    keys = [row[by] for row in tags]
    # Units of one sentence each are the sentences: their folds must not depend on what the units are called.
    return keys if len(set(keys)) < len(keys) else list(ids)


def stack_predictions(units: Units) -> Floats:
    """Return the predictions of each split into folds, (splits, rows), of 0 and 1; those of a threshold as one split.

    Args:
        units: The rows of MCC or Accuracy.
    """
    splits = [column for name, column in units.columns.items() if name.startswith("predicted_")]
    return np.stack(splits or [units["predicted"]])


def _weigh_splits(predicted: Floats, weights: Floats) -> Floats:
    """Return the weight of the accepted rows in each split, from predictions (splits, rows)."""
    # Not by @, whose threads wait in busy loops: each resample of the bootstrap calls it, and others want their cores.
    return np.asarray(np.einsum("sr,r->s", predicted, weights))


@dataclass(frozen=True, repr=False)
class MCC(_ThresholdedMeasure):
    """Matthews' correlation of predictions with labels; a score above the threshold predicts "acceptable".

    If all predictions are the same, the formula is 0/0, and by convention the value is 0: such predictions carry no
    information about the labels.

    Args:
        threshold: A number, or how it is found. "auto", the default, is a classifier's own threshold (0 for log-odds,
            0.5 for probabilities), and "cv" for all other scores. "cv" fits it by stratified cross-validation: the best
            threshold on all folds but one (the lowest of equals) is applied to the held-out fold, and the predictions
            are pooled. "pooled-mean" is the mean score, "class-midpoint" the midpoint of the two class means: both are
            computed from the very sentences that they then classify.
        folds: The number of folds of "cv".
        seed: The first seed with which "cv" shuffles sentences into folds.
        seeds: How many splits into folds are averaged, with seeds counted up from the first; 10 by default, and 1 for
            an explicit "cv".
        by: The tag whose values are kept together in a fold; empty for the unit that the bootstrap resamples, which is
            the suite's sampling unit by default, and "row" for single sentences.
    """

    needs = "labels"
    statistic = "mcc"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per labelled sentence; labels of one class only are an error."""
        return self._build_prediction_units(suite, scores, mcc_at_thresholds, both=True)

    def value(self, units: Units) -> float:
        """Return Matthews' correlation, the mean over the splits into folds if there are several."""
        labels = units["label"]
        if not len(labels) or labels.min() == labels.max():
            raise Undefined("all labels are of one class")
        return float(self._compute_values(stack_predictions(units), labels, np.ones(len(labels))).mean())

    def weigh(self, units: Units) -> Moments:
        """Return the correlation as a function of four counts, two of which each split into folds has of its own."""
        labels, predicted = units["label"], stack_predictions(units)

        def combine(sums: Floats) -> Floats:
            n, good = sums[:2]
            yes, hits = np.split(sums[2:], 2)
            values = _matthews_from_counts(hits, yes, good, n).mean(axis=0)
            return np.where((good > 0) & (good < n), values, np.nan)

        return Moments(np.concatenate([[np.ones(len(labels)), labels], predicted, predicted * labels]), combine)

    def _compute_values(self, predicted: Floats, labels: Floats, weights: Floats) -> Floats:
        good_weights = weights * labels
        return _matthews_from_counts(
            _weigh_splits(predicted, good_weights),
            _weigh_splits(predicted, weights),
            float(good_weights.sum()),
            float(weights.sum()),
        )


@dataclass(frozen=True, repr=False)
class Accuracy(_ThresholdedMeasure):
    """The share of sentences whose label is predicted correctly; a score above the threshold predicts "acceptable".

    Args:
        threshold: A number, "auto", "cv", "pooled-mean" or "class-midpoint", as for MCC; "cv" maximises accuracy.
        folds: The number of folds of "cv".
        seed: The first seed with which "cv" shuffles sentences into folds.
        seeds: How many splits into folds are averaged; 10 by default, and 1 for an explicit "cv".
        by: The tag whose values are kept together in a fold, as for MCC.
    """

    needs = "labels"
    mean_of = "correct"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per labelled sentence."""
        return self._build_prediction_units(suite, scores, accuracy_at_thresholds, both=False)

    def value(self, units: Units) -> float:
        """Return the share of correct predictions, the mean over the splits into folds if there are several."""
        return mean(units["correct"])

    def _compute_values(self, predicted: Floats, labels: Floats, weights: Floats) -> Floats:
        good_weights = weights * labels
        return np.asarray(
            1 - (good_weights.sum() + _weigh_splits(predicted, weights - 2 * good_weights)) / weights.sum()
        )


@dataclass(frozen=True)
class AUC(Measure):
    """The area under the ROC curve: how often an acceptable sentence scores above an unacceptable one, over all pairs.

    A tie counts one half. No threshold is needed.
    """

    needs = "labels"
    statistic = "auc"

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

    def weigh(self, units: Units) -> RowWeighting:
        """Return the area of weighted sentences."""
        labels = units["label"]
        return weigh_auc(units["score"], np.arange(len(labels)), good=labels, bad=1 - labels)


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
    counts = np.array([predicted @ labels]), np.array([predicted.sum()])
    return float(_matthews_from_counts(*counts, float(labels.sum()), float(len(labels)))[0])


def _matthews_from_counts(hits: Floats, yes: Floats, good: Floats | float, n: Floats | float) -> Floats:
    """Return Matthews' correlations, 0 for constant predictions.

    Args:
        hits: How many acceptable sentences are predicted to be acceptable.
        yes: How many sentences are predicted to be acceptable.
        good, n: How many sentences are acceptable, and how many there are.
    """
    spread = yes * good * (n - yes) * (n - good)
    return np.asarray(np.divide(hits * n - yes * good, np.sqrt(spread), out=np.zeros_like(hits), where=spread > 0))


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
