"""Batch planning: which queries go through a model together.

Three pure functions, one for each way of packing that a model may ask for:

- ``batch_by_prefix``, for causal models: sentences with a shared prefix become neighbours in a batch, whose prefix
  trie (``models/kernels/trie.py``) then holds the prefix once;
- ``batch_by_length``, for masked models: only sentences of equal length share a batch, which needs no padding;
- ``batch_by_size``, for all others: sentences of similar size, each batch padded to its longest.

All three take the budget of the model, the number of token positions in a batch, and return lists of query indices.
A plan depends on the request alone, so that an interrupted run, which skips what is stored, forms the same batches.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from acceptability.outputs import FlatRows, expand_ranges, flatten_rows

# A trie counts a shared prefix once, but attention unrolls it for every sentence. Without a second limit on the
# unrolled batch, thousands of sentences with one long prefix would meet the budget and still exhaust memory.
_MAX_EXPANSION = 8
"""The size of an unrolled batch in budgets, at most."""

# Two distinct sentences differ within their first tokens, as a rule. Sorting whole documents by all their tokens would
# need a table as wide as the longest of them.
_COMPARED_TOKENS = 64
"""The number of tokens at the start of a row that are compared with other rows."""

HashableQuery = TypeVar("HashableQuery", bound=Hashable)


def group_duplicates(queries: Sequence[HashableQuery]) -> FlatRows:
    """Return the indices of each distinct query, in the order of first occurrence.

    >>> [indices.tolist() for indices in group_duplicates(["a", "b", "a"])]
    [[0, 2], [1]]
    """
    count = len(queries)
    # Nearly always there are none, and no list is needed for each query.
    if len(set(queries)) == count:
        return FlatRows(np.arange(count), np.arange(count), np.ones(count, np.int64))
    indices: dict[HashableQuery, list[int]] = {}
    for query_index, query in enumerate(queries):
        indices.setdefault(query, []).append(query_index)
    return flatten_rows(list(indices.values()))


def batch_by_size(sizes: Sequence[int], *, budget: int) -> list[list[int]]:
    """Return batches that fit into the budget when padded to their longest query; a larger query is alone.

    Args:
        sizes: The number of token positions of each query.
        budget: The maximal number of token positions in a batch, with padding.

    >>> batch_by_size([5, 2, 2, 9], budget=10)
    [[1, 2], [0], [3]]
    """
    # In ascending order the newest query is the longest, so its size times the count is that of the padded batch.
    order = sorted(range(len(sizes)), key=lambda index: (sizes[index], index))
    return _pack_batches(order, lambda batch, index: sizes[index] * (len(batch) + 1) <= budget)


def batch_by_length(lengths: Sequence[int], sizes: Sequence[int], *, budget: int) -> list[list[int]]:
    """Return batches of queries of equal length, whose sizes sum to the budget at most; a larger query is alone.

    Args:
        lengths: The number of tokens of each query.
        sizes: The number of token positions of each query: its length times the number of its masked copies.
        budget: The maximal number of token positions in a batch.

    >>> batch_by_length([3, 2, 3, 3], [6, 2, 6, 6], budget=12)
    [[1], [0, 2], [3]]
    """
    used = 0

    def fits(batch: list[int], query_index: int) -> bool:
        nonlocal used
        fits = lengths[batch[0]] == lengths[query_index] and used + sizes[query_index] <= budget
        used = used + sizes[query_index] if fits else sizes[query_index]
        return fits

    order = sorted(range(len(sizes)), key=lambda index: (lengths[index], index))
    # The first query opens a batch without a call of `fits`.
    used = sizes[order[0]] if order else 0
    return _pack_batches(order, fits)


def _pack_batches(order: Sequence[int], fits: Callable[[list[int], int], bool]) -> list[list[int]]:
    """Return the indices in batches: each index joins the last batch if it fits, and opens a new one otherwise."""
    batches: list[list[int]] = []
    for query_index in order:
        if batches and fits(batches[-1], query_index):
            batches[-1].append(query_index)
        else:
            batches.append([query_index])
    return batches


def batch_by_prefix(rows: Sequence[Sequence[int]] | FlatRows, sizes: Sequence[int], *, budget: int) -> list[list[int]]:
    """Return batches whose prefix tries have as many nodes as the budget at most; a longer row is alone.

    Args:
        rows: The token ids of each query.
        sizes: The number of tokens at the start of each row that are computed.
        budget: The maximal number of nodes.

    >>> batch_by_prefix([(1, 2, 3), (7,), (1, 2, 4)], [3, 1, 3], budget=4)
    [[0, 2], [1]]
    """
    if not len(rows):
        return []
    order, new_tokens = _sort_by_prefix(flatten_rows(rows), sizes)
    lengths = np.array(sizes, np.int64)[order]
    # The nodes of all rows up to each: the rows of a batch add the difference of two sums.
    sums, row_indices, start = np.cumsum(new_tokens), order.tolist(), 0
    batches: list[list[int]] = []
    while start < len(order):
        # The first row of a batch pays for all its tokens, shared or not: its neighbour is in another pass.
        before = sums[start] - lengths[start]
        end = int(np.searchsorted(sums, before + budget, side="right"))
        widths = np.maximum.accumulate(lengths[start:end])
        unrolled = widths * np.arange(1, len(widths) + 1)
        end = start + int(np.searchsorted(unrolled, _MAX_EXPANSION * budget, side="right"))
        # A row that is larger than the budget is alone.
        end = max(end, start + 1)
        batches.append(row_indices[start:end])
        start = end
    return batches


def _sort_by_prefix(rows: FlatRows, sizes: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the indices of the rows in lexicographic order, and how many tokens each row adds to its predecessor.

    Only the first tokens are compared: what long rows share beyond them is counted for each row.
    """
    lengths = np.array(sizes, np.int64)
    heads = np.minimum(lengths, _COMPARED_TOKENS)
    table = np.zeros((len(rows), int(heads.max(initial=1))), ">u4")
    inside = np.arange(table.shape[1]) < heads[:, None]
    # Plus 1, so that padding (0) differs from the token 0 and sorts before every token.
    table[inside] = rows.values[expand_ranges(rows.starts, heads)] + 1
    # One sort over byte strings instead of a lexsort over columns: big-endian integers sort as their bytes do. NumPy
    # drops trailing zero bytes of such strings, but compares them as if these were still there. Stable, so that equal
    # rows keep their order and the same request always gives the same batches.
    order = np.argsort(table.view(f"S{4 * table.shape[1]}").ravel(), kind="stable")
    table = table[order]
    same = np.logical_and.accumulate(table[1:] == table[:-1], axis=1) & (table[1:] > 0)
    common = np.append(0, same.sum(axis=1))
    return order, lengths[order] - common
