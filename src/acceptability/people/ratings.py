"""Ratings from responses: exclusions, z-scores within participants, means with confidence intervals.

The order of steps: magnitude estimates become natural logs; participants are excluded (for too few answers; for
constant answers, if z-scores are computed; for too many wrong catch items); answers become z-scores within
participants, over all their answers; catch items are dropped; outliers are dropped, once; the mean over participants
is the rating. Outliers are found by a rule: ``none``, ``sd(3)`` or ``mad(3.5)``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from acceptability import registry
from acceptability.errors import MeasureError, Undefined, UnknownName
from acceptability.measures.rows import require_number
from acceptability.people.responses import Bools, Responses
from acceptability.specs import parse_spec
from acceptability.stats.proportions import IntervalBounds, mean_interval, proportion_interval
from acceptability.stats.samples import check_level
from acceptability.types import Floats, Sentence, Suite

_GROUPS = ("participant", "sentence")
# The third quartile of the standard normal distribution, which makes MAD comparable to a standard deviation.
_MAD_OF_NORMAL = 0.6744897501960817


class OutlierRule(Protocol):
    """A rule that decides which answers are outliers."""

    def find_outliers(self, values: Floats) -> Bools:
        """Return the mask of outliers in a table of participants and sentences."""
        ...

    def count_undecidable(self, values: Floats) -> int:
        """Return the number of participants, or sentences, in which the rule cannot decide."""
        ...


@dataclass(frozen=True)
class KeepAll:
    """The rule that no answer is an outlier."""

    def find_outliers(self, values: Floats) -> Bools:
        """Return a mask without outliers."""
        return np.zeros(values.shape, dtype=bool)

    def count_undecidable(self, values: Floats) -> int:
        """Return 0: there is nothing to decide."""
        return 0


@dataclass(frozen=True)
class SD:
    """The rule that answers too many standard deviations (ddof 1) away from the mean are outliers.

    Args:
        limit: The number of standard deviations.
        over: The answers that give mean and deviation: of the same "participant", or to the same "sentence".
    """

    limit: float = 3.0
    over: str = "participant"

    def __post_init__(self) -> None:
        _check_rule(self, "sd")

    def find_outliers(self, values: Floats) -> Bools:
        """Return the outliers, once: what remains is not searched again."""
        return _find_by_group(values, self.over, self._is_far)

    def count_undecidable(self, values: Floats) -> int:
        """Return 0: constant answers have no outlier."""
        return 0

    def _is_far(self, group: Floats) -> Bools:
        # One answer has no standard deviation with ddof 1: NumPy would warn and return nan.
        if len(group) < 2:
            return np.zeros(len(group), dtype=bool)
        return np.asarray(np.abs(group - group.mean()) > self.limit * group.std(ddof=1))


@dataclass(frozen=True)
class MAD:
    """The rule that answers with a modified z-score, 0.6745 (x − median) / MAD, beyond the limit are outliers.

    MAD is the median absolute deviation from the median (Iglewicz and Hoaglin 1993). It is 0 if more than half of the
    answers are the same; then the group has no outliers, and a note counts such groups.

    Args:
        limit: The largest absolute modified z-score that is no outlier.
        over: The answers that give the median: of the same "participant", or to the same "sentence".
    """

    limit: float = 3.5
    over: str = "participant"

    def __post_init__(self) -> None:
        _check_rule(self, "mad")

    def find_outliers(self, values: Floats) -> Bools:
        """Return the outliers, once: what remains is not searched again."""
        return _find_by_group(values, self.over, self._is_far)

    def count_undecidable(self, values: Floats) -> int:
        """Return the number of groups that vary and yet have a MAD of 0."""
        groups = (row[~np.isnan(row)] for row in (values if self.over == "participant" else values.T))
        # Constant groups are decided: without a distance from the median nothing can be an outlier.
        varying = (group for group in groups if len(group) and np.ptp(group) > 0)
        return sum(bool(np.median(np.abs(group - np.median(group))) == 0) for group in varying)

    def _is_far(self, group: Floats) -> Bools:
        distances = np.abs(group - np.median(group))
        spread = np.median(distances)
        # Divided by 0, every answer other than the median would be an outlier.
        if spread == 0:
            return np.zeros(len(group), dtype=bool)
        return np.asarray(_MAD_OF_NORMAL * distances / spread > self.limit)


OUTLIER_RULES = {"none": KeepAll, "sd": SD, "mad": MAD}


def parse_outlier_rule(text: str) -> OutlierRule:
    """Return the outlier rule that a spec describes.

    >>> parse_outlier_rule("mad(3.5, over='sentence')")
    MAD(limit=3.5, over='sentence')
    """
    spec = parse_spec(text)
    if spec.name not in OUTLIER_RULES:
        raise UnknownName(
            "rule for outliers", spec.name, OUTLIER_RULES, hint=f"The rules are: {', '.join(OUTLIER_RULES)}."
        )
    # The same parser as for measures and models, so that options are checked and misspelt ones get a suggestion.
    rule: OutlierRule = registry.call_factory(OUTLIER_RULES[spec.name], spec.name, spec.args, spec.options)
    return rule


def _check_rule(rule: SD | MAD, name: str) -> None:
    object.__setattr__(rule, "limit", require_number(f"{name}: limit", rule.limit))
    if rule.limit <= 0:
        raise MeasureError(f"{name}: limit is {rule.limit:g}; expected a number above 0")
    if rule.over not in _GROUPS:
        raise MeasureError(f"{name}: over is {rule.over!r}; expected {' or '.join(map(repr, _GROUPS))}")


def _find_by_group(values: Floats, over: str, is_far: Callable[[Floats], Bools]) -> Bools:
    """Return the mask of outliers in each row, or in each column; a missing answer is none."""
    table = values if over == "participant" else values.T
    # One loop for both directions: the columns of a table are the rows of its transpose, which shares its memory.
    outliers = np.zeros(table.shape, dtype=bool)
    for row, marks in zip(table, outliers, strict=True):
        given = ~np.isnan(row)
        if given.any():
            marks[given] = is_far(row[given])
    return outliers if over == "participant" else outliers.T


# The unit of raw ratings, by kind of response.
_UNITS = {"magnitude": "log", "likert": "likert", "yes-no": "share"}


@dataclass(frozen=True)
class RatingRules:
    """The rules for computing ratings from answers.

    Args:
        scale: "z" for z-scores within participants, "raw" for answers as they are (or the logs of magnitude
            estimates); by default raw for yes and no, and z for other kinds.
        ddof: The delta degrees of freedom of the participants' standard deviations: 1 as in R's ``scale``, or 0.
        outliers: The rule for single answers that are dropped.
        min_responses: The minimal number of answers; participants with fewer are excluded.
        min_catch: The minimal share of correct catch items; participants below it are excluded. An answer on a scale
            is correct if it lies on the correct side of the participant's own mean. Participants without catch items
            are kept.
        level: The confidence level of the intervals.
    """

    scale: str = ""
    ddof: int = 1
    outliers: OutlierRule = field(default_factory=KeepAll)
    min_responses: int = 1
    min_catch: float = 0.0
    level: float = 0.95

    def __post_init__(self) -> None:
        check_level(self.level)
        if self.scale not in ("", "z", "raw"):
            raise MeasureError(f"scale is {self.scale!r}; expected 'z' or 'raw'")
        if self.ddof not in (0, 1):
            raise MeasureError(f"ddof is {self.ddof}; expected 0 or 1")
        if not 0 <= self.min_catch <= 1:
            raise MeasureError(f"min_catch is {self.min_catch}; expected a share from 0 to 1")
        if self.min_responses < 1:
            raise MeasureError(f"min_responses is {self.min_responses}; expected a whole number from 1")

    def uses_z_scores(self, kind: str) -> bool:
        """Return whether answers of a kind become z-scores."""
        # The mean of yes and no is a share with an exact binomial interval; z-scores would lose that meaning.
        return self.scale == "z" or (not self.scale and kind != "yes-no")


@dataclass(frozen=True)
class Rating:
    """The rating of a sentence; mean and interval are None if no answer remains.

    Args:
        sentence: The rated sentence.
        mean: The mean answer, which is the rating.
        sd: The standard deviation of the answers (ddof 1); None for fewer than two.
        n: The number of answers.
        low: The lower end of the confidence interval of the mean.
        high: The upper end.
    """

    sentence: Sentence
    mean: float | None
    sd: float | None
    n: int
    low: float | None
    high: float | None


@dataclass(frozen=True, eq=False)
class Ratings:
    """The ratings of sentences, and the answers of which they are the means.

    Args:
        name: The name of the responses.
        unit: "z", "log" (of magnitude estimates), "likert" (points of the scale) or "share" (of yes).
        rows: A rating per sentence, without catch items.
        participants: The participants who are not excluded.
        values: The remaining answers: a row per participant, a column per sentence; nan if there is none.
        left_out: The excluded participants, with the reason.
        notes: The processing steps and exclusions.
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
        """The ratings, one per sentence; nan if there is none."""
        return np.array([np.nan if row.mean is None else row.mean for row in self.rows])

    def restrict(self, ids: Container[str]) -> Ratings:
        """Return the ratings of some sentences, given by their ids; they are not computed again."""
        columns = [index for index, row in enumerate(self.rows) if row.sentence.id in ids]
        return replace(self, rows=tuple(self.rows[index] for index in columns), values=self.values[:, columns])

    def to_suite(self) -> Suite:
        """Return the sentences with their ratings as a suite."""
        # The tag keeps measures from standardising ratings that are z-scores already.
        return Suite(
            self.name,
            tuple(
                Sentence(
                    row.sentence.id,
                    row.sentence.text,
                    row.sentence.label,
                    row.mean,
                    row.sentence.regions,
                    {**row.sentence.tags, "rating_unit": self.unit},
                )
                for row in self.rows
            ),
        )


