"""Tests that see only order: Wilcoxon's signed-rank test for pairs, the rank-sum test for two groups.

The rank-sum test is Wilcoxon's and, with the same p, Mann and Whitney's. They ask whether values of one group tend
to be higher, and need no normal distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.samples import ALTERNATIVES, check_choice, mean_ranks, paired, sample
from acceptability.types import Floats

METHODS = ("asymptotic", "exact")


@dataclass(frozen=True)
class SignedRank:
    """Wilcoxon's signed-rank test of paired values.

    Args:
        w_plus, w_minus: The sums of the ranks of positive and of negative differences.
        z: The sum of positive ranks in standard units, with continuity correction; None for an exact p.
        rank_biserial: The effect: (w_plus − w_minus) / (w_plus + w_minus), from −1 to 1.
        n: How many differences are not 0; ``zeros`` are left out.
    """

    w_plus: float
    w_minus: float
    z: float | None
    p: float
    rank_biserial: float
    n: int
    zeros: int
    method: str
    alternative: str


@dataclass(frozen=True)
class RankSum:
    """The rank-sum test of two groups.

    Args:
        w: How many pairs of a first and a second value have the first higher, ties as halves: R's W, and U of the
            first group; ``u`` is the smaller of the two groups' U.
        z: W in standard units, with continuity correction and correction for ties; None for an exact p.
        rank_biserial: The effect: the share of pairs with the first higher, minus the share with it lower.
        z_by_root_n: Another effect size in use, abs(z) / sqrt(n); None for an exact p.
        n: How many values both groups have together.
    """

    w: float
    u: float
    z: float | None
    p: float
    rank_biserial: float
    z_by_root_n: float | None
    n: int
    method: str
    alternative: str


def signed_rank(
    first: ArrayLike, second: ArrayLike, *, alternative: str = "two-sided", method: str = "asymptotic"
) -> SignedRank:
    """Test whether paired values differ (Wilcoxon 1945).

    Assumes independent pairs, and differences that lie symmetrically about their median. Differences of 0 are left
    out, ties share their mean rank, and the variance is corrected for them. ``method="exact"`` needs neither ties
    nor zeros.

    >>> signed_rank([3, 5, 9, 8], [1, 1, 1, 2], method="exact").p
    0.125
    """
    check_choice("alternative", alternative, ALTERNATIVES)
    check_choice("method", method, METHODS)
    one, two = paired(first, second)
    gaps = (one - two)[one != two]
    n, zeros = len(gaps), int((one == two).sum())
    if not n:
        raise Undefined("no pair differs")
    ranks, counts = mean_ranks(np.abs(gaps))
    plus = float(ranks[gaps > 0].sum())
    minus = n * (n + 1) / 2 - plus
    z = None
    if method == "exact":
        if zeros or counts.max() > 1:
            raise MeasureError("an exact signed-rank test needs differences without ties and zeros; use 'asymptotic'")
        p = _exact_signed(one, two, alternative)
    else:
        spread = math.sqrt((n * (n + 1) * (2 * n + 1) - float((counts**3 - counts).sum()) / 2) / 24)
        z, p = _normal(plus - n * (n + 1) / 4, spread, alternative)
    return SignedRank(plus, minus, z, p, (plus - minus) / (plus + minus), n, zeros, method, alternative)


def rank_sum(
    first: ArrayLike, second: ArrayLike, *, alternative: str = "two-sided", method: str = "asymptotic"
) -> RankSum:
    """Test whether the values of one group tend to be higher than those of another (Wilcoxon; Mann and Whitney).

    Assumes independent values; that the groups' spreads are alike only where a difference is read as one of medians.
    p is asymptotic with continuity correction, the variance corrected for ties; ``method="exact"`` needs no ties.

    Args:
        alternative: "two-sided", or "greater" or "less" for the first group.
    """
    check_choice("alternative", alternative, ALTERNATIVES)
    check_choice("method", method, METHODS)
    one, two = sample("the first group", first), sample("the second group", second)
    ranks, counts = mean_ranks(np.concatenate([one, two]))
    n1, n2, n = len(one), len(two), len(one) + len(two)
    w = float(ranks[:n1].sum()) - n1 * (n1 + 1) / 2
    z, root = None, None
    if method == "exact":
        if counts.max() > 1:
            raise MeasureError("an exact rank-sum test needs values without ties; use 'asymptotic'")
        p = _exact_sum(one, two, alternative)
    else:
        ties = float((counts**3 - counts).sum()) / (n * (n - 1))
        spread = math.sqrt(max(0.0, n1 * n2 / 12 * (n + 1 - ties)))
        if spread == 0:
            raise Undefined("all values are the same")
        z, p = _normal(w - n1 * n2 / 2, spread, alternative)
        root = abs(z) / math.sqrt(n)
    return RankSum(w, min(w, n1 * n2 - w), z, p, 2 * w / (n1 * n2) - 1, root, n, method, alternative)


def niu_penn_p(first: ArrayLike, second: ArrayLike) -> float:
    """Return p of the rank-sum test as Niu and Penn (2020) have it: half of the two-sided asymptotic p.

    That was SciPy's default up to version 1.6. It is one-sided in whichever direction the groups differ, and so
    calls twice as many differences significant as it should; ours is ``rank_sum``.
    """
    return rank_sum(first, second).p / 2


def _normal(gap: float, spread: float, alternative: str) -> tuple[float, float]:
    """Return z, half a rank nearer to 0 or against the alternative, and its p."""
    if alternative == "two-sided":
        z = math.copysign(max(abs(gap) - 0.5, 0.0), gap) / spread
        return z, min(1.0, 2 * float(scipy.special.ndtr(-abs(z))))
    z = (gap - 0.5 if alternative == "greater" else gap + 0.5) / spread
    return z, float(scipy.special.ndtr(-z if alternative == "greater" else z))


def _exact_signed(one: Floats, two: Floats, alternative: str) -> float:
    from scipy.stats import wilcoxon

    return float(wilcoxon(one, two, alternative=alternative, method="exact").pvalue)


def _exact_sum(one: Floats, two: Floats, alternative: str) -> float:
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(one, two, alternative=alternative, method="exact").pvalue)
