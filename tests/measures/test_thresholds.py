"""Fitted thresholds: the best one, by cross-validation, the pooled mean and the class midpoint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, matthews_corrcoef

from acceptability import MCC, Accuracy, Scores, Sentence, Suite
from acceptability.errors import MeasureError, Undefined
from acceptability.measures import load_measure
from acceptability.measures.classification import (
    ThresholdSearch,
    accuracy_at_thresholds,
    assign_folds,
    best_threshold,
    class_midpoint,
    cross_validate_threshold,
    matthews,
    mcc_at_thresholds,
)
from acceptability.stats.bootstrap import Bootstrap
from acceptability.stats.intervals import bootstrap_difference, bootstrap_interval
from acceptability.stats.permutation import permutation_test
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
    spread = f"sd {fitted.std():.6g}, {fitted.min():.6g} to {fitted.max():.6g}"
    assert units.notes[0].startswith(
        f"threshold by cross-validation, one split into 4 folds; mean threshold {fitted.mean():.6g} ({spread}); "
    )


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
    assert value(Accuracy(threshold=0), [(1.0, 1), (-1.0, 1)]) == 0.5
    assert value(Accuracy(threshold="pooled-mean"), [(1.0, 1)]) == 0
    for measure in (MCC(), MCC(threshold=0), Accuracy(), Accuracy(threshold="cv"), Accuracy("class-midpoint")):
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
        "MCC(threshold=0, seeds=2)",
        "MCC(threshold='class-midpoint', by='item')",
        "MCC(seeds=0)",
        "Accuracy(by=3)",
    ],
)
def test_wrong_options_are_errors(text: str) -> None:
    with pytest.raises(MeasureError):
        load_measure(text)


def test_a_repr_has_only_the_options_with_effect() -> None:
    assert repr(MCC()) == "MCC(threshold='auto', folds=10, seeds=10)"
    assert repr(MCC(threshold=0)) == "MCC(threshold=0.0)"
    assert repr(MCC(threshold="cv", seeds=3, seed=7, by="item")) == (
        "MCC(threshold='cv', folds=10, seed=7, seeds=3, by='item')"
    )
    assert repr(MCC(threshold="cv")) == "MCC(threshold='cv', folds=10, seed=0)"
    assert repr(Accuracy(threshold="pooled-mean")) == "Accuracy(threshold='pooled-mean')"


# --- the default: a classifier's own threshold, or cross-validation over several splits ---


def make_log_probabilities(n: int = 60, seed: int = 5) -> tuple[Suite, Scores]:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, n)
    scores = generator.normal(-40, 5, n) + 4 * labels
    return make_suite_and_scores(list(zip(scores.tolist(), labels.tolist(), strict=True)))


def test_log_probabilities_have_no_threshold_of_0() -> None:
    suite, scores = make_log_probabilities()
    units = MCC().units(suite, scores)
    assert MCC().value(units) > 0.1
    assert 0 < units["predicted"].mean() < 1
    splits = [MCC(threshold="cv", seed=seed) for seed in range(10)]
    values = [measure.value(measure.units(suite, scores)) for measure in splits]
    assert len(set(values)) > 1
    assert MCC().value(units) == pytest.approx(np.mean(values), abs=1e-12)
    assert f"the splits give {min(values):.4f} to {max(values):.4f} (sd {np.std(values, ddof=1):.4f})" in units.notes[0]
    accuracies = [
        measure.value(measure.units(suite, scores))
        for measure in (Accuracy(threshold="cv", seed=seed) for seed in range(10))
    ]
    assert Accuracy().value(Accuracy().units(suite, scores)) == pytest.approx(np.mean(accuracies), abs=1e-12)


@pytest.mark.parametrize(
    ("reduction", "threshold"),
    [
        ("log_odds()", 0.0),
        ("p_acceptable()", 0.5),
        ("p_acceptable(temperature=2.0)", 0.5),
        ("signed_confidence()", 0.0),
        ("lp()", "cv"),
        ("slor(unigrams='wordfreq:en')", "cv"),
        ("exp(lp())", "cv"),
        ("", "cv"),
    ],
)
def test_only_classifiers_have_a_threshold_of_their_own(reduction: str, threshold: float | str) -> None:
    suite, scores = make_log_probabilities()
    given = replace(scores, reduction=reduction)
    resolved = MCC().resolve([given], "")
    assert resolved == (MCC(threshold="cv", seeds=10) if threshold == "cv" else MCC(threshold=threshold))
    for measure in (MCC(threshold=0), MCC(threshold="cv", by="row"), MCC(threshold="pooled-mean")):
        assert measure.resolve([given], "item") == measure, "what is asked for by name stays as it is"
    assert MCC(threshold="cv").resolve([given], "item") == MCC(threshold="cv", by="item")
    assert MCC().value(MCC().units(suite, given)) == resolved.value(resolved.units(suite, given))


def test_two_kinds_of_models_keep_a_threshold_of_their_own_kind() -> None:
    suite, scores = make_log_probabilities()
    odds = Scores({key: score + 40 for key, score in scores.values.items()}, "c", "log_odds()")
    measure = MCC().resolve([scores, odds], "item")
    assert measure == MCC(by="item")
    first, second = MCC().units(suite, scores), MCC().units(suite, odds)
    assert first.columns.keys() == second.columns.keys(), "a permutation test swaps rows of one for rows of the other"
    assert MCC().value(second) == pytest.approx(MCC(threshold=0).value(MCC(threshold=0).units(suite, odds)))
    assert (first.refit is None, second.refit is None) == (False, True)


@given(
    st.lists(st.tuples(st.integers(-4, 4).map(float), st.integers(0, 1), st.integers(0, 3)), min_size=6, max_size=30),
    st.integers(2, 4),
    st.integers(0, 5),
)
def test_weights_fit_as_copies_of_rows_do(rows: list[tuple[float, int, int]], folds: int, seed: int) -> None:
    """The search over candidates equals the search over all thresholds of the training rows, each copied by weight."""
    scores, labels, weights = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    generator = np.random.default_rng(seed)
    fold_of_row = np.stack([generator.permutation(np.arange(len(rows)) % folds) for _ in range(2)])
    for objective in (mcc_at_thresholds, accuracy_at_thresholds):
        fitted = ThresholdSearch(scores, labels, fold_of_row, objective).fit(weights)
        for split, split_folds in enumerate(fold_of_row):
            for fold in range(folds):
                training = np.repeat(np.arange(len(rows)), np.where(split_folds == fold, 0, weights).astype(int))
                if len(training):
                    expected = best_threshold(scores[training], labels[training], objective)
                    assert fitted[split, fold] == expected


def test_folds_keep_sampling_units_together() -> None:
    generator = np.random.default_rng(2)
    items = [f"i{number // 3}" for number in range(60)]
    labels = generator.integers(0, 2, 60).astype(float)
    folds = assign_folds(items, labels, 5, 0)
    assert {len({fold for fold, item in zip(folds, items, strict=True) if item == name}) for name in items} == {1}
    assert set(np.bincount(folds)) == {12}
    suite, scores = make_log_probabilities()
    tagged = Suite("m", tuple(replace(row, tags={"item": row.id[:2]}) for row in suite.sentences))
    by_item, by_row = MCC(by="item", folds=3), MCC(folds=3)
    assert by_item.value(by_item.units(tagged, scores)) != by_row.value(by_row.units(tagged, scores))
    with pytest.raises(MeasureError, match="cannot divide the sentences into folds by 'item': 60 of 60 lack that tag"):
        by_item.units(suite, scores)


def test_a_refit_with_every_row_twice_is_the_value_itself() -> None:
    """Both copies of a row are in one fold: on different sides of a split they would fit their own threshold."""
    suite, scores = make_log_probabilities()
    for measure in (MCC(), Accuracy(), MCC(threshold="pooled-mean"), Accuracy(threshold="class-midpoint")):
        units = measure.units(suite, scores)
        assert units.refit(np.full(60, 2.0)) == pytest.approx(measure.value(units), abs=1e-12)
        assert units.take(np.arange(30)).refit is None, "a group keeps the thresholds of the whole suite"
    assert MCC(threshold=0).units(suite, scores).refit is None
    good = np.array([float(row.label) for row in suite.sentences])
    assert np.isnan(MCC().units(suite, scores).refit(good))
    assert Accuracy().units(suite, scores).refit(good) <= 1
    assert np.isnan(Accuracy(threshold="class-midpoint").units(suite, scores).refit(good))


def test_a_fitted_pooled_mean_moves_with_the_resample() -> None:
    suite, scores = make_suite_and_scores([(4.0, 1), (2.0, 1), (3.0, 1), (0.0, 0)])
    refit = Accuracy(threshold="pooled-mean").units(suite, scores).refit
    # 4, 2, 2, 2, 0: the mean is 2, below which only 2 (not above it) and 0 lie.
    assert refit(np.array([1.0, 3.0, 0.0, 1.0])) == pytest.approx(2 / 5)


def test_the_interval_refits_the_threshold() -> None:
    suite, scores = make_log_probabilities(n=40)
    measure = MCC(threshold="cv", folds=4)
    units = measure.units(suite, scores)
    interval = bootstrap_interval(measure, units, Bootstrap(200))
    labels, row_scores = units["label"], units["score"]
    folds = assign_folds(units.ids, labels, 4, 0)
    generator = np.random.default_rng(0)
    expected = []
    for drawn in generator.integers(0, 40, size=(200, 40)):
        predicted = np.empty(40)
        for fold in range(4):
            inside = folds[drawn] == fold
            training = drawn[~inside]
            line = best_threshold(row_scores[training], labels[training], mcc_at_thresholds)
            predicted[inside] = row_scores[drawn[inside]] > line
        expected.append(matthews_corrcoef(labels[drawn], predicted))
    assert (interval.low, interval.high) == pytest.approx(np.quantile(expected, [0.025, 0.975]), abs=1e-12)
    fixed = bootstrap_interval(measure, replace(units, refit=None), Bootstrap(200))
    assert interval.high - interval.low > fixed.high - fixed.low
    bca = bootstrap_interval(measure, units, Bootstrap(200, method="bca"))
    assert bca.low < measure.value(units) < bca.high


def test_clusters_are_drawn_whole_where_the_threshold_is_refitted() -> None:
    suite, scores = make_log_probabilities()
    tagged = Suite("m", tuple(replace(row, tags={"item": row.id[:2]}) for row in suite.sentences))
    measure = Accuracy(by="item", folds=3)
    units = measure.units(tagged, scores)
    names = sorted({row["item"] for row in units.tags})
    generator = np.random.default_rng(0)
    expected = [
        units.refit(np.array([float((drawn == names.index(row["item"])).sum()) for row in units.tags]))
        for drawn in generator.integers(0, len(names), size=(100, len(names)))
    ]
    interval = bootstrap_interval(measure, units, Bootstrap(100, by="item"))
    assert (interval.low, interval.high) == pytest.approx(np.quantile(expected, [0.025, 0.975]), abs=1e-12)


def test_the_difference_of_a_fitted_and_a_given_threshold_has_an_interval() -> None:
    suite, scores = make_log_probabilities()
    odds = Scores({key: score + 37 for key, score in scores.values.items()}, "c", "log_odds()")
    first, second = MCC().units(suite, scores), MCC().units(suite, odds)
    interval = bootstrap_difference(MCC(), first, second, Bootstrap(100))
    expected = [
        first.refit(np.bincount(drawn, minlength=60).astype(float)) - MCC().value(second.take_columns(drawn))
        for drawn in np.random.default_rng(0).integers(0, 60, size=(100, 60))
    ]
    assert (interval.low, interval.high) == pytest.approx(np.quantile(expected, [0.025, 0.975]), abs=1e-12)


@pytest.mark.parametrize("measure", [MCC(threshold="cv", folds=3), Accuracy(threshold="class-midpoint")])
def test_a_permutation_fits_both_thresholds_to_the_swapped_scores(measure: MCC | Accuracy) -> None:
    """As the measure itself computes it from scores that were standardised and swapped; their scales differ."""
    suite, first = make_log_probabilities(n=30, seed=1)
    other = make_log_probabilities(n=30, seed=2)[1]
    second = Scores({key: 9 * first[key] + 20 * other[key] for key in first.values}, "other")
    units = [measure.units(suite, scores) for scores in (first, second)]
    result = permutation_test(measure, *units, draws=60, seed=3)
    ids = list(first.values)
    a, b = ((scores.of(ids) - scores.of(ids).mean()) / scores.of(ids).std() for scores in (first, second))

    def compute_difference(swap: np.ndarray) -> float:
        given = (np.where(swap, b, a), np.where(swap, a, b))
        rows = (measure.units(suite, Scores(dict(zip(ids, scores.tolist(), strict=True)), "m")) for scores in given)
        values = [measure.value(each) for each in rows]
        return values[0] - values[1]

    generator = np.random.default_rng(3)
    differences = np.array([compute_difference(generator.integers(0, 2, size=30) == 1) for _ in range(60)])
    observed = measure.value(units[0]) - measure.value(units[1])
    assert result.difference == pytest.approx(observed, abs=1e-12)
    assert result.p == (np.sum(np.abs(differences) >= abs(observed) - 1e-9) + 1) / 61
    with pytest.raises(Undefined, match="the threshold of one model is fitted and that of the other is not"):
        permutation_test(measure, units[0], replace(units[1], refit=None))
