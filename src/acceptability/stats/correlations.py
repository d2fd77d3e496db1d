"""Correlations with p values and intervals, and tests of whether two columns correlate differently with a third.

Kinds: "pearson" (linear), "spearman" and "kendall" (rank correlations). The coefficient itself is the effect size.
`compare_correlations` tests two dependent correlations, such as those of two models with the same human ratings, by the
tests of Williams and of Steiger (1980).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

import scipy
from numpy.typing import ArrayLike

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.samples import as_columns, as_paired_samples, check_choice, check_level, require_variation
from acceptability.types import Floats

CORRELATION_KINDS = ("pearson", "spearman", "kendall")

# How far rounding can leave the r of a perfectly linear relation from 1.
_ROUNDING = 1e-14
# A determinant of three correlations below 0 by more than rounding means that no data can have them.
_MIN_DETERMINANT = -1e-12


@dataclass(frozen=True)
class Correlation:
    """A correlation coefficient, its two-sided p, and its interval; None where they are undefined."""

    kind: str
    r: float
    p: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class CorrelationCell:
    """One cell of a correlation matrix; where the correlation is undefined, the reason."""

    first: str
    second: str
    correlation: Correlation | None
    reason: str | None = None


@dataclass(frozen=True)
class DependentCorrelations:
    """A test of two dependent correlations: of two columns with the same third one, over the same rows.

    Args:
        first, second: The correlation of either column with the third.
        between: The correlation of the two columns with each other.
        t, t_p, df: Williams' test (Steiger 1980, equation 7).
        z, z_p: Steiger's test with pooled correlations (equation 14).
        q: The effect size, Cohen's q: the difference of the two correlations after Fisher's z transformation.
    """

    first: float
    second: float
    between: float
    t: float
    t_p: float
    df: int
    z: float
    z_p: float
    q: float
    n: int


def correlate(first: ArrayLike, second: ArrayLike, kind: str = "pearson", *, level: float = 0.95) -> Correlation:
    """Return the correlation of two columns.

    Assumes independent rows. p of Pearson's r assumes normal columns; that of Spearman's is by the t distribution;
    that of Kendall's tau-b is exact for few rows without ties. Intervals are by Fisher's z transformation, with
    standard error 1/sqrt(n−3) for Pearson's, sqrt((1+r²/2)/(n−3)) for Spearman's (Bonett and Wright 2000) and
    sqrt(.437/(n−4)) for Kendall's (Fieller 1957). Fewer rows, or a coefficient of exactly 1 or −1, give no interval.

    Args:
        kind: "pearson", "spearman" or "kendall".
        level: The confidence level of the interval.

    >>> correlate([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], "spearman").r
    0.8
    """
    check_choice("kind", kind, CORRELATION_KINDS)
    check_level(level)
    x, y = as_paired_samples(first, second, least=2)
    require_variation("the first column", x)
    require_variation("the second column", y)
    r, p = _TESTS[kind](x, y)
    # Any two points lie on a line: r is 1 or −1, and its p is undefined.
    return Correlation(kind, r, p if len(x) > 2 else None, *_fisher_interval(r, len(x), kind, level), len(x))


def correlation_matrix(columns: Mapping[str, ArrayLike], kind: str = "pearson") -> list[CorrelationCell]:
    """Return the correlation of every two columns: models' scores, people's ratings, or their deltas.

    An undefined correlation is a cell with a reason. The p values are not adjusted for multiple tests; ``holm`` and
    ``benjamini_hochberg`` do that.
    """
    check_choice("kind", kind, CORRELATION_KINDS)
    arrays = as_columns(columns)
    if len(arrays) < 2:
        raise MeasureError(f"a matrix of correlations needs two columns; there are {len(arrays)}")
    return [_build_cell(first, second, arrays, kind) for first, second in combinations(arrays, 2)]


def compare_correlations(people: ArrayLike, first: ArrayLike, second: ArrayLike) -> DependentCorrelations:
    """Test whether two columns correlate differently with people's, over the same rows.

    Assumes independent rows and columns that are jointly normal. The correlation is Pearson's r; for Spearman's pass
    ranks.
    """
    ratings, x = as_paired_samples(people, first, least=4)
    _, y = as_paired_samples(people, second, least=4)
    return williams_steiger_test(correlate(ratings, x).r, correlate(ratings, y).r, correlate(x, y).r, len(ratings))


def williams_steiger_test(first: float, second: float, between: float, n: int) -> DependentCorrelations:
    """Test whether two dependent correlations differ, from the coefficients alone (Williams; Steiger 1980).

    Args:
        first, second: The correlations of two columns with a third.
        between: The correlation of the two columns with each other.
        n: The number of rows.

    >>> test = williams_steiger_test(0.80, 0.72, 0.89, n=26)
    >>> round(test.t, 3), round(test.t_p, 3)
    (1.361, 0.187)
    """
    if n < 4:
        raise Undefined(f"there are {n} rows; 4 are needed")
    if max(abs(first), abs(second), abs(between)) >= 1:
        raise Undefined("a correlation of exactly 1 or −1 leaves the test undefined")
    determinant = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    if determinant < _MIN_DETERMINANT:
        raise MeasureError(f"no three columns correlate by {first:g}, {second:g} and {between:g}")
    mean = (first + second) / 2
    denominator = 2 * (n - 1) / (n - 3) * max(determinant, 0.0) + mean**2 * (1 - between) ** 3
    if denominator <= 0:
        raise Undefined("one column is determined by the other two, which leaves the test undefined")
    t = (first - second) * math.sqrt((n - 1) * (1 + between) / denominator)
    covariance = between * (1 - 2 * mean**2) - mean**2 * (1 - 2 * mean**2 - between**2) / 2
    q = math.atanh(first) - math.atanh(second)
    z = q * math.sqrt((n - 3) / (2 - 2 * covariance / (1 - mean**2) ** 2))
    t_p, z_p = 2 * float(scipy.special.stdtr(n - 3, -abs(t))), 2 * float(scipy.special.ndtr(-abs(z)))
    return DependentCorrelations(first, second, between, t, t_p, n - 3, z, z_p, q, n)


def _build_cell(first: str, second: str, columns: Mapping[str, Floats], kind: str) -> CorrelationCell:
    try:
        return CorrelationCell(first, second, correlate(columns[first], columns[second], kind))
    except Undefined as error:
        return CorrelationCell(first, second, None, str(error))


def _pearson_test(x: Floats, y: Floats) -> tuple[float, float]:
    from scipy.stats import pearsonr

    # Centred and scaled to at most 1, which leaves r as it is: of columns whose mean is far above their spread SciPy
    # warns that they are nearly constant.
    test = pearsonr(*(((column - column.mean()) / abs(column - column.mean()).max()) for column in (x, y)))
    r = float(test.statistic)
    # Rounding must not turn a perfect line into one that is not quite perfect, with an interval of its own.
    return (math.copysign(1.0, r), 0.0) if abs(r) > 1 - _ROUNDING else (r, float(test.pvalue))


def _spearman_test(x: Floats, y: Floats) -> tuple[float, float]:
    from scipy.stats import rankdata

    return _pearson_test(rankdata(x), rankdata(y))


def _kendall_test(x: Floats, y: Floats) -> tuple[float, float]:
    from scipy.stats import kendalltau

    test = kendalltau(x, y)
    r = float(test.statistic)
    return (math.copysign(1.0, r) if abs(r) > 1 - _ROUNDING else r), float(test.pvalue)


_TESTS: dict[str, Callable[[Floats, Floats], tuple[float, float]]] = {
    "pearson": _pearson_test,
    "spearman": _spearman_test,
    "kendall": _kendall_test,
}


def _fisher_interval(r: float, n: int, kind: str, level: float) -> tuple[float | None, float | None]:
    """Return the interval of a coefficient by Fisher's z transformation; (None, None) where it is undefined."""
    variances = {"pearson": (1.0, n - 3), "spearman": (1 + r**2 / 2, n - 3), "kendall": (0.437, n - 4)}
    variance_factor, effective_n = variances[kind]
    if effective_n < 1 or abs(r) >= 1:
        return None, None
    half_width = float(scipy.special.ndtri((1 + level) / 2)) * math.sqrt(variance_factor / effective_n)
    return math.tanh(math.atanh(r) - half_width), math.tanh(math.atanh(r) + half_width)
