"""The Acceptability Delta Criterion (Vázquez Martínez 2021)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acceptability.errors import MeasureError
from acceptability.measures.pairs import mean
from acceptability.measures.rows import checked_number, rated_contrasts, ratings_z, scores_z
from acceptability.types import Scores, Suite, Units


@dataclass(frozen=True)
class ADC:
    """How often a model's gap between two sentences is in the direction and near the size of people's.

    Both gaps are in z units: scores over all sentences of the suite (population standard
    deviation), ratings as they are where they are z-scores already, else over all rated
    sentences.

    Args:
        delta: The gaps may differ by less than this.
        standardise: False where the scores are in z units already.
        tie: When directions agree: "positive" asks that both gaps are above zero or both
            are not, which gives the paper's numbers; "literal" compares their signs, with
            sign(0) = 0, which is the paper's formula.
    """

    delta: float = 0.5
    standardise: bool = True
    tie: str = "positive"

    needs = "rated contrasts"
    mean_of = "met"

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", checked_number("ADC: delta", self.delta))
        if not self.delta > 0:
            raise MeasureError(f"ADC: delta is {self.delta!r}; expected a number above 0")
        if not isinstance(self.standardise, bool):
            raise MeasureError(f"ADC: standardise is {self.standardise!r}; expected True or False")
        if self.tie not in ("positive", "literal"):
            raise MeasureError(f"ADC: tie is {self.tie!r}; expected 'positive' or 'literal'")

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a contrast: the model's gap, people's gap, and whether the criterion is met."""
        contrasts, notes = rated_contrasts(suite, self)
        people = ratings_z(suite)
        model = scores_z(suite, scores) if self.standardise else scores
        gap = np.array([model[each.better] - model[each.worse] for each in contrasts])
        human = np.array([people[each.better] - people[each.worse] for each in contrasts])
        agree = (gap > 0) == (human > 0) if self.tie == "positive" else np.sign(gap) == np.sign(human)
        met = agree & (np.abs(human - gap) < self.delta)
        return Units(
            tuple(each.id for each in contrasts),
            {"gap": gap, "human_gap": human, "met": met.astype(np.float64)},
            tuple(each.tags for each in contrasts),
            notes,
        )

    def value(self, units: Units) -> float:
        """Return the share of contrasts that meet the criterion."""
        return mean(units["met"])
