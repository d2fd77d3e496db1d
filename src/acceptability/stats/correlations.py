"""How two columns go together, with p values and intervals; and whether one goes better with a third.

Kinds: "pearson" (a straight line), "spearman" and "kendall" (order only). The coefficient is the effect size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

import scipy
from numpy.typing import ArrayLike

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.samples import check_choice, check_level, paired, same_length, varies
from acceptability.types import Floats

KINDS = ("pearson", "spearman", "kendall")

_ROUNDING = 1e-14


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
class Cell:
    """One cell of a matrix of correlations; where there is none, the reason."""

    first: str
    second: str
    correlation: Correlation | None
    reason: str | None = None


@dataclass(frozen=True)
class DependentCorrelations:
    """Whether one column goes better with people than another does, over the same rows.

    Args:
        first, second: Each column's correlation with people; ``between`` is theirs with each other.
        t, t_p, df: Williams' test (Steiger 1980, equation 7).
        z, z_p: Steiger's test with pooled correlations (equation 14).
        q: The effect (Cohen's q): the difference of the two after Fisher's transformation.
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
    that of Kendall's tau-b is exact for few rows without ties. Intervals are by Fisher's transformation, with
    standard error 1/sqrt(n−3) for Pearson's, sqrt((1+r²/2)/(n−3)) for Spearman's (Bonett and Wright 2000) and
    sqrt(.437/(n−4)) for Kendall's (Fieller 1957). Fewer rows, or a coefficient of exactly 1 or −1, give none.

    >>> correlate([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], "spearman").r
    0.8
    """
    check_choice("kind", kind, KINDS)
    check_level(level)
    one, two = paired(first, second, least=2)
    varies("the first column", one)
    varies("the second column", two)
    r, p = _TESTS[kind](one, two)
    return Correlation(kind, r, p if len(one) > 2 else None, *_fisher(r, len(one), kind, level), len(one))


def correlation_matrix(columns: Mapping[str, ArrayLike], kind: str = "pearson") -> list[Cell]:
    """Return the correlation of every two of some columns: models' scores, people's ratings, or their deltas.

    An undefined one is a cell with a reason. The p values are not adjusted: ``holm`` and ``benjamini_hochberg`` do.
    """
    check_choice("kind", kind, KINDS)
    found = same_length(columns)
    if len(found) < 2:
        raise MeasureError(f"a matrix of correlations needs two columns; there are {len(found)}")
    return [_cell(one, two, found, kind) for one, two in combinations(found, 2)]


def compare_correlations(people: ArrayLike, first: ArrayLike, second: ArrayLike) -> DependentCorrelations:
    """Test whether the first column correlates with people's differently from the second, over the same rows.

    Assumes independent rows and columns that are normal together. Pearson's r; for ranks give ranked columns.
    """
    human, one = paired(people, first, least=4)
    _, two = paired(people, second, least=4)
    r1, r2, r12 = correlate(human, one).r, correlate(human, two).r, correlate(one, two).r
    return dependent(r1, r2, r12, len(human))


def dependent(first: float, second: float, between: float, n: int) -> DependentCorrelations:
    """Test whether two correlations with one column differ, from the coefficients alone.

    >>> found = dependent(0.80, 0.72, 0.89, n=26)
    >>> round(found.t, 3), round(found.t_p, 3)
    (1.361, 0.187)
    """
    if n < 4:
        raise Undefined(f"there are {n} rows; 4 are needed")
    if max(abs(first), abs(second), abs(between)) >= 1:
        raise Undefined("a correlation of exactly 1 or −1 leaves the test undefined")
    determinant = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    if determinant < -1e-12:
        raise MeasureError(f"no three columns correlate by {first:g}, {second:g} and {between:g}")
    middle = (first + second) / 2
    below = 2 * (n - 1) / (n - 3) * max(determinant, 0.0) + middle**2 * (1 - between) ** 3
    if below <= 0:
        raise Undefined("one column follows from the other two, which leaves the test undefined")
    t = (first - second) * math.sqrt((n - 1) * (1 + between) / below)
    covariance = between * (1 - 2 * middle**2) - middle**2 * (1 - 2 * middle**2 - between**2) / 2
    q = math.atanh(first) - math.atanh(second)
    z = q * math.sqrt((n - 3) / (2 - 2 * covariance / (1 - middle**2) ** 2))
    t_p, z_p = 2 * float(scipy.special.stdtr(n - 3, -abs(t))), 2 * float(scipy.special.ndtr(-abs(z)))
    return DependentCorrelations(first, second, between, t, t_p, n - 3, z, z_p, q, n)


def _cell(one: str, two: str, columns: Mapping[str, Floats], kind: str) -> Cell:
    try:
        return Cell(one, two, correlate(columns[one], columns[two], kind))
    except Undefined as error:
        return Cell(one, two, None, str(error))


def _pearson(one: Floats, two: Floats) -> tuple[float, float]:
    from scipy.stats import pearsonr

    # Scaled first, so that columns of very small or very large numbers are none that SciPy warns of.
    found = pearsonr(*(((each - each.mean()) / abs(each - each.mean()).max()) for each in (one, two)))
    r = float(found.statistic)
    # A straight line is one, whatever rounding makes of it.
    return (math.copysign(1.0, r), 0.0) if abs(r) > 1 - _ROUNDING else (r, float(found.pvalue))


def _spearman(one: Floats, two: Floats) -> tuple[float, float]:
    from scipy.stats import rankdata

    return _pearson(rankdata(one), rankdata(two))


def _kendall(one: Floats, two: Floats) -> tuple[float, float]:
    from scipy.stats import kendalltau

    found = kendalltau(one, two)
    r = float(found.statistic)
    return (math.copysign(1.0, r) if abs(r) > 1 - _ROUNDING else r), float(found.pvalue)


_TESTS: dict[str, Callable[[Floats, Floats], tuple[float, float]]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "kendall": _kendall,
}


def _fisher(r: float, n: int, kind: str, level: float) -> tuple[float | None, float | None]:
    """Return the interval of a coefficient by Fisher's transformation."""
    variances = {"pearson": (1.0, n - 3), "spearman": (1 + r**2 / 2, n - 3), "kendall": (0.437, n - 4)}
    above, rows = variances[kind]
    if rows < 1 or abs(r) >= 1:
        return None, None
    half = float(scipy.special.ndtri((1 + level) / 2)) * math.sqrt(above / rows)
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)
