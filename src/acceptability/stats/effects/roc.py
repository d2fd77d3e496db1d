"""Areas under the ROC curve: their variance, and the test of two of them by DeLong, DeLong and Clarke-Pearson (1988).

An area is a U statistic: the share of pairs of an acceptable and an unacceptable sentence in which the former scores
higher. Its variance, and the covariance of two models over the same sentences, follow from the placements: for each
acceptable sentence, the share of unacceptable ones below it, and the other way round. Sentences must be independent;
where several share an item, resample items.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.samples import as_paired_samples, as_sample, check_level
from acceptability.types import Floats


@dataclass(frozen=True)
class AreaUnderCurve:
    """An area under the ROC curve with DeLong's variance.

    Args:
        value: The area.
        variance: Its variance.
        n_positive, n_negative: The numbers of acceptable and of unacceptable sentences.
    """

    value: float
    variance: float
    n_positive: int
    n_negative: int


@dataclass(frozen=True)
class DeLongTest:
    """DeLong's test of two areas under the ROC curve over the same sentences.

    Args:
        first, second: The two areas.
        difference: The first minus the second.
        low, high: The normal interval of the difference.
        z, p: The test that the areas are equal, two-sided.
        covariance: The covariance of the two areas.
    """

    first: AreaUnderCurve
    second: AreaUnderCurve
    difference: float
    low: float
    high: float
    z: float
    p: float
    covariance: float


def area_under_curve(scores: ArrayLike, labels: ArrayLike) -> AreaUnderCurve:
    """Return the area under the ROC curve with DeLong's variance.

    Args:
        scores: The score of each sentence.
        labels: 1 for acceptable sentences, 0 for others; two or more of either.

    >>> area = area_under_curve([0.9, 0.8, 0.3, 0.7, 0.2, 0.1], [1, 1, 1, 0, 0, 0])
    >>> round(area.value, 4), round(area.variance, 4)
    (0.8889, 0.0247)
    """
    positive, negative = _split_by_label(scores, labels)
    return _summarise(*_compute_placements(positive, negative))


def delong_test(first: ArrayLike, second: ArrayLike, labels: ArrayLike, *, level: float = 0.95) -> DeLongTest:
    """Test whether two models have the same area under the ROC curve over the same sentences (DeLong et al. 1988).

    Assumes independent sentences, and enough of them for areas that are about normal.

    Args:
        first, second: The scores of either model.
        labels: 1 for acceptable sentences, 0 for others; two or more of either.
        level: The confidence level of the interval of the difference.

    Raises:
        Undefined: There are fewer than two sentences of a label, or the two models order all pairs alike.

    >>> test = delong_test([0.9, 0.8, 0.3, 0.7, 0.2, 0.1], [0.4, 0.8, 0.3, 0.7, 0.6, 0.1], [1, 1, 1, 0, 0, 0])
    >>> round(test.difference, 4), round(test.p, 4)
    (0.3333, 0.2207)
    """
    check_level(level)
    placements = [_compute_placements(*_split_by_label(scores, labels)) for scores in (first, second)]
    areas = [_summarise(*pair) for pair in placements]
    (positive_first, negative_first), (positive_second, negative_second) = placements
    covariance = _covary(positive_first, positive_second) + _covary(negative_first, negative_second)
    variance = areas[0].variance + areas[1].variance - 2 * covariance
    # Rounding leaves a variance of nearly 0 where the differences of all placements are the same.
    if variance <= 1e-15:
        raise Undefined("the two models order acceptable and unacceptable sentences alike, or differ without variation")
    difference, se = areas[0].value - areas[1].value, math.sqrt(variance)
    half_width = float(scipy.special.ndtri((1 + level) / 2)) * se
    z = difference / se
    p = 2 * float(scipy.special.ndtr(-abs(z)))
    return DeLongTest(
        areas[0], areas[1], difference, difference - half_width, difference + half_width, z, p, covariance
    )


def _split_by_label(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    values, truths = as_paired_samples(scores, labels)
    if wrong := set(truths.tolist()) - {0.0, 1.0}:
        raise MeasureError(f"a label is {min(wrong):g}; expected 0 and 1")
    positive, negative = values[truths == 1], values[truths == 0]
    return as_sample("the acceptable sentences", positive, 2), as_sample("the unacceptable sentences", negative, 2)


def _compute_placements(positive: Floats, negative: Floats) -> tuple[Floats, Floats]:
    """Return for each value of either group the share of the other group on the right side of it; ties one half."""
    shares = []
    for values, others in ((positive, negative), (-negative, -positive)):
        ordered = np.sort(others)
        below, up_to = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
        shares.append((below + up_to) / (2 * len(others)))
    return shares[0], shares[1]


def _summarise(positive: Floats, negative: Floats) -> AreaUnderCurve:
    variance = _covary(positive, positive) + _covary(negative, negative)
    return AreaUnderCurve(float(positive.mean()), variance, len(positive), len(negative))


def _covary(first: Floats, second: Floats) -> float:
    """Return the covariance of two means of placements."""
    return float((first - first.mean()) @ (second - second.mean())) / (len(first) - 1) / len(first)
