"""Fits whose deviance is all but flat in one direction, where a Newton step by a rounding error would lead anywhere."""

from __future__ import annotations

import numpy as np
import pytest
from bench.false_alarms import draw_logistic_paradigms

from acceptability.stats.mixed.fitting import build_fixed_effects, fit_logistic
from acceptability.stats.mixed.laplace import LaplaceDeviance, build_logistic_likelihood
from acceptability.stats.mixed.optimiser import minimise
from acceptability.stats.mixed.random_effects import build_random_effects, build_random_term
from acceptability.types import Floats

# Two outcomes of 160 items in 8 paradigms under two models, 8 answers a byte, drawn from models without an effect.
OUTCOMES = {
    ("Intercept", "effect"): (
        "ff9ff1c27f8a9e7a9b7a1b94ae2d9ffdeacf98ec7b46cfbbffceb6adedfe7cfaf651eff5b2e3acae",
        (0.24557545, 0.54368125, -0.33288483, 0.26226602),
    ),
    ("Intercept",): (
        "fffdfeabdbfd1c6fada797fe76f5affff35fa3fefdc3e9d5fbf97fff4f9dfbefffbeff9ff5fe27fc",
        (0.72753791, 0.3, -0.34462977, 0.3),
    ),
}


@pytest.mark.parametrize("names", OUTCOMES)
def test_fits_with_a_flat_direction_converge_from_every_start(names: tuple[str, ...]) -> None:
    answers, start = OUTCOMES[names]
    outcome = np.unpackbits(np.frombuffer(bytes.fromhex(answers), dtype=np.uint8)).astype(float)
    item, effect = np.tile(np.arange(160), 2), np.repeat([-0.5, 0.5], 160)
    columns = {"Intercept": np.ones(320), "effect": effect}
    fixed = build_fixed_effects(list(names), np.column_stack([columns[name] for name in names]))
    random = build_random_effects(
        [
            build_random_term("item", item.tolist()),
            build_random_term("paradigm", (item // 20).tolist(), {"effect": effect}),
        ]
    )
    fit = fit_logistic(outcome, fixed, random, start=np.array(start))
    # Along the flat direction, deviances this near are as good as equal.
    assert fit.deviance == pytest.approx(fit_logistic(outcome, fixed, random).deviance, abs=1e-4)


def test_a_deviance_that_falls_with_its_fourth_power_is_followed_to_its_bottom() -> None:
    def evaluate(x: Floats) -> tuple[float, Floats]:
        value = 414 + 3.5e-5 * x[0] + 11 * x[0] ** 4 + 50 * x[1] ** 2
        # The rounding error of a deviance hides that it falls; its gradient still shows it.
        return round(float(value), 6), np.array([3.5e-5 + 44 * x[0] ** 3, 100 * x[1]])

    assert minimise(evaluate, np.zeros(2)).x == pytest.approx([-((3.5e-5 / 44) ** (1 / 3)), 0], abs=1e-6)


def test_modes_are_found_where_full_steps_would_go_to_and_fro() -> None:
    design = draw_logistic_paradigms(np.random.default_rng([830, 3]))
    terms = [build_random_term(name, labels) for name, labels in design.groups.items()]
    deviance = LaplaceDeviance(build_random_effects(terms))
    likelihood = build_logistic_likelihood(design.outcome)
    # Standard deviations that a line search may try on its way.
    point = deviance.evaluate(np.array([-60.0, -20.0]), np.full(1920, 20.0), likelihood)
    residual = deviance.pull_back(point.templates, point.terms.scores).move(point.modes, -1.0)
    assert np.abs(residual.first).max() < 1e-6
