"""Which sentences and contrasts of a suite a measure can use."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from acceptability.errors import MeasureError, Undefined
from acceptability.measures.gathering import check_has_tag
from acceptability.protocols import Measure
from acceptability.types import Contrast, Floats, Scores, Sentence, Suite


def contrasts_of(suite: Suite, measure: object) -> tuple[Contrast, ...]:
    """Return the contrasts of a suite; having none is an error."""
    if not suite.contrasts:
        raise nothing(suite, measure, "contrasts")
    return suite.contrasts


def labelled(suite: Suite, measure: object) -> tuple[list[Sentence], tuple[str, ...]]:
    """Return the sentences that have a label, and a note on those that have none."""
    kept = [each for each in suite.sentences if each.label is not None]
    if not kept:
        raise nothing(suite, measure, "labels")
    return kept, _left_out(len(suite.sentences) - len(kept), "sentences without a label")


def rated(suite: Suite, measure: object) -> tuple[list[Sentence], tuple[str, ...]]:
    """Return the sentences that have a rating, and a note on those that have none."""
    kept = [each for each in suite.sentences if each.rating is not None]
    if not kept:
        raise nothing(suite, measure, "ratings")
    return kept, _left_out(len(suite.sentences) - len(kept), "sentences without a rating")


def rated_contrasts(suite: Suite, measure: object) -> tuple[list[Contrast], tuple[str, ...]]:
    """Return the contrasts whose members are both rated, and a note on the others."""
    everyone = contrasts_of(suite, measure)
    by_id = suite.by_id
    kept = [each for each in everyone if None not in (by_id[each.better].rating, by_id[each.worse].rating)]
    if not kept:
        raise nothing(suite, measure, "contrasts whose sentences are both rated")
    return kept, _left_out(len(everyone) - len(kept), "contrasts with an unrated sentence")


def states_predictions(sentence: Sentence) -> bool:
    """Tell whether a sentence belongs to an item about whose regions something is predicted."""
    return bool({"prediction", "condition"} <= sentence.tags.keys() and sentence.regions)


def items_with_predictions(suite: Suite, measure: object) -> dict[str, list[Sentence]]:
    """Return the sentences of each item about whose regions something is predicted."""
    items: dict[str, list[Sentence]] = {}
    for each in filter(states_predictions, suite.sentences):
        name = each.tags.get("set", each.tags.get("item"))
        if name is None:
            raise MeasureError(
                f"sentence {each.id!r} has predictions, but no tag set or item that says what it belongs to"
            )
        items.setdefault(name, []).append(each)
    if not items:
        raise nothing(suite, measure, "predictions about regions")
    return items


def ratings_are_z(suite: Suite) -> bool:
    """Tell whether a suite's ratings are in z units already."""
    units = {each.tags.get("rating_unit", "") for each in suite.sentences if each.rating is not None}
    if len(units) > 1:
        raise MeasureError(
            f"suite {suite.name!r} mixes ratings of different units ({', '.join(sorted(units))}); "
            "give all of them, or none, the tag rating_unit=z"
        )
    return units == {"z"}


def ratings_z(suite: Suite) -> dict[str, float]:
    """Return every rating in z units: as it is if it is one already, else over all rated sentences."""
    ratings = {each.id: each.rating for each in suite.sentences if each.rating is not None}
    if ratings_are_z(suite):
        return ratings
    return dict(zip(ratings, standardised(list(ratings.values()), "ratings").tolist(), strict=True))


def scores_z(suite: Suite, scores: Scores) -> dict[str, float]:
    """Return every sentence's score in z units, over all sentences of the suite (ddof 0)."""
    ids = [each.id for each in suite.sentences]
    return dict(zip(ids, standardised(scores.of(ids), f"scores of {scores.model!r}").tolist(), strict=True))


def standardised(values: Sequence[float] | Floats, what: str) -> Floats:
    """Return z-scores by the population standard deviation.

    >>> standardised([1.0, 3.0], "scores")
    array([-1.,  1.])
    """
    array = np.asarray(values, dtype=np.float64)
    if array.min() == array.max():
        raise Undefined(f"the {what} are all the same, so they have no z-scores")
    # Scaled by a power of two, which is exact, so that squares of very large or small numbers stay numbers.
    scaled = np.ldexp(array, -np.frexp(np.abs(array).max())[1])
    return np.asarray((scaled - scaled.mean()) / scaled.std())


def check_measurable(suite: Suite, measure: Measure) -> None:
    """Refuse a measure that the suite has nothing for, before anything is scored."""
    finders: dict[str, Callable[[Suite, object], object]] = {
        "contrasts": contrasts_of,
        "labels": labelled,
        "ratings": rated,
        "rated contrasts": rated_contrasts,
        "predictions": items_with_predictions,
    }
    if measure.needs in finders:
        finders[measure.needs](suite, measure)
    for tag in getattr(measure, "needs_tags", ()):
        check_has_tag(suite, measure, tag)


def checked_number(name: str, value: object) -> float:
    """Return an option that is a finite number."""
    try:
        if not isinstance(value, bool) and isinstance(value, (int, float)) and math.isfinite(value):
            return float(value)
    except OverflowError:
        pass
    raise MeasureError(f"{name} is {value!r}; expected a number")


def nothing(suite: Suite, measure: object, needed: str) -> MeasureError:
    """Return the error that a suite has nothing for a measure."""
    has = [f"{len(suite.sentences)} sentences"]
    has += [f"{len(suite.contrasts)} contrasts"] if suite.contrasts else []
    has += ["labels"] if any(each.label is not None for each in suite.sentences) else []
    has += ["ratings"] if any(each.rating is not None for each in suite.sentences) else []
    return MeasureError(
        f"suite {suite.name!r} has nothing for {measure!r} to measure: it has {', '.join(has)}, but no {needed}."
    )


def _left_out(count: int, what: str) -> tuple[str, ...]:
    return (f"{count} {what} left out",) if count else ()
