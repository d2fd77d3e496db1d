"""Pair accuracy, also called the BLiMP criterion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acceptability.errors import MeasureError, Undefined
from acceptability.measures.rows import checked_number, contrasts_of
from acceptability.types import Scores, Suite, Units


@dataclass(frozen=True)
class PairAccuracy:
    """How often the better sentence of a contrast gets the higher score.

    Args:
        ties: What an exact tie is worth. 0 asks the better sentence to win
            outright; 0.5 is what guessing would earn.
    """

    ties: float = 0.0

    needs = "contrasts"
    mean_of = "correct"

    def __post_init__(self) -> None:
        object.__setattr__(self, "ties", checked_number("PairAccuracy: ties", self.ties))
        if not 0 <= self.ties <= 1:
            raise MeasureError(f"PairAccuracy: ties is {self.ties!r}; expected a number from 0 to 1")

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a contrast: its gap, and what it earns."""
        contrasts = contrasts_of(suite, self)
        gaps = scores.of(each.better for each in contrasts) - scores.of(each.worse for each in contrasts)
        correct = np.where(gaps == 0, self.ties, (gaps > 0).astype(np.float64))
        return Units(
            tuple(each.id for each in contrasts),
            {"gap": gaps, "correct": correct},
            tuple(each.tags for each in contrasts),
        )

    def value(self, units: Units) -> float:
        """Return the mean of what the contrasts earn."""
        return mean(units["correct"])


def mean(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    """Return the mean; that of nothing is undefined."""
    if not len(values):
        raise Undefined("there are no rows")
    return float(values.mean())
