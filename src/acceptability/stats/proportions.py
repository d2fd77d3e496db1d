"""Statistics of proportions: McNemar's test, the sign test, exact intervals, and the power of a number of pairs.

`mcnemar` tests whether two models get different shares of the same rows right. `sign_test` and `proportion_interval`
(Clopper and Pearson) are exact, for few answers; `mean_interval` is Student's t interval. `exact_power` and
`critical_count` say how many pairs it takes to distinguish an accuracy from chance, by the binomial distribution, and
`simulate_power` the same by simulation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.intervals.closed_forms import clopper_pearson
from acceptability.stats.samples import as_paired_samples, check_level
from acceptability.types import Floats

IntervalBounds = tuple[float | None, float | None]

_ALPHA = 0.05
"""The significance level of the power calculations."""


@dataclass(frozen=True)
class McNemar:
    """How the right answers of two models over the same rows differ.

    Args:
        both, only_first, only_second, neither: The number of rows that both models get right, one of them, or neither.
        p: Exact and two-sided: twice the smaller binomial tail of the discordant rows, which only one model gets right.
        chi2, chi2_p: The approximation with Edwards' continuity correction; None where no row is discordant.
        odds_ratio: ``only_first / only_second``; None where the divisor is 0.
        odds_low, odds_high: Its exact interval; None for an end that is infinite or undefined.
        difference: The first model's share minus the second's.
        difference_low, difference_high: The Wald interval of the difference, for paired proportions.
    """

    both: int
    only_first: int
    only_second: int
    neither: int
    p: float
    chi2: float | None
    chi2_p: float | None
    odds_ratio: float | None
    odds_low: float | None
    odds_high: float | None
    difference: float
    difference_low: float
    difference_high: float
    n: int


def mcnemar(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> McNemar:
    """Test whether two models get different shares of the same rows right (McNemar 1947).

    Assumes that rows are independent: where several share an item, use ``permutation_test`` by item. The test rests on
    the discordant rows, those that one model gets right and the other wrong. Effect sizes are the odds ratio of these
    and the difference of the shares.

    Args:
        first, second: 1 for each row that a model gets right, 0 for others.

    >>> test = mcnemar([1, 1, 1, 1, 0, 1, 0], [0, 0, 0, 0, 0, 1, 0])
    >>> test.only_first, test.only_second, test.p
    (4, 0, 0.125)
    """
    check_level(level)
    x, y = as_paired_samples(first, second)
    for column in (x, y):
        if wrong := set(column.tolist()) - {0.0, 1.0}:
            raise MeasureError(f"McNemar's test counts right (1) and wrong (0); a row has {min(wrong):g}")
    n = len(x)
    both, only_first, only_second = (int(count) for count in (x @ y, x @ (1 - y), (1 - x) @ y))
    discordant = only_first + only_second
    # The continuity correction must not carry the difference of the counts past 0.
    chi2 = max(abs(only_first - only_second) - 1, 0) ** 2 / discordant if discordant else None
    odds_low, odds_high = _odds_ratio_interval(only_first, discordant, level)
    difference = (only_first - only_second) / n
    z = float(scipy.special.ndtri((1 + level) / 2))
    half_width = z * math.sqrt(discordant / n - difference**2) / math.sqrt(n)
    return McNemar(
        both=both,
        only_first=only_first,
        only_second=only_second,
        neither=n - both - discordant,
        p=_binomial_two_sided(min(only_first, only_second), discordant) if discordant else 1.0,
        chi2=chi2,
        chi2_p=None if chi2 is None else float(scipy.special.chdtrc(1, chi2)),
        odds_ratio=only_first / only_second if only_second else None,
        odds_low=odds_low,
        odds_high=odds_high,
        difference=difference,
        # A Wald interval is symmetric, and reaches beyond what a difference of shares can be.
        difference_low=max(-1.0, difference - half_width),
        difference_high=min(1.0, difference + half_width),
        n=n,
    )


def _odds_ratio_interval(hits: int, n: int, level: float) -> tuple[float | None, float | None]:
    """Return the exact interval of an odds, from that of the proportion of hits."""
    if not n:
        return None, None
    low, high = clopper_pearson(hits, n, level)
    return low / (1 - low), high / (1 - high) if high < 1 else None


def sign_test(hits: int, n: int) -> float:
    """Return the two-sided exact p of the sign test: of a split at least as uneven if both sides are equally likely.

    >>> sign_test(9, 10)
    0.021484375
    """
    if not 0 <= hits <= n:
        raise MeasureError(f"{hits} of {n} is no share")
    if n == 0:
        raise Undefined("there is no choice to test")
    return _binomial_two_sided(min(hits, n - hits), n)


def binomial_lower_tail(hits: int, n: int, chance: float) -> float:
    """Return the probability of at most so many hits in n independent trials (one-sided exact binomial test).

    >>> binomial_lower_tail(1, 10, 0.5)
    0.0107421875
    """
    if not 0 <= hits <= n or not 0 < chance < 1:
        raise MeasureError(f"{hits} of {n} at a chance of {chance} is no count; expected 0 to n, and 0 to 1")
    return float(scipy.special.bdtr(hits, n, chance))


def hypergeometric_lower_tail(hits: int, yes: int, good: int, n: int) -> float:
    """Return the probability of at most so many hits if predictions are unrelated to labels (Fisher's exact test).

    Args:
        hits: How many good ones are among those with the answer yes.
        yes: How many have the answer yes.
        good: How many are good.
        n: How many there are.

    >>> round(hypergeometric_lower_tail(1, 4, 4, 8), 4)
    0.2429
    """
    least, most = max(0, yes + good - n), min(yes, good)
    if not least <= hits <= most:
        raise MeasureError(
            f"{hits} hits are impossible among {yes} of {n}, {good} of them good: expected {least} to {most}"
        )
    counts = np.arange(least, hits + 1)
    # As logarithms, since the factorials of a thousand sentences overflow.
    log_chances = _log_binomial(good, counts) + _log_binomial(n - good, yes - counts) - _log_binomial(n, np.array(yes))
    return min(1.0, float(np.exp(scipy.special.logsumexp(log_chances))))


def _log_binomial(n: int, k: NDArray[np.int64]) -> Floats:
    return np.asarray(scipy.special.gammaln(n + 1) - scipy.special.gammaln(k + 1) - scipy.special.gammaln(n - k + 1))


def _binomial_two_sided(fewer: int, n: int) -> float:
    # Doubling counts an even split twice, and gives more than 1 for it.
    return min(1.0, 2 * float(scipy.special.bdtr(fewer, n, 0.5)))


def mean_interval(values: Floats, level: float = 0.95) -> IntervalBounds:
    """Return Student's t interval of a mean; (None, None) for fewer than two values.

    >>> import numpy as np
    >>> [round(bound, 4) for bound in mean_interval(np.array([1.0, 2.0, 3.0]))]
    [-0.4841, 4.4841]
    """
    check_level(level)
    n = len(values)
    if n < 2:
        return None, None
    mean = float(values.mean())
    t = float(scipy.special.stdtrit(n - 1, (1 + level) / 2))
    half_width = t * float(values.std(ddof=1)) / math.sqrt(n)
    return mean - half_width, mean + half_width


def proportion_interval(hits: int, n: int, level: float = 0.95) -> IntervalBounds:
    """Return the exact binomial interval of a proportion (Clopper and Pearson 1934); (None, None) for no trial.

    >>> [round(bound, 4) for bound in proportion_interval(9, 10)]
    [0.555, 0.9975]
    """
    check_level(level)
    if hits == n == 0:
        return None, None
    return clopper_pearson(hits, n, level)


def exact_power(n: int, effect: float) -> float:
    """Return the power of n pairs to distinguish an accuracy from chance (two-sided exact binomial test, .05).

    Args:
        effect: The true accuracy.

    >>> round(exact_power(10, 0.9), 4)
    0.7361
    """
    if n < 1 or not 0 <= effect <= 1:
        raise MeasureError(f"{n} pairs of accuracy {effect}: expected at least one pair, and a share from 0 to 1")
    least = critical_count(n)
    # With five pairs or fewer not even all right is significant.
    if least > n:
        return 0.0
    return float(scipy.special.bdtrc(least - 1, n, effect) + scipy.special.bdtr(n - least, n, effect))


def simulate_power(n: int, effect: float, *, seed: int = 0, draws: int = 20_000) -> float:
    """Return the power of n pairs as `exact_power` does, by simulation.

    >>> simulate_power(10, 0.6) < 0.2 < 0.9 < simulate_power(400, 0.6)
    True
    """
    least = critical_count(n)
    hits = np.random.default_rng(seed).binomial(n, effect, size=draws)
    return float(((hits >= least) | (hits <= n - least)).mean())


def critical_count(n: int) -> int:
    """Return the least number of n right answers that is significantly above chance (two-sided, .05); n + 1 if none is.

    >>> critical_count(10)
    9
    """
    log_total = n * math.log(2)
    tail = 0.0
    for hits in range(n, -1, -1):
        # By logarithms, since the binomial coefficients of many pairs overflow a float.
        tail += math.exp(math.lgamma(n + 1) - math.lgamma(hits + 1) - math.lgamma(n - hits + 1) - log_total)
        if 2 * tail > _ALPHA:
            return hits + 1
    return 0
