"""Classical hypothesis tests: rank tests, equal variances and normality, ANOVA, Tukey's HSD, and correlations.

Rank tests see only the order of values and need no normal distribution: Wilcoxon's signed-rank test for paired values
(`signed_rank`), and for two groups the rank-sum test of Wilcoxon, which has the same p as Mann and Whitney's U test
(`rank_sum`, and `niu_penn_p` with the convention of one paper). Levene's test and that of Shapiro and Wilk check
what other tests assume: equal variances and a normal distribution. `two_way_anova` tests two factors and their
interaction; `tukey_hsd` compares every two of several groups. These two need statsmodels (the extra ``stats``).

`correlate` gives a coefficient ("pearson", or the rank correlations "spearman" and "kendall") with its p value and its
interval; the coefficient itself is the effect size. `compare_correlations` tests two dependent correlations, such as
those of two models with the same human ratings, by the tests of Williams and of Steiger (1980).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import scipy
from numpy.typing import ArrayLike

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.effects.effect_sizes import (
    EffectSize,
    partial_eta_squared,
    rank_biserial_of_area,
    rank_biserial_paired,
    standardised_difference,
)
from acceptability.stats.permutation import MAX_EXACT_CORRELATION_ROWS, exact_correlation_p
from acceptability.stats.samples import (
    ALTERNATIVES,
    LevelCodes,
    as_columns,
    as_paired_samples,
    as_sample,
    check_choice,
    check_level,
    encode_levels,
    import_statsmodels,
    mean_ranks,
    require_variation,
)
from acceptability.types import Floats

RANK_TEST_METHODS = ("asymptotic", "exact")


@dataclass(frozen=True)
class SignedRank:
    """Wilcoxon's signed-rank test of paired values.

    Args:
        w_plus, w_minus: The sums of the ranks of positive and of negative differences.
        z: The standardised sum of positive ranks, with continuity correction; None for an exact p.
        rank_biserial: The effect size, the matched-pairs rank-biserial correlation from −1 to 1:
            (w_plus − w_minus) / (w_plus + w_minus).
        n: The number of differences other than 0; the ``zeros`` are left out.
        effect_size: The rank-biserial correlation with its interval, and the interval's method.
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
    effect_size: EffectSize