def rate(responses: Responses, rules: RatingRules | None = None) -> Ratings:
    """Return the ratings computed from responses.

    Args:
        responses: The answers of participants to sentences.
        rules: The scale, exclusions and outlier rule; by default those of ``RatingRules()``.

    >>> from acceptability.people.responses import responses_from_rows
    >>> ratings = rate(responses_from_rows("toy", "likert", [[1, 2, 3], [3, 5, 7], [4, 4, 4]]))
    >>> [row.mean for row in ratings.rows], ratings.left_out
    ([-1.0, 0.0, 1.0], {'3': 'gave one and the same answer to everything'})
    """
    rules = rules or RatingRules()
    # People give magnitude estimates as ratios, which the logarithm turns into differences (Bard et al. 1996). Copied,
    # because outliers are overwritten with nan below.
    values = np.log(responses.values) if responses.kind == "magnitude" else responses.values.copy()
    # Participants go before anything is standardised or averaged, so that they influence nobody's ratings.
    left_out = dict(_exclude_participants(responses, values, rules))
    kept = [index for index, name in enumerate(responses.participants) if name not in left_out]
    if not kept:
        raise MeasureError(f"{responses.name}: none of {len(values)} participants is left: {_join_reasons(left_out)}")
    values = values[kept]
    is_z = rules.uses_z_scores(responses.kind)
    # Before catch items are dropped: a participant's mean and deviation are over everything that they answered.
    if is_z:
        values = standardise_participants(values, ddof=rules.ddof)
    columns = [index for index, sentence in enumerate(responses.sentences) if sentence.id not in responses.catch]
    if not columns:
        raise MeasureError(f"{responses.name}: all {len(responses.sentences)} sentences are catch items")
    values = values[:, columns]
    # Found in one step, on the final scale. Repeated searches would drop more and more of a skewed distribution.
    is_outlier, undecidable = rules.outliers.find_outliers(values), rules.outliers.count_undecidable(values)
    values[is_outlier] = np.nan
    unit = "z" if is_z else _UNITS[responses.kind]
    rows = tuple(
        _compute_rating(responses.sentences[index], column, unit, rules)
        for index, column in zip(columns, values.T, strict=True)
    )
    notes = (
        *_build_notes(responses, rules, left_out, unit),
        *_note_outliers(rules, int(is_outlier.sum()), undecidable),
        *_note_unrated(rows, rules, unit),
    )
    return Ratings(
        responses.name, unit, rows, tuple(responses.participants[index] for index in kept), values, left_out, notes
    )


