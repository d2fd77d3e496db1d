"""Confidence intervals by resampling rows, for any measure.

Rows, or clusters of rows that share a tag (items, sets), are drawn with replacement by a local, seeded
generator; the interval is read off the resampled values, by percentile or by BCa (Efron 1987). What is drawn
must be independent: where several rows share an item, draw items.

A measure whose value is the mean of one column says so by an attribute ``mean_of = "column"``. Its resamples are
then computed many at a time, with the same numbers, and what BCa needs has a closed form. For other measures BCa
leaves out each row (or cluster) in turn or, where there are more than 400, each of 400 random groups of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from acceptability.errors import MeasureError, Undefined
from acceptability.protocols import Measure
from acceptability.stats.drawing import Rows, blocks, chosen, drawable, members, totals
from acceptability.stats.quantiles import bca, clopper_pearson, percentile
from acceptability.types import Floats, Units

METHODS = ("percentile", "bca")

MOST_DRAWS = 10_000_000
"""How many resamples, or swaps of a permutation test, may be asked for."""

_LEAST_DEFINED = 0.95
_LEAST_RESAMPLES = 40
_MOST_LEFT_OUT = 400
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Bootstrap:
    """How intervals are made.

    Args:
        resamples: How many times the rows are drawn anew; 0 makes no intervals.
        level: The share of resamples inside the interval.
        by: The tag whose values are drawn instead of single rows; empty for single rows.
        method: "percentile", or "bca", which corrects bias and skewness.
    """

    resamples: int = 1000
    level: float = 0.95
    by: str = ""
    seed: int = 0
    method: str = "percentile"

    def __post_init__(self) -> None:
        if self.resamples and not _LEAST_RESAMPLES <= self.resamples <= MOST_DRAWS:
            raise MeasureError(
                f"resamples is {self.resamples}; expected 0, or a number from {_LEAST_RESAMPLES} to {MOST_DRAWS:,}"
            )
        if not 0 < self.level < 1:
            raise MeasureError(f"level is {self.level}; expected a share between 0 and 1")
        if self.seed < 0:
            raise MeasureError(f"seed is {self.seed}; expected a whole number from 0")
        if self.method not in METHODS:
            raise MeasureError(f"the interval is {self.method!r}; expected {' or '.join(METHODS)}")

    @property
    def signature(self) -> str:
        """How the interval was made."""
        if not self.resamples:
            return "none"
        return f"{self.method}({self.level:g},resamples={self.resamples},by={self.by or 'row'},seed={self.seed})"


@dataclass(frozen=True)
class Interval:
    """Where a value lies, None and None where nothing can say; a note says why, or what was done instead."""

    low: float | None = None
    high: float | None = None
    note: str | None = None


@dataclass(frozen=True, eq=False)
class _Stratum:
    """A part of the rows, drawn by itself: its value, its resampled values (nan where undefined), its jackknife."""

    value: float
    size: int
    resampled: Callable[[np.random.Generator], Floats]
    left_out: Callable[[], Floats]


def interval(measure: Measure, units: Units, how: Bootstrap) -> Interval:
    """Return the interval of a measure over its rows; fewer than two to draw give none.

    A share whose rows are all 0 or all 1 gets the exact interval of Clopper and Pearson, with each row or cluster
    as one trial: all resamples of such rows are alike.
    """
    if not how.resamples:
        return Interval()
    if (exact := _all_alike(measure, units, how)) is not None:
        return exact
    return _joined([_stratum(measure, units, how)], how, lambda parts: parts[0])


def macro_interval(measure: Measure, groups: Sequence[Units], how: Bootstrap) -> Interval:
    """Return the interval of the mean over groups; rows are drawn within their group, of which each needs two."""
    if not how.resamples:
        return Interval()
    strata = [_stratum(measure, units, how) for units in groups]
    return _joined(strata, how, lambda parts: np.mean(parts, axis=0))


def difference(measure: Measure, first: Units, second: Units, how: Bootstrap) -> Interval:
    """Return the interval of a difference between two models; the same rows are drawn for both."""
    if not how.resamples:
        return Interval()
    return _joined([_gap_stratum(measure, first, second, how)], how, lambda parts: parts[0])


def macro_difference(measure: Measure, groups: Sequence[tuple[Units, Units]], how: Bootstrap) -> Interval:
    """Return the interval of the mean over groups of a difference between two models."""
    if not how.resamples:
        return Interval()
    strata = [_gap_stratum(measure, first, second, how) for first, second in groups]
    return _joined(strata, how, lambda parts: np.mean(parts, axis=0))


def _gap_stratum(measure: Measure, first: Units, second: Units, how: Bootstrap) -> _Stratum:
    if column := mean_of(measure):
        return _mean_stratum(first[column] - second[column], first, how)
    return _drawn_stratum(first, how, lambda rows: measure.value(first.drawn(rows)) - measure.value(second.drawn(rows)))


def mean_of(measure: Measure) -> str | None:
    """Return the column whose mean a measure is, if it is one."""
    return getattr(measure, "mean_of", None)


def _stratum(measure: Measure, units: Units, how: Bootstrap) -> _Stratum:
    if column := mean_of(measure):
        return _mean_stratum(units[column], units, how)
    return _drawn_stratum(units, how, lambda rows: measure.value(units.drawn(rows)))


def _mean_stratum(column: Floats, units: Units, how: Bootstrap) -> _Stratum:
    """Return a stratum whose value is a mean: sums over clusters, divided by how many rows they have."""
    sums, counts = totals(column, units, how.by)
    n = len(sums)

    def resampled(generator: np.random.Generator) -> Floats:
        return np.concatenate(
            [
                sums[rows].sum(axis=1) / (counts[rows].sum(axis=1) if how.by else n)
                for rows in chosen(n, how.resamples, generator)
            ]
        )

    def left_out() -> Floats:
        return np.asarray((sums.sum() - sums) / (counts.sum() - counts))

    value = float(sums.sum() / counts.sum()) if n else float("nan")
    return _Stratum(value, n, resampled, left_out)


def _drawn_stratum(units: Units, how: Bootstrap, value_of: Callable[[Rows], float]) -> _Stratum:
    """Return a stratum of any measure: rows are put together for each resample, and the measure is asked."""
    clusters = members(units, how.by) if how.by else []
    n = len(clusters) if how.by else len(units)

    def of(drawn: Rows) -> float:
        try:
            return value_of(np.concatenate([clusters[each] for each in drawn]) if how.by else drawn)
        except Undefined:
            return float("nan")

    def resampled(generator: np.random.Generator) -> Floats:
        return np.array([of(each) for rows in chosen(n, how.resamples, generator) for each in rows])

    def left_out() -> Floats:
        return np.array([of(np.delete(np.arange(n), each)) for each in blocks(n, _MOST_LEFT_OUT, how.seed)])

    return _Stratum(of(np.arange(n)), n, resampled, left_out)


def _joined(strata: Sequence[_Stratum], how: Bootstrap, join: Callable[[Sequence[Floats]], Floats]) -> Interval:
    """Return the interval of what strata, each with a generator of its own, give together."""
    if any(each.size < 2 for each in strata):
        what = f"values of {how.by!r}" if how.by else "rows"
        return Interval(note=f"no interval: there are fewer than two {what} to draw")
    values = join([each.resampled(_generator(how, i)) for i, each in enumerate(strata)])
    defined = values[~np.isnan(values)]
    if len(defined) < _LEAST_DEFINED * how.resamples:
        return Interval(note=f"no interval: {how.resamples - len(defined)} of {how.resamples} resamples are undefined")
    lost = len(values) - len(defined)
    note = f"{lost} of {how.resamples} resamples are undefined and left out" if lost else None
    if np.ptp(defined) <= _ROUNDING * np.abs(defined).max():
        note = "; ".join(filter(None, (note, "all resamples are alike, so the interval says nothing of other rows")))
    if how.method == "percentile":
        return Interval(*percentile(defined, how.level), note)
    left_out = [each.left_out() for each in strata]
    if any(np.isnan(each).any() for each in left_out):
        return Interval(note="no BCa interval: the value is undefined where some rows are left out")
    try:
        value = float(join([np.array(each.value) for each in strata]))
        return Interval(*bca(defined, value, left_out, how.level), note)
    except Undefined as error:
        return Interval(note=f"no BCa interval: {error}")


def _generator(how: Bootstrap, stratum: int) -> np.random.Generator:
    return np.random.default_rng([how.seed, stratum] if stratum else how.seed)


def _all_alike(measure: Measure, units: Units, how: Bootstrap) -> Interval | None:
    """Return the exact interval of a share whose rows are all 0 or all 1, None for all other rows."""
    column, n = mean_of(measure), drawable(units, how.by)
    if column is None or n < 2 or not (units[column] == units[column][0]).all() or units[column][0] not in (0, 1):
        return None
    low, high = clopper_pearson(n if units[column][0] else 0, n, how.level)
    trials = f"{n} values of {how.by!r}" if how.by else f"{n} rows"
    return Interval(low, high, f"every row is {units[column][0]:g}: exact interval of Clopper and Pearson, {trials}")
