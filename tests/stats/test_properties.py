"""Properties that hold for all numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability.errors import Undefined
from acceptability.stats import benjamini_hochberg, clopper_pearson, correlate, holm, mcnemar, rank_sum, sign_flip_test
from acceptability.stats.bootstrap import bca_interval, percentile_interval

NUMBERS = st.lists(st.integers(-20, 20).map(float), min_size=2, max_size=25)
SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(NUMBERS, NUMBERS)
def test_swapping_groups_reverses_the_rank_sum(first: list[float], second: list[float]) -> None:
    try:
        there, back = rank_sum(first, second), rank_sum(second, first)
    except Undefined:
        assert len({*first, *second}) == 1
        return
    assert there.p == pytest.approx(back.p, abs=1e-12)
    assert there.rank_biserial == pytest.approx(-back.rank_biserial, abs=1e-12)
    assert there.w + back.w == len(first) * len(second)
    curved = rank_sum([value**3 for value in first], [value**3 for value in second])
    assert curved == there


@given(SHARES)
def test_adjusted_p_values_are_larger_and_in_the_same_order(ps: list[float]) -> None:
    family, rate = holm(ps), benjamini_hochberg(ps)
    for p, one, two in zip(ps, family, rate, strict=True):
        assert p - 1e-12 <= two <= one + 1e-12 <= 1 + 1e-9
    order = np.argsort(ps, kind="stable")
    for adjusted in (family, rate):
        assert (np.diff(np.array(adjusted)[order]) >= -1e-12).all()


@given(st.integers(1, 60), st.data())
def test_an_exact_interval_contains_the_share_and_mirrors(n: int, data) -> None:
    hits = data.draw(st.integers(0, n))
    low, high = clopper_pearson(hits, n)
    assert low <= hits / n <= high
    assert clopper_pearson(n - hits, n) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@given(st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12))
def test_sign_flips_depend_on_size_and_sign_only(gaps: list[float]) -> None:
    p, draws = sign_flip_test(np.array(gaps))
    assert draws is None
    assert 0 < p <= 1
    assert p == pytest.approx(sign_flip_test(-np.array(gaps[::-1]))[0], abs=1e-12)
    greater, less = (sign_flip_test(np.array(gaps), alternative=side)[0] for side in ("greater", "less"))
    assert greater + less >= 1 - 1e-12


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=40))
def test_swapping_models_reverses_mcnemar(rows: list[tuple[int, int]]) -> None:
    first, second = zip(*rows, strict=True)
    there, back = mcnemar(first, second), mcnemar(second, first)
    assert (there.p, there.difference) == (back.p, -back.difference)
    assert there.both + there.only_first + there.only_second + there.neither == there.n == len(rows)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=4, max_size=20))
def test_correlations_survive_rescaling(rows: list[tuple[int, int]]) -> None:
    first, second = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    for kind in ("pearson", "spearman", "kendall"):
        try:
            result = correlate(first, second, kind)
        except Undefined:
            assert len(set(first)) == 1 or len(set(second)) == 1
            return
        assert -1 <= result.r <= 1
        assert correlate(3 * first - 7, second, kind).r == pytest.approx(result.r, abs=1e-9)
        assert correlate(second, -first, kind).r == pytest.approx(-result.r, abs=1e-9)
        assert result.low is None or result.low < result.r < result.high


def test_bca_is_equivariant_under_linear_changes() -> None:
    """So are percentile intervals, and under any monotone change, up to interpolation between values."""
    generator = np.random.default_rng(1)
    sample = generator.exponential(size=40)
    values = np.array([generator.choice(sample, 40).mean() for _ in range(4001)])
    left_out = [(sample.sum() - sample) / 39]
    low, high = percentile_interval(values, 0.95)
    assert percentile_interval(np.log(values), 0.95) == pytest.approx((np.log(low), np.log(high)), abs=1e-4)
    shifted = bca_interval(2 * values + 1, 2 * sample.mean() + 1, [2 * left_out[0] + 1], 0.95)
    assert shifted == pytest.approx(
        [2 * bound + 1 for bound in bca_interval(values, sample.mean(), left_out, 0.95)], abs=1e-9
    )
    turned = bca_interval(-values, -sample.mean(), [-left_out[0]], 0.95)
    assert turned == pytest.approx(
        [-bound for bound in bca_interval(values, sample.mean(), left_out, 0.95)][::-1], abs=1e-9
    )
