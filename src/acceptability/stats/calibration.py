"""Whether probabilities mean what they say: of the sentences given 0.8, are 80 in 100 acceptable?

Reliability bins, the expected calibration error (Naeini, Cooper and Hauskrecht 2015), Brier's score (1950), and two
ways to mend: one temperature for all log-odds (Guo et al. 2017), fitted by maximum likelihood, or a rising step
function (isotonic regression; Zadrozny and Elkan 2002). Probabilities are those of "acceptable", labels are 0 and 1:
what is compared is the share of acceptable sentences, not how often the more probable label is right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.samples import check_level, mean_ranks, paired, sample
from acceptability.types import Floats

Places = NDArray[np.int64]

_COLDEST, _HOTTEST = 1e-6, 1e6


@dataclass(frozen=True)
class Bin:
    """Sentences of like probability.

    Args:
        low, high: Their least and greatest probability, or the edges of the bin where all bins are equally wide.
        n: How many there are.
        expected: Their mean probability.
        observed: The share of them that is acceptable, with its interval (Wilson 1927).
    """

    low: float
    high: float
    n: int
    expected: float
    observed: float
    observed_low: float
    observed_high: float


def equal_width(probabilities: ArrayLike, labels: ArrayLike, count: int = 10, *, level: float = 0.95) -> list[Bin]:
    """Return bins that are equally wide, from 0 to 1; those that nothing falls into are left out.

    A probability on an edge belongs to the bin above it, 1 to the last one.

    >>> [(each.low, each.n, each.observed) for each in equal_width([0.1, 0.2, 0.9], [0, 1, 1], count=2)]
    [(0.0, 2, 0.5), (0.5, 1, 1.0)]
    """
    given, truths = _checked(probabilities, labels, count)
    edges = np.linspace(0.0, 1.0, count + 1)
    places = np.clip(np.searchsorted(edges, given, side="right") - 1, 0, count - 1)
    return [
        _bin(given[places == place], truths[places == place], (edges[place], edges[place + 1]), level)
        for place in np.unique(places)
    ]


def equal_mass(probabilities: ArrayLike, labels: ArrayLike, count: int = 10, *, level: float = 0.95) -> list[Bin]:
    """Return bins that hold equally many sentences; equal probabilities stay together.

    >>> [(each.low, each.high, each.n) for each in equal_mass([0.1, 0.2, 0.8, 0.9], [0, 1, 1, 1], count=2)]
    [(0.1, 0.2, 2), (0.8, 0.9, 2)]
    """
    given, truths = _checked(probabilities, labels, count)
    ranks, _ = mean_ranks(given)
    places = np.floor((ranks - 0.5) * count / len(given)).astype(np.int64)
    return [
        _bin(given[inside], truths[inside], (given[inside].min(), given[inside].max()), level)
        for inside in (places == place for place in np.unique(places))
    ]


def expected_calibration_error(bins: Sequence[Bin]) -> float:
    """Return how far observed shares are from probabilities, on average over sentences.

    >>> expected_calibration_error(equal_width([0.1, 0.2, 0.9], [0, 1, 1], count=2))
    0.26666666666666666
    """
    if not bins:
        raise Undefined("there are no bins")
    return sum(each.n * abs(each.observed - each.expected) for each in bins) / sum(each.n for each in bins)


def brier(probabilities: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean squared distance of probabilities from labels: 0 is perfect, 0.25 is what 0.5 for all gives.

    >>> brier([0.5, 1.0], [0, 1])
    0.125
    """
    given, truths = _checked(probabilities, labels)
    return float(((given - truths) ** 2).mean())


