"""Confidence intervals by resampling rows, for any measure.

A percentile interval over resamples of rows, or of clusters of rows that share a tag
(items, sets), drawn with replacement by a local, seeded generator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import MeasureError, Undefined
from acceptability.protocols import Measure
from acceptability.types import Units

Draw = Callable[[np.random.Generator], NDArray[np.int64]]

_LEAST_DEFINED = 0.95
_LEAST_RESAMPLES = 40


@dataclass(frozen=True)
class Bootstrap:
    """How intervals are made.

    Args:
        resamples: How many times the rows are drawn anew; 0 makes no intervals.
        level: The share of resamples inside the interval.
        by: The tag whose values are drawn instead of single rows; empty for single rows.
    """

    resamples: int = 1000
    level: float = 0.95
    by: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.resamples < 0 or 0 < self.resamples < _LEAST_RESAMPLES:
            raise MeasureError(f"resamples is {self.resamples}; expected 0, or at least {_LEAST_RESAMPLES}")
        if not 0 < self.level < 1:
            raise MeasureError(f"level is {self.level}; expected a share between 0 and 1")
        if self.seed < 0:
            raise MeasureError(f"seed is {self.seed}; expected a whole number from 0")

    @property
    def signature(self) -> str:
        """How the interval was made."""
        if not self.resamples:
            return "none"
        return f"percentile({self.level:g},resamples={self.resamples},by={self.by or 'row'},seed={self.seed})"


def interval(measure: Measure, units: Units, how: Bootstrap) -> tuple[float | None, float | None]:
    """Return the interval of a measure over its rows; fewer than two to draw give none."""
    if drawable(units, how) < 2:
        return None, None
    draw = drawing(units, how)
    return spread(lambda generator: measure.value(units.drawn(draw(generator))), how)


def macro_interval(measure: Measure, groups: Sequence[Units], how: Bootstrap) -> tuple[float | None, float | None]:
    """Return the interval of the mean over groups; rows are drawn within their group, of which each needs two."""
    if any(drawable(units, how) < 2 for units in groups):
        return None, None
    draws = [drawing(units, how) for units in groups]

    def mean(generator: np.random.Generator) -> float:
        values = [measure.value(units.drawn(draw(generator))) for units, draw in zip(groups, draws, strict=True)]
        return float(np.mean(values))

    return spread(mean, how)


def difference(measure: Measure, first: Units, second: Units, how: Bootstrap) -> tuple[float | None, float | None]:
    """Return the interval of a difference between two models; the same rows are drawn for both."""
    draw = drawing(first, how)

    def gap(generator: np.random.Generator) -> float:
        rows = draw(generator)
        return measure.value(first.drawn(rows)) - measure.value(second.drawn(rows))

    return spread(gap, how)


def spread(draw_value: Callable[[np.random.Generator], float], how: Bootstrap) -> tuple[float | None, float | None]:
    """Return where the middle of many drawn values lies; None if too many of them are undefined."""
    generator = np.random.default_rng(how.seed)
    values: list[float] = []
    for _ in range(how.resamples):
        try:
            values.append(draw_value(generator))
        except Undefined:
            continue
    if not values or len(values) < _LEAST_DEFINED * how.resamples:
        return None, None
    low, high = np.quantile(values, [(1 - how.level) / 2, (1 + how.level) / 2])
    return float(low), float(high)


def drawable(units: Units, how: Bootstrap) -> int:
    """Return how many rows, or clusters of rows, there are to draw."""
    return len(set(_keys(units, how))) if how.by else len(units)


def drawing(units: Units, how: Bootstrap) -> Draw:
    """Return the function that draws rows, or whole clusters of them."""
    n = len(units)
    if not how.by:
        return lambda generator: generator.integers(0, n, size=n)
    keys = np.array(_keys(units, how))
    order = np.argsort(keys, kind="stable")
    _, starts = np.unique(keys[order], return_index=True)
    members = np.split(order, starts[1:])

    def draw(generator: np.random.Generator) -> NDArray[np.int64]:
        chosen = generator.integers(0, len(members), size=len(members))
        return np.concatenate([members[each] for each in chosen])

    return draw


def _keys(units: Units, how: Bootstrap) -> list[str]:
    """Return the cluster of each row; a row without one is an error."""
    keys = [tags[how.by] for tags in units.tags if how.by in tags]
    if len(keys) < len(units):
        raise MeasureError(f"cannot draw by {how.by!r}: {len(units) - len(keys)} of {len(units)} rows lack that tag")
    return keys
