"""Pairs classified by decisions and probabilities, the measures of Hu et al. (2026), and restarts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from acceptability import (
    MCC,
    AbsolutePair,
    Bootstrap,
    GradientPair,
    PairAccuracy,
    PairCorrelation,
    Scores,
    Sentence,
    Suite,
    UnpairedAUC,
    compare,
    measure,
)
from acceptability.errors import MeasureError, ScoreError, Undefined
from acceptability.measures import load_measure
from acceptability.measures.classification import RestartSummary, majority_vote, summarise_restarts
from acceptability.measures.pairs import PROBABILITY_MEASURES
from acceptability.types import Contrast

TWOS = st.lists(st.tuples(st.integers(-9, 9).map(float), st.integers(-9, 9).map(float)), min_size=1, max_size=20)


def pairs(rows: list[tuple[float, float]]) -> tuple[Suite, Scores]:
    values = {f"{i}{side}": row[index] for i, row in enumerate(rows) for index, side in enumerate("bw")}
    sentences = tuple(Sentence(name, "x", label=int(name[-1] == "b")) for name in values)
    return Suite("p", sentences, tuple(Contrast(f"{i}b", f"{i}w") for i in range(len(rows)))), Scores(values, "m")


def value(measure, suite: Suite, scores: Scores) -> float:
    return measure.value(measure.units(suite, scores))


def test_both_sentences_must_be_classified_correctly() -> None:
    made = pairs([(1.0, -1.0), (1.0, 0.5), (-0.5, -1.0), (1.0, 0.0), (0.0, -1.0)])
    assert AbsolutePair(threshold=0).units(*made)["correct"].tolist() == [1, 0, 0, 1, 0]
    assert AbsolutePair(threshold=0.5).units(*made)["correct"].tolist() == [1, 1, 0, 1, 0]


@given(TWOS)
def test_probabilities_and_log_odds_give_the_same_gradient_accuracy(rows: list[tuple[float, float]]) -> None:
    suite, scores = pairs(rows)
    probabilities = Scores({key: 1 / (1 + np.exp(-score)) for key, score in scores.values.items()}, "m")
    assert value(GradientPair(), suite, scores) == value(GradientPair(), suite, probabilities)
    assert value(GradientPair(), suite, scores) == value(PairAccuracy(), suite, scores)
    absolute = value(AbsolutePair(threshold=0), suite, scores)
    assert absolute == value(AbsolutePair(threshold=0.5), suite, probabilities)
    assert absolute <= value(GradientPair(), suite, scores)
    # Each classifier has the threshold of its kind by default.
    assert absolute == value(AbsolutePair(), suite, replace(scores, reduction="log_odds()"))
    assert absolute == value(AbsolutePair(), suite, replace(probabilities, reduction="p_acceptable()"))


def test_log_probabilities_have_no_threshold_of_0_for_pairs() -> None:
    """All are below 0, so that every pair would be wrong."""
    suite, scores = pairs([(-10.0, -12.0), (-9.0, -8.0)])
    for reduction in ("lp()", ""):
        model_scores = replace(scores, reduction=reduction)
        with pytest.raises(MeasureError, match=r"have no threshold of their own: .* AbsolutePair\(threshold=-30\)"):
            measure(suite, model_scores, ["AbsolutePair"])
        (result,) = measure(suite, model_scores, ["AbsolutePair(threshold=-11)"])
        assert (result.value, result.measure) == (0.5, "AbsolutePair(threshold=-11.0)")
    log_odds, probabilities = (replace(scores, reduction=name) for name in ("log_odds()", "p_acceptable()"))
    (result,) = measure(suite, log_odds, ["AbsolutePair"])
    assert (result.value, result.measure) == (0.0, "AbsolutePair(threshold=0.0)")
    (comparison,) = compare(suite, [log_odds, probabilities], measure=["AbsolutePair"])
    assert comparison.measure == "AbsolutePair(threshold='auto')"
    with pytest.raises(MeasureError, match="have no threshold of their own"):
        compare(suite, [log_odds, scores], measure=["AbsolutePair"])


@given(TWOS)
def test_correlation_within_pairs(rows: list[tuple[float, float]]) -> None:
    better, worse = (np.array(column) for column in zip(*rows, strict=True))
    assume(len(rows) > 2)
    assume(np.ptp(better) > 0)
    assume(np.ptp(worse) > 0)
    for kind, judge in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr), ("kendall", stats.kendalltau)):
        expected = judge(better, worse).statistic
        assert value(PairCorrelation(kind=kind), *pairs(rows)) == pytest.approx(expected, abs=1e-9)


@given(TWOS)
def test_unpaired_auc_compares_all_with_all(rows: list[tuple[float, float]]) -> None:
    better, worse = zip(*rows, strict=True)
    expected = roc_auc_score([1] * len(rows) + [0] * len(rows), [*better, *worse])
    assert value(UnpairedAUC(), *pairs(rows)) == pytest.approx(expected, abs=1e-12)


def test_a_sentence_in_several_contrasts_counts_once() -> None:
    sentences = tuple(Sentence(name, "x") for name in "abcd")
    suite = Suite("p", sentences, (Contrast("a", "c"), Contrast("a", "d"), Contrast("b", "c")))
    scores = Scores({"a": 3.0, "b": 1.0, "c": 2.0, "d": 1.0}, "m")
    # a above c and d; b below c and level with d: 2.5 of 4.
    assert value(UnpairedAUC(), suite, scores) == pytest.approx(2.5 / 4, abs=1e-12)


def test_the_three_numbers_of_a_suite_with_ratings() -> None:
    generator = np.random.default_rng(0)
    suite, scores = pairs([tuple(row) for row in generator.normal(size=(30, 2))])
    rated = tuple(
        Sentence(sentence.id, "x", rating=float(generator.normal()) + (sentence.label or 0))
        for sentence in suite.sentences
    )
    results = measure(Suite("p", rated, suite.contrasts), scores, PROBABILITY_MEASURES, bootstrap=Bootstrap(50))
    assert [result.measure for result in results] == [repr(load_measure(spec)) for spec in PROBABILITY_MEASURES]
    assert all(result.low < result.value < result.high for result in results)


def test_degenerate_pairs() -> None:
    with pytest.raises(Undefined, match="two rows"):
        value(PairCorrelation(), *pairs([(1.0, 0.0)]))
    with pytest.raises(Undefined, match="same value"):
        value(PairCorrelation(), *pairs([(1.0, 0.0), (1.0, 2.0)]))
    assert value(UnpairedAUC(), *pairs([(1.0, 1.0)])) == 0.5
    with pytest.raises(MeasureError, match="but no contrasts"):
        value(UnpairedAUC(), Suite("p", pairs([(1.0, 0.0)])[0].sentences), Scores({}, "m"))
    for text in ("PairCorrelation(kind='x')", "AbsolutePair(threshold='cv')"):
        with pytest.raises(MeasureError):
            load_measure(text)


class TestRestarts:
    def test_summary_by_hand(self) -> None:
        assert summarise_restarts([1, 2, 3, 4], ddof=0) == RestartSummary(2.5, pytest.approx(np.sqrt(1.25)), 4.0, 0, 4)
        assert summarise_restarts([1, 2, 3, 4]).std == pytest.approx(stats.tstd([1, 2, 3, 4]), abs=1e-12)
        assert summarise_restarts([0.7]) == RestartSummary(0.7, None, 0.7, 1, 1)
        assert summarise_restarts([0.7], ddof=0).std == 0
        with pytest.raises(Undefined, match="no restarts"):
            summarise_restarts([])
        with pytest.raises(MeasureError, match="a value is nan"):
            summarise_restarts([float("nan")])

    def test_majority_vote(self) -> None:
        restarts = [Scores({"a": x, "b": y}, f"m{i}") for i, (x, y) in enumerate([(1, -1), (2, 1), (-3, -2)])]
        result = majority_vote(restarts)
        assert dict(result.values) == {"a": 1.0, "b": 0.0}
        assert result.signature == "majority(threshold=0.0, tie=0)[m0; m1; m2]"
        assert dict(majority_vote(restarts, threshold=1).values) == {"a": 0.0, "b": 0.0}
        suite = Suite("s", (Sentence("a", "x", label=1), Sentence("b", "x", label=0)))
        assert value(MCC(threshold=0.5), suite, result) == 1

    def test_a_tied_vote_follows_the_option(self) -> None:
        restarts = [Scores({"a": 1.0}, "m0"), Scores({"a": -1.0}, "m1")]
        assert majority_vote(restarts)["a"] == 0
        assert majority_vote(restarts, tie=1)["a"] == 1
        with pytest.raises(MeasureError, match="tie is 0.5"):
            majority_vote(restarts, tie=0.5)

    def test_restarts_must_score_the_same_sentences(self) -> None:
        with pytest.raises(ScoreError, match="different sentences"):
            majority_vote([Scores({"a": 1.0}, "m0"), Scores({"b": 1.0}, "m1")])
        with pytest.raises(MeasureError, match="there are none"):
            majority_vote([])
