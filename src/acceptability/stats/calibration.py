"""Calibration of probabilities: of the sentences with probability 0.8, are 80 in 100 acceptable?

Measured by reliability bins, the expected calibration error (ECE; Naeini, Cooper and Hauskrecht 2015), a calibration
error without the bias of few sentences (Kumar, Liang and Ma 2019), and the Brier score (1950). Recalibrated by
temperature scaling, one temperature for all log-odds (Guo et al. 2017) fitted by maximum likelihood, or by isotonic
regression, a non-decreasing step function (Zadrozny and Elkan 2002). Probabilities are those of "acceptable" and labels
are 0 and 1: they are compared with the share of acceptable sentences, not with how often the more probable label is
right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.samples import as_paired_samples, as_sample, check_level, mean_ranks
from acceptability.types import Floats

BinIndices = NDArray[np.int64]

# The root search needs a bracket. A best temperature outside it means (nearly) perfect separation, or log-odds that say
# almost nothing, and is reported as undefined.
_MIN_TEMPERATURE, _MAX_TEMPERATURE = 1e-6, 1e6


@dataclass(frozen=True)
class ReliabilityBin:
    """Sentences of similar probability: one point of a reliability diagram.

    Args:
        low, high: Their least and greatest probability, or the edges of the bin where all bins are equally wide.
        n: The number of sentences.
        expected: Their mean probability.
        observed: The share of them that is acceptable.
        observed_low, observed_high: The interval of that share (Wilson 1927).
    """

    low: float
    high: float
    n: int
    expected: float
    observed: float
    observed_low: float
    observed_high: float


def bin_equal_width(
    probabilities: ArrayLike, labels: ArrayLike, count: int = 10, *, level: float = 0.95
) -> list[ReliabilityBin]:
    """Return reliability bins of equal width from 0 to 1; empty ones are left out.

    A probability on an edge belongs to the bin above it, 1 to the last bin.

    Args:
        probabilities: The probability of "acceptable" of each sentence.
        labels: 1 for acceptable sentences, 0 for others.
        count: The number of bins, empty ones included.
        level: The confidence level of the intervals.

    >>> [(part.low, part.n, part.observed) for part in bin_equal_width([0.1, 0.2, 0.9], [0, 1, 1], count=2)]
    [(0.0, 2, 0.5), (0.5, 1, 1.0)]
    """
    given, truths = _check_binning(probabilities, labels, count)
    edges = np.linspace(0.0, 1.0, count + 1)
    # Clipped, since a probability of 1 would open a bin of its own.
    bin_indices = np.clip(np.searchsorted(edges, given, side="right") - 1, 0, count - 1)
    return [
        _build_bin(given[bin_indices == index], truths[bin_indices == index], (edges[index], edges[index + 1]), level)
        for index in np.unique(bin_indices)
    ]


def bin_equal_mass(
    probabilities: ArrayLike, labels: ArrayLike, count: int = 10, *, level: float = 0.95
) -> list[ReliabilityBin]:
    """Return reliability bins of equally many sentences; sentences of equal probability share a bin.

    The arguments are those of `bin_equal_width`.

    >>> [(part.low, part.high, part.n) for part in bin_equal_mass([0.1, 0.2, 0.8, 0.9], [0, 1, 1, 1], count=2)]
    [(0.1, 0.2, 2), (0.8, 0.9, 2)]
    """
    given, truths = _check_binning(probabilities, labels, count)
    bin_indices = _equal_mass_bins(given, count)
    return [
        _build_bin(given[inside], truths[inside], (given[inside].min(), given[inside].max()), level)
        for inside in (bin_indices == index for index in np.unique(bin_indices))
    ]


def _equal_mass_bins(given: Floats, count: int) -> BinIndices:
    # By mean ranks, which are equal for ties: cut by position, sentences of one probability could fall into two bins,
    # depending on their order in the file.
    ranks, _ = mean_ranks(given)
    return np.floor((ranks - 0.5) * count / len(given)).astype(np.int64)


def expected_calibration_error(bins: Sequence[ReliabilityBin]) -> float:
    """Return the expected calibration error (ECE): the mean distance of observed shares from probabilities.

    The mean is over sentences: each bin has the weight of its number of sentences.

    >>> expected_calibration_error(bin_equal_width([0.1, 0.2, 0.9], [0, 1, 1], count=2))
    0.26666666666666666
    """
    if not bins:
        raise Undefined("there are no bins")
    return sum(part.n * abs(part.observed - part.expected) for part in bins) / sum(part.n for part in bins)


@dataclass(frozen=True)
class CalibrationError:
    """The debiased root mean square calibration error, with its interval.

    Args:
        value: The error; 0 where the observed shares are closer to the probabilities than chance would have them.
        low, high: The interval.
        level: The confidence level.
        method: How the error and its interval were computed.
        resamples: The number of bootstrap resamples.
        seed: Their seed.
    """

    value: float
    low: float
    high: float
    level: float
    method: str
    resamples: int
    seed: int


DEBIASED_METHOD = "debiased (Kumar et al. 2019), basic bootstrap of its square"


def debiased_calibration_error(
    probabilities: ArrayLike,
    labels: ArrayLike,
    count: int = 10,
    *,
    clusters: Sequence[str] | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> CalibrationError:
    """Return the debiased calibration error of equal-mass bins (Kumar, Liang and Ma 2019), with a bootstrap interval.

    The plain error of perfect probabilities is not 0: shares of a few sentences scatter about their probabilities, the
    more the fewer there are in a bin. The squared error of a bin is corrected for that scatter, so that its mean is
    unbiased; the result is the root of the weighted mean. The interval is that of the squared error, reflected about
    the estimate (basic bootstrap), since resamples scatter once more. In simulations of 100 to 1,000 sentences it
    covers .945 to 1.

    Args:
        probabilities: The probability of "acceptable" of each sentence.
        labels: 1 for acceptable sentences, 0 for others.
        count: The number of bins.
        clusters: The sampling unit of each sentence, such as its item; None for single sentences.
        level: The confidence level.
        resamples: The number of bootstrap resamples.
        seed: Their seed.

    >>> sure, labels = [0.9] * 50 + [0.1] * 50, [1] * 45 + [0] * 5 + [1] * 5 + [0] * 45
    >>> debiased_calibration_error(sure, labels, count=2).value
    0.0
    >>> round(debiased_calibration_error([0.99] * 50 + [0.3] * 50, labels, count=2).value, 3)
    0.149
    """
    check_level(level)
    given, truths = _check_binning(probabilities, labels, count)
    bin_indices = _equal_mass_bins(given, count)
    _, cluster_of_row = np.unique(clusters if clusters is not None else np.arange(len(given)), return_inverse=True)
    if len(cluster_of_row) != len(given):
        raise MeasureError(f"there are {len(cluster_of_row)} clusters for {len(given)} sentences; expected one each")
    n = int(cluster_of_row.max()) + 1
    if n < 2:
        raise Undefined("there are fewer than two sentences or clusters to resample")
    plain, debiased = _squared_errors(given, truths, bin_indices, np.ones(len(given)))
    generator = np.random.default_rng(seed)
    resampled = np.empty(resamples)
    for index in range(resamples):
        weights = np.bincount(generator.integers(0, n, n), minlength=n).astype(np.float64)[cluster_of_row]
        resampled[index] = _squared_errors(given, truths, bin_indices, weights)[1]
    # In the resamples the plain error is the true one.
    least, greatest = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2]).tolist()
    squares = debiased, debiased - (greatest - plain), debiased - (least - plain)
    value, low, high = (math.sqrt(max(square, 0.0)) for square in squares)
    return CalibrationError(value, low, high, level, DEBIASED_METHOD, resamples, seed)


def _squared_errors(given: Floats, truths: Floats, bin_indices: BinIndices, weights: Floats) -> tuple[float, float]:
    """Return the plain and the debiased mean squared calibration error of weighted sentences."""
    counts = np.bincount(bin_indices, weights)
    counts, filled = counts[counts > 0], counts > 0
    expected = np.bincount(bin_indices, weights * given)[filled] / counts
    observed = np.bincount(bin_indices, weights * truths)[filled] / counts
    plain = (expected - observed) ** 2
    # The variance of a share. A single sentence has none that could be estimated.
    scatter = observed * (1 - observed) / np.maximum(counts - 1, 1)
    total = float(counts.sum())
    return float(counts @ plain) / total, float(counts @ (plain - scatter)) / total


def brier_score(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Return the Brier score, the mean squared distance of probabilities from labels.

    0 is perfect; a probability of 0.5 for all sentences scores 0.25.

    >>> brier_score([0.5, 1.0], [0, 1])
    0.125
    """
    given, truths = _check_binning(probabilities, labels)
    return float(((given - truths) ** 2).mean())


