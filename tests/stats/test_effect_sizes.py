"""Effect sizes and their intervals against R (golden/effects) and against brute force."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from acceptability.errors import MeasureError, Undefined
from acceptability.stats import cohen_d, cohen_d_paired, levene, partial_eta_squared, rank_biserial, signed_rank
from acceptability.stats.effects.effect_sizes import auc_score_interval, format_effect_size, rank_biserial_paired
from acceptability.stats.hypothesis_tests import rank_sum, tukey_hsd, two_way_anova
from acceptability.stats.regression import linear_regression

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "effects" / "effects.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize(
    ("name", "effect_of"),
    [
        ("groups", cohen_d),
        ("groups_with_ties", cohen_d),
        ("pairs", cohen_d_paired),
        ("pairs_with_ties", cohen_d_paired),
    ],
)
def test_cohens_d_is_that_of_effectsize(name: str, effect_of: Any) -> None:
    golden = GOLDEN[name]
    effect = effect_of(golden["x"], golden["y"])
    expected = [golden["cohens_d"][key] for key in ("Cohens_d", "CI_low", "CI_high")]
    # R searches its bounds to about four digits.
    assert [effect.value, effect.low, effect.high] == pytest.approx(expected, abs=2e-4)
    assert effect.method == "noncentral t"
    # At the bounds the observed t lies at either tail.
    m, n = len(golden["x"]), len(golden["y"])
    scale, df = (np.sqrt(1 / m + 1 / n), m + n - 2) if name.startswith("groups") else (1 / np.sqrt(m), m - 1)
    tails = [stats.nct.cdf(effect.value / scale, df, end / scale) for end in (effect.low, effect.high)]
    assert tails == pytest.approx([0.975, 0.025], abs=1e-6)


def _share_of_noncentrality(end: float, df_error: int, n: int) -> float:
    """Our bound λ / (λ + n) from effectsize's λ / (λ + df of the error)."""
    noncentrality = df_error * end / (1 - end)
    return noncentrality / (noncentrality + n)


def test_the_noncentrality_of_eta_squared_is_that_of_effectsize() -> None:
    one_way, rows = GOLDEN["several"]["anova"], [(GOLDEN["several"]["eta_squared"], "Eta2")]
    effect = partial_eta_squared(one_way["f"], *one_way["df"], len(GOLDEN["several"]["value"]))
    results = [effect]
    factorial = GOLDEN["factorial"]
    anova = two_way_anova(factorial["value"], {name: factorial[name] for name in ("kind", "condition")})
    results += [effect.effect_size for effect in anova.effects]
    rows += [(row, "Eta2_partial") for row in factorial["partial_eta_squared"]]
    sizes = [(one_way["df"][1], len(GOLDEN["several"]["value"]))] + [(anova.residual_df, anova.n)] * 3
    for result, (golden, name), (df_error, n) in zip(results, rows, sizes, strict=True):
        assert result.value == pytest.approx(golden[name], abs=1e-9)
        expected = [_share_of_noncentrality(golden[key], df_error, n) for key in ("CI_low", "CI_high")]
        assert [result.low, result.high] == pytest.approx(expected, abs=5e-5)


def test_eta_squared_of_an_f_far_below_1_is_about_nothing() -> None:
    effect = partial_eta_squared(0.001, 2, 30, 33)
    assert (effect.low, effect.high) == (0.0, 0.0)
    with pytest.raises(MeasureError, match="is no F"):
        partial_eta_squared(-1.0, 2, 30, 33)


@pytest.mark.parametrize("ties", ["", "_with_ties"])
def test_rank_biserials_are_those_of_effectsize(ties: str) -> None:
    groups, pairs = GOLDEN[f"groups{ties}"], GOLDEN[f"pairs{ties}"]
    between = rank_biserial(groups["x"], groups["y"])
    assert between.value == pytest.approx(groups["rank_biserial"]["r_rank_biserial"], abs=1e-9)
    assert rank_sum(groups["x"], groups["y"]).effect_size == between
    within = rank_biserial_paired(pairs["x"], pairs["y"])
    assert within.value == pytest.approx(pairs["rank_biserial"]["r_rank_biserial"], abs=1e-9)
    assert signed_rank(pairs["x"], pairs["y"]).effect_size == within
    # Another method, whose interval of two groups is about as wide.
    golden = groups["rank_biserial"]
    assert between.high - between.low == pytest.approx(golden["CI_high"] - golden["CI_low"], rel=0.15)


