"""Rows for measures: the usable sentences and contrasts of a suite, sets of sentences, and z-scores.

What a suite lacks is an error that names the suite and the measure; what is merely incomplete is excluded and counted
in a note. The checks of measure options are here too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import MeasureError, Undefined, suggest_name
from acceptability.protocols import Measure
from acceptability.types import Contrast, Floats, Scores, Sentence, Suite, Tags

PREDICTION_TAGS = frozenset({"prediction", "condition"})
"""The tags of a sentence that belongs to an item with predictions."""


def group_by_tag(sentences: Iterable[Sentence], tag: str) -> dict[str, list[Sentence]]:
    """Return the sentences of each value of a tag, without those that lack the tag.

    >>> rows = [Sentence("a", "x", tags={"set": "1"}), Sentence("b", "y", tags={"set": "1"}), Sentence("c", "z")]
    >>> {name: [sentence.id for sentence in members] for name, members in group_by_tag(rows, "set").items()}
    {'1': ['a', 'b']}
    """
    sets: dict[str, list[Sentence]] = {}
    for sentence in sentences:
        if tag in sentence.tags:
            sets.setdefault(sentence.tags[tag], []).append(sentence)
    return sets


def find_shared_tags(members: Sequence[Sentence]) -> Tags:
    """Return the tags that have the same value in all members of a set.

    >>> members = [Sentence("a", "x", tags={"set": "1", "n": "1"}), Sentence("b", "y", tags={"set": "1", "n": "2"})]
    >>> find_shared_tags(members)
    {'set': '1'}
    """
    first, *others = members
    return {
        name: value for name, value in first.tags.items() if all(member.tags.get(name) == value for member in others)
    }


def check_has_tag(suite: Suite, measure: object, tag: str) -> None:
    """Raise an error if no sentence of the suite has a tag that the measure needs."""
    known_tags = sorted({name for sentence in suite.sentences for name in sentence.tags})
    if tag not in known_tags:
        raise MeasureError(
            f"suite {suite.name!r} has nothing for {measure!r} to measure: no sentence has the tag {tag!r}; "
            f"they have {', '.join(known_tags) or 'none'}.{suggest_name(tag, known_tags)}"
        )


def collect_row_tags(suite: Suite, measure: Measure) -> tuple[str, list[Tags]]:
    """Return the kind of rows of a measure (contrasts, sentences, or sets of these), and the tags of each row.

    Only the suite is read, so that a tag to group by can be checked before anything is scored.
    """
    tag = measure.gathered_by
    # A set carries only what its members share: a tag that differs within sets cannot group them.
    if tag:
        return f"sets (by {tag})", [
            find_shared_tags(members) for members in group_by_tag(suite.sentences, tag).values()
        ]
    if "contrasts" in measure.needs:
        return "contrasts", [contrast.tags for contrast in suite.contrasts]
    return "sentences", [sentence.tags for sentence in suite.sentences]


def find_rows_with_tag(suite: Suite, measure: Measure, tag: str) -> tuple[str, NDArray[np.bool_]]:
    """Return the kind of rows of a measure, and for each row whether it has a tag."""
    if measure.gathered_by:
        row_kind, rows = collect_row_tags(suite, measure)
        return row_kind, np.array([tag in tags for tags in rows], dtype=bool)
    # From columns, for which no sentence of a suite that was read before is built.
    has_contrasts = "contrasts" in measure.needs
    column = suite.contrast_tag(tag) if has_contrasts else suite.sentence_tag(tag)
    return "contrasts" if has_contrasts else "sentences", np.asarray(column.codes >= 0)


def format_exclusion_notes(left_out: Counter[str]) -> tuple[str, ...]:
    """Return a note on each kind of excluded row, such as "3 sets without both classes left out".

    >>> format_exclusion_notes(Counter({"sets without both classes": 3, "sentences without a label": 0}))
    ('3 sets without both classes left out',)
    """
    return tuple(f"{count} {what} left out" for what, count in left_out.items() if count)


def check_count(name: str, value: object, least: int) -> None:
    """Raise an error unless an option is a whole number of at least ``least``."""
    # bool is a subclass of int in Python: folds=True would otherwise pass as 1.
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise MeasureError(f"{name} is {value!r}; expected a whole number from {least}")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise an error unless an option is one of the choices.

    >>> check_choice("ADC: tie", "positive", ("positive", "literal"))
    """
    if value not in choices:
        *most, last = map(repr, choices)
        raise MeasureError(f"{name} is {value!r}; expected {', '.join(most)} or {last}")


