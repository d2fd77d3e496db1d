"""The Acceptability Delta Criterion (Vázquez Martínez 2021), its curve over delta, and the correlation of deltas.

A delta, here a *gap*, is the difference between the two sentences of a contrast: in the model's scores or in human
ratings. The criterion compares the model's gap with the human one, in direction and in size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import MeasureError, Undefined
from acceptability.measures.correlation import CORRELATION_KINDS, compute_correlation, name_correlation
from acceptability.measures.rows import (
    check_choice,
    mean,
    require_number,
    require_rated_contrasts,
    standardise_ratings,
    standardise_scores,
)
from acceptability.measures.weighting import weigh_correlation
from acceptability.protocols import Measure, Moments, RowWeighting
from acceptability.types import Floats, Scores, Suite, Units

_TIES = ("positive", "literal")


@dataclass(frozen=True)
class ADC(Measure):
    """The Acceptability Delta Criterion: how often a model's gap has the direction and nearly the size of people's.

    Both gaps are in z units: scores are standardised over all sentences of the suite (population standard deviation),
    ratings over all rated sentences unless they are z-scores already.

    Args:
        delta: The gaps must differ by less than this.
        standardise: False if the scores are in z units already.
        tie: When directions agree: with "positive", if both gaps are above zero or neither is, which reproduces the
            paper's numbers; with "literal", if their signs are equal, with sign(0) = 0, which is the paper's formula.
    """

    delta: float = 0.5
    standardise: bool = True
    tie: str = "positive"

    needs = "rated contrasts"
    # The column keeps this name because it is written to saved reports, which are read again.
    mean_of = "met"

    def __post_init__(self) -> None:
        # Converted, so that delta=1 and delta=1.0 have the same repr, and thus the same signature.
        object.__setattr__(self, "delta", require_number("ADC: delta", self.delta))
        if not self.delta > 0:
            raise MeasureError(f"ADC: delta is {self.delta!r}; expected a number above 0")
        _check_options("ADC", self.standardise, self.tie)

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per contrast: the model's gap, the human gap, and whether the criterion holds."""
        rows = _compute_gaps(suite, scores, self, standardise=self.standardise)
        is_correct = directions_agree(rows["gap"], rows["human_gap"], self.tie) & (
            compute_gap_distances(rows) < self.delta
        )
        return _add_column(rows, "met", is_correct.astype(np.float64))

    def value(self, units: Units) -> float:
        """Return the share of contrasts for which the criterion holds."""
        return mean(units["met"])


@dataclass(frozen=True)
class ADCArea(Measure):
    """The area under the curve of ADC over delta, from 0 to a limit, as a share: 1 if all gaps equal the human ones.

    If the gaps of a contrast have the same direction and differ by d, the criterion holds at every delta above d. The
    contrast thus contributes 1 - d / limit, or nothing if d is beyond the limit. The sum of these is the exact area,
    without a grid of deltas.

    Args:
        limit: The delta at which the curve ends.
        standardise: As for ADC.
        tie: As for ADC.
    """

    limit: float = 5.0
    standardise: bool = True
    tie: str = "positive"

    needs = "rated contrasts"
    mean_of = "area"

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", require_number("ADCArea: limit", self.limit))
        if not self.limit > 0:
            raise MeasureError(f"ADCArea: limit is {self.limit!r}; expected a number above 0")
        _check_options("ADCArea", self.standardise, self.tie)

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per contrast: the model's gap, the human gap, and the contribution to the area."""
        rows = _compute_gaps(suite, scores, self, standardise=self.standardise)
        agree = directions_agree(rows["gap"], rows["human_gap"], self.tie)
        return _add_column(
            rows, "area", np.where(agree, np.maximum(0.0, 1 - compute_gap_distances(rows) / self.limit), 0.0)
        )

    def value(self, units: Units) -> float:
        """Return the mean contribution of the contrasts."""
        return mean(units["area"])


