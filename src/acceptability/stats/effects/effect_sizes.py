"""Effect sizes with intervals: Cohen's d, (partial) eta squared, rank-biserial correlations, alpha and ICC.

An effect size says how large a difference is, on a scale that does not depend on the number of rows, and its interval
says how well the sample determines it. Intervals of d and of eta squared come from noncentral distributions: their
ends are the effects under which the observed statistic lies at either tail (Steiger 2004). Those of rank-biserial
correlations are score intervals: of two groups by Newcombe (2006), of matched pairs with the variance of a U
statistic; those of reliability coefficients come from F distributions (Feldt 1965; Shrout and Fleiss 1979; McGraw and
Wong 1996). Every result names its method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.samples import as_paired_samples, as_sample, check_level
from acceptability.types import Floats

NONCENTRAL_T = "noncentral t"
NONCENTRAL_F = "noncentral F (Steiger 2004)"
NEWCOMBE_SCORE = "score (Newcombe 2006, method 5)"
WALSH_SCORE = "score of the U statistic of Walsh averages"
FELDT = "F (Feldt 1965)"
SHROUT_FLEISS = "F (Shrout and Fleiss 1979)"
MCGRAW_WONG = "F with Satterthwaite's df (McGraw and Wong 1996)"

# So close to 0 or 1 an area under the curve is taken for that.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class EffectSize:
    """An effect size with its confidence interval.

    Args:
        name: What it is, such as "Cohen's d".
        low, high: The interval; None where there is none.
        level: The confidence level.
        method: How the interval was computed, or why there is none.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    level: float
    method: str


def format_effect_size(effect: EffectSize) -> str:
    """Return an effect size with its interval and method in one line.

    >>> format_effect_size(EffectSize("Cohen's d", 0.5, 0.1, 0.9, 0.95, "noncentral t"))
    "Cohen's d 0.500 [0.100, 0.900] (95 %, noncentral t)"
    """
    if effect.low is None or effect.high is None:
        return f"{effect.name} {effect.value:.3f}"
    bounds = f"[{effect.low:.3f}, {effect.high:.3f}]"
    return f"{effect.name} {effect.value:.3f} {bounds} ({100 * effect.level:g} %, {effect.method})"


