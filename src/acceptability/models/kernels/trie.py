"""The prefix trie of a batch: each distinct prefix of the sentences is one node, computed once.

Sentences of a suite come in pairs and paradigms that share their first words. A causal model computes the same hidden
states for a shared prefix, since no token sees a later one. ``build_trie`` therefore merges the rows of a batch into a
trie, and ``causal_forward.py`` sends one flat row with a position for each node through the network. Only attention,
which needs to know what precedes a token, unrolls the trie into rows again (``select_branches``).

Everything is done on flat NumPy arrays: a trie of Python objects would take longer to build than a small network
takes to run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TokenTrie:
    """The nodes of a prefix trie, and the path of every row through it.

    Nodes are numbered in the order in which the sorted rows reach them.

    Args:
        ids: The token id at each node.
        depths: The number of tokens before each node, which is its position in every row that contains it.
        node_table: The node of each token, row by row; the cells beyond the end of a row have no meaning.
        first_cells: The flat index in ``node_table`` of the first cell that holds each node.
    """

    ids: IntArray
    depths: IntArray
    node_table: IntArray
    first_cells: IntArray

    def __len__(self) -> int:
        return len(self.ids)

    def select_branches(self) -> tuple[IntArray, IntArray]:
        """Return the node table of those rows alone that contribute nodes, and the first cell of each node in it.

        A row that duplicates another, or is a prefix of another, has no node of its own, and attention would compute
        it for nothing.
        """
        height, width = self.node_table.shape
        kept_rows = np.unique(self.first_cells // width)
        new_row = np.empty(height, np.int64)
        new_row[kept_rows] = np.arange(len(kept_rows))
        return self.node_table[kept_rows], new_row[self.first_cells // width] * width + self.first_cells % width


def build_trie(tokens: IntArray, starts: IntArray, lengths: IntArray) -> TokenTrie:
    """Return the prefix trie of rows that lie in one flat array of token ids.

    Args:
        tokens: The token ids of all rows.
        starts: The index in ``tokens`` at which each row begins.
        lengths: The number of tokens of each row that belong to the trie.

    >>> trie = build_trie(np.array([5, 6, 7, 5, 6, 8]), np.array([0, 3]), np.array([3, 3]))
    >>> trie.ids.tolist(), trie.depths.tolist()
    ([5, 6, 7, 8], [0, 1, 2, 2])
    >>> trie.node_table.tolist()
    [[0, 1, 2], [0, 1, 3]]
    """
    columns = np.arange(int(lengths.max()))
    inside = columns < lengths[:, None]
    # Padding is -1, which is no token id: a row then differs from a longer row that continues it, and sorts before it.
    table = np.where(inside, tokens[np.where(inside, starts[:, None] + columns, 0)], -1)
    order = _find_sort_order(table)
    sorted_trie = _build_sorted_trie(
        table if order is None else table[order], inside if order is None else inside[order]
    )
    if order is None:
        return sorted_trie
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    width = len(columns)
    return TokenTrie(
        sorted_trie.ids,
        sorted_trie.depths,
        sorted_trie.node_table[inverse],
        order[sorted_trie.first_cells // width] * width + sorted_trie.first_cells % width,
    )


def _find_sort_order(table: IntArray) -> IntArray | None:
    """Return the lexicographic order of the rows, or None if they are sorted already."""
    # The plan of the engine delivers most batches in order, up to the tokens that it compares. Seeing that costs far
    # less than a lexsort over all columns.
    differs = table[1:] != table[:-1]
    first = differs.argmax(axis=1)
    rows = np.arange(len(first))
    if (table[1:][rows, first] >= table[:-1][rows, first]).all():
        return None
    # lexsort takes the most significant key last.
    return np.lexsort(table.T[::-1])


def _build_sorted_trie(table: IntArray, inside: NDArray[np.bool_]) -> TokenTrie:
    """Return the trie of sorted rows.

    Args:
        inside: Which cells of the table hold a token and no padding.
    """
    differs = np.ones(inside.shape, bool)
    differs[1:] = table[1:] != table[:-1]
    # From the first difference on, all tokens of a row are new nodes, equal or not to those above them: a node is a
    # whole prefix and not a single token.
    new = np.logical_or.accumulate(differs, axis=1) & inside
    numbers = np.cumsum(new).reshape(new.shape) - 1
    # In sorted rows, the latest node of a column is the one that a row shares, so a running maximum finds it.
    node_table = np.maximum.accumulate(np.where(new, numbers, 0), axis=0)
    depths = np.broadcast_to(np.arange(new.shape[1]), new.shape)[new]
    return TokenTrie(table[new], depths, node_table, np.flatnonzero(new))
