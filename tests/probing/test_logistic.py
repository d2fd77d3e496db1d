"""The classifiers and principal components of probes, against other fits and the optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, matthews_corrcoef

from acceptability.probing.design import ProbeSplit
from acceptability.probing.probes import (
    PENALTIES,
    compute_held_out_losses,
    compute_multiclass_mcc,
    fit_logistic,
    fit_principal_components,
    predict_test_labels,
)


def make_data(n: int, width: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    features = (generator.normal(size=(n, width)) * generator.uniform(0.1, 9, width) + 3).astype(np.float32)
    noise = generator.logistic(size=n)
    labels = ((features - 3) @ generator.normal(size=width) / np.sqrt(width) + 2 * noise > 0).astype(np.float64)
    return features, labels


def standardise(features: np.ndarray) -> np.ndarray:
    return (features - features.mean(0, dtype=float)) / features.std(0, dtype=float)


@pytest.mark.parametrize(("n", "width"), [(300, 12), (40, 90)], ids=["narrow", "wide"])
@pytest.mark.parametrize("penalty", [1.0, 0.01])
def test_logits_are_those_of_another_solver_without_the_rotation(n: int, width: int, penalty: float) -> None:
    features, labels = make_data(n, width)
    components = fit_principal_components(features)
    probe = fit_logistic(components, labels[:, None], penalty)
    standard = standardise(features)
    theirs = LogisticRegression(C=1 / (n * penalty), tol=1e-10, max_iter=10_000).fit(standard, labels)
    assert probe.compute_logits(components.train_values)[:, 0] == pytest.approx(
        theirs.decision_function(standard), abs=2e-3
    )
    fresh, _ = make_data(20, width, seed=1)
    fresh_standard = (fresh - features.mean(0, dtype=float)) / features.std(0, dtype=float)
    assert probe.compute_logits(components(fresh))[:, 0] == pytest.approx(
        theirs.decision_function(fresh_standard), abs=2e-3
    )


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_gradient_of_the_penalised_loss_vanishes(penalty: float) -> None:
    features, labels = make_data(120, 30)
    components = fit_principal_components(features)
    probe = fit_logistic(components, labels[:, None], penalty)
    residuals = expit(probe.compute_logits(components.train_values)[:, 0]) - labels
    slope = components.train_values.T @ residuals / 120 + penalty * probe.weights[:, 0]
    assert slope == pytest.approx(0, abs=1e-6)
    assert residuals.mean() == pytest.approx(0, abs=1e-6)


def test_several_classifiers_are_as_each_by_itself() -> None:
    features, labels = make_data(200, 10)
    both = np.stack([labels, np.roll(labels, 7)], axis=1)
    components = fit_principal_components(features)
    together = fit_logistic(components, both, 0.01)
    for column in range(2):
        alone = fit_logistic(components, both[:, [column]], 0.01)
        assert together.weights[:, column] == pytest.approx(alone.weights[:, 0], abs=1e-12)


def test_a_path_of_penalties_loses_what_single_fits_lose() -> None:
    features, labels = make_data(90, 12)
    components = fit_principal_components(features[:60])
    held_out, held_out_labels = components(features[60:]), labels[60:, None]
    losses = compute_held_out_losses(components, labels[:60, None], held_out, held_out_labels)
    for loss, penalty in zip(losses[:, 0], PENALTIES, strict=True):
        logits = fit_logistic(components, labels[:60, None], penalty).compute_logits(held_out)[:, 0]
        assert loss == pytest.approx(log_loss(labels[60:], expit(logits)), abs=1e-4)


def test_constant_features_and_classes_leave_the_class_frequency() -> None:
    components = fit_principal_components(np.full((6, 3), 7.1, np.float32))
    assert components.train_values.shape == (6, 0)
    probe = fit_logistic(components, np.array([[1.0], [1.0], [1.0], [1.0], [0.0], [0.0]]), 0.1)
    assert probe.compute_logits(components.train_values)[:, 0] == pytest.approx(np.full(6, np.log(2)), abs=1e-4)
    varied = fit_principal_components(make_data(6, 3)[0])
    absent = fit_logistic(varied, np.zeros((6, 1)), 0.1).compute_logits(varied.train_values)
    assert (absent < -10).all()
    assert np.isfinite(absent).all()


def test_mcc_is_that_of_scikit_learn() -> None:
    generator = np.random.default_rng(1)
    for count in (2, 3, 5):
        predicted, true = generator.integers(0, count, (2, 80))
        assert compute_multiclass_mcc(predicted, true) == pytest.approx(matthews_corrcoef(true, predicted))
    assert compute_multiclass_mcc(np.zeros(4, int), np.array([0, 1, 0, 1])) == 0


def test_a_factor_of_three_values_is_predicted() -> None:
    generator = np.random.default_rng(2)
    labels = np.arange(240) % 3
    features = (np.eye(5)[labels] * 6 + generator.normal(size=(240, 5))).astype(np.float32)
    rows = generator.permutation(240)
    split = ProbeSplit(rows[:160], rows[:40], rows[160:])
    (predicted,) = predict_test_labels(features, split, [labels])
    assert (predicted == labels[split.test]).mean() > 0.95