def wilson_interval(hits: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval (1927) of a proportion: hits out of n independent trials.

    >>> low, high = wilson_interval(5, 10)
    >>> round(low, 4), round(high, 4)
    (0.2366, 0.7634)
    """
    if n < 1 or not 0 <= hits <= n:
        raise MeasureError(f"{hits} of {n} is no share; expected 0 to n hits out of at least one trial")
    check_level(level)
    z = float(scipy.special.ndtri((1 + level) / 2))
    middle = (hits + z**2 / 2) / (n + z**2)
    half_width = z * math.sqrt(hits * (n - hits) / n + z**2 / 4) / (n + z**2)
    # These ends are exactly 0 and 1, which rounding would miss by a little, and perhaps on the wrong side.
    return 0.0 if hits == 0 else middle - half_width, 1.0 if hits == n else middle + half_width


def apply_temperature(log_odds: ArrayLike, temperature: float = 1.0) -> Floats:
    """Return probabilities by temperature scaling: the sigmoid of log-odds divided by the temperature.

    >>> apply_temperature([0.0, 2.0], temperature=1e9).round(3)
    array([0.5, 0.5])
    """
    if not (math.isfinite(temperature) and temperature > 0):
        raise MeasureError(f"the temperature is {temperature}; expected a number above 0")
    return np.asarray(scipy.special.expit(as_sample("the log-odds", log_odds) / temperature))


def fit_temperature(log_odds: ArrayLike, labels: ArrayLike) -> float:
    """Return the maximum-likelihood temperature of temperature scaling: above 1 for overconfident log-odds.

    Args:
        log_odds: The log-odds of "acceptable" of each sentence.
        labels: 1 for acceptable sentences, 0 for others.

    Raises:
        Undefined: The log-odds are unrelated to the labels, or separate them without error: no finite temperature fits.

    >>> round(fit_temperature([2.0, 2.0, 2.0, 2.0, -2.0], [1, 1, 1, 0, 0]), 3)
    1.443
    """
    given, truths = as_paired_samples(log_odds, labels)
    _check_labels(truths)

    # In 1 / temperature the log loss is convex: its slope has at most one root, which a bracketing search cannot miss.
    def loss_slope(inverse_temperature: float) -> float:
        return float(((scipy.special.expit(inverse_temperature * given) - truths) * given).sum())

    if loss_slope(0.0) >= 0:
        raise Undefined("the log-odds do not increase with the labels: no temperature makes them fit")
    if loss_slope(1 / _MIN_TEMPERATURE) <= 0:
        raise Undefined("the log-odds separate the labels without error: the lower the temperature, the better the fit")
    if loss_slope(1 / _MAX_TEMPERATURE) >= 0:
        raise Undefined(
            f"the log-odds hardly increase with the labels: the temperature would be above {_MAX_TEMPERATURE:g}"
        )
    # Imported here: scipy.optimize is slow to load, and most commands that import this module fit nothing.
    from scipy.optimize import brentq

    return 1 / float(brentq(loss_slope, 1 / _MAX_TEMPERATURE, 1 / _MIN_TEMPERATURE, xtol=1e-14, rtol=1e-13))


@dataclass(frozen=True, eq=False)
class IsotonicCalibrator:
    """A non-decreasing function from scores to probabilities: linear between its knots, constant outside them.

    Args:
        scores: The knots, in ascending order.
        probabilities: The values at the knots.
    """

    scores: Floats
    probabilities: Floats

    def __call__(self, scores: ArrayLike) -> Floats:
        return np.interp(as_sample("the scores", scores), self.scores, self.probabilities)


def fit_isotonic(scores: ArrayLike, labels: ArrayLike) -> IsotonicCalibrator:
    """Return the isotonic regression of labels on scores: the nearest non-decreasing function (least squares).

    It is found by SciPy's pool-adjacent-violators algorithm (Ayer et al. 1955).

    >>> fit_isotonic([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 1]).probabilities
    array([0. , 0.5, 0.5, 1. ])
    """
    from scipy.optimize import isotonic_regression

    given, truths = as_paired_samples(scores, labels)
    _check_labels(truths)
    # Sentences of equal score are one knot, weighted by their number: the function can have one value there only.
    knots, knot_indices, counts = np.unique(given, return_inverse=True, return_counts=True)
    sums = np.bincount(knot_indices, truths)
    blocks = isotonic_regression(sums / counts, weights=counts).blocks
    # The pools' means from whole numbers: as SciPy's weighted means they are off in the last digit, and a pool of
    # exactly one half may come out below the threshold of .5, or two pools of equal means in two values.
    levels = np.add.reduceat(sums, blocks[:-1]) / np.add.reduceat(counts, blocks[:-1])
    return IsotonicCalibrator(knots, np.repeat(levels, np.diff(blocks)))


def _build_bin(given: Floats, truths: Floats, edges: tuple[float, float], level: float) -> ReliabilityBin:
    n, hits = len(given), int(truths.sum())
    low, high = wilson_interval(hits, n, level)
    return ReliabilityBin(float(edges[0]), float(edges[1]), n, float(given.mean()), hits / n, low, high)


def _check_binning(probabilities: ArrayLike, labels: ArrayLike, count: int = 1) -> tuple[Floats, Floats]:
    given, truths = as_paired_samples(probabilities, labels)
    _check_labels(truths)
    if isinstance(count, bool) or count < 1:
        raise MeasureError(f"the number of bins is {count!r}; expected a whole number from 1")
    if wrong := given[(given < 0) | (given > 1)].tolist():
        raise MeasureError(f"a probability is {wrong[0]:g}; expected numbers from 0 to 1")
    return given, truths


def _check_labels(truths: Floats) -> None:
    if wrong := set(truths.tolist()) - {0.0, 1.0}:
        raise MeasureError(f"a label is {min(wrong):g}; expected 0 and 1")
