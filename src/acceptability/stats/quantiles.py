"""From resampled values to an interval: percentile, and BCa (Efron 1987), which corrects bias and skewness."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

from acceptability.errors import MeasureError, Undefined
from acceptability.types import Floats


def percentile(values: Floats, level: float) -> tuple[float, float]:
    """Return where the middle of resampled values lies.

    >>> percentile(np.arange(101.0), 0.5)
    (25.0, 75.0)
    """
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def bca(values: Floats, estimate: float, left_out: Sequence[Floats], level: float) -> tuple[float, float]:
    """Return the bias-corrected and accelerated interval.

    Args:
        values: What the resamples gave.
        estimate: What the rows themselves give.
        left_out: What they give with each thing that is drawn left out in turn; one array for each stratum.
    """
    if values.min() == values.max():
        return float(values[0]), float(values[0])
    # A resample that gives the estimate itself, but for rounding, lies half below it.
    slack = 1e-12 * float(np.abs(values).max())
    below = float(((values < estimate - slack).mean() + (values <= estimate + slack).mean()) / 2)
    if not 0 < below < 1:
        raise Undefined("the value itself lies outside all resampled values")
    bias, speed = float(scipy.special.ndtri(below)), acceleration(left_out)
    wanted = [bias + float(scipy.special.ndtri((1 + side * level) / 2)) for side in (-1, 1)]
    shares = [float(scipy.special.ndtr(bias + each / (1 - speed * each))) for each in wanted]
    low, high = np.quantile(values, shares)
    return float(low), float(high)


def acceleration(left_out: Sequence[Floats]) -> float:
    """Return how fast the spread changes with the value: a sixth of the skewness of what each thing contributes."""
    pulls = [(len(each) - 1) * (each.mean() - each) / len(each) for each in left_out]
    squares = sum(float(each @ each) for each in pulls)
    if squares == 0:
        return 0.0
    return float(sum(float((each**3).sum()) for each in pulls) / (6 * squares**1.5))


def clopper_pearson(hits: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the exact interval of a share: hits out of n independent trials of one chance.

    It covers the chance at least as often as it says, mostly more often.

    >>> low, high = clopper_pearson(10, 10)
    >>> round(low, 4), high
    (0.6915, 1.0)
    """
    if n < 1 or not 0 <= hits <= n:
        raise MeasureError(f"{hits} of {n} is no share; expected 0 to n hits out of at least one trial")
    if not 0 < level < 1:
        raise MeasureError(f"level is {level}; expected a share between 0 and 1")
    outside = (1 - level) / 2
    low = 0.0 if hits == 0 else float(scipy.special.betaincinv(hits, n - hits + 1, outside))
    high = 1.0 if hits == n else float(scipy.special.betaincinv(hits + 1, n - hits, 1 - outside))
    assert not math.isnan(low + high)
    return low, high
