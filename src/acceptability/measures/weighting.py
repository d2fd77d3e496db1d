"""Correlations, areas under the ROC curve and quantiles of weighted rows, for many resamples at a time.

The bootstrap says how often a resample has each row. Values that follow from sums need no more than the sums
(``weigh_pearson``). Ranks change with the weights, but not the order of the rows: they are sorted once, and the ranks
of all resamples follow from cumulative weights. Each function returns what ``Measure.weigh`` does, and the values are
those of `acceptability.measures.correlation` on the drawn rows, to rounding.

Sums over rows are taken by ``einsum``, and never by ``@``: of arrays of this size, BLAS would share the product among
threads, which wait for each other in busy loops, and cost more than they compute where other processes want the same
cores. (The sums of ``Moments`` are taken in smaller products, by `acceptability.stats.bootstrap`.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from acceptability.protocols import Moments, RowWeighting
from acceptability.types import Floats

RowIndices: TypeAlias = NDArray[np.int64]

# A variance from sums is a difference of two numbers. Where it is less than a thousandth of the larger one, or these
# are so small that squares underflow, too few digits are left, and the resample is evaluated by itself.
_SMALLEST_VARIANCE_SHARE = 1e-3
_SMALLEST_SQUARES = 1e-200


def weigh_correlation(kind: str, first: Floats, second: Floats) -> Moments | RowWeighting:
    """Return the weighted correlation of two columns; ``kind`` is "pearson", "spearman" or "kendall"."""
    if kind == "pearson":
        return weigh_pearson(first, second)
    return weigh_spearman(first, second) if kind == "spearman" else weigh_kendall(first, second)


def weigh_pearson(first: Floats, second: Floats) -> Moments:
    """Return Pearson's r as a function of six sums.

    >>> weighted = weigh_pearson(np.array([1.0, 2.0, 4.0, 9.0]), np.array([1.0, 3.0, 4.0, 0.0]))
    >>> without_the_last = weighted.of_rows @ np.array([[1.0], [1.0], [1.0], [0.0]])
    >>> [round(float(r), 4) for r in weighted.combine(without_the_last)]
    [0.9286]
    """
    x, y = _rescale(first), _rescale(second)
    return Moments(np.stack([np.ones(len(x)), x, y, x * x, y * y, x * y]), _combine_correlation, _are_precise)


def _rescale(values: Floats) -> Floats:
    """Return values on a scale on which neither their squares nor differences of squares lose digits."""
    if not len(values):
        return values
    largest = np.abs(values).max()
    scaled = values / largest if largest > 0 else values
    # Not centred if they vary more than they are large, as probabilities of sentences do: a few are far above all
    # others, and small ones less the mean would keep no digits.
    if scaled.mean() ** 2 <= scaled.var():
        return np.asarray(scaled)
    centred = scaled - scaled.mean()
    largest = np.abs(centred).max()
    return np.asarray(centred / largest if largest > 0 else centred)


def _combine_correlation(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = sums
    variances = np.maximum(n * xx - x * x, 0.0) * np.maximum(n * yy - y * y, 0.0)
    r = np.divide(n * xy - x * y, np.sqrt(variances), out=np.full(len(n), np.nan), where=variances > 0)
    return np.asarray(np.clip(r, -1.0, 1.0))


def _are_precise(sums: Floats) -> NDArray[np.bool_]:
    n, x, y, xx, yy, _ = sums
    return np.asarray(
        (n * xx - x * x >= _SMALLEST_VARIANCE_SHARE * n * xx)
        & (n * yy - y * y >= _SMALLEST_VARIANCE_SHARE * n * yy)
        & (np.minimum(xx, yy) >= _SMALLEST_SQUARES)
    )


@dataclass(frozen=True, eq=False)
class _Ties:
    """The rows in the order of a column, in which equal values are neighbours.

    Args:
        order: The rows from the lowest to the highest.
        starts: Where each distinct value begins in this order.
        value_of_row: The index of the value of each row.
    """

    order: RowIndices
    starts: RowIndices
    value_of_row: RowIndices

    def sum_weights(self, weights: Floats) -> Floats:
        """Return the weight of each distinct value, (resamples, values)."""
        ordered = weights[:, self.order]
        # Without ties the sums are the weights themselves.
        return ordered if len(self.starts) == len(self.order) else np.add.reduceat(ordered, self.starts, axis=1)


def _find_ties(values: Floats | RowIndices) -> _Ties:
    _, value_of_row, counts = np.unique(values, return_inverse=True, return_counts=True)
    return _Ties(np.argsort(value_of_row, kind="stable"), np.cumsum(counts) - counts, value_of_row)


def weigh_spearman(first: Floats, second: Floats) -> RowWeighting:
    """Return Spearman's rho of weighted rows.

    >>> weigh_spearman(np.array([1.0, 2.0, 4.0]), np.array([1.0, 4.0, 3.0]))(np.array([[1.0, 1.0, 1.0]]))
    array([0.5])
    """
    a, b = _find_ties(first), _find_ties(second)

    def rank_centred(weights: Floats, ties: _Ties) -> tuple[Floats, Floats]:
        """Return the rank of each row less the mean rank, and the sum of squares of these."""
        counts = ties.sum_weights(weights)
        highest = np.cumsum(counts, axis=1)
        # The mean of the ranks that a value has, less that of all ranks. Halves are exact: that of a constant is 0.
        ranks = highest - (counts - 1) / 2 - (highest[:, -1:] + 1) / 2
        return ranks[:, ties.value_of_row], np.einsum("kv,kv->k", counts * ranks, ranks)

    def compute(weights: Floats) -> Floats:
        (ranks_a, squares_a), (ranks_b, squares_b) = rank_centred(weights, a), rank_centred(weights, b)
        products = np.einsum("kr,kr->k", weights * ranks_a, ranks_b)
        squares = np.sqrt(squares_a) * np.sqrt(squares_b)
        r = np.divide(products, squares, out=np.full(len(weights), np.nan), where=squares > 0)
        return np.asarray(np.clip(r, -1.0, 1.0))

    return compute


@dataclass(frozen=True, eq=False)
class _RadixPass:
    """One pass of a radix sort: what of its order does not depend on weights.

    Args:
        has_bit: 1 for a row with the bit, in the order before the pass.
        lacking: The positions of the rows without it.
        block_starts: For each of these, where its block starts, of the rows that agree in all higher bits.
        next_order: The positions before the pass, in the order after it.
    """

    has_bit: Floats
    lacking: RowIndices
    block_starts: RowIndices
    next_order: RowIndices


def _plan_radix_passes(values: RowIndices) -> list[_RadixPass]:
    """Return the passes of a radix sort from the highest bit down, which count inversions; see ``kendall``."""
    passes = []
    for bit in reversed(range(int(values.max()).bit_length())):
        has_bit, block = (values >> bit) & 1, values >> (bit + 1)
        starts = np.flatnonzero(np.diff(block, prepend=-1))
        block_starts = np.repeat(starts, np.diff(starts, append=len(values)))
        lacking = np.flatnonzero(has_bit == 0)
        next_order = np.argsort(values >> bit, kind="stable")
        passes.append(_RadixPass(has_bit.astype(np.float64), lacking, block_starts[lacking], next_order))
        values = values[next_order]
    return passes


def weigh_kendall(first: Floats, second: Floats) -> RowWeighting:
    """Return Kendall's tau-b of weighted rows.

    >>> weigh_kendall(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))(np.array([[1.0, 2.0, 0.0]]))
    array([1.])
    """
    a, b = _find_ties(first), _find_ties(second)
    both = _find_ties(a.value_of_row * len(b.starts) + b.value_of_row)
    # In this order rows that are tied in the first column are sorted by the second: each inversion is discordant.
    passes = _plan_radix_passes(b.value_of_row[both.order]) if len(first) else []

    def count_tied_pairs(weights: Floats, ties: _Ties) -> Floats:
        counts = ties.sum_weights(weights)
        return np.asarray(np.einsum("kv,kv->k", counts, counts - 1) / 2)

    def count_inversions(weights: Floats) -> Floats:
        inversions = np.zeros(len(weights))
        for step in passes:
            # The weight of the rows with the bit up to each position, with a 0 in front.
            with_bit = np.zeros((len(weights), weights.shape[1] + 1))
            np.cumsum(weights * step.has_bit, axis=1, out=with_bit[:, 1:])
            before = with_bit[:, step.lacking] - with_bit[:, step.block_starts]
            inversions += np.einsum("kr,kr->k", weights[:, step.lacking], before)
            weights = weights[:, step.next_order]
        return inversions

    def compute(weights: Floats) -> Floats:
        n = weights.sum(axis=1)
        pairs = n * (n - 1) / 2
        tied_a, tied_b, tied_both = (count_tied_pairs(weights, ties) for ties in (a, b, both))
        opposite = count_inversions(weights[:, both.order])
        same = pairs - tied_a - tied_b + tied_both - opposite
        untied = np.sqrt(pairs - tied_a) * np.sqrt(pairs - tied_b)
        tau = np.divide(same - opposite, untied, out=np.full(len(n), np.nan), where=untied > 0)
        return np.asarray(np.clip(tau, -1.0, 1.0))

    return compute


def weigh_auc(scores: Floats, row_of_score: RowIndices, good: Floats, bad: Floats) -> RowWeighting:
    """Return the area under the ROC curve of weighted rows.

    Args:
        scores: The scores of sentences.
        row_of_score: The row of each of them; a row may have several.
        good, bad: How much a score counts as that of an acceptable and of an unacceptable sentence.

    >>> labels = np.array([1.0, 0.0, 1.0, 0.0])
    >>> weigh_auc(np.array([3.0, 1.0, 1.0, 0.0]), np.arange(4), labels, 1 - labels)(np.ones((1, 4)))
    array([0.875])
    """
    ties = _find_ties(scores)
    rows, good, bad = row_of_score[ties.order], good[ties.order], bad[ties.order]
    is_distinct = len(ties.starts) == len(scores)

    def sum_by_score(weights: Floats) -> Floats:
        return weights if is_distinct else np.add.reduceat(weights, ties.starts, axis=1)

    def compute(weights: Floats) -> Floats:
        ordered = weights[:, rows]
        above, below = sum_by_score(ordered * good), sum_by_score(ordered * bad)
        # The weight of bad scores below each score, with half of those equal to it.
        lower = np.cumsum(below, axis=1)
        pairs = above.sum(axis=1) * lower[:, -1]
        right = np.einsum("kv,kv->k", above, lower - below / 2)
        return np.asarray(np.divide(right, pairs, out=np.full(len(weights), np.nan), where=pairs > 0))

    return compute


def weigh_quantile(values: Floats, share: float) -> RowWeighting:
    """Return a quantile of weighted rows, with linear interpolation.

    >>> weigh_quantile(np.array([5.0, 1.0, 3.0]), 0.5)(np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0]]))
    array([3., 1.])
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]

    def compute(weights: Floats) -> Floats:
        highest = np.cumsum(weights[:, order], axis=1)
        position = share * (highest[:, -1] - 1)
        # The row at a position, counted from 0, is the first whose cumulative weight lies above it.
        below, above = (
            ordered[(highest <= whole[:, None]).sum(axis=1)] for whole in (np.floor(position), np.ceil(position))
        )
        return np.asarray(below + (above - below) * (position - np.floor(position)))

    return compute
