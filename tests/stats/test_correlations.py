from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from acceptability.errors import MeasureError, Undefined
from acceptability.stats import (
    compare_correlations,
    correlate,
    correlation_matrix,
    levene,
    shapiro_wilk,
    williams_steiger_test,
)

GENERATOR = np.random.default_rng(0)
FIRST = GENERATOR.normal(size=50)
SECOND = FIRST + GENERATOR.normal(size=50)
THEIRS = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


@pytest.mark.parametrize("kind", THEIRS)
@pytest.mark.parametrize("n", [3, 5, 50])
@pytest.mark.parametrize("is_tied", [False, True])
def test_correlations_are_scipys(kind: str, n: int, is_tied: bool) -> None:
    first, second = (np.round(values[:n]) if is_tied else values[:n] for values in (FIRST, SECOND))
    theirs = THEIRS[kind](first, second)
    ours = correlate(first, second, kind)
    # SciPy's p of few rows is exact for Kendall's tau without ties only.
    p = theirs.pvalue
    if n < 10 and kind != "pearson":
        p = stats.permutation_test(
            (first,), lambda x: THEIRS[kind](x, second).statistic, permutation_type="pairings", n_resamples=np.inf
        ).pvalue
    assert (ours.r, ours.p) == pytest.approx((theirs.statistic, p), abs=1e-9)
    assert ours.n == n


def test_nine_rows_have_all_their_orders_counted() -> None:
    """Of nine rows without ties: the exact p of SciPy's Kendall test, and a tabulated one of Spearman's."""
    first, second = np.arange(9.0), np.array([1.0, 0, 3, 2, 4, 6, 5, 8, 7])
    kendall = correlate(first, second, "kendall")
    assert kendall.p == pytest.approx(stats.kendalltau(first, second, method="exact").pvalue, abs=1e-12)
    # The two-sided critical value of Spearman's rho of nine rows is .700 (Zar 1972).
    above, below = np.array([2.0, 3, 0, 1, 6, 4, 7, 8, 5]), np.array([2.0, 3, 0, 4, 1, 7, 8, 6, 5])
    found = [correlate(first, ranks, "spearman") for ranks in (above, below)]
    assert [round(test.r, 3) for test in found] == [0.733, 0.667]
    assert found[0].p < 0.05 < found[1].p


def test_fishers_interval() -> None:
    theirs = stats.pearsonr(FIRST, SECOND).confidence_interval(0.9)
    ours = correlate(FIRST, SECOND, level=0.9)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs), abs=1e-12)
    spearman, kendall = correlate(FIRST, SECOND, "spearman"), correlate(FIRST, SECOND, "kendall")
    half = 1.959963984540054 * np.sqrt((1 + spearman.r**2 / 2) / 47)
    assert spearman.high == pytest.approx(np.tanh(np.arctanh(spearman.r) + half), abs=1e-12)
    half = 1.959963984540054 * np.sqrt(0.437 / 46)
    assert kendall.low == pytest.approx(np.tanh(np.arctanh(kendall.r) - half), abs=1e-12)


@pytest.mark.parametrize(("kind", "n"), [("pearson", 40), ("spearman", 40), ("kendall", 40)])
def test_intervals_have_their_nominal_coverage(kind: str, n: int) -> None:
    generator = np.random.default_rng(2)
    truth = {"pearson": 0.5, "spearman": 6 / np.pi * np.arcsin(0.25), "kendall": 2 / np.pi * np.arcsin(0.5)}[kind]
    hits = 0
    for _ in range(300):
        first = generator.normal(size=n)
        result = correlate(first, 0.5 * first + np.sqrt(0.75) * generator.normal(size=n), kind)
        hits += result.low <= truth <= result.high
    assert 0.90 <= hits / 300 <= 0.985


def test_very_small_and_very_large_numbers_correlate_alike() -> None:
    assert correlate(FIRST * 1e-200, SECOND * 1e150).r == pytest.approx(correlate(FIRST, SECOND).r, abs=1e-12)


def test_degenerate_correlations() -> None:
    two = correlate([1, 2], [5, 3])
    assert (two.r, two.p, two.low) == (-1, None, None)
    assert correlate([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]).low is None
    with pytest.raises(Undefined, match="there are 1 rows"):
        correlate([1], [1])
    with pytest.raises(Undefined, match="the second column has the same value"):
        correlate([1, 2], [3, 3])
    with pytest.raises(MeasureError, match="nan at index 0"):
        correlate([float("nan"), 1], [1, 2])
    with pytest.raises(MeasureError, match="kind is 'gamma'"):
        correlate([1, 2], [1, 2], "gamma")


