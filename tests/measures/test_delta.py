"""ADC over delta, its area, and the correlation of gaps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import trapezoid

from acceptability import ADC, ADCArea, DeltaCorrelation, PairAccuracy, Scores, Sentence, Suite, adc_curve
from acceptability.errors import MeasureError, Undefined
from acceptability.measures import load_measure
from acceptability.types import Units, make_contrast

NUMBERS = st.floats(-10, 10).map(lambda number: round(number, 3))
FOURS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=12)


def pairs(rows: list[tuple[float, float, float, float]]) -> tuple[Suite, Scores]:
    """Rows are the scores of better and worse, and their ratings in z units."""
    suite: list[Sentence] = []
    values = {}
    for i, (better, worse, *ratings) in enumerate(rows):
        for name, score, rating in ((f"{i}b", better, ratings[0]), (f"{i}w", worse, ratings[1])):
            suite.append(Sentence(name, "x", rating=rating, tags={"rating_unit": "z"}))
            values[name] = score
    contrasts = tuple(make_contrast(suite[i], suite[i + 1]) for i in range(0, len(suite), 2))
    return Suite("p", tuple(suite), contrasts), Scores(values, "m")


def value(measure, suite: Suite, scores: Scores) -> float:
    return measure.value(measure.units(suite, scores))


@given(FOURS, st.lists(st.floats(0.001, 30), min_size=1, max_size=8), st.sampled_from(["positive", "literal"]))
def test_the_curve_at_delta_is_adc_at_delta(rows, deltas: list[float], tie: str) -> None:
    made = pairs(rows)
    units = ADC(standardise=False, tie=tie).units(*made)
    one_by_one = [value(ADC(delta=delta, standardise=False, tie=tie), *made) for delta in deltas]
    assert adc_curve(units, deltas, tie=tie).tolist() == one_by_one


@given(FOURS)
def test_delta_of_any_size_leaves_only_the_direction(rows) -> None:
    suite, scores = pairs(rows)
    human, model = (np.array([row[a] - row[a + 1] for row in rows]) for a in (2, 0))
    agree = np.mean((human > 0) == (model > 0))
    assert value(ADC(delta=1e6, standardise=False), suite, scores) == pytest.approx(agree)
    in_order = [(b, w, max(x, y) + 1, min(x, y)) for b, w, x, y in rows]
    made = pairs(in_order)
    assert value(ADC(delta=1e6, standardise=False), *made) == value(PairAccuracy(), *made)


@given(FOURS, st.floats(0.5, 10))
def test_the_area_is_that_under_the_curve(rows, limit: float) -> None:
    made = pairs(rows)
    result = value(ADCArea(limit=limit, standardise=False), *made)
    assert 0 <= result <= 1
    units = ADCArea(limit=limit, standardise=False).units(*made)
    middles = (np.arange(20_000) + 0.5) / 20_000 * limit
    assert result == pytest.approx(adc_curve(units, middles).mean(), abs=1e-4)
    assert result == pytest.approx(trapezoid(adc_curve(units, middles), middles) / limit, abs=1e-3)


def test_the_area_by_hand() -> None:
    same, near, far, opposite = (1.0, 0.0, 1.0, 0.0), (2.0, 0.0, 1.0, 0.0), (9.0, 0.0, 1.0, 0.0), (0.0, 1.0, 1.0, 0.0)
    rows = ADCArea(standardise=False).units(*pairs([same, near, far, opposite]))
    assert rows["area"].tolist() == pytest.approx([1, 0.8, 0, 0])
    assert value(ADCArea(standardise=False), *pairs([same])) == 1
    assert value(ADCArea(), *pairs([(2.0, 0.0, 1.0, -1.0), (2.0, 0.0, 1.0, -1.0)])) == pytest.approx(1)
    assert value(ADCArea(limit=2, standardise=False), *pairs([near])) == 0.5


def test_ties_of_the_area_by_both_conventions() -> None:
    made = pairs([(0.0, 0.0, -1.0, 0.0)])
    assert value(ADCArea(standardise=False), *made) == pytest.approx(0.8)
    assert value(ADCArea(standardise=False, tie="literal"), *made) == 0


def test_a_curve_over_nothing_is_undefined() -> None:
    nothing = Units((), {"gap": np.array([]), "human_gap": np.array([])}, ())
    with pytest.raises(Undefined, match="no rows"):
        adc_curve(nothing, [1.0])
    with pytest.raises(MeasureError, match="adc_curve: tie"):
        adc_curve(nothing, [1.0], tie="none")


@given(FOURS)
def test_the_correlation_of_gaps_agrees_with_scipy(rows) -> None:
    model, human = (np.array([row[a] - row[a + 1] for row in rows]) for a in (0, 2))
    assume(len(rows) > 2)
    assume(np.ptp(model) > 0.1)
    assume(np.ptp(human) > 0.1)
    made = pairs(rows)
    for kind, judge in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr), ("kendall", stats.kendalltau)):
        expected = judge(model, human).statistic
        assert value(DeltaCorrelation(kind=kind), *made) == pytest.approx(expected, abs=1e-9)


def test_gaps_that_are_all_the_same_have_no_correlation() -> None:
    made = pairs([(1.0, 0.0, 1.0, 0.0), (2.0, 1.0, 3.0, 0.0)])
    for kind in ("pearson", "spearman", "kendall"):
        with pytest.raises(Undefined, match="same value"):
            value(DeltaCorrelation(kind=kind), *made)
    with pytest.raises(Undefined, match="two rows"):
        value(DeltaCorrelation(), *pairs([(1.0, 0.0, 1.0, 0.0)]))


@pytest.mark.parametrize(
    "text",
    [
        "ADCArea(limit=0)",
        "ADCArea(limit='x')",
        "ADCArea(tie='x')",
        "ADCArea(standardise=1)",
        "DeltaCorrelation(kind='r')",
    ],
)
def test_wrong_options(text: str) -> None:
    with pytest.raises(MeasureError):
        load_measure(text)
