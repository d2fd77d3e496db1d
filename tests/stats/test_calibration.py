"""Calibration, against scikit-learn and statsmodels, brute force, and cases worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn.calibration import calibration_curve
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from statsmodels.stats.proportion import proportion_confint

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.calibration import (
    apply_temperature,
    bin_equal_mass,
    bin_equal_width,
    brier_score,
    debiased_calibration_error,
    expected_calibration_error,
    fit_isotonic,
    fit_temperature,
    wilson_interval,
)


def draw_overconfident(n: int = 600, scale: float = 2.5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return log-odds that are overconfident by a factor, and labels."""
    random = np.random.default_rng(seed)
    honest = random.normal(0.5, 1.2, n)
    return honest * scale, (random.random(n) < expit(honest)).astype(float)


def test_equal_width_bins_are_those_of_scikit_learn() -> None:
    odds, labels = draw_overconfident()
    given = expit(odds)
    bins = bin_equal_width(given, labels, 15)
    observed, expected = calibration_curve(labels, given, n_bins=15, strategy="uniform")
    assert [part.observed for part in bins] == pytest.approx(observed.tolist())
    assert [part.expected for part in bins] == pytest.approx(expected.tolist())
    assert sum(part.n for part in bins) == len(labels)
    assert all(part.low <= part.expected <= part.high for part in bins)


def test_equal_mass_bins_are_those_of_scikit_learn_where_they_come_out_even() -> None:
    odds, labels = draw_overconfident()
    given = expit(odds)
    bins = bin_equal_mass(given, labels, 10)
    observed, expected = calibration_curve(labels, given, n_bins=10, strategy="quantile")
    assert [part.n for part in bins] == [60] * 10
    assert [part.observed for part in bins] == pytest.approx(observed.tolist())
    assert [part.expected for part in bins] == pytest.approx(expected.tolist())


def test_equal_mass_keeps_equal_probabilities_together_in_any_order() -> None:
    given, labels = [0.5] * 6 + [0.1, 0.2, 0.8, 0.9], [0, 1, 0, 1, 0, 1, 0, 0, 1, 1]
    bins = bin_equal_mass(given, labels, 5)
    assert sum(part.n for part in bins) == 10
    assert next(part.n for part in bins if part.low == 0.5) == 6
    assert bin_equal_mass(given[::-1], labels[::-1], 5) == bins


def test_ece_is_the_weighted_distance() -> None:
    odds, labels = draw_overconfident(seed=3)
    given = expit(odds)
    by_hand = 0.0
    for index in range(10):
        inside = (given >= index / 10) & ((given < (index + 1) / 10) | (index == 9))
        by_hand += abs(labels[inside].mean() - given[inside].mean()) * inside.mean()
    assert expected_calibration_error(bin_equal_width(given, labels, 10)) == pytest.approx(by_hand)
    parts = np.array_split(np.argsort(given, kind="stable"), 10)
    masses = sum(abs(labels[part].mean() - given[part].mean()) * len(part) for part in parts) / len(labels)
    assert expected_calibration_error(bin_equal_mass(given, labels, 10)) == pytest.approx(masses)
    with pytest.raises(Undefined, match="no bins"):
        expected_calibration_error([])


def test_edges_belong_above_and_one_to_the_last_bin() -> None:
    assert [(part.low, part.n) for part in bin_equal_width([0.0, 0.5, 1.0], [0, 1, 1], 2)] == [(0.0, 1), (0.5, 2)]


def test_brier_is_that_of_scikit_learn() -> None:
    odds, labels = draw_overconfident(seed=4)
    assert brier_score(expit(odds), labels) == pytest.approx(brier_score_loss(labels, expit(odds)))


@given(st.integers(1, 400), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_that_of_statsmodels(n: int, data: st.DataObject, level: float) -> None:
    hits = data.draw(st.integers(0, n))
    assert wilson_interval(hits, n, level) == pytest.approx(
        proportion_confint(hits, n, alpha=1 - level, method="wilson"), abs=1e-12
    )


def test_the_temperature_is_that_of_logistic_regression_and_of_a_search() -> None:
    odds, labels = draw_overconfident(3000)
    result = fit_temperature(odds, labels)
    model = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=1000).fit(odds[:, None], labels)
    assert result == pytest.approx(1 / model.coef_[0, 0], rel=1e-5)

    def loss(log_temperature: float) -> float:
        given = odds / np.exp(log_temperature)
        return float(np.logaddexp(0, np.where(labels == 1, -given, given)).sum())

    assert np.log(result) == pytest.approx(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x, abs=1e-4)
    assert 2.2 < result < 2.8
    raw, recalibrated = (
        expected_calibration_error(bin_equal_width(apply_temperature(odds, t), labels)) for t in (1.0, result)
    )
    assert recalibrated < raw / 3


def test_a_temperature_without_a_finite_optimum_is_undefined() -> None:
    with pytest.raises(Undefined, match="without error"):
        fit_temperature([-1.0, 2.0, 3.0], [0, 1, 1])
    with pytest.raises(Undefined, match="do not increase with the labels"):
        fit_temperature([1.0, -2.0, -3.0], [0, 1, 1])
    with pytest.raises(Undefined, match="do not increase with the labels"):
        fit_temperature([0.0, 0.0], [0, 1])


