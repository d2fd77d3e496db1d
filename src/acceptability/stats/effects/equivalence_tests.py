"""Equivalence tests: whether two models differ by less than the smallest difference that matters.

A difference that is not significant is no evidence that there is none. Two one-sided tests (TOST; Schuirmann 1987) turn
the question round: the hypotheses to reject are that the first model is better by the margin or more, and that it is
worse by the margin or more. Both are rejected at .05 exactly if the 90 % interval of the difference lies within the
margin. The tests are of paired rows: shares of right rows by score tests (Tango 1998), means by Student's t, and any
other measure by the bootstrap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.intervals.closed_forms import tango_interval
from acceptability.stats.samples import as_paired_samples, as_sample
from acceptability.types import Floats

TANGO = "score test of paired proportions (Tango 1998)"
STUDENT_T = "t test of paired differences"
CLUSTERED_T = "t test of paired differences, by cluster"
PERCENTILE = "percentile bootstrap of the paired difference"

EQUIVALENT, EXCEEDS, UNDECIDED = "equivalent", "different by more than the margin", "undecided"

# With fewer undefined resamples than this share, the others are still nearly a random sample.
_MIN_DEFINED_SHARE = 0.95


@dataclass(frozen=True)
class EquivalenceTest:
    """Two one-sided tests of a difference against a margin.

    Args:
        difference: The first value minus the second.
        low, high: Its interval at the level 1 − 2 alpha, which agrees with the two tests.
        margin: The smallest difference that matters.
        p_lower: p of the hypothesis that the difference is −margin or less.
        p_upper: p of the hypothesis that the difference is margin or more.
        alpha: The significance level of both tests.
        n: The number of rows or clusters.
        method: The tests, which are also those of the interval.
    """

    difference: float
    low: float
    high: float
    margin: float
    p_lower: float
    p_upper: float
    alpha: float
    n: int
    method: str

    @property
    def p(self) -> float:
        """The p of the two tests together, the larger of the two."""
        return max(self.p_lower, self.p_upper)

    @property
    def verdict(self) -> str:
        """What the tests say: "equivalent", "different by more than the margin", or "undecided"."""
        if self.p < self.alpha:
            return EQUIVALENT
        return EXCEEDS if self.low > self.margin or self.high < -self.margin else UNDECIDED


def equivalence_of_proportions(
    first: ArrayLike, second: ArrayLike, margin: float, *, alpha: float = 0.05
) -> EquivalenceTest:
    """Test whether two models get the same share of rows right, up to a margin (score tests; Tango 1998).

    Assumes independent rows. The variance is that under the hypothesis tested, so that models that are both right
    nearly everywhere are tested at the stated level too.

    Args:
        first, second: 1 for each row that a model gets right, 0 for others.
        margin: The smallest difference of the shares that matters, such as .02.
        alpha: The significance level.

    >>> test = equivalence_of_proportions([1] * 95 + [0] * 5, [1] * 94 + [0] * 5 + [1], margin=0.05)
    >>> test.difference, round(test.low, 3), round(test.high, 3), test.verdict
    (0.0, -0.035, 0.035, 'equivalent')
    """
    check_margin(margin, alpha)
    x, y = as_paired_samples(first, second)
    if wrong := (set(x.tolist()) | set(y.tolist())) - {0.0, 1.0}:
        raise MeasureError(f"proportions are of right (1) and wrong (0) rows; a row has {min(wrong):g}")
    if margin >= 1:
        raise MeasureError(f"the margin is {margin:g}; shares cannot differ by more than 1")
    n, only_first, only_second = len(x), int(x @ (1 - y)), int((1 - x) @ y)
    low, high = tango_interval(float(only_first), float(only_second), float(n), level=1 - 2 * alpha)
    return EquivalenceTest(
        (only_first - only_second) / n,
        float(low),
        float(high),
        margin,
        float(scipy.special.ndtr(-tango_z(only_first, only_second, n, -margin))),
        float(scipy.special.ndtr(tango_z(only_first, only_second, n, margin))),
        alpha,
        n,
        TANGO,
    )


def tango_z(only_first: int, only_second: int, n: int, difference: float) -> float:
    """Return the score statistic of a hypothesised difference of two paired proportions (Tango 1998).

    Args:
        only_first, only_second: The numbers of rows that only one model gets right.
        n: The number of rows.
        difference: The hypothesised share of the first minus that of the second.

    >>> round(tango_z(10, 5, 100, 0.0), 4)
    1.291
    """
    # The share of rows that only the second model gets right, by maximum likelihood under the hypothesis.
    b = (2 * n - only_first + only_second) * difference - only_first - only_second
    c = -only_second * difference * (1 - difference)
    share = (math.sqrt(max(b**2 - 8 * n * c, 0.0)) - b) / (4 * n)
    variance = n * (2 * share + difference * (1 - difference))
    deviation = only_first - only_second - n * difference
    # Without discordant rows nothing speaks against a difference of 0.
    if variance <= 0:
        return 0.0 if deviation == 0 else math.copysign(math.inf, deviation)
    return deviation / math.sqrt(variance)


def equivalence_of_means(
    first: ArrayLike, second: ArrayLike, margin: float, *, clusters: ArrayLike | None = None, alpha: float = 0.05
) -> EquivalenceTest:
    """Test whether the means of paired values are the same, up to a margin (two one-sided t tests).

    Assumes independent differences, or with clusters independent clusters, whose mean is about normal.

    Args:
        first, second: The values of each row.
        margin: The smallest difference of the means that matters.
        clusters: The sampling unit of each row, such as its item; rows of a unit are not independent of each other.
            The mean stays that over rows, and its standard error is that of a ratio of sums over clusters.
        alpha: The significance level.

    Raises:
        Undefined: There are fewer than two rows or clusters, or all differences are the same.

    >>> test = equivalence_of_means([5.1, 4.9, 5.0, 5.2], [5.0, 5.0, 5.1, 5.1], margin=0.3)
    >>> test.verdict, round(test.p, 4)
    ('equivalent', 0.0069)
    """
    check_margin(margin, alpha)
    x, y = as_paired_samples(first, second)
    differences = x - y
    sums, counts = differences, np.ones(len(differences))
    if clusters is not None:
        keys = np.asarray(clusters)
        if len(keys) != len(x):
            raise MeasureError(f"there are {len(keys)} clusters for {len(x)} rows; expected one for each row")
        _, codes = np.unique(keys, return_inverse=True)
        sums = np.bincount(codes, weights=differences).astype(np.float64)
        counts = np.bincount(codes).astype(np.float64)
    n = len(sums)
    if n < 2:
        raise Undefined(f"there are {n} {'rows' if clusters is None else 'clusters'}; two are needed")
    mean = float(sums.sum() / counts.sum())
    residuals = sums - mean * counts
    se = math.sqrt(float(residuals @ residuals) * n / (n - 1)) / float(counts.sum())
    if differences.min() == differences.max():
        raise Undefined("all differences are the same, so that nothing says how much they vary")
    half_width = float(scipy.special.stdtrit(n - 1, 1 - alpha)) * se
    p_lower, p_upper = (float(scipy.special.stdtr(n - 1, side * mean / se - margin / se)) for side in (-1, 1))
    method = f"{STUDENT_T if clusters is None else CLUSTERED_T}, df = {n - 1}"
    return EquivalenceTest(mean, mean - half_width, mean + half_width, margin, p_lower, p_upper, alpha, n, method)


def equivalence_of_resamples(
    difference: float, resampled: Floats, margin: float, n: int, *, alpha: float = 0.05
) -> EquivalenceTest:
    """Test whether a difference of any two values is within a margin, by its bootstrap distribution.

    p is the share of resamples at the margin or beyond, counting the margin itself once so that it is never 0.

    Args:
        difference: The difference on the rows themselves.
        resampled: The difference on each resample; nan where it is undefined.
        margin: The smallest difference that matters.
        n: The number of rows or clusters that were resampled.
        alpha: The significance level.

    Raises:
        Undefined: More than one resample in twenty is undefined, or there are too few for the level.
    """
    check_margin(margin, alpha)
    values = np.asarray(resampled, dtype=np.float64)
    defined = as_sample("the resamples", values[~np.isnan(values)])
    if len(defined) < _MIN_DEFINED_SHARE * len(values):
        raise Undefined(f"{len(values) - len(defined)} of {len(values)} resamples are undefined")
    if len(defined) + 1 < 2 / alpha:
        raise Undefined(f"{len(defined)} resamples are too few for tests at {alpha:g}; take {math.ceil(2 / alpha)}")
    low, high = np.quantile(defined, [alpha, 1 - alpha])
    p_lower, p_upper = (
        (int(count) + 1) / (len(defined) + 1) for count in ((defined <= -margin).sum(), (defined >= margin).sum())
    )
    return EquivalenceTest(difference, float(low), float(high), margin, p_lower, p_upper, alpha, n, PERCENTILE)


def check_margin(margin: float, alpha: float) -> None:
    """Raise MeasureError for a margin or a significance level that no equivalence test can have."""
    if not (math.isfinite(margin) and margin > 0):
        raise MeasureError(f"the margin is {margin}; expected the smallest difference that matters, above 0")
    if not 0 < alpha < 0.5:
        raise MeasureError(f"alpha is {alpha}; expected a significance level between 0 and .5")
