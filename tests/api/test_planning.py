"""The command ``power``: designs, plans, saved runs, and reproduction."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from acceptability import load_suite, power, reproduce
from acceptability.api.significance.planning import estimate_from_run
from acceptability.cli import app
from acceptability.errors import MeasureError, UnknownName
from acceptability.stats import ComparisonDesign, plan_sample_size, simulate_comparison_power


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments])
    assert done.exit_code == 0, (done.exception, done.stderr)
    return done.stdout


def test_power_of_a_design_is_that_of_the_simulation(own_home: Path) -> None:
    row = json.loads(
        run("power", "--items", "100", "--accuracy", ".7", "--difference", ".1", "--simulations", "300", "--json")
    )
    expected = simulate_comparison_power(ComparisonDesign(items=100, accuracy=0.7, difference=0.1), simulations=300)
    assert (row["value"], row["low"], row["high"]) == (expected.power, expected.low, expected.high)
    assert row["interval"] == "Clopper-Pearson, of the simulation"
    assert row["test"] == "paired t test by item, two-sided at 0.05"
    (again,) = reproduce(row["signature"])
    assert again.status == "equal"


def test_a_plan_is_reproducible(own_home: Path) -> None:
    design = ComparisonDesign(accuracy=0.6, difference=0.2)
    result = power(design, plan="items", simulations=200)
    assert result.plan == plan_sample_size(design, simulations=200)
    (again,) = reproduce(result.signature, expected=result.row())
    assert again.status == "equal", again.differences
    assert again.rows[0]["items"] == result.plan.count


def test_a_plan_says_what_it_tried_within_80_columns(own_home: Path) -> None:
    done = CliRunner().invoke(
        app, ["power", "--accuracy", ".6", "--difference", ".2", "--plan", "items", "--simulations", "100"]
    )
    assert done.exit_code == 0, done.exception
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "the fewest items with a power of 0.8; tried: 2: " in done.stderr
    assert "sd on the probit scale: paradigm 0.5" in done.stderr


def test_a_saved_run_gives_accuracy_and_components(own_home: Path) -> None:
    path = own_home / "scores.csv"
    generator, suite = np.random.default_rng(1), load_suite("starter")
    rows = ["sentence_id,model,score"]
    for name, skill in (("poor", 0.5), ("good", 1.0)):
        better = {contrast.better for contrast in suite.contrasts}
        scores = generator.normal(size=len(suite.sentences))
        rows += [f"{s.id},{name},{skill * (s.id in better) + x}" for s, x in zip(suite.sentences, scores, strict=True)]
    path.write_text("\n".join(rows), encoding="utf-8")
    results = json.loads(
        run("measure", "starter", "--scores", str(path), "-M", "PairAccuracy", "--resamples", "0", "--json")
    )
    pilot = estimate_from_run(paradigm="phenomenon")
    assert pilot.accuracies == pytest.approx(tuple(row["value"] for row in reversed(results)), abs=1e-12)
    assert (pilot.first, pilot.second, pilot.items) == ("good", "poor", 383)
    text = CliRunner().invoke(app, ["power", "--run", "latest", "--paradigm-tag", "phenomenon", "--simulations", "50"])
    assert "estimated from 383 items of" in text.stderr
    with pytest.raises(MeasureError, match="no tag 'paradigm'"):
        estimate_from_run(pilot_run())
    with pytest.raises(UnknownName, match="model in the run"):
        estimate_from_run(pilot_run(), models=["good", "por"])
    with pytest.raises(MeasureError, match="name the two"):
        estimate_from_run(pilot_run(), models=["good"])
    with pytest.raises(MeasureError, match="no rows that are right or wrong of AUC"):
        estimate_from_run(pilot_run(), measure="AUC")
    with pytest.raises(UnknownName, match="no run named"):
        estimate_from_run("nothing")


def pilot_run() -> str:
    from acceptability.store.runs import list_saved_runs

    return next(run.id for run in list_saved_runs()[0] if run.command == "measure")
