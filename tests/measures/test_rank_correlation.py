"""Kendall's tau-b and the area under the ROC curve, compared with SciPy and scikit-learn."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from acceptability import AUC, Kendall, Scores, Sentence, Spearman, Suite
from acceptability.errors import MeasureError, Undefined
from acceptability.measures.correlation import auc, kendall

FEW = st.integers(-4, 4).map(float)
ROWS = st.lists(st.tuples(FEW, FEW), min_size=2, max_size=40)


def make_suite_and_scores(values: list[float], ratings: list[float] | None = None, labels: list[int] | None = None):
    n = range(len(values))
    sentences = tuple(
        Sentence(str(i), "x", rating=ratings[i] if ratings else None, label=labels[i] if labels else None) for i in n
    )
    return Suite("m", sentences), Scores({str(i): values[i] for i in n}, "m")


def value(measure, suite: Suite, scores: Scores) -> float:
    return measure.value(measure.units(suite, scores))


@given(ROWS)
def test_kendall_agrees_with_scipy_on_many_ties(rows: list[tuple[float, float]]) -> None:
    first, second = (np.array(column) for column in zip(*rows, strict=True))
    assume(np.ptp(first) > 0)
    assume(np.ptp(second) > 0)
    expected = stats.kendalltau(first, second).statistic
    assert kendall(first, second) == pytest.approx(expected, abs=1e-12)
    assert value(Kendall(), *make_suite_and_scores(first.tolist(), second.tolist())) == pytest.approx(
        expected, abs=1e-12
    )


def test_kendall_agrees_with_scipy_on_many_rows_in_linear_memory() -> None:
    generator = np.random.default_rng(0)
    first = generator.normal(size=100_000)
    second = np.round(first + generator.normal(size=100_000), 2)
    tracemalloc.start()
    result = kendall(first, second)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # All pairs of rows would take 10 GB even as single bytes.
    assert peak < 100e6
    assert result == pytest.approx(stats.kendalltau(first, second).statistic, abs=1e-12)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [([1, 2], [1, 2], 1), ([1, 2], [5, 3], -1), ([1, 1, 2], [1, 2, 3], 2 / np.sqrt(6)), ([1, 2, 3], [1, 3, 2], 1 / 3)],
)
def test_kendall_by_hand(first: list[float], second: list[float], expected: float) -> None:
    assert kendall(np.array(first, float), np.array(second, float)) == pytest.approx(expected, abs=1e-12)


def test_kendall_is_undefined_without_variation() -> None:
    with pytest.raises(Undefined, match="two rows; there are 1"):
        kendall(np.array([1.0]), np.array([1.0]))
    with pytest.raises(Undefined, match="same value"):
        kendall(np.array([1.0, 1.0]), np.array([1.0, 2.0]))


@given(ROWS)
def test_rank_measures_depend_on_order_only(rows: list[tuple[float, float]]) -> None:
    first, second = (list(column) for column in zip(*rows, strict=True))
    assume(len(set(first)) > 1)
    assume(len(set(second)) > 1)
    bent = [float(np.arctan(value) * 3 - 7) for value in first]
    for measure in (Kendall(), Spearman()):
        assert value(measure, *make_suite_and_scores(bent, second)) == pytest.approx(
            value(measure, *make_suite_and_scores(first, second)), abs=1e-12
        )


@given(st.lists(st.tuples(FEW, st.integers(0, 1)), min_size=2, max_size=40))
def test_auc_agrees_with_scikit_learn_and_mann_whitney(rows: list[tuple[float, int]]) -> None:
    scores, labels = zip(*rows, strict=True)
    assume(len(set(labels)) == 2)
    result = value(AUC(), *make_suite_and_scores(list(scores), labels=list(labels)))
    assert result == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)
    good, bad = ([s for s, label in rows if label == which] for which in (1, 0))
    assert result == pytest.approx(stats.mannwhitneyu(good, bad).statistic / len(good) / len(bad), abs=1e-12)


def test_auc_of_degenerate_rows() -> None:
    assert auc(np.array([1.0]), np.array([1.0])) == 0.5
    assert value(AUC(), *make_suite_and_scores([3.0, 3.0, 3.0], labels=[1, 0, 1])) == 0.5
    with pytest.raises(Undefined, match="one class"):
        value(AUC(), *make_suite_and_scores([1.0, 2.0], labels=[1, 1]))
    with pytest.raises(MeasureError, match="no labels"):
        value(AUC(), *make_suite_and_scores([1.0, 2.0]))


@given(st.lists(st.tuples(FEW, st.integers(0, 1), st.integers(1, 5)), min_size=2, max_size=20))
def test_weights_of_auc_agree_with_scikit_learn(rows: list[tuple[float, int, int]]) -> None:
    scores, labels, weights = (np.array(column, float) for column in zip(*rows, strict=True))
    assume(len(set(labels)) == 2)
    good = labels == 1
    result = auc(scores[good], scores[~good], weights[good], weights[~good])
    assert result == pytest.approx(roc_auc_score(labels, scores, sample_weight=weights), abs=1e-12)
