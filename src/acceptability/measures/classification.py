"""Yes-or-no judgements set against labels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from acceptability.errors import MeasureError, Undefined
from acceptability.measures.rows import checked_number, labelled
from acceptability.types import Floats, Scores, Suite, Units


@dataclass(frozen=True)
class MCC:
    """Matthews' correlation of predictions with labels; a score above the threshold predicts "acceptable".

    Where all predictions are the same the formula is 0/0, and by convention the value is 0:
    such predictions tell nothing about the labels.

    Args:
        threshold: 0 suits a classifier's log-odds; for other scores it is fitted on other data.
    """

    threshold: float = 0.0

    needs = "labels"

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", checked_number("MCC: threshold", self.threshold))

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a labelled sentence; labels of one class only are an error."""
        kept, notes = labelled(suite, self)
        labels = np.array([float(each.label or 0) for each in kept])
        if labels.min() == labels.max():
            raise MeasureError(
                f"suite {suite.name!r}: all {len(labels)} labels are {labels[0]:g}; {self!r} needs both classes"
            )
        ids = tuple(each.id for each in kept)
        given = scores.of(ids)
        columns = {"score": given, "predicted": (given > self.threshold).astype(np.float64), "label": labels}
        return Units(ids, columns, tuple(each.tags for each in kept), notes)

    def value(self, units: Units) -> float:
        """Return the correlation."""
        return matthews(units["predicted"], units["label"])


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