def standardise_participants(values: Floats, *, ddof: int = 1) -> Floats:
    """Return the z-scores of each participant's answers; nan stays nan.

    Args:
        values: A row per participant, a column per sentence; nan for a missing answer.
        ddof: The delta degrees of freedom of the standard deviation.

    >>> standardise_participants(np.array([[1.0, 2.0, 3.0, np.nan]]))
    array([[-1.,  0.,  1., nan]])
    """
    if any(is_constant(row) for row in values):
        raise Undefined("a participant who gave one and the same answer to everything has no z-scores")
    means = np.nanmean(values, axis=1, keepdims=True)
    return np.asarray((values - means) / np.nanstd(values, axis=1, ddof=ddof, keepdims=True))


def is_constant(row: Floats) -> bool:
    """Return whether all answers in a row are the same, or missing."""
    answers = row[~np.isnan(row)]
    return not len(answers) or bool(answers.min() == answers.max())


def _exclude_participants(responses: Responses, values: Floats, rules: RatingRules) -> Iterator[tuple[str, str]]:
    """Yield the excluded participants, with the first reason that applies."""
    counts = (~np.isnan(values)).sum(axis=1)
    is_z = rules.uses_z_scores(responses.kind)
    for name, row, count in zip(responses.participants, values, counts.tolist(), strict=True):
        if count < rules.min_responses:
            yield name, f"gave fewer than {rules.min_responses} answers"
        elif is_z and is_constant(row):
            yield name, "gave one and the same answer to everything"
        elif (share := _compute_catch_accuracy(responses, row)) is not None and share < rules.min_catch:
            yield name, f"got less than {rules.min_catch:g} of the catch items right"


