"""Fitted thresholds: the best one, by cross-validation, the pooled mean and the class midpoint."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, matthews_corrcoef

from acceptability import MCC, Accuracy, Scores, Sentence, Suite
from acceptability.errors import MeasureError, Undefined
from acceptability.measures import load_measure
from acceptability.measures.classification import (
    accuracy_at_thresholds,
    best_threshold,
    class_midpoint,
    cross_validate_threshold,
    matthews,
    mcc_at_thresholds,
)
from acceptability.types import Units

ROWS = st.lists(st.tuples(st.integers(-5, 5).map(float), st.integers(0, 1)), min_size=2, max_size=25)


def make_suite_and_scores(rows: list[tuple[float, int]]) -> tuple[Suite, Scores]:
    sentences = tuple(Sentence(f"s{i}", "x", label=label) for i, (_, label) in enumerate(rows))
    return Suite("m", sentences), Scores({f"s{i}": score for i, (score, _) in enumerate(rows)}, "m")


def value(measure, rows: list[tuple[float, int]]) -> float:
    return measure.value(measure.units(*make_suite_and_scores(rows)))


@given(ROWS)
def test_the_best_threshold_is_the_lowest_of_the_best(rows: list[tuple[float, int]]) -> None:
    scores, labels = np.array([s for s, _ in rows]), np.array([float(label) for _, label in rows])
    assume(len(set(labels)) == 2)
    cuts = np.unique(scores)
    candidates = [-np.inf, *((cuts[1:] + cuts[:-1]) / 2), np.inf]
    for merit, judge in ((accuracy_at_thresholds, accuracy_score), (mcc_at_thresholds, matthews_corrcoef)):
        worth = [round(judge(labels, scores > candidate), 9) for candidate in candidates]
        assert best_threshold(scores, labels, merit) == candidates[worth.index(max(worth))]


@given(ROWS, st.integers(-6, 6))
def test_accuracy_agrees_with_scikit_learn(rows: list[tuple[float, int]], threshold: int) -> None:
    expected = accuracy_score([label for _, label in rows], [score > threshold for score, _ in rows])
    assert value(Accuracy(threshold=threshold), rows) == pytest.approx(expected, abs=1e-12)


def test_a_threshold_between_neighbouring_floats_separates_them() -> None:
    for low in (1.0, -1e308, 5e-324):
        high = np.nextafter(low, np.inf)
        result = best_threshold(np.array([low, high]), np.array([0.0, 1.0]), accuracy_at_thresholds)
        assert low <= result < high
    assert np.isfinite(best_threshold(np.array([-1.7e308, 1.7e308]), np.array([0.0, 1.0]), accuracy_at_thresholds))


def test_a_fold_is_classified_by_the_threshold_of_the_others() -> None:
    generator = np.random.default_rng(1)
    labels = np.array([1.0] * 12 + [0.0] * 8)
    scores = generator.normal(size=20) + labels
    ids = [f"s{i}" for i in range(20)]
    thresholds, fitted = cross_validate_threshold(ids, scores, labels, mcc_at_thresholds, folds=4, seed=0)
    assert len(fitted) == 4
    for threshold in set(thresholds):
        inside = thresholds == threshold
        if list(fitted).count(threshold) == 1:
            assert inside.sum() == 5
            assert labels[inside].sum() == 3
        assert best_threshold(scores[~inside], labels[~inside], mcc_at_thresholds) == threshold or inside.sum() > 5
    suite, given_scores = make_suite_and_scores(list(zip(scores.tolist(), labels.astype(int).tolist(), strict=True)))
    measure = MCC(threshold="cv", folds=4)
    units = measure.units(suite, given_scores)
    assert units["predicted"].tolist() == (scores > thresholds).astype(float).tolist()
    assert measure.value(units) == pytest.approx(matthews_corrcoef(labels, scores > thresholds), abs=1e-12)
    assert units.notes == (f"thresholds of 4 folds: {fitted.min():.6g} to {fitted.max():.6g}",)


def test_leaving_one_out_by_hand() -> None:
    """1 2 | 4 5: without 2 the line is at 2.5 and without 4 at 3.5, so all fall on the right side."""
    rows = [(1.0, 0), (2.0, 0), (4.0, 1), (5.0, 1)]
    assert value(Accuracy(threshold="cv", folds=4), rows) == 1
    assert value(MCC(threshold="cv", folds=4), rows) == 1
    # 2 and 4 are swapped. Without 1 the lowest of the best thresholds is below all; without 4 it is 1.5, and
    # without 2 it is 4.5: all three are wrong. Without 5 it is 1.5, and 5 is right.
    assert value(Accuracy(threshold="cv", folds=4), [(1.0, 0), (4.0, 0), (2.0, 1), (5.0, 1)]) == 0.25


def test_folds_depend_on_ids_and_seed_and_not_on_the_order_of_rows() -> None:
    generator = np.random.default_rng(3)
    labels = generator.integers(0, 2, 40).astype(float)
    scores = generator.normal(size=40)
    ids = np.array([f"s{i}" for i in range(40)])
    first, _ = cross_validate_threshold(ids, scores, labels, accuracy_at_thresholds, folds=5, seed=0)
    order = generator.permutation(40)
    again, _ = cross_validate_threshold(
        ids[order], scores[order], labels[order], accuracy_at_thresholds, folds=5, seed=0
    )
    assert again.tolist() == first[order].tolist()
    other, _ = cross_validate_threshold(ids, scores, labels, accuracy_at_thresholds, folds=5, seed=1)
    assert other.tolist() != first.tolist()


def test_pooled_mean_and_class_midpoint_by_hand() -> None:
    rows = [(4.0, 1), (2.0, 1), (3.0, 1), (0.0, 0)]
    assert MCC(threshold="pooled-mean").units(*make_suite_and_scores(rows)).notes == ("threshold 2.25",)
    assert MCC(threshold="class-midpoint").units(*make_suite_and_scores(rows)).notes == ("threshold 1.5",)
    assert class_midpoint(np.array([4.0, 2.0, 3.0, 0.0]), np.array([1.0, 1.0, 1.0, 0.0])) == 1.5
    assert value(Accuracy(threshold="pooled-mean"), rows) == 0.75
    assert value(Accuracy(threshold="class-midpoint"), rows) == 1
    assert value(MCC(threshold="pooled-mean"), rows) == pytest.approx(matthews_corrcoef([1, 1, 1, 0], [1, 0, 1, 0]))


def test_constant_scores_get_the_same_prediction() -> None:
    rows = [(1.0, 1), (1.0, 0), (1.0, 1), (1.0, 0), (1.0, 1)]
    for threshold in (0.0, "cv", "pooled-mean", "class-midpoint"):
        options = {"folds": 2} if threshold == "cv" else {}
        assert value(MCC(threshold=threshold, **options), rows) == 0
    assert value(Accuracy(threshold="cv", folds=2), rows) == 0.6


def test_one_class_and_too_few_sentences() -> None:
    assert value(Accuracy(), [(1.0, 1), (-1.0, 1)]) == 0.5
    assert value(Accuracy(threshold="pooled-mean"), [(1.0, 1)]) == 0
    for measure in (MCC(), Accuracy(threshold="cv"), Accuracy(threshold="class-midpoint")):
        with pytest.raises(MeasureError, match="needs both classes"):
            value(measure, [(1.0, 1), (2.0, 1)])
    with pytest.raises(MeasureError, match="2 folds of 3 sentences, 1 of the smaller class"):
        value(MCC(threshold="cv", folds=2), [(1.0, 1), (2.0, 1), (0.0, 0)])
    with pytest.raises(MeasureError, match="no more folds than sentences"):
        value(MCC(threshold="cv"), [(1.0, 1), (2.0, 1), (0.0, 0), (1.0, 0)])
    with pytest.raises(Undefined, match="no rows"):
        Accuracy().value(Units((), {"correct": np.array([])}, ()))
    with pytest.raises(Undefined, match="one class"):
        matthews(np.array([1.0]), np.array([1.0]))


@pytest.mark.parametrize(
    "text",
    [
        "MCC(threshold=0.5, folds=5)",
        "MCC(threshold='best')",
        "Accuracy(threshold='cv', folds=1)",
        "Accuracy(threshold='cv', seed=-1)",
        "MCC(threshold='pooled-mean', seed=3)",
        "MCC(threshold=True)",
    ],
)
def test_wrong_options_are_errors(text: str) -> None:
    with pytest.raises(MeasureError):
        load_measure(text)


def test_a_repr_has_only_the_options_with_effect() -> None:
    assert repr(MCC()) == "MCC(threshold=0.0)"
    assert repr(MCC(threshold="cv")) == "MCC(threshold='cv', folds=10, seed=0)"
    assert repr(Accuracy(threshold="pooled-mean")) == "Accuracy(threshold='pooled-mean')"
