"""The correlation of two columns whose rows belong to sampling units of several rows, such as items.

The p values and intervals of `hypothesis_tests.correlate` assume independent rows. Here the standard error of Fisher's
z is that of the jackknife, which leaves out one unit at a time with all of its rows; t with one degree of freedom less
than there are units gives the interval and p. With units of one row each both agree closely (tests/stats compares
them), and no seed is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.hypothesis_tests import CORRELATION_KINDS, Correlation
from acceptability.stats.resampling import make_jackknife_groups
from acceptability.stats.samples import as_paired_samples, check_choice, check_level, require_variation
from acceptability.types import Floats

# Each unit left out costs a coefficient; more than 400 add nothing that can be seen in an interval.
_MAX_GROUPS = 400
# Of two units each gives one value, whose variance says nothing.
_MIN_UNITS = 3
# The random groups, where there are more units: fixed, so that the same data give the same interval.
_SEED = 0
# Rounding must not turn a perfect correlation into one that is not quite perfect, with an interval of its own.
_ROUNDING = 1e-12


def correlate_clustered(
    first: ArrayLike, second: ArrayLike, clusters: Sequence[str], kind: str = "pearson", *, level: float = 0.95
) -> Correlation:
    """Return the correlation of two columns, with an interval and p for sampling units of several rows.

    Assumes independent units, whatever the dependence of the rows inside them. The coefficient itself counts every
    row. A coefficient of exactly 1 or −1 has no interval, and p is 0.

    Args:
        first, second: The columns.
        clusters: The sampling unit of each row.
        kind: "pearson", "spearman" or "kendall" (tau-b).
        level: The confidence level of the interval.

    Raises:
        Undefined: There are fewer than three units, a column does not vary, or does not without one of the units.

    >>> x, y = [1, 2, 3, 4, 5, 6, 7, 8], [1, 3, 2, 4, 5, 8, 7, 6]
    >>> test = correlate_clustered(x, y, list("aabbccdd"))
    >>> round(test.r, 3), round(test.low, 3), round(test.high, 3)
    (0.881, 0.044, 0.991)
    """
    check_choice("kind", kind, CORRELATION_KINDS)
    check_level(level)
    x, y = as_paired_samples(first, second, least=2)
    require_variation("the first column", x)
    require_variation("the second column", y)
    if len(clusters) != len(x):
        raise MeasureError(f"there are {len(clusters)} clusters for {len(x)} rows; each row needs one")
    names, cluster_of_row = np.unique(np.array(clusters), return_inverse=True)
    if len(names) < _MIN_UNITS:
        raise Undefined(f"{_MIN_UNITS} sampling units are needed for an interval; there are {len(names)}")
    compute = _COEFFICIENTS[kind]
    r = compute(x, y)
    if abs(r) > 1 - _ROUNDING:
        return Correlation(kind, math.copysign(1.0, r), 0.0, None, None, len(x))
    groups = make_jackknife_groups(len(names), _MAX_GROUPS, _SEED)
    z_values = np.array([_left_out_z(x, y, cluster_of_row, group, compute) for group in groups])
    se = math.sqrt((len(groups) - 1) / len(groups) * float(((z_values - z_values.mean()) ** 2).sum()))
    df, z = len(groups) - 1, math.atanh(r)
    if se == 0:
        raise Undefined("leaving out any sampling unit leaves the correlation as it is")
    half_width = float(scipy.special.stdtrit(df, (1 + level) / 2)) * se
    p = 2 * float(scipy.special.stdtr(df, -abs(z) / se))
    return Correlation(kind, r, p, math.tanh(z - half_width), math.tanh(z + half_width), len(x))


def _left_out_z(
    x: Floats,
    y: Floats,
    cluster_of_row: NDArray[np.int64],
    group: NDArray[np.int64],
    compute: Callable[[Floats, Floats], float],
) -> float:
    """Return Fisher's z of the rows without some of the clusters."""
    kept = ~np.isin(cluster_of_row, group)
    left_x, left_y = x[kept], y[kept]
    if np.ptp(left_x) == 0 or np.ptp(left_y) == 0:
        raise Undefined("a column does not vary without one of the sampling units")
    r = compute(left_x, left_y)
    if abs(r) > 1 - _ROUNDING:
        raise Undefined("the correlation is exactly 1 or −1 without one of the sampling units")
    return math.atanh(r)


def _pearson(x: Floats, y: Floats) -> float:
    # Scaled before squaring: squares of very small scores would underflow, those of very large ones overflow.
    a, b = ((column - column.mean()) / np.abs(column - column.mean()).max() for column in (x, y))
    return float(a @ b / math.sqrt((a @ a) * (b @ b)))


def _spearman(x: Floats, y: Floats) -> float:
    from scipy.stats import rankdata

    return _pearson(rankdata(x), rankdata(y))


def _kendall(x: Floats, y: Floats) -> float:
    from scipy.stats import kendalltau

    return float(kendalltau(x, y).statistic)


_COEFFICIENTS: dict[str, Callable[[Floats, Floats], float]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "kendall": _kendall,
}
