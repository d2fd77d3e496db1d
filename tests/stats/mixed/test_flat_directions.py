"""Fits whose deviance is all but flat in one direction, where a Newton step by a rounding error would lead anywhere."""

from __future__ import annotations

import numpy as np
import pytest

from acceptability.stats.mixed.fitting import build_fixed_effects, fit_logistic
from acceptability.stats.mixed.random_effects import build_random_effects, build_random_term

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
