"""Intervals and exact tests for few answers: Student's t for means, Clopper and Pearson for shares."""

from __future__ import annotations

import math

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.samples import check_level
from acceptability.types import Floats

Interval = tuple[float | None, float | None]


def mean_interval(values: Floats, level: float = 0.95) -> Interval:
    """Return Student's t interval of a mean; fewer than two values give none.

    >>> import numpy as np
    >>> [round(each, 4) for each in mean_interval(np.array([1.0, 2.0, 3.0]))]
    [-0.4841, 4.4841]
    """
    check_level(level)
    n = len(values)
    if n < 2:
        return None, None
    # Imported here and below: it takes a fifth of a second, which no other command should wait for.
    from scipy.special import stdtrit

    mean = float(values.mean())
    half = float(stdtrit(n - 1, (1 + level) / 2)) * float(values.std(ddof=1)) / math.sqrt(n)
    return mean - half, mean + half


def share_interval(hits: int, n: int, level: float = 0.95) -> Interval:
    """Return the exact binomial interval of a share (Clopper and Pearson 1934); no trial gives none.

    >>> [round(each, 4) for each in share_interval(9, 10)]
    [0.555, 0.9975]
    """
    check_level(level)
    if hits == n == 0:
        return None, None
    from acceptability.stats.quantiles import clopper_pearson

    return clopper_pearson(hits, n, level)


def sign_test(hits: int, n: int) -> float:
    """Return the two-sided exact probability of a split at least as uneven, if both sides are equally likely.

    >>> sign_test(9, 10)
    0.021484375
    """
    if not 0 <= hits <= n:
        raise MeasureError(f"{hits} of {n} is no share")
    if n == 0:
        raise Undefined("there is no choice to test")
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(hits, n - hits), n, 0.5)))
