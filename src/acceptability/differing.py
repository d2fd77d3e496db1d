"""Which contrasts one model meets and another does not: the examples behind a difference."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from acceptability.errors import MeasureError, Undefined
from acceptability.measures.rows import check_measurable
from acceptability.protocols import Measure
from acceptability.types import Contrast, Scores, Suite, Units


@dataclass(frozen=True)
class Differing:
    """A contrast that the first model meets and the second does not.

    Args:
        better, worse: The two texts.
        first_gap, second_gap: What each model makes of them, better minus worse, in the units of its measure.
        human_gap: The difference of their ratings, as the suite gives them; None if either was not rated.
    """

    contrast: str
    better: str
    worse: str
    first_gap: float | None
    second_gap: float | None
    human_gap: float | None

    def as_row(self) -> dict[str, object]:
        """Return the contrast as one flat row, for JSON and tables."""
        return asdict(self)


def differing(
    suite: Suite, measure: Measure, first: Scores, second: Scores, *, against: Measure | None = None
) -> list[Differing]:
    """Return the contrasts that earn more from the first model than from the second, in the suite's order.

    Where a contrast earns 1 or 0, these are the contrasts that the first meets and the second does not.

    Args:
        against: The measure that the second is held to, if it is another one: then one model may stand on
            both sides, and the contrasts are those that meet one criterion and not the other.

    >>> from acceptability.measures.pairs import PairAccuracy
    >>> from acceptability.types import Sentence
    >>> suite = Suite("two", (Sentence("a", "Cats sleep."), Sentence("b", "Cats sleeps.")), (Contrast("a", "b"),))
    >>> good, bad = Scores({"a": -1.0, "b": -3.0}, "good"), Scores({"a": -2.0, "b": -1.0}, "bad")
    >>> [(each.contrast, each.first_gap, each.second_gap) for each in differing(suite, PairAccuracy(), good, bad)]
    [('a > b', 2.0, -1.0)]
    """
    one, two = _earned(suite, measure, first), _earned(suite, against or measure, second)
    return [
        _row(suite, each, one[each.id][1], two[each.id][1])
        for each in suite.contrasts
        if each.id in one and each.id in two and one[each.id][0] > two[each.id][0]
    ]


def _earned(suite: Suite, measure: Measure, scores: Scores) -> dict[str, tuple[float, float | None]]:
    """Return what each contrast earns alone, and its gap."""
    if "contrasts" not in measure.needs:
        raise MeasureError(f"{measure!r} counts no contrasts, so it cannot tell which of them two models differ in")
    check_measurable(suite, measure)
    units = measure.units(suite, scores)
    gaps = units.columns.get("gap")
    return {
        name: (_alone(measure, units, row), None if gaps is None else float(gaps[row]))
        for row, name in enumerate(units.ids)
    }


def _alone(measure: Measure, units: Units, row: int) -> float:
    try:
        return measure.value(units.drawn(np.array([row])))
    except Undefined as error:
        raise MeasureError(f"{measure!r} says nothing of a single contrast: {error}") from error


def _row(suite: Suite, each: Contrast, first: float | None, second: float | None) -> Differing:
    better, worse = suite.by_id[each.better], suite.by_id[each.worse]
    human = None if better.rating is None or worse.rating is None else better.rating - worse.rating
    return Differing(each.id, better.text, worse.text, first, second, human)
