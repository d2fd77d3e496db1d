"""The statistics of Tables 2 to 6 of Niu and Penn (2020): point-biserial correlations, and how they spread over sets.

A sentence's log-probability is taken as it is (LOG) and as a power of e (EXP).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from acceptability.errors import Undefined
from acceptability.measures.correlation import pearson
from acceptability.studies.cells import Cell, beside
from acceptability.types import Floats, Scores, Sentence

Scored = Mapping[str, Scores]
"""The scores of one model, by normalisation."""

Number = tuple[float | None, str]
"""A number, or None; and what to know about it, or why there is none."""

Scale = Callable[[Floats], Floats]


def model_cell(table: str, row: str, column: str, number: Number, model: str, *notes: str) -> Cell:
    """Return a number of a user's model, which stands beside nothing."""
    value, note = number
    said = "; ".join(filter(None, (note, *notes)))
    return beside({}, (table, row, column), value, f"re-scored with {model}", note=said)


def pbc(sentences: Sequence[Sentence], scores: Scores, scale: Scale) -> Number:
    """Return the point-biserial correlation of scores and labels."""
    labels = np.array([float(each.label or 0) for each in sentences])
    try:
        return pearson(scale(scores.of(each.id for each in sentences)), labels), ""
    except Undefined as error:
        return None, str(error)


def over_sets(of: Sequence[Number], statistics: Mapping[str, Callable[[Floats], float]]) -> dict[str, Number]:
    """Return statistics over the sets that have a correlation, and say how many have none.

    >>> over_sets([(1.0, ""), (0.5, ""), (None, "one class")], {"mean": mean})
    {'mean': (0.75, 'mean of 2 sets; 1 more have none and are left out')}
    """
    values = np.array([value for value, _ in of if value is not None])
    if not values.size:
        why = f"no set has a correlation: {of[0][1]}" if of else "there is no such set"
        return dict.fromkeys(statistics, (None, why))
    without = len(of) - len(values)
    left_out = f"; {without} more have none and are left out" if without else ""
    return {name: (each(values), f"{name} of {len(values)} sets{left_out}") for name, each in statistics.items()}


def mean(values: Floats) -> float:
    """Return the mean."""
    return float(values.mean())


def median(values: Floats) -> float:
    """Return the median."""
    return float(np.median(values))


def upper(values: Floats) -> float:
    """Return what a quarter of the values lie above, by linear interpolation."""
    return float(np.quantile(values, 0.75))


def lower(values: Floats) -> float:
    """Return what a quarter of the values lie below, by linear interpolation."""
    return float(np.quantile(values, 0.25))


def _raised(logs: Floats) -> Floats:
    """Return e to the power of logs, up to a factor, which no correlation sees; so that the largest is 1."""
    return np.asarray(np.exp(logs - logs.max()))


def _as_they_are(logs: Floats) -> Floats:
    return logs


SCALES: dict[str, Scale] = {"LOG": _as_they_are, "EXP": _raised}