def wilson(hits: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval of a share: hits out of n independent trials of one chance.

    >>> low, high = wilson(5, 10)
    >>> round(low, 4), round(high, 4)
    (0.2366, 0.7634)
    """
    if n < 1 or not 0 <= hits <= n:
        raise MeasureError(f"{hits} of {n} is no share; expected 0 to n hits out of at least one trial")
    check_level(level)
    z = float(scipy.special.ndtri((1 + level) / 2))
    middle = (hits + z**2 / 2) / (n + z**2)
    half = z * math.sqrt(hits * (n - hits) / n + z**2 / 4) / (n + z**2)
    # At the ends rounding would leave what is 0 or 1 a little off.
    return 0.0 if hits == 0 else middle - half, 1.0 if hits == n else middle + half


def probabilities_at(log_odds: ArrayLike, temperature: float = 1.0) -> Floats:
    """Return the probabilities that log-odds mean at a temperature.

    >>> probabilities_at([0.0, 2.0], temperature=1e9).round(3)
    array([0.5, 0.5])
    """
    if not (math.isfinite(temperature) and temperature > 0):
        raise MeasureError(f"the temperature is {temperature}; expected a number above 0")
    return np.asarray(scipy.special.expit(sample("the log-odds", log_odds) / temperature))


def fitted_temperature(log_odds: ArrayLike, labels: ArrayLike) -> float:
    """Return the temperature under which the labels are most probable: above 1 if the log-odds are too sure.

    >>> round(fitted_temperature([2.0, 2.0, 2.0, 2.0, -2.0], [1, 1, 1, 0, 0]), 3)
    1.443
    """
    given, truths = paired(log_odds, labels)
    _check_labels(truths)

    def slope(coldness: float) -> float:
        """How the loss changes with 1 / temperature: it rises with it, so that there is one zero at most."""
        return float(((scipy.special.expit(coldness * given) - truths) * given).sum())

    if slope(0.0) >= 0:
        raise Undefined("the log-odds do not go with the labels: no temperature makes them fit")
    if slope(1 / _COLDEST) <= 0:
        raise Undefined("the log-odds part the labels without an error: the lower the temperature, the better the fit")
    if slope(1 / _HOTTEST) >= 0:
        raise Undefined(f"the log-odds hardly go with the labels: the temperature would be above {_HOTTEST:g}")
    from scipy.optimize import brentq

    return 1 / float(brentq(slope, 1 / _HOTTEST, 1 / _COLDEST, xtol=1e-14, rtol=1e-13))


@dataclass(frozen=True, eq=False)
class Isotonic:
    """A function that never falls, from scores to probabilities: straight between its knots, flat outside them."""

    scores: Floats
    probabilities: Floats

    def __call__(self, scores: ArrayLike) -> Floats:
        return np.interp(sample("the scores", scores), self.scores, self.probabilities)


def fitted_isotonic(scores: ArrayLike, labels: ArrayLike) -> Isotonic:
    """Return the function that never falls and lies nearest to the labels (least squares).

    Neighbours that are out of order are pooled until none is (Ayer et al. 1955); equal scores are one from the start.

    >>> fitted_isotonic([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 1]).probabilities
    array([0. , 0.5, 0.5, 1. ])
    """
    given, truths = paired(scores, labels)
    _check_labels(truths)
    knots, places, counts = np.unique(given, return_inverse=True, return_counts=True)
    sums = np.bincount(places, truths)
    pools: list[tuple[float, int, int]] = []
    for total, n in zip(sums.tolist(), counts.tolist(), strict=True):
        pool = (total, n, 1)
        while pools and pools[-1][0] * pool[1] >= pool[0] * pools[-1][1]:
            before = pools.pop()
            pool = (before[0] + pool[0], before[1] + pool[1], before[2] + pool[2])
        pools.append(pool)
    levels = [total / n for total, n, _ in pools]
    return Isotonic(knots, np.repeat(levels, [width for *_, width in pools]))


def _bin(given: Floats, truths: Floats, edges: tuple[float, float], level: float) -> Bin:
    n, hits = len(given), int(truths.sum())
    low, high = wilson(hits, n, level)
    return Bin(float(edges[0]), float(edges[1]), n, float(given.mean()), hits / n, low, high)


def _checked(probabilities: ArrayLike, labels: ArrayLike, count: int = 1) -> tuple[Floats, Floats]:
    given, truths = paired(probabilities, labels)
    _check_labels(truths)
    if isinstance(count, bool) or count < 1:
        raise MeasureError(f"the number of bins is {count!r}; expected a whole number from 1")
    if wrong := given[(given < 0) | (given > 1)].tolist():
        raise MeasureError(f"a probability is {wrong[0]:g}; expected numbers from 0 to 1")
    return given, truths


def _check_labels(truths: Floats) -> None:
    if wrong := set(truths.tolist()) - {0.0, 1.0}:
        raise MeasureError(f"a label is {min(wrong):g}; expected 0 and 1")
