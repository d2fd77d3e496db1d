"""How scores go together with labels (point-biserial) and with ratings (Pearson, Spearman)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acceptability.errors import Undefined
from acceptability.measures.rows import labelled, rated
from acceptability.types import Floats, Scores, Sentence, Suite, Units


@dataclass(frozen=True)
class PBC:
    """The point-biserial correlation of scores with labels, over all sentences (Niu and Penn 2020)."""

    needs = "labels"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a labelled sentence."""
        kept, notes = labelled(suite, self)
        return _rows(kept, scores, "label", [float(each.label or 0) for each in kept], notes)

    def value(self, units: Units) -> float:
        """Return Pearson's r with labels as 0 and 1."""
        labels = units["label"]
        if len(labels) and labels.min() == labels.max():
            raise Undefined(f"all {len(labels)} sentences have the label {labels[0]:g}")
        return pearson(units["score"], labels)


@dataclass(frozen=True)
class Pearson:
    """The linear correlation of scores with people's ratings."""

    needs = "ratings"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a rated sentence."""
        return _rated_rows(suite, scores, self)

    def value(self, units: Units) -> float:
        """Return Pearson's r."""
        return pearson(units["score"], units["rating"])


@dataclass(frozen=True)
class Spearman:
    """The rank correlation of scores with people's ratings; ties share their mean rank."""

    needs = "ratings"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a rated sentence."""
        return _rated_rows(suite, scores, self)

    def value(self, units: Units) -> float:
        """Return Pearson's r of the ranks."""
        return pearson(ranks(units["score"]), ranks(units["rating"]))


def pearson(first: Floats, second: Floats) -> float:
    """Return Pearson's r; undefined for fewer than two rows, or where one side does not vary.

    >>> round(pearson(np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 4.0])), 4)
    0.9286
    """
    if len(first) < 2:
        raise Undefined(f"a correlation needs two rows; there are {len(first)}")
    if first.min() == first.max() or second.min() == second.max():
        raise Undefined("one side has the same value in every row")
    a, b = _unit_length(first), _unit_length(second)
    return float(np.clip(a @ b, -1.0, 1.0))


def ranks(values: Floats) -> Floats:
    """Return ranks from 1, ties sharing their mean rank.

    >>> ranks(np.array([3.0, 1.0, 3.0]))
    array([2.5, 1. , 2.5])
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    highest = np.cumsum(counts)
    return np.asarray((highest - (counts - 1) / 2)[inverse])


def _unit_length(values: Floats) -> Floats:
    # Scaled first, so that squares of very small or very large scores neither vanish nor overflow.
    centred = values - values.mean()
    scale = np.abs(centred).max()
    if scale == 0:
        raise Undefined("one side varies by less than numbers can tell")
    centred = centred / scale
    return np.asarray(centred / np.sqrt(centred @ centred))


def _rated_rows(suite: Suite, scores: Scores, measure: object) -> Units:
    kept, notes = rated(suite, measure)
    return _rows(kept, scores, "rating", [each.rating or 0.0 for each in kept], notes)


def _rows(kept: list[Sentence], scores: Scores, name: str, given: list[float], notes: tuple[str, ...]) -> Units:
    ids = tuple(each.id for each in kept)
    columns = {"score": scores.of(ids), name: np.array(given)}
    return Units(ids, columns, tuple(each.tags for each in kept), notes)
