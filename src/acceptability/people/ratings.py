"""From answers to ratings: who and what is left out, z-scores within participants, means with intervals.

The order of steps: magnitude estimates become natural logs; participants are left out (too few answers; one and the
same answer to everything, where z-scores are asked for; too many wrong catch items); z-scores within participants,
over all their answers; catch items are left out; outliers are left out, once; the mean over participants is the rating.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from acceptability.errors import MeasureError, Undefined
from acceptability.people.intervals import Interval, mean_interval, share_interval
from acceptability.people.outliers import Nothing, Outliers
from acceptability.people.responses import Responses
from acceptability.stats.samples import check_level
from acceptability.types import Floats, Sentence, Suite

_UNITS = {"magnitude": "log", "likert": "likert", "yes-no": "share"}


@dataclass(frozen=True)
class Rules:
    """How ratings are made of answers.

    Args:
        scale: "z" for z-scores within participants, "raw" for answers as they are (of magnitude estimates, their
            logs); empty for z, and raw for yes and no.
        ddof: Of the participants' standard deviations: 1 as R's ``scale`` has it, or 0.
        outliers: Which single answers are left out.
        least_responses: Participants with fewer answers are left out.
        least_catch: Participants with a smaller share of catch items right are left out. An answer on a scale is
            right if it lies on the right side of the participant's own mean. Who met no catch item is kept.
        level: Of the intervals.
    """

    scale: str = ""
    ddof: int = 1
    outliers: Outliers = field(default_factory=Nothing)
    least_responses: int = 1
    least_catch: float = 0.0
    level: float = 0.95

    def __post_init__(self) -> None:
        check_level(self.level)
        if self.scale not in ("", "z", "raw"):
            raise MeasureError(f"scale is {self.scale!r}; expected 'z' or 'raw'")
        if self.ddof not in (0, 1):
            raise MeasureError(f"ddof is {self.ddof}; expected 0 or 1")
        if not 0 <= self.least_catch <= 1:
            raise MeasureError(f"least_catch is {self.least_catch}; expected a share from 0 to 1")
        if self.least_responses < 1:
            raise MeasureError(f"least_responses is {self.least_responses}; expected a whole number from 1")

    def standardises(self, kind: str) -> bool:
        """Tell whether answers of a kind become z-scores."""
        return self.scale == "z" or (not self.scale and kind != "yes-no")


@dataclass(frozen=True)
class Rating:
    """What people gave a sentence: None where nobody's answer is left."""

    sentence: Sentence
    mean: float | None
    sd: float | None
    n: int
    low: float | None
    high: float | None


@dataclass(frozen=True, eq=False)
class Ratings:
    """The ratings of sentences, and the answers that they are the means of.

    Args:
        unit: "z", "log" (of magnitude estimates), "likert" (points of the scale) or "share" (of yes).
        values: What is left of the answers: a row a participant, a column a sentence; nan where there is none.
        left_out: Why each participant who is not among them was left out.
        notes: What was done and what was left out.
    """

    name: str
    unit: str
    rows: tuple[Rating, ...]
    participants: tuple[str, ...]
    values: Floats
    left_out: dict[str, str]
    notes: tuple[str, ...]

    @property
    def means(self) -> Floats:
        """The ratings, one a sentence; nan where there is none."""
        return np.array([np.nan if each.mean is None else each.mean for each in self.rows])

    def suite(self) -> Suite:
        """Return the sentences with their ratings as a suite."""
        return Suite(
            self.name,
            tuple(
                Sentence(
                    each.sentence.id,
                    each.sentence.text,
                    each.sentence.label,
                    each.mean,
                    each.sentence.regions,
                    {**each.sentence.tags, "rating_unit": self.unit},
                )
                for each in self.rows
            ),
        )


def rate(responses: Responses, rules: Rules | None = None) -> Ratings:
    """Return the ratings that answers make.

    >>> from acceptability.people.responses import of_rows
    >>> ratings = rate(of_rows("toy", "likert", [[1, 2, 3], [3, 5, 7], [4, 4, 4]]))
    >>> [each.mean for each in ratings.rows], ratings.left_out
    ([-1.0, 0.0, 1.0], {'3': 'gave one and the same answer to everything'})
    """
    rules = rules or Rules()
    values = np.log(responses.values) if responses.kind == "magnitude" else responses.values.copy()
    left_out = dict(_left_out(responses, values, rules))
    kept = [place for place, name in enumerate(responses.participants) if name not in left_out]
    if not kept:
        raise MeasureError(f"{responses.name}: none of {len(values)} participants is left: {_counted(left_out)}")
    values = values[kept]
    is_z = rules.standardises(responses.kind)
    if is_z:
        values = z_within(values, ddof=rules.ddof)
    places = [place for place, each in enumerate(responses.sentences) if each.id not in responses.catch]
    if not places:
        raise MeasureError(f"{responses.name}: all {len(responses.sentences)} sentences are catch items")
    values = values[:, places]
    far, untold = rules.outliers.among(values), rules.outliers.untold(values)
    values[far] = np.nan
    unit = "z" if is_z else _UNITS[responses.kind]
    rows = tuple(
        _rating(responses.sentences[place], column, unit, rules) for place, column in zip(places, values.T, strict=True)
    )
    notes = (
        *_notes(responses, rules, left_out, unit),
        *_of_outliers(rules, int(far.sum()), untold),
        *_of_rows(rows, rules, unit),
    )
    return Ratings(
        responses.name, unit, rows, tuple(responses.participants[each] for each in kept), values, left_out, notes
    )


