from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import matthews_corrcoef

from acceptability import ADC, MCC, PBC, PairAccuracy, Pearson, Spearman
from acceptability.errors import MeasureError, ScoreError, Undefined
from acceptability.measures import choose_default_measures
from acceptability.measures.correlation import average_ranks, pearson
from acceptability.types import Scores, Sentence, Suite, make_contrast

NUMBERS = st.floats(-100, 100).map(lambda number: round(number, 3))


def pairs(ratings: list[float] | None = None, unit: str = "") -> Suite:
    """Four sentences in two contrasts, 0 > 1 and 2 > 3."""
    tags = {"rating_unit": unit} if unit else {}
    given = ratings or [None] * 4
    sentences = [Sentence(str(i), f"s{i}", label=1 - i % 2, rating=given[i], tags=tags) for i in range(4)]
    return Suite(
        "p", tuple(sentences), (make_contrast(sentences[0], sentences[1]), make_contrast(sentences[2], sentences[3]))
    )


def scores(*values: float) -> Scores:
    return Scores({str(index): value for index, value in enumerate(values)}, "m")


def value(measure, suite: Suite, given: Scores) -> float:
    return measure.value(measure.units(suite, given))


def make_data(rows: list[tuple[float, float]], kind: str) -> tuple[Suite, Scores]:
    sentences = tuple(
        Sentence(str(i), "x", **({"label": int(b > 0)} if kind == "label" else {"rating": b}))
        for i, (_, b) in enumerate(rows)
    )
    return Suite("m", sentences), scores(*(a for a, _ in rows))


class TestPairAccuracy:
    def test_by_hand(self) -> None:
        assert value(PairAccuracy(), pairs(), scores(2, 1, 1, 1)) == 0.5
        assert value(PairAccuracy(ties=0.5), pairs(), scores(2, 1, 1, 1)) == 0.75

    @given(st.lists(NUMBERS, min_size=4, max_size=4))
    def test_it_depends_on_order_only(self, values: list[float]) -> None:
        shifted = [math.atan(number / 50) * 3 + 7 for number in values]
        assume(len(set(shifted)) == len(set(values)))
        assert value(PairAccuracy(), pairs(), scores(*values)) == value(PairAccuracy(), pairs(), scores(*shifted))

    @given(st.lists(NUMBERS, min_size=4, max_size=4))
    def test_reversing_every_contrast_gives_the_complement(self, values: list[float]) -> None:
        turned = [-number for number in values]
        half = PairAccuracy(ties=0.5)
        assert value(half, pairs(), scores(*values)) == pytest.approx(1 - value(half, pairs(), scores(*turned)))

    def test_only_members_of_contrasts_need_scores(self) -> None:
        suite = Suite("p", (*pairs().sentences, Sentence("extra", "x")), pairs().contrasts)
        assert value(PairAccuracy(), suite, scores(2, 1, 2, 1)) == 1
        with pytest.raises(ScoreError, match="'3'"):
            value(PairAccuracy(), suite, scores(2, 1, 2))

    def test_without_contrasts_there_is_nothing_to_measure(self) -> None:
        suite = Suite("p", pairs().sentences)
        with pytest.raises(MeasureError, match="it has 4 sentences, labels, but no contrasts"):
            value(PairAccuracy(), suite, scores(1, 2, 3, 4))


