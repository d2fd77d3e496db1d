"""How many pairs it takes to tell an accuracy from chance."""

from __future__ import annotations

import math

import numpy as np
import scipy

from acceptability.errors import MeasureError

_ALPHA = 0.05


def power(n: int, effect: float, *, seed: int = 0, draws: int = 20_000) -> float:
    """Return how often n pairs tell an accuracy from chance (two-sided exact test, .05), by simulation.

    >>> power(10, 0.6) < 0.2 < 0.9 < power(400, 0.6)
    True
    """
    least = critical(n)
    hits = np.random.default_rng(seed).binomial(n, effect, size=draws)
    return float(((hits >= least) | (hits <= n - least)).mean())


def exact_power(n: int, effect: float) -> float:
    """Return how often n pairs tell an accuracy from chance (two-sided exact test, .05), computed exactly.

    >>> round(exact_power(10, 0.9), 4)
    0.7361
    """
    if n < 1 or not 0 <= effect <= 1:
        raise MeasureError(f"{n} pairs of accuracy {effect}: expected at least one pair, and a share from 0 to 1")
    least = critical(n)
    if least > n:
        return 0.0
    return float(scipy.special.bdtrc(least - 1, n, effect) + scipy.special.bdtr(n - least, n, effect))


def critical(n: int) -> int:
    """Return how many of n right answers are the fewest that chance gives too seldom."""
    half = n * math.log(2)
    tail = 0.0
    for hits in range(n, -1, -1):
        tail += math.exp(math.lgamma(n + 1) - math.lgamma(hits + 1) - math.lgamma(n - hits + 1) - half)
        if 2 * tail > _ALPHA:
            return hits + 1
    return 0
