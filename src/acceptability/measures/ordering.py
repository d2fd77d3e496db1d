"""Numbers that see only order: Kendall's tau-b, and the area under the ROC curve."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import Undefined
from acceptability.types import Floats

Ints = NDArray[np.int64]


def kendall(first: Floats, second: Floats) -> float:
    """Return Kendall's tau-b, which counts pairs of rows in the same and in opposite order; ties are in neither.

    Undefined for fewer than two rows, or where one side does not vary. The time grows as n log n.

    >>> round(kendall(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])), 4)
    0.3333
    """
    if len(first) < 2:
        raise Undefined(f"a correlation needs two rows; there are {len(first)}")
    a, b = _places(first), _places(second)
    if not a.any() or not b.any():
        raise Undefined("one side has the same value in every row")
    order = np.lexsort((b, a))
    pairs = math.comb(len(a), 2)
    tied_a, tied_b, tied_both = _ties(a), _ties(b), _ties(a * (int(b.max()) + 1) + b)
    opposite = _inversions(b[order])
    same = pairs - tied_a - tied_b + tied_both - opposite
    found = (same - opposite) / math.sqrt(pairs - tied_a) / math.sqrt(pairs - tied_b)
    return max(-1.0, min(1.0, found))


def auc(good: Floats, bad: Floats, good_weights: Floats | None = None, bad_weights: Floats | None = None) -> float:
    """Return how often a good one is above a bad one, of all that can be set side by side; a tie is one half.

    >>> auc(np.array([3.0, 1.0]), np.array([1.0, 0.0]))
    0.875
    """
    if not len(good) or not len(bad):
        raise Undefined("the rows are all of one class")
    values, places = np.unique(np.concatenate([good, bad]), return_inverse=True)
    above = np.bincount(places[: len(good)], good_weights, minlength=len(values))
    below = np.bincount(places[len(good) :], bad_weights, minlength=len(values))
    lower = np.cumsum(below) - below / 2
    return float((above @ lower) / (above.sum() * below.sum()))


def _places(values: Floats) -> Ints:
    return np.asarray(np.unique(values, return_inverse=True)[1], dtype=np.int64)


def _ties(values: Ints) -> int:
    counts = np.unique(values, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def _inversions(values: Ints) -> int:
    """Count the pairs of which the first is larger, bit by bit.

    Rows that agree in all higher bits stand together, in their old order. Among them a pair is
    decided by this bit: the first has it, the second has not. Those that have it then go behind.
    """
    found, places = 0, np.arange(len(values))
    for bit in reversed(range(int(values.max()).bit_length())):
        has = (values >> bit) & 1
        starts = np.flatnonzero(np.diff(values >> (bit + 1), prepend=-1))
        sizes = np.diff(starts, append=len(values))
        before = np.cumsum(has) - has
        ones = before - np.repeat(before[starts], sizes)
        found += int(ones @ (1 - has))
        lacking = np.repeat(sizes - np.add.reduceat(has, starts), sizes)
        moved = np.where(has == 1, np.repeat(starts, sizes) + lacking + ones, places - ones)
        arranged = np.empty_like(values)
        arranged[moved] = values
        values = arranged
    return found