@dataclass(frozen=True)
class RankSum:
    """The rank-sum test of two groups.

    Args:
        w: The number of pairs of a first and a second value in which the first is higher, ties counting one half: R's
            W, and U of the first group; ``u`` is the smaller of the two groups' U.
        z: The standardised W, with continuity correction and correction for ties; None for an exact p.
        rank_biserial: The effect size, the rank-biserial correlation: the share of pairs with the first value higher,
            minus the share with it lower.
        z_by_root_n: Another effect size in use, abs(z) / sqrt(n); None for an exact p.
        n: The number of values in both groups together.
        effect_size: The rank-biserial correlation with its interval, and the interval's method.
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
    effect_size: EffectSize


def signed_rank(
    first: ArrayLike, second: ArrayLike, *, alternative: str = "two-sided", method: str = "asymptotic"
) -> SignedRank:
    """Test whether paired values differ (Wilcoxon 1945).

    Assumes independent pairs, and differences that are distributed symmetrically about their median. Differences of 0
    are left out, ties share their mean rank, and the variance is corrected for them.

    Args:
        alternative: "two-sided", or "greater" or "less" for the first column.
        method: "asymptotic" (normal approximation), or "exact", which allows neither ties nor zeros.

    >>> signed_rank([3, 5, 9, 8], [1, 1, 1, 2], method="exact").p
    0.125
    """
    check_choice("alternative", alternative, ALTERNATIVES)
    check_choice("method", method, RANK_TEST_METHODS)
    x, y = as_paired_samples(first, second)
    differences = (x - y)[x != y]
    n, zeros = len(differences), int((x == y).sum())
    if not n:
        raise Undefined("no pair differs")
    ranks, counts = mean_ranks(np.abs(differences))
    plus = float(ranks[differences > 0].sum())
    minus = n * (n + 1) / 2 - plus
    z = None
    if method == "exact":
        if zeros or counts.max() > 1:
            raise MeasureError("an exact signed-rank test needs differences without ties and zeros; use 'asymptotic'")
        p = _exact_signed_rank_p(x, y, alternative)
    else:
        # Each block of t tied differences takes (t³ − t)/48 off the variance; without that z is too small.
        sd = math.sqrt((n * (n + 1) * (2 * n + 1) - float((counts**3 - counts).sum()) / 2) / 24)
        z, p = _normal_approximation(plus - n * (n + 1) / 4, sd, alternative)
    effect = rank_biserial_paired(x, y)
    return SignedRank(plus, minus, z, p, (plus - minus) / (plus + minus), n, zeros, method, alternative, effect)


def rank_sum(
    first: ArrayLike, second: ArrayLike, *, alternative: str = "two-sided", method: str = "asymptotic"
) -> RankSum:
    """Test whether the values of one group tend to be higher than those of another (Wilcoxon; Mann and Whitney).

    Assumes independent values. Equal spreads are assumed only where a difference is interpreted as one of medians.

    Args:
        alternative: "two-sided", or "greater" or "less" for the first group.
        method: "asymptotic" (normal approximation with continuity correction, the variance corrected for ties), or
            "exact", which allows no ties.
    """
    check_choice("alternative", alternative, ALTERNATIVES)
    check_choice("method", method, RANK_TEST_METHODS)
    x, y = as_sample("the first group", first), as_sample("the second group", second)
    ranks, counts = mean_ranks(np.concatenate([x, y]))
    n1, n2, n = len(x), len(y), len(x) + len(y)
    w = float(ranks[:n1].sum()) - n1 * (n1 + 1) / 2
    z, z_by_root_n = None, None
    if method == "exact":
        if counts.max() > 1:
            raise MeasureError("an exact rank-sum test needs values without ties; use 'asymptotic'")
        p = _exact_rank_sum_p(x, y, alternative)
    else:
        ties = float((counts**3 - counts).sum()) / (n * (n - 1))
        # Where all values are tied the variance is 0, which rounding can turn into a tiny negative number.
        sd = math.sqrt(max(0.0, n1 * n2 / 12 * (n + 1 - ties)))
        if sd == 0:
            raise Undefined("all values are the same")
        z, p = _normal_approximation(w - n1 * n2 / 2, sd, alternative)
        z_by_root_n = abs(z) / math.sqrt(n)
    effect = rank_biserial_of_area(w / (n1 * n2), n1, n2)
    return RankSum(w, min(w, n1 * n2 - w), z, p, 2 * w / (n1 * n2) - 1, z_by_root_n, n, method, alternative, effect)


def niu_penn_p(first: ArrayLike, second: ArrayLike) -> float:
    """Return p of the rank-sum test as Niu and Penn (2020) report it: half of the two-sided asymptotic p.

    That was SciPy's default up to version 1.6. It is one-sided in whichever direction the groups differ, and so
    calls twice as many differences significant as it should. Use it to reproduce their tables, else ``rank_sum``.
    """
    return rank_sum(first, second).p / 2


def _normal_approximation(deviation: float, sd: float, alternative: str) -> tuple[float, float]:
    """Return z and p of a rank statistic, from its deviation from the mean under the null hypothesis.

    The continuity correction moves the statistic by half a rank towards the null hypothesis.
    """
    if alternative == "two-sided":
        # The correction must not carry the statistic past its mean, which would turn the sign of z.
        z = math.copysign(max(abs(deviation) - 0.5, 0.0), deviation) / sd
        return z, min(1.0, 2 * float(scipy.special.ndtr(-abs(z))))
    z = (deviation - 0.5 if alternative == "greater" else deviation + 0.5) / sd
    return z, float(scipy.special.ndtr(-z if alternative == "greater" else z))


def _exact_signed_rank_p(x: Floats, y: Floats, alternative: str) -> float:
    # Imported here, since scipy.stats takes a fifth of a second that callers of the asymptotic tests need not wait for.
    from scipy.stats import wilcoxon

    return float(wilcoxon(x, y, alternative=alternative, method="exact").pvalue)


def _exact_rank_sum_p(x: Floats, y: Floats, alternative: str) -> float:
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(x, y, alternative=alternative, method="exact").pvalue)


# SciPy's algorithm (Royston 1995, AS R94) is calibrated up to this number of values.
_MAX_FOR_SHAPIRO = 5000


@dataclass(frozen=True)
class Levene:
    """Levene's test of equal variances.

    Args:
        f: The F of the distances from each group's median, with its degrees of freedom.
        eta_squared: The effect size: the share of the variance of those distances that lies between groups.
        effect_size: Eta squared with its interval, and the interval's method.
    """

    f: float
    p: float
    df_between: int
    df_within: int
    eta_squared: float
    effect_size: EffectSize


@dataclass(frozen=True)
class ShapiroWilk:
    """The test of Shapiro and Wilk for a normal distribution; W is 1 for a perfect fit."""

    w: float
    p: float
    n: int
    note: str | None = None


def levene(*groups: ArrayLike) -> Levene:
    """Test whether groups have the same variance, by distances from their medians (Levene; Brown and Forsythe 1974).

    Assumes independent values; by the median the test is robust where they are not normal. It does not test
    normality: that is ``shapiro_wilk``.

    Args:
        groups: The values of each group, two groups or more.
    """
    from scipy.stats import levene as scipy_levene

    if len(groups) < 2:
        raise MeasureError(f"equal variances need two groups or more; there are {len(groups)}")
    samples = [as_sample(f"group {i + 1}", values, least=2) for i, values in enumerate(groups)]
    # Levene's test is an ANOVA of these distances: where they do not vary within groups, SciPy divides by 0.
    distances = [np.abs(sample - np.median(sample)) for sample in samples]
    if not any((distance != distance[0]).any() for distance in distances):
        raise Undefined("within each group all values are equally far from the median")
    f, p = scipy_levene(*samples, center="median")
    between, within = len(samples) - 1, sum(map(len, samples)) - len(samples)
    effect = replace(partial_eta_squared(float(f), between, within, between + within + 1), name="eta squared")
    return Levene(float(f), float(p), between, within, effect.value, effect)


def shapiro_wilk(values: ArrayLike) -> ShapiroWilk:
    """Test whether values come from a normal distribution (Shapiro and Wilk 1965).

    Assumes independent values, three or more. With many of them it detects departures too small to matter; W itself
    is the effect size. Beyond 5,000 values p is not reliable, and a note is attached.
    """
    from scipy.stats import shapiro

    sample = require_variation("the column", as_sample("the column", values, least=3))
    # SciPy warns of large samples; the note on the result says the same, and reaches reports as well.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*p-value may not be accurate", category=UserWarning)
        w, p = shapiro(sample)
    note = f"p is not reliable for more than {_MAX_FOR_SHAPIRO} values" if len(sample) > _MAX_FOR_SHAPIRO else None
    return ShapiroWilk(float(w), float(p), len(sample), note)


SUM_OF_SQUARES_TYPES = ("II", "III")

# Relative to the sum of squares of the values: what is below is the rounding error of an exact fit, whose F is noise.
_MIN_RESIDUAL_SHARE = 1e-24


@dataclass(frozen=True)
class AnovaEffect:
    """The effect of a factor or of the interaction.

    Args:
        partial_eta_squared: The effect size, SS / (SS + residual SS).
        effect_size: The same with its interval, and the interval's method.
    """

    name: str
    ss: float
    df: int
    f: float
    p: float
    partial_eta_squared: float
    effect_size: EffectSize


@dataclass(frozen=True)
class Anova:
    """A two-way analysis of variance: one effect per factor, and their interaction."""

    effects: tuple[AnovaEffect, ...]
    residual_ss: float
    residual_df: int
    sums_of_squares: str
    n: int


def two_way_anova(
    values: ArrayLike, factors: Mapping[str, Sequence[object]], *, sums_of_squares: str = "II", interaction: bool = True
) -> Anova:
    """Test the effects of two factors, such as suite and model, on a number (two-way ANOVA, by statsmodels).

    Assumes independent rows and residuals that are normal and of equal variance (``levene``).

    Args:
        factors: Two factors by name, with the level of each row.
        sums_of_squares: For unequal cells: "II", each factor adjusted for the other and the interaction for both, the
            better choice where there is no interaction; or "III", each effect adjusted for all others, with contrasts
            that sum to 0. For equal cells both are the same.
        interaction: Whether to test the interaction; an effect named ``"first:second"``.

    Raises:
        Undefined: A factor has one level, too few combinations of levels have rows (with an interaction, all must),
            or nothing is left for the residual.
        MissingExtra: statsmodels is not installed.
    """
    check_choice("sums_of_squares", sums_of_squares, SUM_OF_SQUARES_TYPES)
    if len(factors) != 2:
        raise MeasureError(f"two-way means two factors; there are {len(factors)}")
    y = as_sample("the values", values, least=2)
    levels = _encode_factors(factors, len(y), need_all_cells=interaction)
    api = import_statsmodels("two_way_anova")
    import pandas

    # Columns of our own naming: the names of factors are free text, which the formula would have to quote.
    frame = pandas.DataFrame({"y": y, **dict(zip(("a", "b"), levels, strict=True))})
    terms = dict(zip(("C(a, Sum)", "C(b, Sum)"), factors, strict=True))
    if interaction:
        terms["C(a, Sum):C(b, Sum)"] = ":".join(factors)
    # Contrasts that sum to 0, on which type III depends: with the default (each level against the first) the test of a
    # factor would be that of its effect in the first level of the other.
    model = api.OLS.from_formula(f"y ~ {' + '.join(terms)}", frame)
    # Checked before the fit, since statsmodels would return numbers with wrong degrees of freedom, and a warning.
    if np.linalg.matrix_rank(model.exog) < model.exog.shape[1]:
        raise Undefined(f"the effects of {' and '.join(factors)} cannot be separated: too few cells have rows")
    fit = model.fit()
    if fit.df_resid < 1 or fit.ssr <= _MIN_RESIDUAL_SHARE * float(y @ y):
        raise Undefined("nothing varies within the cells: there is no error to compare with")
    table = api.stats.anova_lm(fit, typ=SUM_OF_SQUARES_TYPES.index(sums_of_squares) + 2)
    residual_ss = float(fit.ssr)
    effects = []
    for term, name in terms.items():
        ss, df, f, p = table.loc[term, ["sum_sq", "df", "F", "PR(>F)"]].tolist()
        size = partial_eta_squared(f, int(df), int(fit.df_resid), len(y))
        effects.append(AnovaEffect(name, ss, int(df), f, p, ss / (ss + residual_ss), size))
    return Anova(tuple(effects), residual_ss, int(fit.df_resid), sums_of_squares, len(y))


def _encode_factors(factors: Mapping[str, Sequence[object]], n: int, *, need_all_cells: bool) -> list[LevelCodes]:
    """Return the level of each row as a number, for each factor; too few levels or an empty cell are Undefined."""
    encoded = {name: encode_levels(name, labels, n) for name, labels in factors.items()}
    for name, (levels, _) in encoded.items():
        if len(levels) < 2:
            raise Undefined(f"the factor {name!r} has one level only, {levels[0]!r}")
    (name_a, (levels_a, codes_a)), (name_b, (levels_b, codes_b)) = encoded.items()
    if need_all_cells:
        cells = set(zip(codes_a.tolist(), codes_b.tolist(), strict=True))
        for i, level_a in enumerate(levels_a):
            for j, level_b in enumerate(levels_b):
                if (i, j) not in cells:
                    raise Undefined(
                        f"no row has {name_a}={level_a} and {name_b}={level_b}: an interaction needs every cell"
                    )
    return [codes_a, codes_b]


@dataclass(frozen=True)
class GroupDifference:
    """The difference of two groups' means, the first minus the second.

    Args:
        p, low, high: Adjusted for all pairs of groups, by the studentized range distribution.
        d: The effect size: the difference in units of the standard deviation within all groups (Cohen's d).
        effect_size: The same with its interval, which is not adjusted for the number of pairs, and its method.
    """

    first: str
    second: str
    difference: float
    p: float
    low: float
    high: float
    d: float
    effect_size: EffectSize


def tukey_hsd(values: ArrayLike, groups: Sequence[object], *, level: float = 0.95) -> list[GroupDifference]:
    """Compare every two of several groups by Tukey's HSD, with p values and intervals adjusted for all pairs.

    Assumes independent rows that are normal within groups of equal variance; for unequal sizes this is the method of
    Tukey and Kramer.

    Args:
        groups: The group of each row.

    Raises:
        Undefined: There is one group only, or nothing varies within the groups.
        MissingExtra: statsmodels is not installed.
    """
    check_level(level)
    y = as_sample("the values", values, least=3)
    names, codes = encode_levels("groups", groups, len(y))
    samples = [y[codes == i] for i in range(len(names))]
    if len(names) < 2:
        raise Undefined(f"there are {len(names)} groups; two are needed")
    within = sum(float(((sample - sample.mean()) ** 2).sum()) for sample in samples)
    if len(y) == len(names) or within == 0:
        raise Undefined("nothing varies within the groups: there is no error to compare with")
    import_statsmodels("tukey_hsd")
    from statsmodels.stats.multicomp import pairwise_tukeyhsd

    test = pairwise_tukeyhsd(y, codes, alpha=1 - level)
    sd = math.sqrt(within / (len(y) - len(names)))
    differences = []
    # statsmodels lists the pairs in this order, and subtracts the first group from the second.
    for (i, j), p, (low, high) in zip(combinations(range(len(names)), 2), test.pvalues, test.confint, strict=True):
        difference = float(samples[i].mean() - samples[j].mean())
        scale = math.sqrt(1 / len(samples[i]) + 1 / len(samples[j]))
        size = standardised_difference(difference / sd, scale, len(y) - len(names), level=level)
        differences.append(
            GroupDifference(names[i], names[j], difference, float(p), float(-high), float(-low), size.value, size)
        )
    return differences


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

    Assumes independent rows. p of Pearson's r assumes normal columns. Those of the rank correlations are exact for up
    to nine rows, with or without ties; for more, Spearman's is by the t distribution, and Kendall's exact for few rows
    without ties, else normal. Intervals are by Fisher's z transformation, with
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

    ranks = rankdata(x), rankdata(y)
    r, p = _pearson_test(*ranks)
    return r, exact_correlation_p(*ranks, "spearman") if len(x) <= MAX_EXACT_CORRELATION_ROWS else p


def _kendall_test(x: Floats, y: Floats) -> tuple[float, float]:
    from scipy.stats import kendalltau

    test = kendalltau(x, y)
    r = float(test.statistic)
    p = exact_correlation_p(x, y, "kendall") if len(x) <= MAX_EXACT_CORRELATION_ROWS else float(test.pvalue)
    return (math.copysign(1.0, r) if abs(r) > 1 - _ROUNDING else r), p


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