@dataclass(frozen=True)
class DeltaCorrelation(Measure):
    """The correlation of the model's gaps with the human ones, over contrasts.

    Args:
        kind: "pearson", "spearman" or "kendall" (tau-b).
    """

    kind: str = "pearson"

    needs = "rated contrasts"

    @property
    def statistic(self) -> str:
        """A correlation, of ranks or of the gaps themselves."""
        return name_correlation(self.kind)

    def __post_init__(self) -> None:
        check_choice("DeltaCorrelation: kind", self.kind, CORRELATION_KINDS)

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per contrast: the model's gap in units of its scores, and the human gap in z units."""
        # A correlation does not depend on the scale, so that scores need not be standardised.
        return _compute_gaps(suite, scores, self, standardise=False)

    def value(self, units: Units) -> float:
        """Return the correlation of the gaps."""
        return compute_correlation(self.kind, units["gap"], units["human_gap"])

    def weigh(self, units: Units) -> Moments | RowWeighting:
        """Return the correlation of weighted contrasts."""
        return weigh_correlation(self.kind, units["gap"], units["human_gap"])


def adc_curve(units: Units, deltas: Sequence[float] | Floats, *, tie: str = "positive") -> Floats:
    """Return ADC at each delta, from the rows of ADC or ADCArea with whatever options.

    Args:
        units: Rows with the columns ``gap`` and ``human_gap``.
        deltas: The deltas at which the criterion is evaluated.
        tie: When directions agree, as for ADC.

    >>> rows = Units(("a", "b"), {"gap": np.array([1.0, 2.0]), "human_gap": np.array([1.5, 1.0])}, ({}, {}))
    >>> adc_curve(rows, [0.5, 0.75, 2])
    array([0. , 0.5, 1. ])
    """
    check_choice("adc_curve: tie", tie, _TIES)
    if not len(units):
        raise Undefined("there are no rows")
    agree = directions_agree(units["gap"], units["human_gap"], tie)
    # The rows are sorted once. "left" counts the distances strictly below each delta, as ADC itself does.
    far = np.sort(compute_gap_distances(units)[agree])
    return np.asarray(np.searchsorted(far, np.asarray(deltas, dtype=np.float64), side="left") / len(units))


def directions_agree(gap: Floats, human: Floats, tie: str) -> NDArray[np.bool_]:
    """Return a mask of the contrasts in which the model's gap has the direction of the human gap."""
    # In two pairs of the paper's data both sentences have the same text, so the model's gap is exactly 0. The signs
    # never agree there, but the printed counts include both pairs, which "positive" reproduces.
    if tie == "positive":
        return np.asarray((gap > 0) == (human > 0))
    return np.asarray(np.sign(gap) == np.sign(human))


def compute_gap_distances(units: Units) -> Floats:
    """Return the absolute differences between the model's gaps and the human ones."""
    return np.abs(units["human_gap"] - units["gap"])


def _compute_gaps(suite: Suite, scores: Scores, measure: object, *, standardise: bool) -> Units:
    contrasts, notes = require_rated_contrasts(suite, measure)
    # Sentences are standardised over the whole suite before subtraction. Standardising the gaps would shift their zero,
    # and the direction of a gap with it.
    ratings = standardise_ratings(suite)
    model = standardise_scores(suite, scores) if standardise else scores
    gap = np.array([model[contrast.better] - model[contrast.worse] for contrast in contrasts])
    human = np.array([ratings[contrast.better] - ratings[contrast.worse] for contrast in contrasts])
    # Both gaps are columns, so that the whole curve over delta can be computed from the rows of one evaluation.
    columns = {"gap": gap, "human_gap": human}
    return Units(
        tuple(contrast.id for contrast in contrasts), columns, tuple(contrast.tags for contrast in contrasts), notes
    )


def _add_column(units: Units, name: str, column: Floats) -> Units:
    return Units(units.ids, {**units.columns, name: column}, units.tags, units.notes)


def _check_options(name: str, standardise: object, tie: object) -> None:
    if not isinstance(standardise, bool):
        raise MeasureError(f"{name}: standardise is {standardise!r}; expected True or False")
    check_choice(f"{name}: tie", tie, _TIES)
