"""The Acceptability Delta Criterion (Vázquez Martínez 2021), its curve over delta, and the correlation of deltas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import MeasureError, Undefined
from acceptability.measures.correlation import KINDS, correlation
from acceptability.measures.options import check_choice
from acceptability.measures.pairs import mean
from acceptability.measures.rows import checked_number, rated_contrasts, ratings_z, scores_z
from acceptability.types import Floats, Scores, Suite, Units

_TIES = ("positive", "literal")


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
        _check_ways("ADC", self.standardise, self.tie)

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a contrast: the model's gap, people's gap, and whether the criterion is met."""
        rows = _gaps(suite, scores, self, standardise=self.standardise)
        met = agreement(rows["gap"], rows["human_gap"], self.tie) & (distances(rows) < self.delta)
        return _with(rows, "met", met.astype(np.float64))

    def value(self, units: Units) -> float:
        """Return the share of contrasts that meet the criterion."""
        return mean(units["met"])


@dataclass(frozen=True)
class ADCArea:
    """The area under the curve of ADC over delta, from 0 up to a limit, as a share: 1 where all gaps are people's.

    A contrast whose gaps have one direction and differ by d meets the criterion at every delta
    above d, so it adds 1 - d / limit, and nothing where d is beyond the limit. That is the whole
    area: no grid of deltas is needed.

    Args:
        limit: Where the curve ends.
        standardise: As for ADC.
        tie: As for ADC.
    """

    limit: float = 5.0
    standardise: bool = True
    tie: str = "positive"

    needs = "rated contrasts"
    mean_of = "area"

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", checked_number("ADCArea: limit", self.limit))
        if not self.limit > 0:
            raise MeasureError(f"ADCArea: limit is {self.limit!r}; expected a number above 0")
        _check_ways("ADCArea", self.standardise, self.tie)

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a contrast: the model's gap, people's gap, and the area that it adds."""
        rows = _gaps(suite, scores, self, standardise=self.standardise)
        agree = agreement(rows["gap"], rows["human_gap"], self.tie)
        return _with(rows, "area", np.where(agree, np.maximum(0.0, 1 - distances(rows) / self.limit), 0.0))

    def value(self, units: Units) -> float:
        """Return the mean of what the contrasts add."""
        return mean(units["area"])


@dataclass(frozen=True)
class DeltaCorrelation:
    """How the model's gaps between two sentences go together with people's.

    Args:
        kind: "pearson", "spearman" or "kendall" (tau-b).
    """

    kind: str = "pearson"

    needs = "rated contrasts"

    def __post_init__(self) -> None:
        check_choice("DeltaCorrelation: kind", self.kind, KINDS)

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a contrast: the model's gap in units of its scores, and people's gap in z units."""
        return _gaps(suite, scores, self, standardise=False)

    def value(self, units: Units) -> float:
        """Return the correlation of the gaps."""
        return correlation(self.kind, units["gap"], units["human_gap"])


def adc_curve(units: Units, deltas: Sequence[float] | Floats, *, tie: str = "positive") -> Floats:
    """Return ADC at each delta, from the rows of ADC or ADCArea at any delta; the rows are sorted once.

    >>> rows = Units(("a", "b"), {"gap": np.array([1.0, 2.0]), "human_gap": np.array([1.5, 1.0])}, ({}, {}))
    >>> adc_curve(rows, [0.5, 0.75, 2])
    array([0. , 0.5, 1. ])
    """
    check_choice("adc_curve: tie", tie, _TIES)
    if not len(units):
        raise Undefined("there are no rows")
    agree = agreement(units["gap"], units["human_gap"], tie)
    far = np.sort(distances(units)[agree])
    return np.asarray(np.searchsorted(far, np.asarray(deltas, dtype=np.float64), side="left") / len(units))


def agreement(gap: Floats, human: Floats, tie: str) -> NDArray[np.bool_]:
    """Tell where the model's gap has the direction of people's."""
    if tie == "positive":
        return np.asarray((gap > 0) == (human > 0))
    return np.asarray(np.sign(gap) == np.sign(human))


def distances(units: Units) -> Floats:
    """Return how far the model's gaps are from people's."""
    return np.abs(units["human_gap"] - units["gap"])


def _gaps(suite: Suite, scores: Scores, measure: object, *, standardise: bool) -> Units:
    contrasts, notes = rated_contrasts(suite, measure)
    people = ratings_z(suite)
    model = scores_z(suite, scores) if standardise else scores
    gap = np.array([model[each.better] - model[each.worse] for each in contrasts])
    human = np.array([people[each.better] - people[each.worse] for each in contrasts])
    columns = {"gap": gap, "human_gap": human}
    return Units(tuple(each.id for each in contrasts), columns, tuple(each.tags for each in contrasts), notes)


def _with(units: Units, name: str, column: Floats) -> Units:
    return Units(units.ids, {**units.columns, name: column}, units.tags, units.notes)


def _check_ways(name: str, standardise: object, tie: object) -> None:
    if not isinstance(standardise, bool):
        raise MeasureError(f"{name}: standardise is {standardise!r}; expected True or False")
    check_choice(f"{name}: tie", tie, _TIES)
