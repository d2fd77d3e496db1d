"""Yes-or-no judgements set against labels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from acceptability.errors import MeasureError, Undefined
from acceptability.measures.options import check_count
from acceptability.measures.ordering import auc
from acceptability.measures.pairs import mean
from acceptability.measures.rows import checked_number, labelled
from acceptability.measures.thresholds import (
    FITTED,
    Merit,
    accuracies,
    class_midpoint,
    correlations,
    cross_validated,
    pooled_mean,
)
from acceptability.spelling import write
from acceptability.types import Floats, Scores, Suite, Units


@dataclass(frozen=True, repr=False)
class _Decided:
    """Predicts "acceptable" for a score above a threshold, which is given or fitted."""

    threshold: float | str = 0.0
    folds: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        name = type(self).__name__
        check_count(f"{name}: folds", self.folds, 2)
        check_count(f"{name}: seed", self.seed, 0)
        if self.threshold != "cv" and (self.folds, self.seed) != (10, 0):
            raise MeasureError(f"{name}: folds and seed go with threshold='cv'; threshold is {self.threshold!r}")
        if isinstance(self.threshold, str):
            if self.threshold not in FITTED:
                raise MeasureError(
                    f"{name}: threshold is {self.threshold!r}; expected a number, or one of {', '.join(FITTED)}"
                )
        else:
            object.__setattr__(self, "threshold", checked_number(f"{name}: threshold", self.threshold))

    def __repr__(self) -> str:
        names = ("threshold", "folds", "seed") if self.threshold == "cv" else ("threshold",)
        return write(type(self).__name__, {name: getattr(self, name) for name in names})

    def _decided(self, suite: Suite, scores: Scores, merit: Merit, *, both: bool) -> Units:
        """Return one row a labelled sentence: its score, what is predicted, its label, and whether that is right."""
        kept, notes = labelled(suite, self)
        labels = np.array([float(each.label or 0) for each in kept])
        if (both or self.threshold in ("cv", "class-midpoint")) and labels.min() == labels.max():
            raise MeasureError(
                f"suite {suite.name!r}: all {len(labels)} labels are {labels[0]:g}; {self!r} needs both classes"
            )
        ids = tuple(each.id for each in kept)
        given = scores.of(ids)
        threshold, found = self._line(ids, given, labels, merit)
        predicted = (given > threshold).astype(np.float64)
        columns = {"score": given, "predicted": predicted, "label": labels}
        columns["correct"] = (predicted == labels).astype(np.float64)
        return Units(ids, columns, tuple(each.tags for each in kept), notes + found)

    def _line(
        self, ids: tuple[str, ...], scores: Floats, labels: Floats, merit: Merit
    ) -> tuple[Floats | float, tuple[str, ...]]:
        """Return the threshold, one for all sentences or one for each, and a note on it where it was fitted."""
        if not isinstance(self.threshold, str):
            return self.threshold, ()
        if self.threshold == "cv":
            each, fitted = cross_validated(ids, scores, labels, merit, folds=self.folds, seed=self.seed)
            return each, (f"thresholds of {self.folds} folds: {fitted.min():.6g} to {fitted.max():.6g}",)
        found = pooled_mean(scores) if self.threshold == "pooled-mean" else class_midpoint(scores, labels)
        return found, (f"threshold {found:.6g}",)


@dataclass(frozen=True, repr=False)
class MCC(_Decided):
    """Matthews' correlation of predictions with labels; a score above the threshold predicts "acceptable".

    Where all predictions are the same the formula is 0/0, and by convention the value is 0:
    such predictions tell nothing about the labels.

    Args:
        threshold: 0 suits a classifier's log-odds; for other scores it is fitted on other data. "cv" fits it by
            cross-validation: the best one on all folds but one (of equals the lowest) decides that one, and the
            decisions are pooled; each class is dealt out evenly to the folds. "pooled-mean" is the mean score,
            "class-midpoint" the middle of the two classes' means: both see the sentences that they decide.
        folds: How many folds "cv" makes.
        seed: How "cv" shuffles sentences before they are dealt out.
    """

    needs = "labels"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a labelled sentence; labels of one class only are an error."""
        return self._decided(suite, scores, correlations, both=True)

    def value(self, units: Units) -> float:
        """Return the correlation."""
        return matthews(units["predicted"], units["label"])


@dataclass(frozen=True, repr=False)
class Accuracy(_Decided):
    """The share of sentences whose label is predicted; a score above the threshold predicts "acceptable".

    Args:
        threshold: A number, "cv", "pooled-mean" or "class-midpoint", as for MCC; "cv" looks for the best accuracy.
        folds: How many folds "cv" makes.
        seed: How "cv" shuffles sentences before they are dealt out.
    """

    needs = "labels"
    mean_of = "correct"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a labelled sentence."""
        return self._decided(suite, scores, accuracies, both=False)

    def value(self, units: Units) -> float:
        """Return the share of right predictions."""
        return mean(units["correct"])


@dataclass(frozen=True)
class AUC:
    """How often an acceptable sentence scores above an unacceptable one, of all two (the area under the ROC curve).

    A tie counts one half. No threshold is needed.
    """

    needs = "labels"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a labelled sentence."""
        kept, notes = labelled(suite, self)
        ids = tuple(each.id for each in kept)
        columns = {"score": scores.of(ids), "label": np.array([float(each.label or 0) for each in kept])}
        return Units(ids, columns, tuple(each.tags for each in kept), notes)

    def value(self, units: Units) -> float:
        """Return the area."""
        good = units["label"] == 1
        return auc(units["score"][good], units["score"][~good])


def matthews(predicted: Floats, labels: Floats) -> float:
    """Return Matthews' correlation of two rows of 0 and 1.

    >>> matthews(np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0]))
    0.5773502691896258
    """
    if not len(labels) or labels.min() == labels.max():
        raise Undefined("the labels are all of one class")
    if predicted.min() == predicted.max():
        return 0.0
    hits = float(predicted @ labels)
    yes, good, n = float(predicted.sum()), float(labels.sum()), len(labels)
    return (hits * n - yes * good) / math.sqrt(yes * good * (n - yes) * (n - good))