@given(
    st.lists(st.tuples(st.integers(-6, 6), st.integers(0, 1)), min_size=1, max_size=40),
    st.lists(st.floats(-9, 9), min_size=1, max_size=5),
)
def test_isotonic_is_that_of_scikit_learn(rows: list[tuple[int, int]], queries: list[float]) -> None:
    scores, labels = np.array(rows, dtype=float).T
    result = fit_isotonic(scores, labels)
    reference = IsotonicRegression(out_of_bounds="clip").fit(scores, labels)
    assert result(scores) == pytest.approx(reference.predict(scores), abs=1e-9)
    assert result(queries) == pytest.approx(reference.predict(queries), abs=1e-9)
    assert (np.diff(result.probabilities) >= 0).all()


def test_bad_input_is_named() -> None:
    for call, message in (
        (lambda: brier_score([1.2], [1]), "probability is 1.2"),
        (lambda: brier_score([0.2], [2]), "a label is 2"),
        (lambda: brier_score([0.2, 0.1], [1]), "2 and 1 numbers"),
        (lambda: bin_equal_width([0.2], [1], 0), "number of bins is 0"),
        (lambda: wilson_interval(3, 2), "3 of 2 is no share"),
        (lambda: apply_temperature([1.0], 0.0), "temperature is 0.0"),
        (lambda: fit_isotonic([1.0], [0.5]), "a label is 0.5"),
    ):
        with pytest.raises(MeasureError, match=message):
            call()


def test_the_debiased_error_is_unbiased() -> None:
    """The mean of its square is the true one, of calibrated probabilities 0, where that of the plain error is not."""
    generator, true_squares, squares, plain = np.random.default_rng(9), 0.15**2, [], []
    for _ in range(300):
        probabilities = np.repeat([0.2, 0.7], 40)
        labels = (generator.random(80) < probabilities).astype(float)
        squares.append(_signed_square(probabilities, labels))
        plain.append(
            sum(part.n * (part.observed - part.expected) ** 2 for part in bin_equal_mass(probabilities, labels, 2)) / 80
        )
        squares.append(_signed_square(probabilities + 0.15, labels) - true_squares)
    se = np.std(squares) / np.sqrt(len(squares))
    assert abs(np.mean(squares)) < 3 * se
    assert np.mean(plain) > 0.003


def _signed_square(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Kumar et al. (2019), definition 5.2, by hand: bins are the distinct probabilities."""
    total = 0.0
    for probability in np.unique(probabilities):
        inside = labels[probabilities == probability]
        share = inside.mean()
        total += len(inside) * ((probability - share) ** 2 - share * (1 - share) / (len(inside) - 1))
    error = debiased_calibration_error(probabilities, labels, len(np.unique(probabilities)), resamples=2)
    assert error.value == pytest.approx(np.sqrt(max(total, 0) / len(labels)), abs=1e-12)
    return total / len(labels)


def test_the_interval_of_the_debiased_error_covers() -> None:
    generator, hits, rounds = np.random.default_rng(10), 0, 150
    probabilities = np.repeat([0.1, 0.3, 0.6, 0.9], 60)
    for _ in range(rounds):
        labels = (generator.random(240) < probabilities - 0.1 * (probabilities > 0.5)).astype(float)
        error = debiased_calibration_error(probabilities, labels, 4, resamples=200)
        hits += error.low <= np.sqrt(0.5 * 0.01) <= error.high
    assert 0.9 <= hits / rounds <= 1


def test_the_interval_of_the_debiased_error_resamples_clusters() -> None:
    generator = np.random.default_rng(11)
    probabilities, labels = np.repeat(generator.uniform(0, 1, 30), 8), np.repeat((generator.random(30) < 0.5) * 1.0, 8)
    items = [str(i // 8) for i in range(240)]
    single, clustered = (debiased_calibration_error(probabilities, labels, clusters=keys) for keys in (None, items))
    assert single.value == clustered.value
    assert clustered.high - clustered.low > 1.5 * (single.high - single.low)
    with pytest.raises(MeasureError, match="3 clusters for 240"):
        debiased_calibration_error(probabilities, labels, clusters=["a", "b", "c"])
    with pytest.raises(Undefined, match="fewer than two"):
        debiased_calibration_error(probabilities, labels, clusters=["a"] * 240)


def test_the_interval_of_the_debiased_error_is_the_basic_bootstrap_of_its_square() -> None:
    generator = np.random.default_rng(12)
    values = np.repeat([0.2, 0.8], 50)
    labels = (generator.random(100) < values - 0.15).astype(float)
    error = debiased_calibration_error(values, labels, 2, resamples=200, seed=5)

    def squares(rows: np.ndarray) -> tuple[float, float]:
        plain = corrected = 0.0
        for value in (0.2, 0.8):
            inside = labels[rows][values[rows] == value]
            share = inside.mean()
            plain += len(inside) / 100 * (share - value) ** 2
            corrected += len(inside) / 100 * ((share - value) ** 2 - share * (1 - share) / (len(inside) - 1))
        return plain, corrected

    draws = np.random.default_rng(5)
    resampled = np.array([squares(draws.integers(0, 100, 100))[1] for _ in range(200)])
    plain, corrected = squares(np.arange(100))
    low, high = (corrected - (np.quantile(resampled, share) - plain) for share in (0.975, 0.025))
    expected = [np.sqrt(max(square, 0)) for square in (corrected, low, high)]
    assert low > 0
    assert [error.value, error.low, error.high] == pytest.approx(expected, abs=1e-12)