def test_a_matrix_has_every_two_columns_once() -> None:
    columns = {"bert": FIRST, "gpt2": SECOND, "human": FIRST - SECOND, "constant": np.ones(50)}
    cells = correlation_matrix(columns, "spearman")
    assert len(cells) == 6
    result = {(cell.first, cell.second): cell for cell in cells}
    assert result["bert", "human"].correlation == correlate(FIRST, FIRST - SECOND, "spearman")
    assert result["gpt2", "constant"].correlation is None
    assert "same value" in result["gpt2", "constant"].reason
    with pytest.raises(MeasureError, match="different lengths: a 2, b 3"):
        correlation_matrix({"a": [1, 2], "b": [1, 2, 3]})


def test_williams_by_howells_example() -> None:
    """Howell, Statistical Methods for Psychology, 6th edition, p. 262: t = 1.36 (printed .187 by SPSS), 23 df."""
    result = williams_steiger_test(0.80, 0.72, 0.89, 26)
    assert (result.t, result.t_p) == (pytest.approx(1.361, abs=5e-4), pytest.approx(0.187, abs=5e-4))
    assert result.df == 23
    assert williams_steiger_test(0.72, 0.80, 0.89, 26).t == -result.t
    assert result.q == pytest.approx(np.arctanh(0.8) - np.arctanh(0.72))


def test_comparing_correlations_that_do_not_differ() -> None:
    generator = np.random.default_rng(4)
    ps = []
    for _ in range(600):
        human, noise = generator.normal(size=60), generator.normal(size=60)
        first, second = (human + noise + generator.normal(size=60) for _ in range(2))
        result = compare_correlations(human, first, second)
        ps.append((result.t_p, result.z_p))
    for rate in (np.array(ps) <= 0.05).mean(axis=0):
        assert 0.03 <= rate <= 0.075
    apart = compare_correlations(human, human + 0.3 * noise, noise)
    assert apart.t_p < 1e-6
    assert apart.z_p < 1e-6


def test_correlations_that_cannot_be_compared() -> None:
    with pytest.raises(Undefined, match="4 are needed"):
        williams_steiger_test(0.1, 0.2, 0.3, 3)
    with pytest.raises(Undefined, match="exactly 1"):
        compare_correlations(FIRST, FIRST, SECOND)
    with pytest.raises(MeasureError, match="no three columns"):
        williams_steiger_test(0.9, -0.9, 0.9, 20)


def test_levene_is_scipys_and_so_is_shapiro() -> None:
    groups = [FIRST, SECOND * 2, SECOND[:9]]
    theirs = stats.levene(*groups, center="median")
    ours = levene(*groups)
    assert (ours.f, ours.p) == pytest.approx((theirs.statistic, theirs.pvalue), abs=1e-9)
    distances = [np.abs(group - np.median(group)) for group in groups]
    whole = np.concatenate(distances)
    between = sum(len(distance) * (distance.mean() - whole.mean()) ** 2 for distance in distances)
    assert ours.eta_squared == pytest.approx(between / ((whole - whole.mean()) ** 2).sum(), abs=1e-9)
    assert (ours.df_between, ours.df_within) == (2, 106)
    theirs = stats.shapiro(FIRST)
    assert (shapiro_wilk(FIRST).w, shapiro_wilk(FIRST).p) == pytest.approx(tuple(theirs), abs=1e-9)
    assert "not reliable" in shapiro_wilk(np.random.default_rng(1).normal(size=6000)).note


def test_degenerate_variances() -> None:
    with pytest.raises(Undefined, match="equally far"):
        levene([1, 2], [3, 5])
    with pytest.raises(Undefined, match="group 2 has 1"):
        levene([1, 2], [3])
    with pytest.raises(MeasureError, match="two groups"):
        levene([1, 2])
    with pytest.raises(Undefined, match="3 are needed"):
        shapiro_wilk([1, 2])
    with pytest.raises(Undefined, match="same value"):
        shapiro_wilk([1, 1, 1])


def test_perfect_order_is_exactly_one_despite_ties_and_rounding() -> None:
    values = np.array([1, 1, 2, 2, 3, 3, 3, 4, 5, 6.0])
    for sign in (1, -1):
        result = correlate(values, sign * values**3, "kendall")
        assert (result.r, result.low, result.high) == (sign, None, None)


def test_columns_that_determine_each_other_leave_the_test_undefined() -> None:
    with pytest.raises(Undefined, match="determined by the other two"):
        williams_steiger_test(0.6, -0.6, 0.28, n=10)
