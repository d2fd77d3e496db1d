"""The light classifiers, against scikit-learn, and what must not change them."""

from __future__ import annotations

import numpy as np
import pytest

from acceptability.probing.answers import answered, correlation
from acceptability.probing.descent import lowest
from acceptability.probing.logistic import fitted, turned
from acceptability.probing.splits import Part


def made(n: int, width: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    features = (generator.normal(size=(n, width)) * generator.uniform(0.1, 9, width) + 3).astype(np.float32)
    noise = generator.logistic(size=n)
    answers = ((features - 3) @ generator.normal(size=width) / np.sqrt(width) + 2 * noise > 0).astype(np.float64)
    return features, answers


@pytest.mark.parametrize(("n", "width"), [(300, 12), (40, 90)], ids=["narrow", "wide"])
@pytest.mark.parametrize("strength", [1.0, 0.01])
def test_weights_are_those_of_scikit_learn(n: int, width: int, strength: float) -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    features, answers = made(n, width)
    given = turned(features)
    probe = fitted(given, answers[:, None], strength)
    standard = (features - features.mean(0, dtype=float)) / features.std(0, dtype=float)
    theirs = linear.LogisticRegression(C=1 / (n * strength), tol=1e-10, max_iter=10_000).fit(standard, answers)
    assert probe.logits(given.values)[:, 0] == pytest.approx(theirs.decision_function(standard), abs=2e-3)


def test_several_at_once_are_as_each_by_itself() -> None:
    features, answers = made(200, 10)
    both = np.stack([answers, np.roll(answers, 7)], axis=1)
    given = turned(features)
    together = fitted(given, both, 0.01).logits(given.values)
    for place in range(2):
        alone = fitted(given, both[:, [place]], 0.01).logits(given.values)
        assert together[:, place] == pytest.approx(alone[:, 0], abs=1e-3)


def test_what_never_varies_counts_for_nothing() -> None:
    given = turned(np.full((6, 3), 7.1, np.float32))
    assert given.values.shape == (6, 0)
    probe = fitted(given, np.array([[1.0], [1.0], [1.0], [1.0], [0.0], [0.0]]), 0.1)
    assert probe.logits(given.values)[:, 0] == pytest.approx(np.full(6, np.log(2)), abs=1e-4)


def test_the_lowest_point_of_each_column() -> None:
    middles = np.array([[1.0, -2.0], [3.0, 0.5]])
    steep = np.array([[1.0, 40.0], [0.3, 2.0]])

    def bowls(here: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (steep * (here - middles) ** 2 / 2).sum(0), steep * (here - middles)

    assert lowest(bowls, np.zeros((2, 2)), tolerance=1e-9) == pytest.approx(middles, abs=1e-7)


def test_correlation_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(1)
    for count in (2, 3, 5):
        said, true = generator.integers(0, count, (2, 80))
        assert correlation(said, true) == pytest.approx(metrics.matthews_corrcoef(true, said))
    assert correlation(np.zeros(4, int), np.array([0, 1, 0, 1])) == 0


def test_a_factor_of_three_values_is_told() -> None:
    generator = np.random.default_rng(2)
    labels = np.arange(240) % 3
    features = (np.eye(5)[labels] * 6 + generator.normal(size=(240, 5))).astype(np.float32)
    rows = generator.permutation(240)
    part = Part(rows[:160], rows[:40], rows[160:])
    (said,) = answered(features, part, [labels])
    assert (said == labels[part.test]).mean() > 0.95