def _compute_catch_accuracy(responses: Responses, row: Floats) -> float | None:
    """Return a participant's share of correct catch items; None if the participant answered none."""
    # Compared with the participant's own mean, as people use different parts of a scale.
    middle = 0.5 if responses.kind == "yes-no" else np.nanmean(row)
    right = [
        (value > middle) if responses.catch[sentence.id] else (value < middle)
        for sentence, value in zip(responses.sentences, row, strict=True)
        if sentence.id in responses.catch and not np.isnan(value)
    ]
    return float(np.mean(right)) if right else None


def _compute_rating(sentence: Sentence, column: Floats, unit: str, rules: RatingRules) -> Rating:
    answers = column[~np.isnan(column)]
    n = len(answers)
    # Kept as a row without a number: a sentence that silently vanished would not be missed.
    if not n:
        return Rating(sentence, None, None, 0, None, None)
    # None rather than 0 or nan: the deviation of a single answer is unknown, and JSON has no nan.
    sd = float(answers.std(ddof=1)) if n > 1 else None
    low, high = _compute_interval(answers, unit, rules.level)
    return Rating(sentence, float(answers.mean()), sd, n, low, high)


def _compute_interval(answers: Floats, unit: str, level: float) -> IntervalBounds:
    # Student's t is for means of continuous answers; for shares near 0 or 1 it would leave the range of shares.
    if unit == "share":
        return proportion_interval(int(answers.sum()), len(answers), level)
    return mean_interval(answers, level)


def _build_notes(responses: Responses, rules: RatingRules, left_out: dict[str, str], unit: str) -> Iterator[str]:
    yield from responses.notes
    if left_out:
        yield f"{len(left_out)} of {len(responses.participants)} participants left out: {_join_reasons(left_out)}"
    if responses.catch:
        yield f"{len(responses.catch)} catch items are not rated"
    if unit == "z":
        yield f"z-scores within participants, over all their answers (ddof {rules.ddof})"


def _note_outliers(rules: RatingRules, outliers: int, undecidable: int) -> Iterator[str]:
    if not isinstance(rules.outliers, KeepAll):
        yield f"{outliers} answers left out as outliers by {rules.outliers!r}"
    if undecidable:
        yield f"{undecidable} groups in which more than half of the answers are the same were not searched for outliers"


def _note_unrated(rows: tuple[Rating, ...], rules: RatingRules, unit: str) -> Iterator[str]:
    if unrated := sum(row.mean is None for row in rows):
        yield f"{unrated} sentences have no answer left, and no rating"
    yield f"intervals at {rules.level:g}: " + ("exact binomial" if unit == "share" else "Student's t")


def _join_reasons(left_out: dict[str, str]) -> str:
    # Grouped by reason, with names: a reader should be able to check who was excluded, and why.
    reasons = dict.fromkeys(left_out.values())
    return "; ".join(
        f"{', '.join(name for name, why in left_out.items() if why == reason)} {reason}" for reason in reasons
    )


def build_rating_rows(ratings: Ratings) -> list[dict[str, object]]:
    """Return a row per sentence for a table that loads as a suite.

    The columns are id, text, label (if there are labels), rating, sd, n, low, high and rating_unit, then the tags. A
    tag with the name of one of these columns gets the prefix ``tag_``.
    """
    has_labels = any(row.sentence.label is not None for row in ratings.rows)
    rows: list[dict[str, object]] = []
    for rating in ratings.rows:
        sentence = rating.sentence
        row: dict[str, object] = {"id": sentence.id, "text": sentence.text}
        row |= {"label": sentence.label} if has_labels else {}
        row |= {"rating": rating.mean, "sd": rating.sd, "n": rating.n, "low": rating.low, "high": rating.high}
        row |= {"rating_unit": ratings.unit}
        # A participant's file may have a column "rating" or "n"; without the prefix its tag would replace the result.
        rows.append(row | {f"tag_{name}" if name in row else name: tag for name, tag in sentence.tags.items()})
    return rows
