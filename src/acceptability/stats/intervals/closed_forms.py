"""Confidence intervals in closed form: of proportions, paired differences, means, correlations, areas and the MCC.

Chosen by the coverage that ``bench/coverage.py`` measures, most of all near the ceiling, where bootstrap intervals of
few rows are too short:

- `wilson_interval`: Wilson's score interval of a proportion, corrected near 0 and 1 (Brown, Cai and DasGupta 2001).
- `tango_interval`: Tango's score interval (1998) of the difference between two proportions of the same rows.
- `t_interval`: Student's interval of a mean, widened for skewness by Edgeworth's expansion (Hall 1992, chapter 2);
  `correlation_interval` the same of Fisher's z, with the standard error of the jackknife, which unlike Fisher's
  1/(n - 3) holds for columns that are not normal.
- `auc_interval`: the score interval of Newcombe (2006), whose variance follows Hanley and McNeil (1982), scaled to the
  variance of the rows at hand (that of DeLong et al. 1988).
- `matthews_interval`: quantiles of Matthews' correlation in draws from a Dirichlet posterior of its four counts.

Proportions of clusters, and macro means of groups, are proportions with an *effective* number of rows, that which gives
a proportion the variance measured (Kish 1965; Korn and Graubard 1998): `summarise_strata`, `compute_effective_size`.
Functions take arrays and work elementwise, so that thousands of simulated samples are one call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from acceptability.errors import MeasureError
from acceptability.types import Floats

Bounds = tuple[Floats, Floats]
"""The lower and the upper ends of intervals."""

# Near 0 and 1 Wilson's interval misses one count too early: of 20 rows, 19 hits exclude a proportion of .992, at which
# only 85 % of samples have no miss. There only one side can miss, and it gets more than half of the error. 1.3 of it in
# all keeps coverage between .92 and .98 around .99 for n from 20, and below .97 from 100 (docs/results/coverage.md).
_ONE_SIDED_SHARE = 1.3
# How many clusters with both answers the measured design effect must rest on to outweigh the largest possible one.
_PRIOR_CLUSTERS = 2.0
# The same for the variance of an area, in rows of the smaller class that the area could lack.
_PRIOR_MISSES = 0.4
# The prior of four proportions (Jeffreys), and those of the two exact limits, like the beta distributions of Clopper
# and Pearson: towards 1 right answers count one more, and wrong ones none; towards -1 the reverse.
_JEFFREYS_COUNTS = (0.5, 0.5, 0.5, 0.5)
_RIGHT_COUNTS = (1.0, 0.0, 0.0, 1.0)
_WRONG_COUNTS = (0.0, 1.0, 1.0, 0.0)
# Halving the unit interval as often as a float has bits.
_BISECTIONS = 54
# Fisher's z of 1 is infinite. A correlation of a few rows can reach 1 when one row is left out.
_MAX_CORRELATION = 1 - 1e-6


def clopper_pearson(hits: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the exact binomial interval of a proportion, hits out of n independent trials (Clopper and Pearson 1934).

    It covers the true probability at least as often as ``level``, mostly more often.

    >>> low, high = clopper_pearson(10, 10)
    >>> round(low, 4), high
    (0.6915, 1.0)
    """
    if n < 1 or not 0 <= hits <= n:
        raise MeasureError(f"{hits} of {n} is no share; expected 0 to n hits out of at least one trial")
    if not 0 < level < 1:
        raise MeasureError(f"level is {level}; expected a share between 0 and 1")
    tail = (1 - level) / 2
    # Quantiles of beta distributions, which have no parameter of 0: there the interval reaches to the end.
    low = 0.0 if hits == 0 else float(scipy.special.betaincinv(hits, n - hits + 1, tail))
    high = 1.0 if hits == n else float(scipy.special.betaincinv(hits + 1, n - hits, 1 - tail))
    return low, high


def wilson_interval(share: Floats | float, n: Floats | float, level: float = 0.95) -> Bounds:
    """Return Wilson's score interval of a proportion, widened near 0 and 1 to the one-sided exact limit.

    Args:
        share: The proportion of hits.
        n: The number of trials, which need not be whole: an effective number of them.
        level: The confidence level.

    >>> low, high = wilson_interval(0.5, 10.0)
    >>> float(low.round(4)), float(high.round(4))
    (0.2366, 0.7634)
    >>> low, high = wilson_interval(1.0, 20.0)
    >>> float(low.round(4)), float(high.round(4))
    (0.8389, 1.0)
    """
    share, n = np.broadcast_arrays(np.asarray(share, dtype=np.float64), np.asarray(n, dtype=np.float64))
    z = scipy.special.ndtri((1 + level) / 2)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half_width = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    low = np.minimum(centre - half_width, _limit_from_below(share * n, n, level))
    high = np.maximum(centre + half_width, 1 - _limit_from_below((1 - share) * n, n, level))
    # Rounding must not exclude the proportion itself, nor what no proportion can be.
    return np.clip(low, 0.0, share), np.clip(high, share, 1.0)


