"""Contrasts that only one of two models gets right, on cases counted by hand."""

from __future__ import annotations

import pytest

from acceptability.api.comparison import find_discordant_contrasts
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


def test_discordant_contrasts_are_right_for_the_first_model_only() -> None:
    rows = find_discordant_contrasts(SUITE, PairAccuracy(), RIGHT, WRONG)
    assert [row.contrast for row in rows] == ["a > b", "e > f"]
    assert (rows[0].better, rows[0].worse) == ("A", "B")
    assert (rows[0].first_gap, rows[0].second_gap, rows[0].human_gap) == (2.0, -2.0, 2.0)
    assert rows[1].human_gap is None
    assert find_discordant_contrasts(SUITE, PairAccuracy(), WRONG, RIGHT) == []
    assert find_discordant_contrasts(SUITE, PairAccuracy(), RIGHT, RIGHT) == []


def test_one_model_may_be_right_by_one_criterion_only() -> None:
    strict = ADC(delta=5, standardise=False)
    rows = find_discordant_contrasts(SUITE, PairAccuracy(), RIGHT, RIGHT, second_measure=strict)
    # People prefer d to c; the contrast of e and f is not rated, so that the stricter measure does not count it.
    assert [(row.contrast, row.human_gap) for row in rows] == [("c > d", -1.0)]


def test_a_tie_counts_less_than_a_correct_contrast() -> None:
    assert [row.contrast for row in find_discordant_contrasts(SUITE, PairAccuracy(ties=0.5), RIGHT, WRONG)] == [
        "a > b",
        "e > f",
    ]


def test_a_row_is_flat() -> None:
    row = find_discordant_contrasts(SUITE, PairAccuracy(), RIGHT, WRONG)[0].as_row()
    assert list(row) == ["contrast", "better", "worse", "first_gap", "second_gap", "human_gap"]


def test_a_measure_without_contrasts_is_refused() -> None:
    with pytest.raises(MeasureError, match=r"Pearson\(\) does not count contrasts"):
        find_discordant_contrasts(SUITE, Pearson(), RIGHT, WRONG)
