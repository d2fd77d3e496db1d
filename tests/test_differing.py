"""Which contrasts one model meets and another does not, on cases counted by hand."""

from __future__ import annotations

import pytest

from acceptability.differing import differing
from acceptability.errors import MeasureError
from acceptability.measures.correlation import Pearson
from acceptability.measures.delta import ADC
from acceptability.measures.pairs import PairAccuracy
from acceptability.types import Contrast, Scores, Sentence, Suite

RATINGS = {"a": 1.0, "b": -1.0, "c": 0.5, "d": 1.5, "e": 0.0, "f": None}
SUITE = Suite(
    "six",
    tuple(Sentence(name, name.upper(), rating=rating, tags={"rating_unit": "z"}) for name, rating in RATINGS.items()),
    (Contrast("a", "b"), Contrast("c", "d"), Contrast("e", "f")),
)
RIGHT = Scores({"a": 1.0, "b": -1.0, "c": 2.0, "d": 1.0, "e": 3.0, "f": 0.0}, "right")
WRONG = Scores({"a": -1.0, "b": 1.0, "c": 2.0, "d": 1.5, "e": 0.0, "f": 0.0}, "wrong")


def test_the_contrasts_are_those_that_only_the_first_meets() -> None:
    found = differing(SUITE, PairAccuracy(), RIGHT, WRONG)
    assert [each.contrast for each in found] == ["a > b", "e > f"]
    assert (found[0].better, found[0].worse) == ("A", "B")
    assert (found[0].first_gap, found[0].second_gap, found[0].human_gap) == (2.0, -2.0, 2.0)
    assert found[1].human_gap is None
    assert differing(SUITE, PairAccuracy(), WRONG, RIGHT) == []
    assert differing(SUITE, PairAccuracy(), RIGHT, RIGHT) == []


def test_one_model_may_meet_one_criterion_and_not_the_other() -> None:
    strict = ADC(delta=5, standardise=False)
    found = differing(SUITE, PairAccuracy(), RIGHT, RIGHT, against=strict)
    # People prefer d to c; the contrast of e and f is not rated, so that the stricter measure does not count it.
    assert [(each.contrast, each.human_gap) for each in found] == [("c > d", -1.0)]


def test_a_tie_that_earns_half_is_less_than_a_win() -> None:
    assert [each.contrast for each in differing(SUITE, PairAccuracy(ties=0.5), RIGHT, WRONG)] == ["a > b", "e > f"]


def test_a_row_is_flat() -> None:
    row = differing(SUITE, PairAccuracy(), RIGHT, WRONG)[0].as_row()
    assert list(row) == ["contrast", "better", "worse", "first_gap", "second_gap", "human_gap"]


def test_a_measure_without_contrasts_is_refused() -> None:
    with pytest.raises(MeasureError, match=r"Pearson\(\) counts no contrasts"):
        differing(SUITE, Pearson(), RIGHT, WRONG)
