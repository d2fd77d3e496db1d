"""Correlations of rows in sampling units: against a bootstrap and a jackknife by hand, and how often they are wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.clustered_correlation import correlate_clustered
from acceptability.stats.hypothesis_tests import correlate

KINDS = ("pearson", "spearman", "kendall")
BY_SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


def simulate(generator: np.random.Generator, units: int, rows: int, shared: float) -> tuple[np.ndarray, ...]:
    """Two unrelated columns, whose rows are alike within units."""
    clusters = np.repeat(np.arange(units), rows)
    columns = [
        math.sqrt(shared) * generator.normal(size=units)[clusters]
        + math.sqrt(1 - shared) * generator.normal(size=units * rows)
        for _ in range(2)
    ]
    return (*columns, clusters.astype(str))


@pytest.mark.parametrize("kind", KINDS)
def test_the_jackknife_is_that_of_the_textbook(kind: str) -> None:
    x, y, clusters = simulate(np.random.default_rng(1), 12, 5, 0.5)
    y = y + 0.8 * x
    test = correlate_clustered(x, y, list(clusters), kind)
    assert test.r == pytest.approx(BY_SCIPY[kind](x, y).statistic)
    left_out = np.array(
        [math.atanh(BY_SCIPY[kind](x[clusters != name], y[clusters != name]).statistic) for name in set(clusters)]
    )
    se = math.sqrt(11 / 12 * ((left_out - left_out.mean()) ** 2).sum())
    t = math.atanh(test.r) / se
    assert test.p == pytest.approx(2 * stats.t.sf(abs(t), 11))
    ends = [math.tanh(math.atanh(test.r) + side * stats.t.ppf(0.975, 11) * se) for side in (-1, 1)]
    assert [test.low, test.high] == pytest.approx(ends)


@pytest.mark.parametrize("kind", KINDS)
def test_single_rows_agree_with_the_closed_forms(kind: str) -> None:
    x, y, _ = simulate(np.random.default_rng(2), 300, 1, 0)
    y = y + 0.5 * x
    by_row, by_unit = correlate(x, y, kind), correlate_clustered(x, y, list(map(str, range(300))), kind)
    assert by_unit.r == pytest.approx(by_row.r)
    assert by_unit.high - by_unit.low == pytest.approx(by_row.high - by_row.low, rel=0.15)


def test_copies_of_rows_add_nothing() -> None:
    x, y, _ = simulate(np.random.default_rng(3), 40, 1, 0)
    y = y + 0.4 * x
    names = list(map(str, range(40)))
    once = correlate_clustered(x, y, names)
    eight_times = correlate_clustered(np.repeat(x, 8), np.repeat(y, 8), list(np.repeat(names, 8)))
    assert (eight_times.low, eight_times.high, eight_times.p) == pytest.approx((once.low, once.high, once.p))
    assert correlate(np.repeat(x, 8), np.repeat(y, 8)).p < once.p / 10


def test_p_of_unrelated_columns_keeps_the_level() -> None:
    generator = np.random.default_rng(4)
    alarms = {"unit": 0, "row": 0}
    for _ in range(200):
        x, y, clusters = simulate(generator, 20, 8, 0.7)
        test = correlate_clustered(x, y, list(clusters))
        alarms["unit"] += test.p < 0.05
        assert (test.p < 0.05) == (not test.low <= 0 <= test.high)
        alarms["row"] += correlate(x, y).p < 0.05
    assert 0.02 * 200 < alarms["unit"] < 0.09 * 200
    assert alarms["row"] > 0.3 * 200


def test_more_than_400_units_are_left_out_in_groups() -> None:
    x, y, clusters = simulate(np.random.default_rng(5), 900, 3, 0.5)
    y = y + x
    test = correlate_clustered(x, y, list(clusters))
    left_out = np.array(
        [np.arctanh(stats.pearsonr(x[clusters != c], y[clusters != c])[0]) for c in np.unique(clusters)]
    )
    se = math.sqrt(899 / 900 * ((left_out - left_out.mean()) ** 2).sum())
    half_width = (math.atanh(test.high) - math.atanh(test.low)) / 2
    assert half_width == pytest.approx(1.96 * se, rel=0.1)


def test_what_has_no_interval_says_why() -> None:
    x, y = np.arange(8.0), np.array([1.0, 3, 2, 4, 5, 8, 7, 6])
    perfect = correlate_clustered(x, 2 * x, list("aabbccdd"))
    assert (perfect.r, perfect.p, perfect.low) == (1.0, 0.0, None)
    with pytest.raises(Undefined, match="3 sampling units are needed"):
        correlate_clustered(x, y, list("aaaabbbb"))
    with pytest.raises(Undefined, match="does not vary without one of the sampling units"):
        correlate_clustered(x, [0, 0, 0, 0, 0, 0, 1, 2], list("aabbccdd"))
    with pytest.raises(MeasureError, match="8 rows; each row needs one"):
        correlate_clustered(x, y, list("abc"))