def _limit_from_below(hits: Floats, n: Floats, level: float) -> Floats:
    """Return the one-sided exact lower limit of a proportion (Clopper and Pearson) for the error near 0."""
    # No parameter of a beta distribution is 0. No hits exclude no proportion from below.
    positive = np.maximum(hits, 1e-12)
    tail = min(_ONE_SIDED_SHARE * (1 - level), 0.5)
    return np.where(hits < 1e-9, 0.0, scipy.special.betaincinv(positive, n - positive + 1, tail))


def tango_interval(gains: Floats | float, losses: Floats | float, n: Floats | float, level: float = 0.95) -> Bounds:
    """Return Tango's score interval of the difference of two proportions of the same rows (Tango 1998).

    It has width where the two never differ, and covers more evenly than Newcombe's or that of Agresti and Min.

    Args:
        gains, losses: How many rows only the first gets right, and only the second; with ``n`` they may be effective
            numbers, which are not whole.
        n: The number of rows.
        level: The confidence level.

    >>> low, high = tango_interval(10.0, 2.0, 40.0)
    >>> float(low.round(4)), float(high.round(4))
    (0.0347, 0.3663)
    """
    b, c, n = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in (gains, losses, n)))
    z = scipy.special.ndtri((1 + level) / 2)

    def deviate(difference: Floats) -> Floats:
        # The number of losses per row that is most likely under this difference, a root of a quadratic equation.
        linear = -b - c + (2 * n - b + c) * difference
        constant = -c * difference * (1 - difference)
        losses_if_so = (np.sqrt(np.maximum(linear**2 - 8 * n * constant, 0.0)) - linear) / (4 * n)
        variance = n * (2 * losses_if_so + difference * (1 - difference))
        # At an end of -1 or 1 nothing varies: any deviation is infinite, and 0/0 none.
        return np.asarray((b - c - n * difference) / np.sqrt(np.maximum(variance, 1e-300)))

    observed = (b - c) / n
    low = _bisect(lambda difference: deviate(difference) <= z, np.full_like(observed, -1.0), observed)
    high = _bisect(lambda difference: deviate(difference) < -z, observed, np.ones_like(observed))
    return low, high


def _bisect(is_beyond: Callable[[Floats], NDArray[np.bool_]], low: Floats, high: Floats) -> Floats:
    """Return where a condition that is false below and true above begins to hold, between two ends."""
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        beyond = is_beyond(middle)
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return np.asarray((low + high) / 2)


@dataclass(frozen=True, eq=False)
class StratifiedMean:
    """A mean over strata (one, or several for a macro mean), with what its intervals need; all are arrays.

    Args:
        value: The mean over the strata of the mean of their rows.
        variance: Its variance, from how sampling units vary within strata.
        degrees: The degrees of freedom of the variance, by Satterthwaite's formula.
        skewness: The square of its skewness, which one sampling unit far from all others brings to 1.
        dependent_size: The number of rows that is left if all rows of a sampling unit were copies.
    """

    value: Floats
    variance: Floats
    degrees: Floats
    skewness: Floats
    dependent_size: float


ClusterSums = tuple[Floats, Floats]
"""For the sampling units of a stratum: the sums of a column (in the last axis), and the numbers of their rows."""


def summarise_strata(strata: Sequence[ClusterSums]) -> StratifiedMean:
    """Return the mean over strata with its variance; each stratum needs two sampling units.

    >>> summary = summarise_strata([(np.array([1.0, 2.0, 3.0]), np.ones(3))])
    >>> float(summary.value), float(summary.variance.round(4)), float(summary.degrees)
    (2.0, 0.3333, 2.0)
    """
    means, variances, degrees, all_influences, dependence = [], [], [], [], 0.0
    for sums, counts in strata:
        units, rows = len(counts), counts.sum()
        mean = sums.sum(axis=-1) / rows
        # The ratio estimator: clusters may differ in size.
        influences = (sums - mean[..., None] * counts) / rows
        means.append(mean)
        all_influences.append(influences)
        variances.append(units / (units - 1) * (influences**2).sum(axis=-1))
        degrees.append(units - 1)
        dependence += float((counts**2).sum() / rows**2)
    total = np.sum(variances, axis=0)
    spread = np.sum([variance**2 / df for variance, df in zip(variances, degrees, strict=True)], axis=0)
    pooled = np.divide(total**2, spread, out=np.full_like(total, float(sum(degrees))), where=spread > 0)
    count, skewness = len(strata), compute_squared_skewness(all_influences)
    return StratifiedMean(np.mean(means, axis=0), total / count**2, pooled, skewness, count**2 / dependence)


