"""A classifier's calibration on a suite: fitted on another one, or cross-fitted on the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from acceptability import Scores, Sentence, Suite, calibrating, score
from acceptability.calibrating import calibrate
from acceptability.errors import MeasureError, ScoreError, Undefined
from acceptability.stats.calibration import brier, fitted_isotonic, fitted_temperature
from tiny import TEXTS


def made(name: str, n: int = 200, seed: int = 0) -> tuple[Suite, np.ndarray, np.ndarray]:
    """Sentences, log-odds that are twice too sure, and labels."""
    random = np.random.default_rng(seed)
    honest = random.normal(0.3, 1.5, n)
    labels = (random.random(n) < expit(honest)).astype(int)
    rows = [Sentence(f"{name}-{k}", f"{name} {k}.", int(label)) for k, label in enumerate(labels)]
    return Suite(name, (*rows, Sentence(f"{name}-x", f"{name} nobody labelled."))), honest * 2, labels.astype(float)


@pytest.fixture
def suites(monkeypatch) -> dict[str, tuple[Suite, np.ndarray, np.ndarray]]:
    """Two suites, and a classifier that knows what to say to them."""
    found = {name: made(name, seed=seed) for seed, name in enumerate(("dev", "fit"))}

    def said(suite: Suite, model: str, reduce: str, **_: object) -> Scores:
        assert reduce == "log_odds"
        odds = [*found[suite.name][1], 0.0]
        return Scores({each.id: float(x) for each, x in zip(suite.sentences, odds, strict=True)}, model, "log_odds()")

    monkeypatch.setattr(calibrating, "score", said)
    return found


def test_fitted_on_one_suite_and_measured_on_another(suites) -> None:
    dev, odds, labels = suites["dev"]
    other, fit_odds, fit_labels = suites["fit"]
    found = calibrate(dev, "m", fit=other)
    temperature = fitted_temperature(fit_odds, fit_labels)
    assert found.temperature == temperature
    assert (found.folds, found.temperatures, found.n, found.fit) == (0, (), 200, "fit")
    assert found.before.brier == pytest.approx(brier(expit(odds), labels))
    assert found.after.brier == pytest.approx(brier(expit(odds / temperature), labels))
    assert found.after.ece_width < found.before.ece_width
    assert found.notes == ("1 sentences without a label left out",)
    assert found.signature != calibrate(dev, "m").signature


def test_isotonic_reads_the_other_suite_alone(suites) -> None:
    dev, odds, labels = suites["dev"]
    other, fit_odds, fit_labels = suites["fit"]
    found = calibrate(dev, "m", fit=other, method="isotonic")
    mend = fitted_isotonic(fit_odds, fit_labels)
    assert found.after.brier == pytest.approx(brier(mend(odds), labels))
    assert found.temperature is None
    assert found.knots == tuple(zip(mend.scores.tolist(), mend.probabilities.tolist(), strict=True))


@pytest.mark.parametrize("method", ["temperature", "isotonic"])
def test_one_suite_is_cross_fitted_and_that_is_said(suites, method: str) -> None:
    dev, odds, labels = suites["dev"]
    found = calibrate(dev, "m", fit=Suite("dev", dev.sentences) if method == "isotonic" else None, method=method)
    assert found.folds == 10
    assert "cross-fitted in 10 folds" in found.notes[-1]
    assert len(found.temperatures) == (10 if method == "temperature" else 0)
    seen = fitted_isotonic(odds, labels)(odds) if method == "isotonic" else expit(odds / found.temperature)
    assert found.after.brier > brier(seen, labels), "a sentence must have no say in its own probability"


def test_sentences_that_stand_in_both_suites_are_counted(suites) -> None:
    dev, _, _ = suites["dev"]
    other, _, _ = suites["fit"]
    first = dev.sentences[0].text
    mixed = Suite("fit", (Sentence("fit-0", first, other.sentences[0].label), *other.sentences[1:]))
    assert "1 sentences of dev stand in fit too" in calibrate(dev, "m", fit=mixed).notes[-1]


def test_rows_are_tidy_and_json(suites) -> None:
    found = calibrate(suites["dev"][0], "m", bins=5)
    rows = list(found.rows())
    assert {(row["when"], row["bins"]) for row in rows} == {
        (when, bins) for when in ("before", "after") for bins in ("equal width", "equal mass")
    }
    for when in ("before", "after"):
        for bins in ("equal width", "equal mass"):
            assert sum(row["n"] for row in rows if (row["when"], row["bins"]) == (when, bins)) == 200
    told = json.loads(json.dumps(found.told(), allow_nan=False))
    assert told["before"]["ece_mass"] == found.before.ece_mass
    assert len(told["rows"]) == len(rows)


def test_what_cannot_be_calibrated_is_said(suites) -> None:
    with pytest.raises(MeasureError, match="method is 'platt'; expected temperature or isotonic"):
        calibrate(suites["dev"][0], "m", method="platt")
    with pytest.raises(MeasureError, match="suite 'bare' has nothing for 'calibration' to measure.* no labels"):
        calibrate(Suite("bare", (Sentence("a", "A."),)), "m")


def test_a_real_classifier_and_a_language_model(classifier_dir: Path) -> None:
    suite = Suite("tiny", tuple(Sentence(str(k), text, (k // 2) % 2) for k, text in enumerate(TEXTS)))
    odds = score(suite, f"classifier:{classifier_dir}", "log_odds").of(each.id for each in suite.sentences)
    found = calibrate(suite, f"classifier:{classifier_dir}", fit=Suite("f", suite.sentences[:8]), method="isotonic")
    assert found.before.brier == pytest.approx(brier(expit(odds), [each.label for each in suite.sentences]))
    with pytest.raises(ScoreError, match="this is a language model"):
        calibrate(suite, "uniform")


def test_labels_that_no_temperature_fits(suites, monkeypatch) -> None:
    dev, _, _ = suites["dev"]
    signs = {each.id: (1.0 if each.label else -1.0) for each in dev.sentences}
    monkeypatch.setattr(calibrating, "score", lambda *_, **__: Scores(signs, "m", "log_odds()"))
    with pytest.raises(Undefined, match="part the labels without an error"):
        calibrate(dev, "m")
