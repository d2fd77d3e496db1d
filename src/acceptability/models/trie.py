"""Sentences that begin alike, as a trie of tokens: each different beginning stands there once.

``path[row, column]`` is the node of a row's token. Nodes are numbered row by row, in the
order in which they first appear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
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


def trie(rows: Sequence[Sequence[int]]) -> Trie:
    """Return the trie of rows that are in lexicographic order.

    >>> made = trie([(5, 6, 7), (5, 6, 8)])
    >>> made.ids.tolist(), made.depths.tolist()
    ([5, 6, 7, 8], [0, 1, 2, 2])
    >>> made.path.tolist()
    [[0, 1, 2], [0, 1, 3]]
    """
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    columns = np.arange(int(lengths.max()))
    inside = columns < lengths[:, None]
    table = np.full(inside.shape, -1, np.int64)
    table[inside] = np.fromiter(chain.from_iterable(rows), np.int64, int(lengths.sum()))
    differs = np.ones(inside.shape, bool)
    differs[1:] = table[1:] != table[:-1]
    new = np.logical_or.accumulate(differs, axis=1) & inside
    numbers = np.cumsum(new).reshape(new.shape) - 1
    # In sorted rows the latest node of a column is the one that a row shares.
    path = np.maximum.accumulate(np.where(new, numbers, 0), axis=0)
    return Trie(table[new], np.broadcast_to(columns, new.shape)[new], path, np.flatnonzero(new))