def compute_squared_skewness(influences: Sequence[Floats]) -> Floats:
    """Return the square of the skewness of a sum of independent parts, from their deviations (in the last axis).

    >>> float(compute_squared_skewness([np.array([-1.0, -1.0, 2.0])]).round(4))
    0.1667
    """
    squares, cubes = (np.sum([(part**power).sum(axis=-1) for part in influences], axis=0) for power in (2, 3))
    # Not the square of one by the cube of the other, which overflow sooner.
    ratio = np.divide(cubes, squares, out=np.zeros_like(squares), where=squares > 0)
    return np.asarray(np.divide(ratio**2, squares, out=np.zeros_like(squares), where=squares > 0))


def compute_student_quantile(degrees: Floats | float, skewness: Floats | float, level: float) -> Floats:
    """Return Student's quantile of a two-sided interval, enlarged for the skewness of the estimate (Hall 1992).

    The tails of a skewed estimate are too heavy on one side by more than they are too light on the other, since its
    standard error varies with it: of 20 exponential values plain t covers the mean in 92 %, and this in 93.5 %.
    The term of the kurtosis is a tenth of that of the skewness, and left out.

    Args:
        degrees: The degrees of freedom; infinite for a normal quantile.
        skewness: The square of the skewness of the estimate.
        level: The confidence level.
    """
    upper = (1 + level) / 2
    z = scipy.special.ndtri(upper)
    quantile = scipy.special.stdtrit(np.minimum(degrees, 1e9), upper)
    return np.asarray(quantile * (1 + skewness * (z**4 + 2 * z**2 - 3) / 18))


def compute_effective_size(summary: StratifiedMean, spread: Floats, informative: Floats, inflation: Floats) -> Floats:
    """Return the number of independent rows that have the variance of a mean.

    The variance measured rests on the few sampling units whose answers vary, near the ceiling on none. Then the rows of
    a unit are taken to be copies, the worst case; the more units vary, the more the measured variance counts.

    Args:
        summary: The mean and its variance.
        spread: The variance of single rows, such as p (1 - p).
        informative: The number of sampling units whose answers vary, see `count_informative`.
        inflation: By how much the variance measured is enlarged, see `compute_inflation`.
    """
    # For rows that are resampled one by one the sum is exactly 1/n: the variance of the mean has the divisor n - 1.
    ratio = np.divide(summary.variance, spread, out=np.zeros_like(spread), where=spread > 0)
    worst = 1 / summary.dependent_size
    measured = np.minimum(inflation * ratio / (1 + ratio), worst)
    trust = informative**2 / (informative**2 + _PRIOR_CLUSTERS)
    # The geometric mean, since large units can make the worst case a hundred times as large as what was measured.
    return np.asarray(worst ** (trust - 1) * np.where(measured > 0, measured, worst) ** -trust)


def compute_inflation(strata: Sequence[ClusterSums], degrees: Floats, level: float) -> Floats:
    """Return the factor of a variance that is estimated from few clusters: that of Student's quantile, squared.

    The variance of single rows, which are right or wrong, follows from their mean, and needs no such factor.
    """
    if all((counts == 1).all() and np.isin(sums, (-1.0, 0.0, 1.0)).all() for sums, counts in strata):
        return np.ones_like(degrees)
    return _compare_quantiles(degrees, 0.0, level)


def _compare_quantiles(degrees: Floats, skewness: Floats | float, level: float) -> Floats:
    normal = scipy.special.ndtri((1 + level) / 2)
    return np.asarray((compute_student_quantile(degrees, skewness, level) / normal) ** 2)


