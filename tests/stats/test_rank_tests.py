from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from acceptability.errors import MeasureError, Undefined
from acceptability.stats import niu_penn_p, rank_sum, signed_rank

# Park et al. (2021), section 3.3: mean magnitude estimates of the unacceptable items of 22 types, in the order of
# their Table 4; above the accuracy of 80 % are the first 13.
ABOVE = [-0.37, -0.98, -0.84, -0.67, -0.69, -0.21, 0.47, -0.40, -0.62, -0.62, -0.48, -0.33, -0.23]
BELOW = [-0.35, -0.34, -0.08, -0.27, -0.28, -0.21, -0.46, -0.04, -0.11]


def test_the_rank_sum_of_park_et_al() -> None:
    result = rank_sum(ABOVE, BELOW)
    assert result.w == result.u == 24.5
    assert result.p == pytest.approx(0.025, abs=5e-4)
    assert result.z_by_root_n == pytest.approx(0.477, abs=5e-4)
    assert result.rank_biserial == pytest.approx(-0.581, abs=5e-4)
    assert rank_sum(BELOW, ABOVE).rank_biserial == pytest.approx(0.581, abs=5e-4)


SAMPLES = {
    "ordinary": (np.random.default_rng(0).normal(size=23), np.random.default_rng(1).normal(0.4, size=31)),
    "tied": (np.array([1.0, 1, 2, 2, 3, 5]), np.array([2.0, 2, 3, 4, 4, 4, 6])),
    "one each": (np.array([1.0]), np.array([2.0])),
    "equal": (np.array([1.0, 2.0]), np.array([1.0, 2.0])),
}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_the_rank_sum_test_is_scipys(name: str, alternative: str) -> None:
    first, second = SAMPLES[name]
    theirs = stats.mannwhitneyu(first, second, alternative=alternative, method="asymptotic")
    ours = rank_sum(first, second, alternative=alternative)
    assert ours.w == theirs.statistic
    assert ours.p == pytest.approx(theirs.pvalue, abs=1e-9)
    if alternative == "two-sided":
        assert niu_penn_p(first, second) == pytest.approx(theirs.pvalue / 2, abs=1e-9)


def test_an_exact_rank_sum_test() -> None:
    first, second = SAMPLES["ordinary"]
    ours = rank_sum(first, second, method="exact")
    assert ours.p == pytest.approx(stats.mannwhitneyu(first, second, method="exact").pvalue, abs=1e-12)
    assert (ours.z, ours.z_by_root_n) == (None, None)
    with pytest.raises(MeasureError, match="without ties"):
        rank_sum(*SAMPLES["tied"], method="exact")


def test_the_rank_biserial_counts_pairs() -> None:
    first, second = SAMPLES["tied"]
    higher = np.mean([a > b for a in first for b in second])
    lower = np.mean([a < b for a in first for b in second])
    assert rank_sum(first, second).rank_biserial == pytest.approx(higher - lower, abs=1e-12)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("n", [5, 12, 60])
def test_the_signed_rank_test_is_scipys(n: int, alternative: str) -> None:
    generator = np.random.default_rng(n)
    first, second = generator.normal(0.3, size=n), generator.normal(size=n)
    for one, two in ((first, second), (np.round(3 * first), np.round(3 * second))):
        theirs = stats.wilcoxon(one, two, alternative=alternative, correction=True, method="asymptotic")
        ours = signed_rank(one, two, alternative=alternative)
        assert ours.p == pytest.approx(theirs.pvalue, abs=1e-9)
        least = min(ours.w_plus, ours.w_minus)
        assert theirs.statistic == (least if alternative == "two-sided" else ours.w_plus)
    exact = stats.wilcoxon(first, second, alternative=alternative, method="exact")
    assert signed_rank(first, second, alternative=alternative, method="exact").p == pytest.approx(exact.pvalue)


def test_the_matched_pairs_rank_biserial_by_hand() -> None:
    result = signed_rank([1, 5, 3, 2], [0, 2, 5, 2])
    # Differences 1, 3, -2 and 0: ranks 1, 3, 2.
    assert (result.w_plus, result.w_minus, result.n, result.zeros) == (4, 2, 3, 1)
    assert result.rank_biserial == pytest.approx(2 / 6)
    with pytest.raises(MeasureError, match="without ties and zeros"):
        signed_rank([1, 5, 3, 2], [0, 2, 5, 2], method="exact")


def test_degenerate_ranks() -> None:
    with pytest.raises(Undefined, match="no pair differs"):
        signed_rank([1, 2], [1, 2])
    with pytest.raises(Undefined, match="all values are the same"):
        rank_sum([1, 1], [1, 1, 1])
    with pytest.raises(Undefined, match="the second group has 0"):
        rank_sum([1.0], [])
    with pytest.raises(MeasureError, match="nan at index 1"):
        rank_sum([1.0, float("nan")], [1.0])
    with pytest.raises(MeasureError, match="same rows"):
        signed_rank([1, 2], [1])
    with pytest.raises(MeasureError, match="alternative is 'more'"):
        rank_sum([1], [2], alternative="more")