def check_tag_name(name: str, value: object) -> None:
    """Raise an error unless an option can be the name of a tag."""
    if not isinstance(value, str) or not value:
        raise MeasureError(f"{name} is {value!r}; expected the name of a tag")


def require_contrasts(suite: Suite, measure: object) -> tuple[Contrast, ...]:
    """Return the contrasts of a suite, of which there must be some."""
    if not suite.contrasts:
        raise nothing_to_measure_error(suite, measure, "contrasts")
    return tuple(suite.contrasts)


def require_labelled(suite: Suite, measure: object) -> tuple[list[Sentence], tuple[str, ...]]:
    """Return the sentences with a label, and a note on the others."""
    kept = [sentence for sentence in suite.sentences if sentence.label is not None]
    if not kept:
        raise nothing_to_measure_error(suite, measure, "labels")
    return kept, _note_left_out(len(suite.sentences) - len(kept), "sentences without a label")


def require_rated(suite: Suite, measure: object) -> tuple[list[Sentence], tuple[str, ...]]:
    """Return the sentences with a rating, and a note on the others."""
    kept = [sentence for sentence in suite.sentences if sentence.rating is not None]
    if not kept:
        raise nothing_to_measure_error(suite, measure, "ratings")
    return kept, _note_left_out(len(suite.sentences) - len(kept), "sentences without a rating")


def require_rated_contrasts(suite: Suite, measure: object) -> tuple[list[Contrast], tuple[str, ...]]:
    """Return the contrasts whose members are both rated, and a note on the others."""
    all_contrasts = require_contrasts(suite, measure)
    by_id = suite.by_id
    kept = [
        contrast
        for contrast in all_contrasts
        if None not in (by_id[contrast.better].rating, by_id[contrast.worse].rating)
    ]
    if not kept:
        raise nothing_to_measure_error(suite, measure, "contrasts whose sentences are both rated")
    return kept, _note_left_out(len(all_contrasts) - len(kept), "contrasts with an unrated sentence")


def has_predictions(sentence: Sentence) -> bool:
    """Return whether a sentence belongs to an item with predictions about its regions."""
    return bool(sentence.tags.keys() >= PREDICTION_TAGS and sentence.regions)


def group_prediction_items(suite: Suite, measure: object) -> dict[str, list[Sentence]]:
    """Return the sentences of each item that has predictions about its regions."""
    items: dict[str, list[Sentence]] = {}
    for sentence in filter(has_predictions, suite.sentences):
        # The tag "set" is unique within a suite; "item" alone may repeat across the files that the suite is made of.
        name = sentence.tags.get("set", sentence.tags.get("item"))
        if name is None:
            raise MeasureError(
                f"sentence {sentence.id!r} has predictions, but no tag set or item with the item it belongs to"
            )
        items.setdefault(name, []).append(sentence)
    if not items:
        raise nothing_to_measure_error(suite, measure, "predictions about regions")
    return items


def ratings_are_z(suite: Suite) -> bool:
    """Return whether the ratings of a suite are z-scores already; an error if only some are."""
    # Ratings from two sources are comparable only if both are z-scores or neither is.
    units = {sentence.tags.get("rating_unit", "") for sentence in suite.sentences if sentence.rating is not None}
    if len(units) > 1:
        raise MeasureError(
            f"suite {suite.name!r} mixes ratings of different units ({', '.join(sorted(units))}); "
            "give all of them, or none, the tag rating_unit=z"
        )
    return units == {"z"}