class TestADC:
    def test_by_hand_on_ratings_in_z_units(self) -> None:
        suite = pairs([1.0, -1.0, 0.5, -0.5], "z")
        # The scores have mean 0 and population deviation 1 already.
        given = scores(1.0, -1.0, -1.0, 1.0)
        rows = ADC(delta=0.5).units(suite, given)
        assert rows["gap"].tolist() == [2, -2]
        assert rows["human_gap"].tolist() == [2, 1]
        assert rows["met"].tolist() == [1, 0]

    def test_ratings_in_other_units_are_standardised_first(self) -> None:
        likert = [7.0, 1.0, 5.0, 3.0]
        rows = ADC().units(pairs(likert), scores(*likert))
        assert rows["human_gap"].tolist() == pytest.approx(rows["gap"].tolist())
        z = stats.zscore(likert)
        assert rows["human_gap"].tolist() == pytest.approx([z[0] - z[1], z[2] - z[3]])

    def test_standardising_needs_every_score(self) -> None:
        suite = pairs([1.0, -1.0, 0.5, -0.5], "z")
        wide = Suite("p", (*suite.sentences, Sentence("extra", "x")), suite.contrasts)
        with pytest.raises(ScoreError, match="'extra'"):
            value(ADC(), wide, scores(1, 0, 1, 0))
        assert value(ADC(delta=5, standardise=False), wide, scores(1, 0, 1, 0)) == 1

    def test_ties_by_both_conventions(self) -> None:
        suite = pairs([-1.0, 1.0, 1.0, -1.0], "z")
        given = scores(0, 0, 0, 0)
        assert ADC(delta=5, standardise=False).units(suite, given)["met"].tolist() == [1, 0]
        assert ADC(delta=5, standardise=False, tie="literal").units(suite, given)["met"].tolist() == [0, 0]

    def test_constant_scores_have_no_z(self) -> None:
        with pytest.raises(MeasureError, match="all the same"):
            value(ADC(), pairs([1.0, 2.0, 3.0, 4.0]), scores(1, 1, 1, 1))

    @pytest.mark.parametrize("value", [0.1, 1e308, -7.3])
    def test_scores_that_are_the_same_have_no_z_whatever_their_rounding(self, value: float) -> None:
        with pytest.raises(MeasureError, match="all the same"):
            ADC().units(pairs([1.0, 2.0, 3.0, 4.0]), scores(*[value] * 4))

    def test_huge_scores_have_z(self) -> None:
        suite = pairs([1.0, -1.0, 0.5, -0.5], "z")
        small, huge = (ADC().units(suite, scores(*(np.array([1.0, -1.0, 0.5, -0.5]) * s))) for s in (1, 1e308))
        assert huge["gap"].tolist() == pytest.approx(small["gap"].tolist())

    def test_mixed_units_are_an_error(self) -> None:
        first = pairs([1.0, 2.0, 3.0, 4.0], "z").sentences[:2]
        second = pairs([1.0, 2.0, 3.0, 4.0]).sentences[2:]
        with pytest.raises(MeasureError, match="mixes ratings"):
            value(ADC(), Suite("p", (*first, *second), pairs().contrasts), scores(1, 2, 3, 4))

    def test_unrated_contrasts_are_left_out_and_noted(self) -> None:
        suite = pairs([1.0, -1.0, 0.5, None], "z")
        rows = ADC().units(suite, scores(1, 2, 3, 4))
        assert len(rows) == 1
        assert rows.notes == ("1 contrasts with an unrated sentence left out",)

    @given(st.lists(NUMBERS, min_size=4, max_size=4), st.floats(0.01, 10), st.floats(0.01, 10))
    def test_a_wider_delta_never_lowers_adc(self, values: list[float], first: float, second: float) -> None:
        assume(np.std(values) > 1e-3)
        suite = pairs([1.0, -1.0, 0.5, -0.5], "z")
        low, high = sorted((first, second))
        assert value(ADC(delta=low), suite, scores(*values)) <= value(ADC(delta=high), suite, scores(*values))