def count_informative(strata: Sequence[ClusterSums], varies: Sequence[NDArray[np.bool_]]) -> Floats:
    """Return the number of sampling units whose answers vary, in terms of the stratum that weighs most.

    A miss in a stratum of 1,000 rows tells little about the variance of the mean of strata if another has 20.

    Args:
        strata: The sampling units of each stratum.
        varies: For each stratum, which units (in the last axis) vary.
    """
    weights = [float((counts**2).mean() / counts.sum() ** 2) for _, counts in strata]
    counted = [weight * which.sum(axis=-1) for weight, which in zip(weights, varies, strict=True)]
    return np.asarray(np.sum(counted, axis=0) / max(weights), dtype=np.float64)


def proportion_interval_of_strata(strata: Sequence[ClusterSums], level: float) -> Bounds:
    """Return Wilson's interval of the mean over strata of a column of 0 and 1 (and halves, for ties)."""
    summary = summarise_strata(strata)
    return _interval_of_proportion(strata, summary, compute_inflation(strata, summary.degrees, level), level)


def proportion_interval_of_groups(proportions: Floats, level: float) -> Bounds:
    """Return Wilson's interval of the mean of the proportions of groups (last axis), which are a sample of groups.

    >>> low, high = proportion_interval_of_groups(np.array([0.8, 0.9, 0.7, 1.0]), 0.95)
    >>> float(low.round(4)), float(high.round(4))
    (0.5381, 0.979)
    """
    strata = [(proportions, np.ones(proportions.shape[-1]))]
    summary = summarise_strata(strata)
    # Unlike counts of rows, the values of groups can be more skewed than Wilson's interval allows for.
    inflation = _compare_quantiles(summary.degrees, summary.skewness, level)
    return _interval_of_proportion(strata, summary, inflation, level)


def _interval_of_proportion(
    strata: Sequence[ClusterSums], summary: StratifiedMean, inflation: Floats, level: float
) -> Bounds:
    informative = np.minimum(
        count_informative(strata, [sums < counts for sums, counts in strata]),
        count_informative(strata, [sums > 0 for sums, _ in strata]),
    )
    spread = summary.value * (1 - summary.value)
    return wilson_interval(summary.value, compute_effective_size(summary, spread, informative, inflation), level)


def difference_interval_of_strata(
    strata: Sequence[ClusterSums], squares: Sequence[ClusterSums], level: float
) -> Bounds:
    """Return Tango's interval of the mean over strata of a column of -1, 0 and 1, differences of right and wrong.

    Args:
        strata: The sums of the differences.
        squares: The sums of their squares.
        level: The confidence level.
    """
    summary = summarise_strata(strata)
    discordant = np.mean([sums.sum(axis=-1) / counts.sum() for sums, counts in squares], axis=0)
    informative = count_informative(strata, [sums > 0 for sums, _ in squares])
    inflation = compute_inflation(strata, summary.degrees, level)
    n = compute_effective_size(summary, np.maximum(discordant - summary.value**2, 0.0), informative, inflation)
    return tango_interval((discordant + summary.value) / 2 * n, (discordant - summary.value) / 2 * n, n, level)


def t_interval(
    value: Floats, variance: Floats, degrees: Floats | float, level: float, *, skewness: Floats | float = 0.0
) -> Bounds:
    """Return Student's interval of a value from its variance.

    Args:
        value: The value.
        variance: The square of its standard error.
        degrees: The degrees of freedom of the variance; infinite for a normal interval.
        level: The confidence level.
        skewness: The square of the skewness of the value, for which the interval is widened.
    """
    half_width = compute_student_quantile(degrees, skewness, level) * np.sqrt(variance)
    return value - half_width, value + half_width


def jackknife_variance(values: Floats) -> Floats:
    """Return the variance of a statistic from its values with each sampling unit left out in turn (last axis).

    >>> float(jackknife_variance(np.array([1.5, 2.0, 2.5])).round(4))
    0.3333
    """
    n = values.shape[-1]
    return np.asarray((n - 1) * values.var(axis=-1))


def compute_jackknife_skewness(values: Floats) -> Floats:
    """Return the square of the skewness of a statistic from its values with each sampling unit left out in turn."""
    return compute_squared_skewness([values - values.mean(axis=-1, keepdims=True)])


def correlation_interval(value: Floats, jackknife: Floats, level: float, degrees: float) -> Bounds:
    """Return the interval of a correlation: Student's interval of its Fisher z, by the jackknife.

    Args:
        value: The correlation.
        jackknife: The correlations with each sampling unit left out in turn, in the last axis.
        level: The confidence level.
        degrees: The degrees of freedom; infinite for a normal interval without regard to skewness, which covers rank
            correlations better.
    """
    z, left_out = (np.arctanh(np.clip(numbers, -_MAX_CORRELATION, _MAX_CORRELATION)) for numbers in (value, jackknife))
    skewness = 0.0 if np.isinf(degrees) else compute_jackknife_skewness(left_out)
    low, high = t_interval(z, jackknife_variance(left_out), degrees, level, skewness=skewness)
    return np.tanh(low), np.tanh(high)


