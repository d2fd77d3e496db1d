"""Directionality, repulsion, cloze pairs, goodness, intensity, and the classes of learning."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from acceptability.api.evaluation import measure as measured
from acceptability.errors import MeasureError, Undefined
from acceptability.measures.target_contrast import (
    LEARNING_CLASSES,
    ClozePair,
    Cutoffs,
    Directionality,
    ErrorType,
    Goodness,
    Intensity,
    Repulsion,
    classify_learning,
    combine_scores,
    compute_repulsion,
    split_by_accuracy,
)
from acceptability.stats.bootstrap import Bootstrap
from acceptability.types import Contrast, Scores, Sentence, Suite, make_contrast

SURPRISALS = st.floats(0, 50).map(lambda value: round(value, 4))


def pairs(*texts: tuple[str, str]) -> Suite:
    members = [(Sentence(f"g{i}", good), Sentence(f"b{i}", bad)) for i, (good, bad) in enumerate(texts)]
    return Suite(
        "p", tuple(sentence for pair in members for sentence in pair), tuple(make_contrast(*pair) for pair in members)
    )


SUITE = pairs(("A cat ran.", "A cat run."), ("A dog ran.", "A dogs ran."))


def scores(*values: float, reduction: str = "") -> Scores:
    return Scores(dict(zip(("g0", "b0", "g1", "b1"), values, strict=False)), "m", reduction)


def value(measure, suite: Suite, given: Scores) -> float:
    return measure.value(measure.units(suite, given))


class TestDirectionality:
    def test_by_hand(self) -> None:
        # Examples 6 and 8 of the paper: the second is in the wrong order.
        given = scores(-2.1163106, -4.2965403, -2.1712706, -1.2611948)
        assert value(Directionality(), SUITE, given) == 0.5
        assert Directionality().units(SUITE, given)["better"].tolist() == pytest.approx([2.1163106, 2.1712706])

    def test_a_tie_is_wrong(self) -> None:
        assert value(Directionality(), SUITE, scores(-1, -1, -1, -2)) == 0.5


class TestRepulsion:
    @pytest.mark.parametrize(
        ("better", "worse", "expected"), [(7.7254944, 15.612077, 0.338), (0.01847287, 7.476947, 0.995)]
    )
    def test_the_papers_examples(self, better: float, worse: float, expected: float) -> None:
        assert compute_repulsion(better, worse) == pytest.approx(expected, abs=5e-4)
        one = pairs(("A cat ran.", "A cat run."))
        assert value(Repulsion(), one, scores(-better, -worse)) == pytest.approx(expected, abs=5e-4)

    @given(SURPRISALS, SURPRISALS, st.floats(0.1, 10))
    def test_it_is_independent_of_direction_and_unit(self, first: float, second: float, unit: float) -> None:
        assume(first + second > 0)
        assert 0 <= compute_repulsion(first, second) <= 1
        assert compute_repulsion(first, second) == compute_repulsion(second, first)
        assert compute_repulsion(first * unit, second * unit) == pytest.approx(compute_repulsion(first, second))

    def test_it_is_undefined_for_two_certain_targets(self) -> None:
        with pytest.raises(Undefined, match="both surprisals are 0"):
            compute_repulsion(0, 0)
        rows = Repulsion().units(SUITE, scores(0, 0, -1, -3))
        assert rows["repulsion"].tolist() == [0.5]
        assert rows.notes == ("1 contrasts whose surprisals are both 0 left out",)
        (result,) = measured(SUITE, scores(0, 0, 0, 0), [Repulsion()], bootstrap=Bootstrap(0))
        assert result.value is None
        assert result.reason == "there are no rows"

    def test_a_positive_log_probability_is_an_error(self) -> None:
        with pytest.raises(MeasureError, match="never above 0, and a score is 2"):
            Repulsion().units(SUITE, scores(-1, 2, -1, -1))
        with pytest.raises(MeasureError, match="never below 0"):
            compute_repulsion(-1, 2)


class TestClozePair:
    def test_only_sentences_that_differ_in_one_word_count(self) -> None:
        suite = pairs(("A cat ran.", "A cat run."), ("A dog ran.", "A big dog ran."))
        rows = ClozePair().units(suite, scores(-1, -2, -1, -2))
        assert rows.ids == ("g0 > b0",)
        assert rows["correct"].tolist() == [1]
        assert rows.notes == ("1 contrasts left out: differ in more than one word",)
        turned = pairs(("A dog ran off.", "A ran dog off."))
        with pytest.raises(Undefined, match="no rows"):
            value(ClozePair(), turned, scores(-1, -2))

    def test_words_of_several_tokens_are_excluded_on_request(self) -> None:
        tagged = tuple(
            Contrast(contrast.better, contrast.worse, {"tokens": tokens})
            for contrast, tokens in zip(SUITE.contrasts, "12", strict=True)
        )
        rows = ClozePair(single_token=True).units(Suite("p", SUITE.sentences, tagged), scores(-1, -2, -3, -2))
        assert rows.ids == ("g0 > b0",)
        assert rows.notes == ("1 contrasts left out: several tokens",)
        with pytest.raises(MeasureError, match="has no tag 'tokens'"):
            ClozePair(single_token=True).units(SUITE, scores(-1, -2, -3, -2))
        with pytest.raises(MeasureError, match="expected True or False"):
            ClozePair(single_token=1)


class TestGoodness:
    def test_both_members_must_lie_on_the_correct_side(self) -> None:
        given = scores(2, -1, 3, 1, reduction="log_odds()")
        rows = Goodness(scale="logit").units(SUITE, given)
        assert [rows[name].tolist() for name in ("good", "bad", "both")] == [[1, 1], [1, 0], [1, 0]]
        assert value(Goodness(scale="logit", zero=2.5), SUITE, given) == 0.5

    def test_z_scores_are_those_of_the_suite(self) -> None:
        # The mean is -2.5: g1 lies below it.
        assert value(Goodness(), SUITE, scores(-1, -4, -2.75, -2.25)) == 0.5

    @pytest.mark.parametrize("reduction", ["lp()", "lp()#target", "slor(unigrams='x')", ""])
    def test_plain_surprisal_has_no_zero(self, reduction: str) -> None:
        with pytest.raises(MeasureError, match="no zero between good and bad"):
            Goodness(scale="logit").units(SUITE, scores(-1, -2, -1, -2, reduction=reduction))

    def test_options_are_checked(self) -> None:
        with pytest.raises(MeasureError, match="expected 'z' or 'logit'"):
            Goodness(scale="bits")
        with pytest.raises(MeasureError, match="zero is 'x'; expected a number"):
            Goodness(zero="x")


class TestIntensity:
    def test_by_hand(self) -> None:
        given = combine_scores([scores(1, 2, 3, 4), scores(3, 2, 1, 5), scores(5, 2, 3, 9)])
        rows = Intensity().units(SUITE, given)
        assert rows["spread"].tolist() == pytest.approx([2, 0, math.sqrt(4 / 3), statistics.stdev([4, 5, 9])])
        assert rows["judges"].tolist() == [3] * 4
        assert value(Intensity(), SUITE, given) == pytest.approx(rows["spread"].mean())

    def test_one_judge_has_no_spread(self) -> None:
        for alone in (scores(-1, -2, -3, -4), combine_scores([scores(-1, -2, -3, -4)])):
            with pytest.raises(MeasureError, match="a single model's surprisal, has no spread"):
                Intensity().units(SUITE, alone)

    def test_unjudged_sentences_are_excluded_with_a_note(self) -> None:
        given = combine_scores([scores(1, 2), scores(2, 4)])
        assert Intensity().units(SUITE, given).notes == ("2 sentences that nobody judged left out",)


# Park et al. 2021, Table 4: share correct, repulsion; its class in the text; the mean rating of its unacceptable
# sentences in section 3.3. Rows 14, 15 and 17 are called "confused" without a grade.
TABLE_4 = [
    (30 / 32, 0.23, "weakly learned", -0.37),
    (30 / 32, 0.24, "weakly learned", -0.98),
    (30 / 32, 0.86, "strongly learned", -0.84),
    (30 / 32, 0.80, "strongly learned", -0.67),
    (26 / 28, 0.38, "weakly learned", -0.69),
    (42 / 48, 0.28, "weakly learned", -0.21),
    (28 / 32, 0.25, "weakly learned", 0.47),
    (28 / 32, 0.87, "strongly learned", -0.40),
    (88 / 104, 0.36, "weakly learned", -0.62),
    (232 / 276, 0.32, "weakly learned", -0.62),
    (126 / 152, 0.42, "moderately learned", -0.48),
    (26 / 32, 0.49, "moderately learned", -0.33),
    (176 / 220, 0.21, "weakly learned", -0.23),
    (38 / 64, 0.11, "confused", -0.35),
    (38 / 64, 0.27, "confused", -0.34),
    (36 / 64, 0.52, "moderately confused", -0.08),
    (16 / 32, 0.12, "confused", -0.27),
    (58 / 128, 0.15, "highly confused", -0.28),
    (44 / 148, 0.29, "weakly mis-learned", -0.21),
    (0 / 24, 0.90, "strongly mis-learned", -0.46),
    (0 / 32, 0.88, "strongly mis-learned", -0.04),
    (0 / 32, 0.88, "strongly mis-learned", -0.11),
]


@pytest.mark.parametrize(("accuracy", "repelled", "call"), [row[:3] for row in TABLE_4])
def test_the_cutoffs_reproduce_the_papers_classes(accuracy: float, repelled: float, call: str) -> None:
    ours = classify_learning(accuracy, repelled)
    assert ours == call or (call == "confused" and ours.endswith(" confused"))


def test_all_nine_classes_can_be_reached_and_cutoffs_moved() -> None:
    result = {classify_learning(accuracy, repelled) for accuracy in (0.9, 0.5, 0.1) for repelled in (0.9, 0.5, 0.1)}
    assert result == set(LEARNING_CLASSES.values())
    assert classify_learning(0.8, 0.7) == "strongly learned"
    assert classify_learning(0.35, 0.4) == "moderately mis-learned"
    assert classify_learning(0.8, 0.7, Cutoffs(accuracy_high=0.9, repulsion_high=0.75)) == "moderately confused"
    with pytest.raises(MeasureError, match="must lie below"):
        Cutoffs(accuracy_high=0.3)
    with pytest.raises(MeasureError, match="accuracy_low is nan"):
        Cutoffs(accuracy_low=math.nan)


def test_types_below_the_threshold_are_less_clear_to_people() -> None:
    rows = [ErrorType(str(number), row[0], row[3]) for number, row in enumerate(TABLE_4, start=1)]
    below, above = split_by_accuracy(rows, threshold=0.80)
    assert [row.name for row in below] == [str(number) for number in range(14, 23)]
    test = stats.mannwhitneyu([row.rating for row in above], [row.rating for row in below])
    assert test.statistic == 24.5
    assert test.pvalue == pytest.approx(0.025, abs=5e-4)