def standardise_ratings(suite: Suite) -> dict[str, float]:
    """Return the z-score of every rating: itself if the ratings are z-scores already, else over all rated sentences."""
    ratings = {sentence.id: sentence.rating for sentence in suite.sentences if sentence.rating is not None}
    # Ratings standardised within participants are not standardised again: their spread over sentences is below 1,
    # and dividing by it would enlarge all human gaps.
    if ratings_are_z(suite):
        return ratings
    return dict(zip(ratings, compute_z_scores(list(ratings.values()), "ratings").tolist(), strict=True))


def standardise_scores(suite: Suite, scores: Scores) -> dict[str, float]:
    """Return the z-score of every sentence's score, over all sentences of the suite (ddof 0)."""
    ids = [sentence.id for sentence in suite.sentences]
    return dict(zip(ids, compute_z_scores(scores.of(ids), f"scores of {scores.model!r}").tolist(), strict=True))


def compute_z_scores(values: Sequence[float] | Floats, name: str) -> Floats:
    """Return z-scores by the population standard deviation.

    Args:
        values: The values to standardise.
        name: What they are, for the error message.

    >>> compute_z_scores([1.0, 3.0], "scores")
    array([-1.,  1.])
    """
    array = np.asarray(values, dtype=np.float64)
    # Compared exactly: the computed deviation of equal numbers need not be 0, because their mean is rounded.
    if array.min() == array.max():
        raise Undefined(f"the {name} are all the same, so they have no z-scores")
    # Scaled by a power of two, which is exact. Otherwise squares of very large scores overflow, and those of very
    # small ones underflow.
    scaled = np.ldexp(array, -np.frexp(np.abs(array).max())[1])
    return np.asarray((scaled - scaled.mean()) / scaled.std())


def mean(values: Floats) -> float:
    """Return the mean of a column; undefined if there are no rows."""
    # NumPy would return nan with a warning, and a nan would travel on into tables and intervals.
    if not len(values):
        raise Undefined("there are no rows")
    return float(values.mean())


def check_measurable(suite: Suite, measure: Measure) -> None:
    """Raise an error if the suite lacks the data of a measure; called before anything is scored."""
    finders: dict[str, Callable[[Suite, object], object]] = {
        "contrasts": require_contrasts,
        "labels": require_labelled,
        "ratings": require_rated,
        "rated contrasts": require_rated_contrasts,
        "predictions": group_prediction_items,
    }
    # A measure of a plug-in may need something else, which its own ``units`` has to check.
    if measure.needs in finders:
        finders[measure.needs](suite, measure)
    for tag in measure.needs_tags:
        check_has_tag(suite, measure, tag)


def require_number(name: str, value: object) -> float:
    """Return an option as a float; an error unless it is a finite number."""
    try:
        if not isinstance(value, bool) and isinstance(value, (int, float)) and math.isfinite(value):
            return float(value)
    # Raised for an integer too large for a float.
    except OverflowError:
        pass
    raise MeasureError(f"{name} is {value!r}; expected a number")


def nothing_to_measure_error(suite: Suite, measure: object, needed: str) -> MeasureError:
    """Return the error for a suite that lacks what a measure needs; it lists what the suite has."""
    has = [f"{len(suite.sentences)} sentences"]
    has += [f"{len(suite.contrasts)} contrasts"] if suite.contrasts else []
    # The message lists what there is, since the usual cause is a measure of another kind of suite.
    has += ["labels"] if any(sentence.label is not None for sentence in suite.sentences) else []
    has += ["ratings"] if any(sentence.rating is not None for sentence in suite.sentences) else []
    return MeasureError(
        f"suite {suite.name!r} has nothing for {measure!r} to measure: it has {', '.join(has)}, but no {needed}."
    )


def _note_left_out(count: int, what: str) -> tuple[str, ...]:
    return (f"{count} {what} left out",) if count else ()