def auc_interval(value: Floats, variance: Floats, good: float, bad: float, level: float) -> Bounds:
    """Return the score interval of an area under the ROC curve.

    Args:
        value: The area.
        variance: Its variance, by the jackknife or by DeLong's formula; nan if it has none.
        good, bad: The numbers of sampling units of the two classes.
        level: The confidence level.

    >>> low, high = auc_interval(np.array(1.0), np.array(0.0), 10, 10, 0.95)
    >>> float(low.round(4)), float(high)
    (0.8002, 1.0)
    """
    z = scipy.special.ndtri((1 + level) / 2)
    inner = np.clip(value, 0.5 / (good * bad), 1 - 0.5 / (good * bad))
    # An area near 1 rests on few rows that are out of order, and so does its variance: then the theoretical one counts.
    weight = (1 - np.maximum(value, 1 - value)) * min(good, bad)
    theoretical = _hanley_mcneil_variance(inner, good, bad)
    measured = np.where(np.isnan(variance), theoretical, variance)
    scale = (measured * weight + theoretical * _PRIOR_MISSES) / (theoretical * (weight + _PRIOR_MISSES))

    def deviate(area: Floats) -> Floats:
        return np.asarray(
            (value - area) / np.sqrt(np.maximum(scale * _hanley_mcneil_variance(area, good, bad), 1e-300))
        )

    low = _bisect(lambda area: deviate(area) <= z, np.zeros_like(inner), np.asarray(value, dtype=np.float64))
    high = _bisect(lambda area: deviate(area) < -z, np.asarray(value, dtype=np.float64), np.ones_like(inner))
    return np.asarray(low), np.where(value == 1, 1.0, high)


def _hanley_mcneil_variance(area: Floats, good: float, bad: float) -> Floats:
    """Return the variance of an area under the ROC curve if scores are exponential, with Newcombe's mean class size."""
    others = (good + bad) / 2 - 1
    return np.asarray(area * (1 - area) * (1 + others * ((1 - area) / (2 - area) + area / (1 + area))) / (good * bad))


def matthews_interval(counts: Floats, draws: int, generator: np.random.Generator, level: float) -> Bounds:
    """Return the interval of Matthews' correlation: quantiles of its posterior under Jeffreys' prior.

    Near 1 and -1 it is widened to the one-sided exact limit, as `wilson_interval` is, and for the same reason.

    Args:
        counts: How many are hits, misses, false alarms and correct rejections (last axis); effective numbers too.
        draws: The number of draws.
        generator: The source of random numbers.
        level: The confidence level.
    """
    tail, one_sided = (1 - level) / 2, min(_ONE_SIDED_SHARE * (1 - level), 0.5)
    low, high = np.quantile(draw_matthews(counts, _JEFFREYS_COUNTS, draws, generator), [tail, 1 - tail], axis=-1)
    above = np.quantile(draw_matthews(counts, _RIGHT_COUNTS, draws, generator), 1 - one_sided, axis=-1)
    below = np.quantile(draw_matthews(counts, _WRONG_COUNTS, draws, generator), one_sided, axis=-1)
    return np.minimum(low, below), np.maximum(high, above)


def draw_matthews(counts: Floats, prior: Sequence[float], draws: int, generator: np.random.Generator) -> Floats:
    """Return Matthews' correlation of draws from the posterior of four proportions.

    Args:
        counts: How many are hits, misses, false alarms and correct rejections (last axis); effective numbers too.
        prior: What the prior adds to these counts; nothing where a proportion without counts is 0.
        draws: The number of draws, the last axis of the result.
        generator: The source of random numbers.
    """
    # Dirichlet draws are normalised gamma draws; Matthews' correlation needs no normalised ones.
    shapes = counts[..., None, :] + np.array(prior)
    shares = generator.standard_gamma(shapes, size=(*counts.shape[:-1], draws, 4))
    hits, misses, alarms, rejections = np.moveaxis(shares, -1, 0)
    margins = (hits + misses) * (alarms + rejections) * (hits + alarms) * (misses + rejections)
    return np.asarray((hits * rejections - misses * alarms) / np.sqrt(margins))