class TestCorrelations:
    @given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=3, max_size=30))
    def test_they_agree_with_scipy(self, rows: list[tuple[float, float]]) -> None:
        first, second = (np.array(column) for column in zip(*rows, strict=True))
        assume(np.ptp(first) > 0.1)
        assume(np.ptp(second) > 0.1)
        suite, given = make_data(rows, "rating")
        assert value(Pearson(), suite, given) == pytest.approx(stats.pearsonr(first, second).statistic, abs=1e-9)
        assert value(Spearman(), suite, given) == pytest.approx(stats.spearmanr(first, second).statistic, abs=1e-9)
        assert average_ranks(first).tolist() == stats.rankdata(first).tolist()
        if 0 < sum(second > 0) < len(second):
            suite, given = make_data(rows, "label")
            expected = stats.pointbiserialr(second > 0, first).statistic
            assert value(PBC(), suite, given) == pytest.approx(expected, abs=1e-9)

    @given(
        st.lists(st.tuples(NUMBERS, st.sampled_from([-1.0, 1.0])), min_size=4, max_size=20),
        st.floats(0.01, 100),
        st.floats(-100, 100),
    )
    def test_pbc_is_invariant_under_positive_affine_maps(self, rows, scale: float, shift: float) -> None:
        first = np.array([a for a, _ in rows])
        assume(np.ptp(first) > 0.1)
        assume(len({b for _, b in rows}) == 2)
        suite, given = make_data(rows, "label")
        moved = scores(*(scale * first + shift))
        assert value(PBC(), suite, moved) == pytest.approx(value(PBC(), suite, given), abs=1e-7)

    def test_undefined_has_a_reason(self) -> None:
        for rows, reason in (([(1.0, 1.0), (2.0, 1.0)], "label 1"), ([(1.0, 1.0), (1.0, -1.0)], "same value")):
            suite, given = make_data(rows, "label")
            with pytest.raises(Undefined, match=reason):
                value(PBC(), suite, given)
        with pytest.raises(Undefined, match="two rows"):
            pearson(np.array([1.0]), np.array([1.0]))

    def test_tiny_probabilities_keep_their_correlation(self) -> None:
        base = np.array([1.0, 2.0, 4.0])
        assert pearson(base * 1e-300, base) == pytest.approx(1.0)
        assert pearson(base * 1e300, base) == pytest.approx(1.0)

    def test_unrated_sentences_are_left_out_and_noted(self) -> None:
        suite = Suite("r", (Sentence("0", "a", rating=1.0), Sentence("1", "b", rating=2.0), Sentence("2", "c")))
        rows = Pearson().units(suite, scores(1, 2))
        assert (len(rows), rows.notes) == (2, ("1 sentences without a rating left out",))


class TestMCC:
    @given(st.lists(st.tuples(NUMBERS, st.sampled_from([-1.0, 1.0])), min_size=2, max_size=30), NUMBERS)
    def test_it_agrees_with_scikit_learn(self, rows, threshold: float) -> None:
        assume(len({b for _, b in rows}) == 2)
        suite, given = make_data(rows, "label")
        expected = matthews_corrcoef([b > 0 for _, b in rows], [a > threshold for a, _ in rows])
        assert value(MCC(threshold=threshold), suite, given) == pytest.approx(expected, abs=1e-12)

    def test_constant_predictions_are_zero_and_one_class_is_an_error(self) -> None:
        assert value(MCC(threshold=99), pairs(), scores(1, 2, 3, 4)) == 0
        suite, given = make_data([(1.0, 1.0), (2.0, 1.0)], "label")
        with pytest.raises(MeasureError, match="all 2 labels are 1"):
            value(MCC(), suite, given)


def test_default_measures_depend_on_the_data_of_the_suite() -> None:
    def list_names(suite: Suite) -> list[str]:
        return [type(measure).__name__ for measure in choose_default_measures(suite)]

    rated = pairs([1.0, 2.0, 3.0, 4.0])
    # The labels of a pair say what its contrast says; ratings say more.
    assert list_names(pairs()) == ["PairAccuracy"]
    assert list_names(rated) == ["PairAccuracy", "ADC", "Pearson", "Spearman"]
    assert list_names(replace(pairs(), contrasts=())) == ["PBC"]
    assert list_names(replace(rated, contrasts=())) == ["PBC", "Pearson", "Spearman"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: PairAccuracy(ties=2),
        lambda: ADC(delta=0),
        lambda: ADC(delta=float("nan")),
        lambda: ADC(delta=float("inf")),
        lambda: ADC(delta=10**400),
        lambda: MCC(threshold=10**400),
        lambda: ADC(tie="x"),
        lambda: ADC(standardise=1),
        lambda: MCC(threshold=float("inf")),
        lambda: MCC(threshold="a"),
    ],
)
def test_wrong_options_are_errors(make) -> None:
    with pytest.raises(MeasureError):
        make()
