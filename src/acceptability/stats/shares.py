"""McNemar's test: do two models get different shares of the same rows right?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import scipy
from numpy.typing import ArrayLike

from acceptability.errors import MeasureError
from acceptability.stats.quantiles import clopper_pearson
from acceptability.stats.samples import check_level, paired


@dataclass(frozen=True)
class McNemar:
    """How two models' right answers over the same rows differ.

    Args:
        both, only_first, only_second, neither: How many rows which model gets right.
        p: Exact and two-sided: twice the smaller binomial tail of the rows that only one gets right.
        chi2, chi2_p: The approximation with Edwards' continuity correction; None where no row tells the models apart.
        odds_ratio: ``only_first / only_second`` with its exact interval; None where the divisor is 0.
        odds_low, odds_high: The ends of that interval; None for an end that is infinite or undefined.
        difference: The first model's share minus the second's, with a Wald interval for paired shares.
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
    """Test whether two models get different shares of the same rows right.

    Assumes that rows are independent: where several share an item, use ``permutation_test`` by item. Only rows
    that one model gets right and the other wrong count. Effect sizes: the odds ratio of those, and the difference
    of the shares.

    >>> found = mcnemar([1, 1, 1, 1, 0, 1, 0], [0, 0, 0, 0, 0, 1, 0])
    >>> found.only_first, found.only_second, found.p
    (4, 0, 0.125)
    """
    check_level(level)
    one, two = paired(first, second)
    for column in (one, two):
        if wrong := set(column.tolist()) - {0.0, 1.0}:
            raise MeasureError(f"McNemar's test counts right (1) and wrong (0); a row has {min(wrong):g}")
    both, only_one, only_two = (int(x) for x in (one @ two, one @ (1 - two), (1 - one) @ two))
    n, split = len(one), only_one + only_two
    chi2 = max(abs(only_one - only_two) - 1, 0) ** 2 / split if split else None
    low, high = _odds_interval(only_one, split, level)
    gap = (only_one - only_two) / n
    half = float(scipy.special.ndtri((1 + level) / 2)) * math.sqrt(split / n - gap**2) / math.sqrt(n)
    return McNemar(
        both,
        only_one,
        only_two,
        n - both - split,
        min(1.0, 2 * float(scipy.special.bdtr(min(only_one, only_two), split, 0.5))) if split else 1.0,
        chi2,
        None if chi2 is None else float(scipy.special.chdtrc(1, chi2)),
        only_one / only_two if only_two else None,
        low,
        high,
        gap,
        max(-1.0, gap - half),
        min(1.0, gap + half),
        n,
    )


def _odds_interval(hits: int, n: int, level: float) -> tuple[float | None, float | None]:
    """Return the interval of odds, from the exact one of the share."""
    if not n:
        return None, None
    low, high = clopper_pearson(hits, n, level)
    return low / (1 - low), high / (1 - high) if high < 1 else None