def cohen_d(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> EffectSize:
    """Return Cohen's d of two groups: the difference of their means in units of the pooled standard deviation.

    Positive if the first group's mean is higher. Assumes independent normal values of equal variance, on which the
    interval by the noncentral t distribution rests.

    Args:
        first, second: The values of each group, two or more.
        level: The confidence level.

    >>> effect = cohen_d([1, 2, 3, 4], [2, 3, 4, 5])
    >>> round(effect.value, 4), round(effect.low, 4), round(effect.high, 4)
    (-0.7746, -2.1966, 0.7046)
    """
    x, y = as_sample("the first group", first, least=2), as_sample("the second group", second, least=2)
    df = len(x) + len(y) - 2
    sd = math.sqrt((float(((x - x.mean()) ** 2).sum()) + float(((y - y.mean()) ** 2).sum())) / df)
    if sd == 0:
        raise Undefined("nothing varies within the groups")
    return standardised_difference(float(x.mean() - y.mean()) / sd, math.sqrt(1 / len(x) + 1 / len(y)), df, level=level)


def cohen_d_paired(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> EffectSize:
    """Return Cohen's d of paired values, d_z: the mean difference in units of the differences' standard deviation.

    Assumes independent pairs with normal differences. It is larger than d of two groups where pairs correlate, so that
    the two must not be compared with each other.

    Args:
        first, second: The values of each pair, two pairs or more.
        level: The confidence level.

    >>> round(cohen_d_paired([3, 5, 9, 8], [1, 1, 1, 2]).value, 4)
    1.9365
    """
    x, y = as_paired_samples(first, second, least=2)
    differences = x - y
    # Compared exactly: the computed deviation of equal numbers need not be 0, because their mean is rounded.
    if differences.min() == differences.max():
        raise Undefined("all differences are the same")
    d = float(differences.mean() / differences.std(ddof=1))
    return standardised_difference(d, 1 / math.sqrt(len(x)), len(x) - 1, level=level, name="Cohen's d (paired, d_z)")


def standardised_difference(
    d: float, scale: float, df: int, *, level: float = 0.95, name: str = "Cohen's d"
) -> EffectSize:
    """Return a difference in standard deviations with its interval by the noncentral t distribution.

    Args:
        d: The difference divided by the standard deviation.
        scale: What d is divided by to give t: sqrt(1/n1 + 1/n2) for two groups, 1/sqrt(n) for pairs.
        df: The degrees of freedom of the standard deviation.
        level: The confidence level.
        name: What the effect size is called.
    """
    check_level(level)
    t = d / scale
    low, high = (float(scipy.special.nctdtrinc(df, (1 - side * level) / 2, t)) * scale for side in (-1, 1))
    return EffectSize(name, d, low, high, level, NONCENTRAL_T)


def partial_eta_squared(f: float, df_effect: int, df_error: int, n: int, *, level: float = 0.95) -> EffectSize:
    """Return partial eta squared of an F test: the share of variance of an effect, others aside.

    With a single factor that is eta squared. The interval is that of the population's share, λ / (λ + n), whose
    noncentrality λ the F distribution bounds; it starts at 0 unless F is significant at (1 − level) / 2, so that a 90 %
    interval is the one that agrees with a test at .05.

    Args:
        f: The F of the effect.
        df_effect, df_error: Its degrees of freedom.
        n: The number of rows.
        level: The confidence level.

    >>> effect = partial_eta_squared(4.0, 2, 50, 53)
    >>> round(effect.value, 4), round(effect.low, 4), round(effect.high, 4)
    (0.1379, 0.0002, 0.2957)
    """
    check_level(level)
    if not (math.isfinite(f) and f >= 0 and df_effect >= 1 and df_error >= 1):
        raise MeasureError(
            f"F({df_effect}, {df_error}) = {f} is no F; expected F from 0, and degrees of freedom from 1"
        )
    bounds = [_noncentrality_of_f(f, df_effect, df_error, (1 + side * level) / 2) for side in (1, -1)]
    low, high = (bound / (bound + n) for bound in bounds)
    return EffectSize("partial eta squared", f * df_effect / (f * df_effect + df_error), low, high, level, NONCENTRAL_F)


def _noncentrality_of_f(f: float, df_effect: int, df_error: int, quantile: float) -> float:
    """Return the noncentrality under which F is the quantile; 0 if it lies below that quantile even without effect."""
    if float(scipy.special.fdtr(df_effect, df_error, f)) <= quantile:
        return 0.0
    return float(scipy.special.ncfdtrinc(df_effect, df_error, quantile, f))


def rank_biserial(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> EffectSize:
    """Return the rank-biserial correlation of two groups, with a score interval that also holds at −1 and 1.

    That is how much more often the first value of a pair is higher than lower (Cliff's delta), which is 2 AUC − 1.

    Args:
        first, second: The values of each group.
        level: The confidence level.

    >>> effect = rank_biserial([3, 4, 5, 6], [1, 2, 3, 4])
    >>> effect.value, round(effect.low, 3), round(effect.high, 3)
    (0.75, -0.094, 0.962)
    """
    x, y = as_sample("the first group", first), as_sample("the second group", second)
    # Searching the sorted second group costs n log n, where comparing all pairs would cost n².
    ordered = np.sort(y)
    below, up_to = (np.searchsorted(ordered, x, side=side).astype(np.float64) for side in ("left", "right"))
    area = float((below + up_to).sum()) / (2 * len(x) * len(y))
    return rank_biserial_of_area(area, len(x), len(y), level=level)


def rank_biserial_of_area(area: float, n_first: int, n_second: int, *, level: float = 0.95) -> EffectSize:
    """Return the rank-biserial correlation, 2 AUC − 1, of an area under the ROC curve with its score interval.

    Args:
        area: The share of pairs with a higher first value, ties counting one half.
        n_first, n_second: The numbers of values.
        level: The confidence level.
    """
    low, high = auc_score_interval(area, n_first, n_second, level=level)
    return EffectSize("rank-biserial correlation", 2 * area - 1, 2 * low - 1, 2 * high - 1, level, NEWCOMBE_SCORE)


def auc_score_interval(area: float, n_first: int, n_second: int, *, level: float = 0.95) -> tuple[float, float]:
    """Return Newcombe's score interval (2006, method 5) of an area under the ROC curve.

    The variance is that of Hanley and McNeil (1982) at the bound itself and not at the estimate, so that an area of 1
    has an interval too.

    Args:
        area: The area, from 0 to 1.
        n_first, n_second: The numbers of positive and of negative values.
        level: The confidence level.

    >>> low, high = auc_score_interval(1.0, 10, 10)
    >>> round(low, 4), high
    (0.8002, 1.0)
    """
    check_level(level)
    if not (0 <= area <= 1 and n_first >= 1 and n_second >= 1):
        raise MeasureError(f"an area of {area} over {n_first} and {n_second} values: expected 0 to 1, and n from 1")
    from scipy.optimize import brentq

    z = float(scipy.special.ndtri((1 + level) / 2))
    # Method 5 has the same number in both exponential terms, that of an average group.
    extra = (n_first + n_second) / 2 - 1

    def excess(bound: float) -> float:
        variance = bound * (1 - bound) * (1 + extra * ((1 - bound) / (2 - bound) + bound / (1 + bound)))
        return (area - bound) ** 2 - z**2 * variance / (n_first * n_second)

    # At an area of 0 or 1 the area itself solves the equation too: the search starts beside it.
    low = 0.0 if area == 0 else float(brentq(excess, 0.0, min(area, 1 - _ROUNDING), xtol=1e-14))
    high = 1.0 if area == 1 else float(brentq(excess, max(area, _ROUNDING), 1.0, xtol=1e-14))
    return low, high


def rank_biserial_paired(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> EffectSize:
    """Return the matched-pairs rank-biserial correlation, from the ranks of the differences other than 0.

    It estimates how much more often the sum of two differences is positive than negative, which is a U statistic. Its
    score interval takes the variance at the bound itself, as it is for differences that are normal about some mean; so
    differences of one sign have an interval too. In simulations of 10 to 200 pairs it covers .93 to .97 for normal,
    Laplace, t, exponential and uniform differences, where Fisher's z with the variance under the null hypothesis falls
    to .53 for large effects.

    Args:
        first, second: The values of each pair.
        level: The confidence level.

    >>> effect = rank_biserial_paired([3, 5, 9, 8, 1, 4], [1, 1, 1, 2, 2, 7])
    >>> round(effect.value, 4), round(effect.low, 3), round(effect.high, 3)
    (0.619, -0.21, 0.956)
    """
    check_level(level)
    x, y = as_paired_samples(first, second)
    differences = (x - y)[x != y]
    n = len(differences)
    if not n:
        raise Undefined("no pair differs")
    signs = float(_sum_signs_of_sums(differences).sum())
    # The ranks of the differences count each difference with itself, which the U statistic does not.
    value = (signs + 2 * float(np.sign(differences).sum())) / (n * (n + 1))
    name = "matched-pairs rank-biserial correlation"
    if n < 2:
        return EffectSize(name, value, None, None, level, "none: one difference only")
    low, high = _walsh_score_interval((1 + signs / (n * (n - 1))) / 2, n, level)
    return EffectSize(name, value, 2 * low - 1, 2 * high - 1, level, WALSH_SCORE)


def _walsh_score_interval(share: float, n: int, level: float) -> tuple[float, float]:
    """Return the score interval of the probability that the sum of two differences is positive."""
    from scipy.optimize import brentq

    z = float(scipy.special.ndtri((1 + level) / 2))

    def excess(bound: float) -> float:
        # Two sums that share a difference correlate by one half; both are positive with a probability that Owen's T
        # function gives.
        both = bound - 2 * float(scipy.special.owens_t(scipy.special.ndtri(bound), 1 / math.sqrt(3)))
        variance = 2 / (n * (n - 1)) * (2 * (n - 2) * (both - bound**2) + bound * (1 - bound))
        return (share - bound) ** 2 - z**2 * variance

    low = 0.0 if share == 0 else float(brentq(excess, 1e-12, min(share, 1 - _ROUNDING), xtol=1e-14))
    high = 1.0 if share == 1 else float(brentq(excess, max(share, _ROUNDING), 1 - 1e-12, xtol=1e-14))
    return low, high


def _sum_signs_of_sums(differences: Floats) -> Floats:
    """Return for each difference the sum, over all others, of the sign of their sum."""
    # −d is searched among the sorted differences: those above it give a positive sum, those below a negative one.
    ordered = np.sort(differences)
    below = np.searchsorted(ordered, -differences, side="left")
    above = len(ordered) - np.searchsorted(ordered, -differences, side="right")
    return np.asarray((above - below).astype(np.float64) - np.sign(differences))


def alpha_interval(alpha: float, raters: int, sentences: float, *, level: float = 0.95) -> tuple[float, float]:
    """Return Feldt's (1965) interval of Cronbach's alpha, by the F distribution.

    Assumes normal answers that differ between raters by a constant (parallel raters).

    Args:
        alpha: The coefficient.
        raters: The number of raters, the items of the test.
        sentences: The number of sentences, the persons of the test.
        level: The confidence level.

    >>> low, high = alpha_interval(0.8, 10, 50)
    >>> round(low, 4), round(high, 4)
    (0.7059, 0.8734)
    """
    check_level(level)
    if raters < 2 or sentences < 2:
        raise Undefined(f"alpha needs two raters and two sentences; there are {raters} and {sentences}")
    df_sentences, df_error = sentences - 1, (sentences - 1) * (raters - 1)
    low, high = (
        1 - (1 - alpha) * float(scipy.special.fdtri(df_sentences, df_error, (1 + side * level) / 2)) for side in (1, -1)
    )
    return low, high


@dataclass(frozen=True)
class MeanSquares:
    """The mean squares of a table of sentences by raters, and its size.

    Args:
        between: Between sentences.
        raters: Between raters.
        error: The residual of sentences and raters.
        within: Within sentences.
        k: The number of raters.
        n: The number of sentences.
    """

    between: float
    raters: float
    error: float
    within: float
    k: float
    n: int


def icc_interval(kind: str, squares: MeanSquares, *, level: float = 0.95) -> EffectSize:
    """Return one of the six intraclass correlations of Shrout and Fleiss (1979), with its interval by F.

    Args:
        kind: "ICC(1,1)", "ICC(2,1)", "ICC(3,1)", "ICC(1,k)", "ICC(2,k)" or "ICC(3,k)".
        squares: The mean squares.
        level: The confidence level.

    Raises:
        Undefined: The variances cancel each other out.
    """
    check_level(level)
    if kind not in ICC_KINDS:
        raise MeasureError(f"{kind!r} is no intraclass correlation; expected {', '.join(ICC_KINDS)}")
    model, is_mean = kind[4], kind.endswith("k)")
    k = squares.k
    single = _single_rater_icc(model, squares)
    ends = _icc2_interval(single, squares, level) if model == "2" else _icc_ratio_interval(model, squares, level)
    # The reliability of a mean of k raters follows from that of one by Spearman and Brown, and so do its ends.
    value, low, high = (_step_up(icc, k) if is_mean else icc for icc in (single, *ends))
    return EffectSize(kind, value, low, high, level, MCGRAW_WONG if model == "2" else SHROUT_FLEISS)


ICC_KINDS = tuple(f"ICC({model},{unit})" for unit in "1k" for model in "123")
"""The intraclass correlations of Shrout and Fleiss, of a single rater and of a mean of k."""


def _single_rater_icc(model: str, squares: MeanSquares) -> float:
    noise = squares.within if model == "1" else squares.error
    whole = squares.between + (squares.k - 1) * noise
    if model == "2":
        whole += squares.k * (squares.raters - squares.error) / squares.n
    if whole == 0:
        raise Undefined("the variances cancel each other out")
    return (squares.between - noise) / whole


def _step_up(icc: float, k: float) -> float:
    whole = 1 + (k - 1) * icc
    if whole == 0:
        raise Undefined("the variances cancel each other out")
    return k * icc / whole


def _icc_ratio_interval(model: str, squares: MeanSquares, level: float) -> tuple[float, float]:
    """Return the interval of ICC(1,1) or ICC(3,1), whose F ratio has an F distribution."""
    n, k = squares.n, squares.k
    noise, df_noise = (squares.within, n * (k - 1)) if model == "1" else (squares.error, (n - 1) * (k - 1))
    if noise == 0:
        return 1.0, 1.0
    ratios = [
        squares.between / noise / float(scipy.special.fdtri(n - 1, df_noise, (1 + side * level) / 2))
        for side in (1, -1)
    ]
    low, high = ((ratio - 1) / (ratio + k - 1) for ratio in ratios)
    return low, high


def _icc2_interval(icc: float, squares: MeanSquares, level: float) -> tuple[float, float]:
    """Return the interval of ICC(2,1), whose noise is a mixture of mean squares with approximate degrees of freedom."""
    n, k = squares.n, squares.k
    between, raters, error = squares.between, squares.raters, squares.error
    # No noise and no differences between raters: nothing that an interval could be computed from.
    if error == 0 and raters == 0:
        return 1.0, 1.0
    # At a correlation of 1 the weights are infinite, in their limit the mixture consists of the two mean squares.
    if icc >= 1:
        return 1.0, 1.0
    a = k * icc / (n * (1 - icc))
    b = 1 + k * icc * (n - 1) / (n * (1 - icc))
    parts = (a * raters) ** 2 / (k - 1) + (b * error) ** 2 / ((n - 1) * (k - 1))
    df = (a * raters + b * error) ** 2 / parts if parts else (n - 1) * (k - 1)
    f_low = float(scipy.special.fdtri(n - 1, df, (1 + level) / 2))
    f_high = float(scipy.special.fdtri(df, n - 1, (1 + level) / 2))
    noise = k * raters + (k * n - k - n) * error
    low = n * (between - f_low * error) / (f_low * noise + n * between)
    high = n * (f_high * between - error) / (noise + n * f_high * between)
    return low, high