def z_within(values: Floats, *, ddof: int = 1) -> Floats:
    """Return the z-scores of each row by itself; nan stays nan.

    >>> z_within(np.array([[1.0, 2.0, 3.0, np.nan]]))
    array([[-1.,  0.,  1., nan]])
    """
    if any(is_constant(row) for row in values):
        raise Undefined("a participant who gave one and the same answer to everything has no z-scores")
    means = np.nanmean(values, axis=1, keepdims=True)
    return np.asarray((values - means) / np.nanstd(values, axis=1, ddof=ddof, keepdims=True))


def is_constant(row: Floats) -> bool:
    """Tell whether all answers of a row are the same, or there is none."""
    given = row[~np.isnan(row)]
    return not len(given) or bool(given.min() == given.max())


def _left_out(responses: Responses, values: Floats, rules: Rules) -> Iterator[tuple[str, str]]:
    """Yield the participants who are left out, with the first reason that applies."""
    counts = (~np.isnan(values)).sum(axis=1)
    is_z = rules.standardises(responses.kind)
    for name, row, count in zip(responses.participants, values, counts.tolist(), strict=True):
        if count < rules.least_responses:
            yield name, f"gave fewer than {rules.least_responses} answers"
        elif is_z and is_constant(row):
            yield name, "gave one and the same answer to everything"
        elif (share := _share_of_catch(responses, row)) is not None and share < rules.least_catch:
            yield name, f"got less than {rules.least_catch:g} of the catch items right"


def _share_of_catch(responses: Responses, row: Floats) -> float | None:
    """Return the share of catch items that a participant got right; None for one who met none."""
    middle = 0.5 if responses.kind == "yes-no" else np.nanmean(row)
    right = [
        (value > middle) if responses.catch[each.id] else (value < middle)
        for each, value in zip(responses.sentences, row, strict=True)
        if each.id in responses.catch and not np.isnan(value)
    ]
    return float(np.mean(right)) if right else None


def _rating(sentence: Sentence, column: Floats, unit: str, rules: Rules) -> Rating:
    given = column[~np.isnan(column)]
    n = len(given)
    if not n:
        return Rating(sentence, None, None, 0, None, None)
    sd = float(given.std(ddof=1)) if n > 1 else None
    low, high = _interval(given, unit, rules.level)
    return Rating(sentence, float(given.mean()), sd, n, low, high)


def _interval(given: Floats, unit: str, level: float) -> Interval:
    if unit == "share":
        return share_interval(int(given.sum()), len(given), level)
    return mean_interval(given, level)


def _notes(responses: Responses, rules: Rules, left_out: dict[str, str], unit: str) -> Iterator[str]:
    yield from responses.notes
    if left_out:
        yield f"{len(left_out)} of {len(responses.participants)} participants left out: {_counted(left_out)}"
    if responses.catch:
        yield f"{len(responses.catch)} catch items are not rated"
    if unit == "z":
        yield f"z-scores within participants, over all their answers (ddof {rules.ddof})"


def _of_outliers(rules: Rules, far: int, untold: int) -> Iterator[str]:
    if not isinstance(rules.outliers, Nothing):
        yield f"{far} answers left out as outliers by {rules.outliers!r}"
    if untold:
        yield f"{untold} groups in which more than half of the answers are the same were not searched for outliers"


def _of_rows(rows: tuple[Rating, ...], rules: Rules, unit: str) -> Iterator[str]:
    if unrated := sum(each.mean is None for each in rows):
        yield f"{unrated} sentences have no answer left, and no rating"
    yield f"intervals at {rules.level:g}: " + ("exact binomial" if unit == "share" else "Student's t")


def _counted(left_out: dict[str, str]) -> str:
    reasons = dict.fromkeys(left_out.values())
    return "; ".join(f"{', '.join(name for name, why in left_out.items() if why == each)} {each}" for each in reasons)