def test_newcombes_interval_solves_his_equation() -> None:
    """Newcombe (2006), method 5: the bounds at which the area is z standard errors away, on a fine grid."""
    area, m, n = 0.85, 30, 20
    grid = np.linspace(0, 1, 200_001)
    extra = (m + n) / 2 - 1
    variance = grid * (1 - grid) * (1 + extra * (1 - grid) / (2 - grid) + extra * grid / (1 + grid)) / (m * n)
    inside = grid[np.abs(grid - area) <= stats.norm.ppf(0.975) * np.sqrt(variance)]
    assert auc_score_interval(area, m, n) == pytest.approx((inside[0], inside[-1]), abs=1e-5)
    assert auc_score_interval(1.0, m, n)[1] == 1.0
    low, high = auc_score_interval(0.15, m, n)
    assert (1 - high, 1 - low) == pytest.approx(auc_score_interval(area, m, n), abs=1e-9)


def test_the_interval_of_matched_pairs_takes_the_variance_of_a_normal_shift() -> None:
    """The variance at a bound, by simulation of differences with that bound as their true value."""
    n, generator = 12, np.random.default_rng(3)
    first = generator.normal(0.5, 1, n)
    effect, observed = rank_biserial_paired(first, np.zeros(n)), _mean_sign_of_sums(first[None])[0]
    for end in (effect.low, effect.high):
        mean = stats.norm.ppf((1 + end) / 2) / np.sqrt(2)
        spread = _mean_sign_of_sums(generator.normal(mean, 1, (40_000, n))).std()
        assert abs(observed - end) / spread == pytest.approx(stats.norm.ppf(0.975), rel=0.02)


def _mean_sign_of_sums(draws: np.ndarray) -> np.ndarray:
    first, second = np.triu_indices(draws.shape[1], k=1)
    return np.sign(draws[:, first] + draws[:, second]).mean(axis=1)


def test_differences_of_one_sign_have_an_interval() -> None:
    effect = rank_biserial_paired([2, 3, 4, 5, 6, 7], [1, 1, 1, 1, 1, 1])
    assert effect.value == 1
    assert effect.high == 1
    assert 0 < effect.low < 0.9
    assert rank_biserial_paired([1, 2], [0, 2]).low is None


def test_effects_without_variation_are_undefined() -> None:
    with pytest.raises(Undefined, match="nothing varies"):
        cohen_d([1, 1], [2, 2])
    with pytest.raises(Undefined, match="all differences are the same"):
        cohen_d_paired([2, 3], [1, 2])
    with pytest.raises(Undefined, match="no pair differs"):
        rank_biserial_paired([1], [1])


def test_tests_carry_their_effect_with_its_method() -> None:
    generator = np.random.default_rng(1)
    y, a, b = generator.normal(size=40), ["x", "y"] * 20, ["u", "u", "v", "v"] * 10
    anova = two_way_anova(y, {"a": a, "b": b})
    for effect in anova.effects:
        assert effect.effect_size == partial_eta_squared(effect.f, effect.df, anova.residual_df, 40)
        assert effect.effect_size.value == pytest.approx(effect.partial_eta_squared, abs=1e-12)
    (pair,) = tukey_hsd(y, a)
    groups = [y[np.array(a) == name] for name in "xy"]
    assert (pair.effect_size.low, pair.effect_size.high) == pytest.approx(
        (cohen_d(*groups).low, cohen_d(*groups).high), abs=1e-9
    )
    spread = levene(*groups)
    assert spread.effect_size.value == spread.eta_squared
    assert spread.effect_size.name == "eta squared"
    fit = linear_regression(y, {"x": generator.normal(size=40)})["x"]
    size = partial_eta_squared(fit.statistic**2, 1, 38, 40)
    assert (fit.effect, fit.effect_low, fit.effect_high) == pytest.approx((size.value, size.low, size.high), abs=1e-12)
    assert "noncentral F" in format_effect_size(size)
