"""A small part of bench/ordinal_errors.py: false alarms and coverage of ordinal mixed models."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location(
    "ordinal_errors", Path(__file__).parents[4] / "bench" / "ordinal_errors.py"
)
ordinal_errors = importlib.util.module_from_spec(_spec)
# Dataclasses look their module up by name.
sys.modules["ordinal_errors"] = ordinal_errors
_spec.loader.exec_module(ordinal_errors)

TRIALS = 150


@pytest.mark.slow
def test_false_alarms_and_coverage_are_nominal() -> None:
    """Bounds are four standard errors of a share of .05 in 150 trials."""
    trials = [ordinal_errors.run_trial(seed) for seed in range(1, TRIALS + 1)]
    assert [trial.failure for trial in trials if trial.failure] == []
    slack = 4 * (0.05 * 0.95 / TRIALS) ** 0.5
    for p_values in ([trial.wald for trial in trials], [trial.ratio for trial in trials]):
        assert sum(p <= 0.05 for p in p_values) / TRIALS <= 0.05 + slack
        # Under the null hypothesis p is uniform: its mean is near one half.
        assert sum(p_values) / TRIALS == pytest.approx(0.5, abs=4 * (1 / 12 / TRIALS) ** 0.5)
    for holds in ([trial.holds_effect for trial in trials], [trial.holds_threshold for trial in trials]):
        assert sum(holds) / TRIALS >= 0.95 - slack
