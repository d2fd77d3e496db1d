"""Predictions over constructed surprisals, with outcomes computed by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability.api.evaluation import measure
from acceptability.errors import MeasureError, ScoreError, SuiteError
from acceptability.measures import choose_default_measures, load_measure
from acceptability.measures.predictions import Predictions
from acceptability.stats.bootstrap import Bootstrap
from acceptability.types import Scores, Sentence, Suite

BIT = math.log(2)
NPI = "[(2;%neg_pos%) < (2;%pos_pos%)] & [(2;%neg_neg%) < (2;%pos_neg%)] & [(2;%neg_pos%) < (2;%pos_neg%)]"


def suite_of(*formulas: str, items: int = 1, conditions: str = "a b", **more: str) -> Suite:
    """Items in conditions, each sentence with the regions 1 and 2, and 3 without text."""
    stated = {
        f"prediction_{number}" if number > 1 else "prediction": formula for number, formula in enumerate(formulas, 1)
    }
    return Suite(
        "made",
        tuple(
            Sentence(
                f"{item}/{condition}",
                "Cats sleep",
                regions={"1": (0, 4), "2": (5, 10)},
                tags={"item": str(item), "condition": condition, "empty_regions": "3", **stated, **more},
            )
            for item in range(1, items + 1)
            for condition in conditions.split()
        ),
    )


def scores_of(bits: dict[str, float]) -> Scores:
    return Scores({key: -value * BIT for key, value in bits.items()}, "hand")


def evaluate_predictions(suite: Suite, scores: Scores, **options: str) -> dict[str, float]:
    units = Predictions(**options).units(suite, scores)
    return dict(zip(units.ids, units["holds"].tolist(), strict=True))


def test_outcomes_by_hand() -> None:
    suite = suite_of("(2;%a%) < (2;%b%)", "[(1;%a%)+(2;%a%)] - (1;%b%) > 4", items=3)
    scores = scores_of(
        {"1/a#1": 2, "1/a#2": 3, "1/b#1": 2, "1/b#2": 5}  # 3 < 5; 2 + 3 - 2 = 3, not above 4
        | {"2/a#1": 6, "2/a#2": 3, "2/b#1": 2, "2/b#2": 3.5}  # 3 < 3.5; 6 + 3 - 2 = 7
        | {"3/a#1": 6, "3/a#2": 3, "3/b#1": 2, "3/b#2": 3}  # not 3 < 3; 7
    )
    assert evaluate_predictions(suite, scores) == {
        "1/prediction 1": 1,
        "1/prediction 2": 0,
        "2/prediction 1": 1,
        "2/prediction 2": 1,
        "3/prediction 1": 0,
        "3/prediction 2": 1,
    }
    assert evaluate_predictions(suite, scores, per="item") == {"1": 0, "2": 1, "3": 0}
    assert evaluate_predictions(suite, scores, per="first") == {"1": 1, "2": 1, "3": 0}
    values = [result.value for result in measure(suite, scores, ["Predictions", "Predictions(per='item')"])]
    assert values == [pytest.approx(4 / 6), pytest.approx(1 / 3)]


@pytest.mark.parametrize(
    ("neg_pos", "neg_neg", "pos_pos", "pos_neg", "right"),
    [(1, 1, 2, 2, 1), (3, 1, 2, 4, 0), (1, 3, 2, 2, 0), (3, 1, 4, 2, 0)],
)
def test_the_npi_design_by_hand(neg_pos: float, neg_neg: float, pos_pos: float, pos_neg: float, right: int) -> None:
    suite = suite_of(NPI, conditions="neg_pos neg_neg pos_pos pos_neg")
    bits = {"neg_pos": neg_pos, "neg_neg": neg_neg, "pos_pos": pos_pos, "pos_neg": pos_neg}
    assert list(
        evaluate_predictions(suite, scores_of({f"1/{name}#2": value for name, value in bits.items()})).values()
    ) == [right]


def test_a_region_without_text_has_no_surprisal_and_a_star_is_the_whole() -> None:
    suite = suite_of("(3;%a%) = 0 & (*;%a%) > (*;%b%)")
    assert list(evaluate_predictions(suite, scores_of({"1/a": 9, "1/b": 8})).values()) == [1]
    assert list(evaluate_predictions(suite, scores_of({"1/a": 8, "1/b": 8})).values()) == [0]


def test_numbers_in_a_prediction_are_bits() -> None:
    suite = suite_of("(2;%a%) > 5")
    assert list(evaluate_predictions(suite, scores_of({"1/a#2": 5.1})).values()) == [1]
    assert list(evaluate_predictions(suite, scores_of({"1/a#2": 4.9})).values()) == [0]


def test_equal_has_a_tolerance_in_bits() -> None:
    suite, scores = suite_of("(2;%a%) = (2;%b%)"), scores_of({"1/a#2": 5, "1/b#2": 5.01})
    values = [result.value for result in measure(suite, scores, ["Predictions", "Predictions(tolerance=0.02)"])]
    assert values == [0, 1]


@given(st.lists(st.integers(1, 400), min_size=4, max_size=4), st.integers(1, 7))
def test_ties_stay_ties_however_a_sum_is_nested(parts: list[int], quarter: int) -> None:
    """Stored log-probabilities are float32: their sums are exact, so that 0 is 0."""
    first, second, third, fourth = (value / 8 + quarter / 4096 for value in parts)
    suite = suite_of("[(1;%a%)-(1;%b%)]+[[(2;%a%)-(2;%b%)]-[(1;%a%)-(1;%b%)]] > [(2;%a%)-(2;%b%)]")
    scores = Scores({"1/a#1": -first, "1/b#1": -second, "1/a#2": -third, "1/b#2": -fourth}, "hand")
    assert list(evaluate_predictions(suite, scores).values()) == [0]


def test_rows_have_the_tags_of_their_item_and_the_prediction() -> None:
    suite = suite_of("(2;%a%)<(2;%b%)", circuit="licensing", suite="x/y", set="y/1")
    units = Predictions().units(suite, scores_of({"1/a#2": 1, "1/b#2": 2}))
    assert units.ids == ("y/1/prediction 1",)
    assert units.tags[0] == {
        "item": "1",
        "set": "y/1",
        "circuit": "licensing",
        "suite": "x/y",
        "prediction": "1",
        "formula": "(2;%a%) < (2;%b%)",
        "conditions": "a, b",
    }


def test_a_tag_that_differs_within_items_groups_nothing() -> None:
    suite, scores = suite_of("(2;%a%) < (2;%b%)", items=2), scores_of({f"{i}/{c}#2": i for i in (1, 2) for c in "ab"})
    assert measure(suite, scores, by="prediction")[1].group == "prediction=1"
    for spelling, tag in (("Predictions", "condition"), ("Predictions(per='item')", "prediction")):
        with pytest.raises(SuiteError, match=f"has the tag '{tag}'; they have "):
            measure(suite, scores, [spelling], by=tag)
    with pytest.raises(MeasureError, match="condition"):
        measure(suite, scores, bootstrap=Bootstrap(100, by="condition"))


def test_it_is_the_default_measure_where_there_are_predictions() -> None:
    assert choose_default_measures(suite_of("(2;%a%) < (2;%b%)")) == [Predictions()]
    tags = {"prediction": "acceptable", "condition": "a"}
    plain = Suite("plain", (Sentence("1", "Cats sleep", label=1, tags=tags), Sentence("2", "Sleep cats", label=0)))
    assert Predictions() not in choose_default_measures(plain)
    with pytest.raises(MeasureError, match="no predictions about regions"):
        measure(plain, Scores({}, "none"), ["Predictions"])


@pytest.mark.parametrize(
    ("suite", "error", "message"),
    [
        (suite_of("(2;%a%) <"), SuiteError, "item '1': cannot parse the prediction"),
        (suite_of("(2;%c%) < (2;%b%)"), SuiteError, "the item has the conditions a, b"),
        (suite_of("(9;%a%) < (2;%b%)"), SuiteError, "has no region 9"),
        (suite_of("(2;%a%) < (2;%b%)"), ScoreError, "no score of 'hand' for '1/a#2', that is (2;%a%)"),
        (suite_of("(2;%a%) < (2;%b%)", items=2, set="same"), SuiteError, "two sentences in one condition"),
    ],
)
def test_what_is_missing_is_an_error(suite: Suite, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=r".") as caught:
        measure(suite, Scores({"1/b#2": -1.0}, "hand"), ["Predictions"])
    assert message in str(caught.value)


def test_a_missing_score_is_an_error_even_where_the_rest_decides() -> None:
    suite = suite_of("(2;%a%) > (2;%b%) & (1;%a%) > 0")
    with pytest.raises(ScoreError, match="'1/a#1'"):
        measure(suite, scores_of({"1/a#2": 1, "1/b#2": 2}), ["Predictions"])


def test_sentences_of_an_item_must_have_the_same_predictions() -> None:
    first, second = suite_of("(2;%a%) < (2;%b%)"), suite_of("(2;%a%) > (2;%b%)")
    torn = Suite("torn", (first.sentences[0], second.sentences[1]))
    with pytest.raises(SuiteError, match="do not all have the same prediction"):
        measure(torn, scores_of({"1/a#2": 1, "1/b#2": 2}), ["Predictions"])


def test_an_item_needs_a_name() -> None:
    tags = {"prediction": "(1;%a%) > 0", "condition": "a"}
    nameless = Suite("nameless", (Sentence("1", "Cats", regions={"1": (0, 4)}, tags=tags),))
    with pytest.raises(MeasureError, match="no tag set or item"):
        measure(nameless, Scores({}, "none"), ["Predictions"])


@pytest.mark.parametrize(
    "spelling", ["Predictions(per='word')", "Predictions(tolerance=-1)", "Predictions(tolerance='x')"]
)
def test_options_are_checked(spelling: str) -> None:
    with pytest.raises(MeasureError, match="expected"):
        load_measure(spelling)
