"""A classifier's calibration on a suite: fitted on another one, or cross-fitted on the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from acceptability import Scores, Sentence, Suite, score
from acceptability.api import recalibration
from acceptability.api.recalibration import calibrate
from acceptability.errors import MeasureError, ScoreError, Undefined
from acceptability.stats.calibration import brier_score, fit_isotonic, fit_temperature
from tiny import TEXTS


def make_suite(name: str, n: int = 200, seed: int = 0) -> tuple[Suite, np.ndarray, np.ndarray]:
    """Return sentences, log-odds that are overconfident by a factor of two, and labels."""
    random = np.random.default_rng(seed)
    honest = random.normal(0.3, 1.5, n)
    labels = (random.random(n) < expit(honest)).astype(int)
    rows = [Sentence(f"{name}-{k}", f"{name} {k}.", int(label)) for k, label in enumerate(labels)]
    return Suite(name, (*rows, Sentence(f"{name}-x", f"{name} unlabelled."))), honest * 2, labels.astype(float)


@pytest.fixture
def suites(monkeypatch) -> dict[str, tuple[Suite, np.ndarray, np.ndarray]]:
    """Two suites, and a stand-in for `score` that returns their log-odds."""
    suites = {name: make_suite(name, seed=seed) for seed, name in enumerate(("dev", "fit"))}

    def fake_score(suite: Suite, model: str, reduce: str, **_: object) -> Scores:
        assert reduce == "log_odds"
        odds = [*suites[suite.name][1], 0.0]
        return Scores(
            {sentence.id: float(x) for sentence, x in zip(suite.sentences, odds, strict=True)}, model, "log_odds()"
        )

    monkeypatch.setattr(recalibration, "score", fake_score)
    return suites


def test_fitted_on_one_suite_and_measured_on_another(suites) -> None:
    dev, odds, labels = suites["dev"]
    other, fit_odds, fit_labels = suites["fit"]
    result = calibrate(dev, "m", fit=other)
    temperature = fit_temperature(fit_odds, fit_labels)
    assert result.temperature == temperature
    assert (result.folds, result.temperatures, result.n, result.fit) == (0, (), 200, "fit")
    assert result.before.brier == pytest.approx(brier_score(expit(odds), labels))
    assert result.after.brier == pytest.approx(brier_score(expit(odds / temperature), labels))
    assert result.after.ece_width < result.before.ece_width
    assert result.notes == ("1 sentences without a label left out",)
    assert result.signature != calibrate(dev, "m").signature


def test_isotonic_is_fitted_on_the_other_suite_alone(suites) -> None:
    dev, odds, labels = suites["dev"]
    other, fit_odds, fit_labels = suites["fit"]
    result = calibrate(dev, "m", fit=other, method="isotonic")
    isotonic = fit_isotonic(fit_odds, fit_labels)
    assert result.after.brier == pytest.approx(brier_score(isotonic(odds), labels))
    assert result.temperature is None
    assert result.knots == tuple(zip(isotonic.scores.tolist(), isotonic.probabilities.tolist(), strict=True))


@pytest.mark.parametrize("method", ["temperature", "isotonic"])
def test_a_single_suite_is_cross_fitted_with_a_note(suites, method: str) -> None:
    dev, odds, labels = suites["dev"]
    result = calibrate(dev, "m", fit=Suite("dev", dev.sentences) if method == "isotonic" else None, method=method)
    assert result.folds == 10
    assert "cross-fitted in 10 folds" in result.notes[-1]
    assert len(result.temperatures) == (10 if method == "temperature" else 0)
    in_sample = fit_isotonic(odds, labels)(odds) if method == "isotonic" else expit(odds / result.temperature)
    assert result.after.brier > brier_score(in_sample, labels), "no sentence may influence its own probability"


def test_sentences_in_both_suites_are_counted(suites) -> None:
    dev, _, _ = suites["dev"]
    other, _, _ = suites["fit"]
    first = dev.sentences[0].text
    mixed = Suite("fit", (Sentence("fit-0", first, other.sentences[0].label), *other.sentences[1:]))
    assert "1 sentences of dev are also in fit" in calibrate(dev, "m", fit=mixed).notes[-1]


def test_rows_are_tidy_and_serialise_to_json(suites) -> None:
    result = calibrate(suites["dev"][0], "m", bins=5)
    rows = list(result.rows())
    assert {(row["when"], row["bins"]) for row in rows} == {
        (when, bins) for when in ("before", "after") for bins in ("equal width", "equal mass")
    }
    for when in ("before", "after"):
        for bins in ("equal width", "equal mass"):
            assert sum(row["n"] for row in rows if (row["when"], row["bins"]) == (when, bins)) == 200
    parsed = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert parsed["before"]["ece_mass"] == result.before.ece_mass
    assert len(parsed["rows"]) == len(rows)


def test_invalid_arguments_are_refused(suites) -> None:
    with pytest.raises(MeasureError, match="method is 'platt'; expected temperature or isotonic"):
        calibrate(suites["dev"][0], "m", method="platt")
    with pytest.raises(MeasureError, match="suite 'bare' has nothing for 'calibration' to measure.* no labels"):
        calibrate(Suite("bare", (Sentence("a", "A."),)), "m")


def test_a_real_classifier_and_a_language_model(classifier_dir: Path) -> None:
    suite = Suite("tiny", tuple(Sentence(str(k), text, (k // 2) % 2) for k, text in enumerate(TEXTS)))
    odds = score(suite, f"classifier:{classifier_dir}", "log_odds").of(sentence.id for sentence in suite.sentences)
    result = calibrate(suite, f"classifier:{classifier_dir}", fit=Suite("f", suite.sentences[:8]), method="isotonic")
    assert result.before.brier == pytest.approx(
        brier_score(expit(odds), [sentence.label for sentence in suite.sentences])
    )
    with pytest.raises(ScoreError, match="this is a language model"):
        calibrate(suite, "uniform")


def test_labels_that_no_temperature_fits(suites, monkeypatch) -> None:
    dev, _, _ = suites["dev"]
    signs = {sentence.id: (1.0 if sentence.label else -1.0) for sentence in dev.sentences}
    monkeypatch.setattr(recalibration, "score", lambda *_, **__: Scores(signs, "m", "log_odds()"))
    with pytest.raises(Undefined, match="separate the labels without error"):
        calibrate(dev, "m")
