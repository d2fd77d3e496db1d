"""The tests for all sets at once give what SciPy gives for one set at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from acceptability.papers.niu_penn.hu_surprisals import (
    halve_p_values,
    levene,
    mann_whitney,
    point_biserial,
    shapiro_wilk,
)


def groups(seed: int, *, decimals: int, sizes: tuple[int, int] = (8, 4)) -> tuple[np.ndarray, np.ndarray]:
    """Forty sets of two groups; few decimals make ties."""
    random = np.random.default_rng(seed)
    first, second = (random.normal(index, 1 + index, (40, size)) for index, size in enumerate(sizes))
    return first.round(decimals), second.round(decimals)


SEEDS = st.integers(0, 10_000)
SIZES = st.tuples(st.integers(2, 9), st.integers(2, 9))


@given(seed=SEEDS, decimals=st.sampled_from([0, 1, 9]), sizes=SIZES)
@settings(max_examples=15)
def test_mann_whitney_is_scipys(seed: int, decimals: int, sizes: tuple[int, int]) -> None:
    first, second = groups(seed, decimals=decimals, sizes=sizes)
    varied = [row for row in range(len(first)) if np.ptp(np.hstack((first[row], second[row])))]
    expected = [
        stats.mannwhitneyu(first[row], second[row], alternative="two-sided", method="asymptotic", use_continuity=True)
        for row in varied
    ]
    assert mann_whitney(first, second)[varied] == pytest.approx([result.pvalue for result in expected], abs=1e-9)


def test_half_of_a_two_sided_p_is_the_one_sided_p_of_the_nearer_side() -> None:
    first, second = groups(1, decimals=9)
    sides = [
        stats.mannwhitneyu(first, second, axis=1, alternative=side, method="asymptotic").pvalue
        for side in ("less", "greater")
    ]
    nearer = np.minimum(*sides)
    assert halve_p_values(mann_whitney(first, second)) == pytest.approx(np.minimum(nearer, 0.5), abs=1e-9)


def test_equal_values_have_p_1() -> None:
    same = np.ones((1, 3))
    assert mann_whitney(same, same).tolist() == [1.0]
    assert levene(same, same).tolist() == [1.0]


@given(seed=SEEDS, sizes=st.tuples(st.integers(3, 9), st.integers(3, 9)))
@settings(max_examples=15)
def test_levene_is_scipys(seed: int, sizes: tuple[int, int]) -> None:
    first, second = groups(seed, decimals=9, sizes=sizes)
    expected = [stats.levene(*rows, center="median").pvalue for rows in zip(first, second, strict=True)]
    assert levene(first, second) == pytest.approx(expected, abs=1e-9)


def test_shapiro_wilk_is_scipys() -> None:
    first, _ = groups(3, decimals=9)
    assert shapiro_wilk(first) == pytest.approx([stats.shapiro(row).pvalue for row in first], abs=1e-12)


@given(seed=SEEDS)
@settings(max_examples=15)
def test_point_biserial_is_scipys(seed: int) -> None:
    scores = np.hstack(groups(seed, decimals=1))
    is_good = np.array([True] * 8 + [False] * 4)
    expected = [stats.pointbiserialr(is_good, row).statistic for row in scores]
    assert point_biserial(scores, is_good) == pytest.approx(expected, abs=1e-12)


def test_point_biserial_of_a_constant_set_is_nan() -> None:
    assert np.isnan(point_biserial(np.ones((1, 4)), np.array([True, True, False, False]))).all()
