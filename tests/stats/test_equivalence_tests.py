"""Two one-sided tests against R, statsmodels, and brute-force maximum likelihood."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats
from statsmodels.stats.weightstats import ttost_paired

from acceptability.errors import MeasureError, Undefined
from acceptability.stats import equivalence_of_means, equivalence_of_proportions
from acceptability.stats.effects.equivalence_tests import equivalence_of_resamples, tango_z
from acceptability.stats.intervals.closed_forms import tango_interval

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "effects" / "effects.json").read_text(encoding="utf-8")
)["equivalence"]


def test_paired_means_are_those_of_r_and_of_statsmodels() -> None:
    golden = GOLDEN["paired"]
    x, y = GOLDEN["x"][: len(GOLDEN["y"])], GOLDEN["y"]
    test = equivalence_of_means(x, y, golden["bound"])
    assert (test.p_lower, test.p_upper, test.p) == pytest.approx(
        (golden["p_low"], golden["p_high"], golden["p"]), abs=1e-9
    )
    assert (test.low, test.high) == pytest.approx((golden["low_90"], golden["high_90"]), abs=1e-9)
    assert test.method == f"t test of paired differences, df = {golden['df']}"
    p, lower, upper = ttost_paired(np.array(x), np.array(y), -golden["bound"], golden["bound"])
    assert (test.p, test.p_lower, test.p_upper) == pytest.approx((p, lower[1], upper[1]), abs=1e-9)


def _brute_force_z(only_first: int, only_second: int, n: int, difference: float) -> float:
    """The score statistic with the constrained likelihood maximised by a search."""

    def loss(second: float) -> float:
        shares = second + difference, second, 1 - 2 * second - difference
        counts = only_first, only_second, n - only_first - only_second
        return -sum(count * np.log(share) for count, share in zip(counts, shares, strict=True) if count)

    low, high = max(0.0, -difference), (1 - difference) / 2
    second = optimize.minimize_scalar(
        loss, bounds=(low + 1e-12, high - 1e-12), method="bounded", options={"xatol": 1e-13}
    ).x
    return (only_first - only_second - n * difference) / np.sqrt(n * (2 * second + difference - difference**2))


@pytest.mark.parametrize("counts", [(10, 5, 100), (0, 3, 30), (7, 7, 20), (1, 0, 44), (12, 1, 14)])
@pytest.mark.parametrize("difference", [-0.3, -0.02, 0.05, 0.4])
def test_tangos_statistic_is_that_of_the_constrained_likelihood(
    counts: tuple[int, int, int], difference: float
) -> None:
    assert tango_z(*counts, difference) == pytest.approx(_brute_force_z(*counts, difference), abs=1e-4)


def test_tangos_statistic_at_0_is_mcnemars_without_correction() -> None:
    assert tango_z(10, 5, 100, 0.0) ** 2 == pytest.approx((10 - 5) ** 2 / 15, abs=1e-12)
    assert tango_z(0, 0, 10, 0.0) == 0.0


@pytest.mark.parametrize("counts", list(product((0, 1, 6), (0, 2, 9), (15, 40))))
def test_tangos_interval_is_what_the_test_does_not_reject(counts: tuple[int, int, int]) -> None:
    low, high = map(float, tango_interval(*map(float, counts), level=0.9))
    z = stats.norm.ppf(0.95)
    for end, sign in ((low, 1), (high, -1)):
        if abs(end) < 1:
            assert tango_z(*counts, end) == pytest.approx(sign * z, abs=1e-6)
    assert low <= (counts[0] - counts[1]) / counts[2] <= high
    # Exchanging the models turns the interval round.
    back = tango_interval(float(counts[1]), float(counts[0]), float(counts[2]), level=0.9)
    assert [float(end) for end in back] == pytest.approx([-high, -low], abs=1e-9)


def test_the_tests_and_the_interval_agree() -> None:
    generator = np.random.default_rng(5)
    for _ in range(60):
        first, second = (generator.random(80) < p for p in generator.uniform(0.7, 1, 2))
        for test in (
            equivalence_of_proportions(first, second, 0.1),
            equivalence_of_means(first * 1.0, second * 1.0, 0.1) if (first != second).any() else None,
        ):
            if test:
                assert (test.p < 0.05) == (test.low > -0.1 and test.high < 0.1)
                assert (test.verdict == "equivalent") == (test.p < 0.05)


def test_false_claims_of_equivalence_are_one_in_twenty() -> None:
    """Models that differ by exactly the margin, near the ceiling: 93 % and 98 % of 300 rows."""
    generator, margin, n, rounds = np.random.default_rng(6), 0.05, 300, 2000
    draws = generator.multinomial(n, (0.92, 0.01, 0.06, 0.01), size=rounds)
    z = np.array([tango_z(only_first, only_second, n, -margin) for _, only_first, only_second, _ in draws.tolist()])
    assert 0.035 <= (z > stats.norm.ppf(0.95)).mean() <= 0.065


def test_clusters_count_once() -> None:
    generator = np.random.default_rng(7)
    x, y, items = generator.normal(size=60), generator.normal(size=60), np.repeat(np.arange(20), 3)
    means = (x - y).reshape(20, 3).mean(axis=1)
    clustered, plain = equivalence_of_means(x, y, 0.4, clusters=items), equivalence_of_means(means, means * 0, 0.4)
    assert (clustered.p_lower, clustered.p_upper) == pytest.approx((plain.p_lower, plain.p_upper), abs=1e-12)
    assert clustered.n == 20
    assert "by cluster, df = 19" in clustered.method
    # Of unequal clusters the mean is over rows, and the error that of a ratio: the delta method by hand.
    uneven = items.copy()
    uneven[:10] = 0
    test = equivalence_of_means(x, y, 0.4, clusters=uneven)
    sums = np.array([(x - y)[uneven == item].sum() for item in np.unique(uneven)])
    counts = np.array([(uneven == item).sum() for item in np.unique(uneven)])
    residuals = sums - (x - y).mean() * counts
    se = np.sqrt(len(sums) * residuals.var(ddof=1)) / 60
    half_width = (test.high - test.low) / 2
    assert test.difference == pytest.approx((x - y).mean(), abs=1e-12)
    assert half_width == pytest.approx(stats.t.ppf(0.95, len(sums) - 1) * se, rel=1e-9)


def test_resamples_are_counted() -> None:
    resampled = np.concatenate([np.full(10, -0.3), np.full(985, 0.0), np.full(5, 0.2), [np.nan]])
    test = equivalence_of_resamples(0.0, resampled, 0.2, 50)
    assert (test.p_lower, test.p_upper) == (11 / 1001, 6 / 1001)
    assert (test.verdict, test.n, test.low, test.high) == ("equivalent", 50, 0.0, 0.0)
    with pytest.raises(Undefined, match="too few"):
        equivalence_of_resamples(0.0, np.zeros(30), 0.2, 50)
    with pytest.raises(Undefined, match="undefined"):
        equivalence_of_resamples(0.0, np.array([np.nan] * 100 + [0.0] * 900), 0.2, 50)


def test_verdicts() -> None:
    same, apart = [1.0, 0.0] * 200, [1.0] * 400
    assert equivalence_of_proportions(same, apart, 0.1).verdict == "different by more than the margin"
    assert equivalence_of_proportions(same[:10], [*same[:9], 1.0], 0.1).verdict == "undecided"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: equivalence_of_proportions([1, 0], [1, 1], 0.0), "above 0"),
        (lambda: equivalence_of_proportions([1, 0], [1, 1], 1.5), "more than 1"),
        (lambda: equivalence_of_proportions([1, 0.5], [1, 1], 0.1), "a row has 0.5"),
        (lambda: equivalence_of_means([1, 2], [1, 1], 0.1, alpha=0.5), "alpha"),
        (lambda: equivalence_of_means([1, 2], [1, 1], 0.1, clusters=["a"]), "1 clusters for 2 rows"),
        (lambda: equivalence_of_means([1, 2], [1, 1], 0.1, clusters=["a", "a"]), "two are needed"),
        (lambda: equivalence_of_means([1, 2], [0, 1], 0.1), "all differences are the same"),
    ],
)
def test_what_cannot_be_tested(call: Any, message: str) -> None:
    with pytest.raises(MeasureError, match=message):
        call()
