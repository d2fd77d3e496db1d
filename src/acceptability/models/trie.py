"""Sentences that begin alike, as a trie of tokens: each different beginning stands there once.

``path[row, column]`` is the node of a row's token. Nodes are numbered row by row, in the
order in which they first appear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Trie:
    """The nodes of a trie, and the way of every row through it.

    Args:
        ids: The token at each node.
        depths: How many tokens stand before each node.
        path: The node of each row's tokens; what lies beyond a row's end has no meaning.
        born: In which cell of ``path``, counted row by row, each node appears first.
    """

    ids: Ints
    depths: Ints
    path: Ints
    born: Ints

    def __len__(self) -> int:
        return len(self.ids)

    def branches(self) -> tuple[Ints, Ints]:
        """Return the path of only those rows that bring new nodes, and where their nodes appear first."""
        height, width = self.path.shape
        kept = np.unique(self.born // width)
        number = np.empty(height, np.int64)
        number[kept] = np.arange(len(kept))
        return self.path[kept], number[self.born // width] * width + self.born % width


def trie(tokens: Ints, starts: Ints, lengths: Ints) -> Trie:
    """Return the trie of rows, each of which is a part of one long array of tokens.

    >>> made = trie(np.array([5, 6, 7, 5, 6, 8]), np.array([0, 3]), np.array([3, 3]))
    >>> made.ids.tolist(), made.depths.tolist()
    ([5, 6, 7, 8], [0, 1, 2, 2])
    >>> made.path.tolist()
    [[0, 1, 2], [0, 1, 3]]
    """
    columns = np.arange(int(lengths.max()))
    inside = columns < lengths[:, None]
    table = np.where(inside, tokens[np.where(inside, starts[:, None] + columns, 0)], -1)
    order = _order(table)
    made = _of_sorted(table if order is None else table[order], inside if order is None else inside[order])
    if order is None:
        return made
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    width = len(columns)
    return Trie(made.ids, made.depths, made.path[back], order[made.born // width] * width + made.born % width)


def _order(table: Ints) -> Ints | None:
    """Return the lexicographic order of the rows, or None if they are in it."""
    differs = table[1:] != table[:-1]
    first = differs.argmax(axis=1)
    rows = np.arange(len(first))
    if (table[1:][rows, first] >= table[:-1][rows, first]).all():
        return None
    return np.lexsort(table.T[::-1])


def _of_sorted(table: Ints, inside: NDArray[np.bool_]) -> Trie:
    differs = np.ones(inside.shape, bool)
    differs[1:] = table[1:] != table[:-1]
    new = np.logical_or.accumulate(differs, axis=1) & inside
    numbers = np.cumsum(new).reshape(new.shape) - 1
    # In sorted rows the latest node of a column is the one that a row shares.
    path = np.maximum.accumulate(np.where(new, numbers, 0), axis=0)
    return Trie(table[new], np.broadcast_to(np.arange(new.shape[1]), new.shape)[new], path, np.flatnonzero(new))
