"""Pairs judged by a classifier: by its decisions, and by its probabilities (Warstadt et al. 2019, the NPI paper)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acceptability.measures.pairs import mean
from acceptability.measures.rows import checked_number, contrasts_of
from acceptability.types import Floats, Scores, Suite, Units


@dataclass(frozen=True)
class AbsolutePair:
    """How often both sentences of a contrast are judged right: the better one acceptable, the worse one not.

    Args:
        threshold: A score above it means "acceptable", one that is not above it does not: 0 for a classifier's
            log-odds, 0.5 for its probability of "acceptable".
    """

    threshold: float = 0.0

    needs = "contrasts"
    mean_of = "correct"

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", checked_number("AbsolutePair: threshold", self.threshold))

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a contrast: both scores, and whether both are on their side."""
        rows = paired(suite, scores, self)
        right = (rows["better"] > self.threshold) & (rows["worse"] <= self.threshold)
        return Units(rows.ids, {**rows.columns, "correct": right.astype(np.float64)}, rows.tags)

    def value(self, units: Units) -> float:
        """Return the share of contrasts judged right."""
        return mean(units["correct"])


@dataclass(frozen=True)
class GradientPair:
    """How often a classifier gives the better sentence of a contrast the higher probability of "acceptable".

    A tie fails. Log-odds give the same value as probabilities do, since both have the same order.
    """

    needs = "contrasts"
    mean_of = "correct"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a contrast: both scores, and whether they are in order."""
        rows = paired(suite, scores, self)
        right = rows["better"] > rows["worse"]
        return Units(rows.ids, {**rows.columns, "correct": right.astype(np.float64)}, rows.tags)

    def value(self, units: Units) -> float:
        """Return the share of contrasts in order."""
        return mean(units["correct"])


def paired(suite: Suite, scores: Scores, measure: object) -> Units:
    """Return one row a contrast, with the scores of its two sentences."""
    contrasts = contrasts_of(suite, measure)
    columns: dict[str, Floats] = {
        "better": scores.of(each.better for each in contrasts),
        "worse": scores.of(each.worse for each in contrasts),
    }
    return Units(tuple(each.id for each in contrasts), columns, tuple(each.tags for each in contrasts))
