"""Power by simulation against statsmodels' noncentral t, and variance components that are found again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from statsmodels.stats.power import TTestPower

from acceptability.errors import MeasureError, Undefined
from acceptability.stats import (
    ComparisonDesign,
    VarianceComponents,
    estimate_components,
    plan_sample_size,
    simulate_comparison_power,
)

NONE = VarianceComponents(0, 0, 0, 0)


def test_power_by_items_is_that_of_the_noncentral_t_distribution() -> None:
    """Without components the answers are independent; the differences' deviation follows from the accuracies."""
    design = ComparisonDesign(items=300, accuracy=0.7, difference=0.08, components=NONE)
    sd = np.sqrt(0.7 * 0.3 + 0.78 * 0.22)
    exact = TTestPower().power(0.08 / sd, 300, 0.05)
    estimate = simulate_comparison_power(design, simulations=4000)
    assert estimate.low - 0.01 < exact < estimate.high + 0.01
    assert estimate.high - estimate.low < 0.04


def test_shared_items_make_a_difference_easier_to_find() -> None:
    design = ComparisonDesign(items=300, accuracy=0.7, difference=0.08, components=NONE)
    shared = replace(design, components=VarianceComponents(0, 0, 1.5, 0))
    powers = [simulate_comparison_power(each, simulations=1000).power for each in (design, shared)]
    assert powers[1] > powers[0] + 0.1
    # The correlation of two models' answers to an item, and with it the deviation of the differences, in closed form.
    rho, thresholds = 1.5**2 / (1 + 1.5**2), norm.ppf([0.7, 0.78])
    both = multivariate_normal([0, 0], [[1, rho], [rho, 1]]).cdf(thresholds)
    sd = np.sqrt(0.7 + 0.78 - 2 * both - 0.08**2)
    assert powers[1] == pytest.approx(TTestPower().power(0.08 / sd, 300, 0.05), abs=0.04)


@pytest.mark.parametrize(
    "design",
    [
        ComparisonDesign(items=100, difference=0),
        ComparisonDesign(items=15, paradigms=15, difference=0, unit="paradigm"),
        ComparisonDesign(items=60, seeds=5, difference=0, unit="seed", components=VarianceComponents(seed=0.3)),
    ],
    ids=lambda design: design.unit,
)
def test_false_alarms_are_one_in_twenty(design: ComparisonDesign) -> None:
    assert 0.03 <= simulate_comparison_power(design, simulations=3000).power <= 0.07


def test_items_tested_for_a_claim_about_paradigms_raise_false_alarms() -> None:
    design = ComparisonDesign(items=30, paradigms=10, difference=0, population="paradigm")
    assert simulate_comparison_power(design, simulations=1000).power > 0.1
    both = ComparisonDesign(
        items=20, paradigms=12, seeds=4, difference=0, unit="paradigm+seed", components=VarianceComponents(seed=0.2)
    )
    assert simulate_comparison_power(both, simulations=1500).power < 0.07


def test_more_models_need_a_smaller_p() -> None:
    two = ComparisonDesign(items=200, accuracy=0.7, difference=0.1)
    four = replace(two, models=4)
    assert (two.pair_alpha, four.pair_alpha) == (0.05, 0.05 / 6)
    assert (
        simulate_comparison_power(four, simulations=500).power < simulate_comparison_power(two, simulations=500).power
    )
    assert "Holm's first step of 6 pairs" in four.test


def test_a_plan_reaches_its_power_and_a_smaller_number_does_not() -> None:
    design = ComparisonDesign(accuracy=0.7, difference=0.1, components=NONE)
    plan = plan_sample_size(design, simulations=2000)
    sd = np.sqrt(0.7 * 0.3 + 0.8 * 0.2)
    exact = TTestPower().solve_power(0.1 / sd, power=0.8, alpha=0.05)
    assert plan.count == pytest.approx(exact, rel=0.08)
    assert plan.estimate.power >= 0.8
    tried = dict(plan.tried)
    assert tried[plan.count] == plan.estimate.power
    assert all(power < 0.8 for count, power in plan.tried if count < plan.count * 0.97)


def test_items_cannot_make_up_for_paradigms() -> None:
    design = ComparisonDesign(items=8, paradigms=4, difference=0.05, unit="paradigm")
    with pytest.raises(Undefined, match="more hardly raise it"):
        plan_sample_size(design, simulations=200)


def simulate_answers(components: VarianceComponents, seed: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Two models of 75 and 70 %: 4 seeds, 50 paradigms of 60 items, drawn here by hand."""
    generator, sds = np.random.default_rng(seed), components
    paradigms = np.repeat(np.arange(50), 60)
    shared = sds.paradigm * generator.normal(size=50)[paradigms] + sds.item * generator.normal(size=3000)
    tables = []
    for accuracy in (0.75, 0.7):
        own = sds.model_by_paradigm * generator.normal(size=50)[paradigms]
        level = norm.ppf(accuracy) * np.sqrt(1 + sum(sd**2 for sd in vars(sds).values()))
        seeds = sds.seed * generator.normal(size=(4, 1))
        tables.append((level + shared + own + seeds > generator.normal(size=(4, 3000))).astype(float))
    return tables[0], tables[1], [str(name) for name in paradigms]


def test_components_are_found_again() -> None:
    true = VarianceComponents(0.6, 0.4, 0.8, 0.3)
    found = [estimate_components(*simulate_answers(true, seed)) for seed in range(12)]
    means = np.mean([list(vars(components).values()) for *_, components in found], axis=0)
    assert means == pytest.approx(list(vars(true).values()), abs=0.08)
    assert np.mean([first for first, *_ in found]) == pytest.approx(0.75, abs=0.03)
    # Nothing in common: independent answers have no components to speak of.
    *_, nothing = estimate_components(*simulate_answers(NONE, 0))
    assert max(vars(nothing).values()) < 0.12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"items": 0}, "items is 0"),
        ({"models": 1}, "models is 1"),
        ({"accuracy": 0.99, "difference": 0.02}, "both models between 0 and 1"),
        ({"unit": "row"}, "the unit is 'row'"),
        ({"population": "row"}, "the population is 'row'"),
        ({"unit": "seed"}, "two seeds or more"),
        ({"alpha": 0}, "alpha"),
    ],
)
def test_impossible_designs(options: dict[str, object], message: str) -> None:
    with pytest.raises(MeasureError, match=message):
        ComparisonDesign(**options)


def test_impossible_requests() -> None:
    with pytest.raises(MeasureError, match="a number from 0"):
        VarianceComponents(item=-1)
    with pytest.raises(MeasureError, match="simulations is 0"):
        simulate_comparison_power(ComparisonDesign(), simulations=0)
    for arguments, message in ((("rows",), "what is planned"),):
        with pytest.raises(MeasureError, match=message):
            plan_sample_size(ComparisonDesign(), *arguments)
    with pytest.raises(MeasureError, match="the difference is 0"):
        plan_sample_size(ComparisonDesign(difference=0))
    with pytest.raises(MeasureError, match="power between 0 and 1"):
        plan_sample_size(ComparisonDesign(), target=1)
    right = np.ones((1, 4))
    with pytest.raises(Undefined, match="all items"):
        estimate_components(right, right, ["a"] * 4)
    with pytest.raises(MeasureError, match="4 answers for 3 items"):
        estimate_components(right, right, ["a"] * 3)
    with pytest.raises(MeasureError, match="right"):
        estimate_components(right / 2, right, ["a"] * 4)
