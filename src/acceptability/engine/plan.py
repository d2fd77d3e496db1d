"""Which queries go through a model together: no query twice, no padding, no beginning computed twice.

Pure functions. A plan depends on the whole request alone, so that a run that was
interrupted, and skips what is stored, still forms the same batches. Three ways to pack:

- by prefix, for causal models: sentences that begin alike stand next to each other, and
  only the first of them pays for the tokens that they share;
- by length, for masked models: only sentences of the same length go together;
- by size, for whatever else: shorter ones first, each batch padded to its longest.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import chain
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_SPREAD = 8
"""How many times the budget a batch may hold when shared beginnings count for every sentence."""

_LOOKED_AT = 64
"""How many tokens of a row are looked at for what it shares with others."""

Kind = TypeVar("Kind", bound=Hashable)


def distinct(queries: Sequence[Kind]) -> list[list[int]]:
    """Return the places of each different query, in the order of their first places.

    >>> distinct(["a", "b", "a"])
    [[0, 2], [1]]
    """
    places: dict[Kind, list[int]] = {}
    for place, query in enumerate(queries):
        places.setdefault(query, []).append(place)
    return list(places.values())


def by_size(sizes: Sequence[int], *, budget: int) -> list[list[int]]:
    """Return batches that are padded to their longest, and stay within the budget unless one query exceeds it.

    >>> by_size([5, 2, 2, 9], budget=10)
    [[1, 2], [0], [3]]
    """
    order = sorted(range(len(sizes)), key=lambda place: (sizes[place], place))
    return _packed(order, lambda batch, place: sizes[place] * (len(batch) + 1) <= budget)


def by_length(lengths: Sequence[int], sizes: Sequence[int], *, budget: int) -> list[list[int]]:
    """Return batches of queries that have the same length, with sizes that sum to the budget at most.

    >>> by_length([3, 2, 3, 3], [6, 2, 6, 6], budget=12)
    [[1], [0, 2], [3]]
    """
    held = 0

    def fits(batch: list[int], place: int) -> bool:
        nonlocal held
        fits = lengths[batch[0]] == lengths[place] and held + sizes[place] <= budget
        held = held + sizes[place] if fits else sizes[place]
        return fits

    order = sorted(range(len(sizes)), key=lambda place: (lengths[place], place))
    held = sizes[order[0]] if order else 0
    return _packed(order, fits)


def by_prefix(rows: Sequence[Sequence[int]], sizes: Sequence[int], *, budget: int) -> list[list[int]]:
    """Return batches whose different beginnings have as many tokens as the budget at most.

    Args:
        sizes: How many tokens of each row are computed: its beginning.

    >>> by_prefix([(1, 2, 3), (7,), (1, 2, 4)], [3, 1, 3], budget=4)
    [[0, 2], [1]]
    """
    if not rows:
        return []
    order, new = _sorted(rows, sizes)
    batches: list[list[int]] = []
    held = longest = budget
    for place, cost in zip(order.tolist(), new.tolist(), strict=True):
        length = sizes[place]
        width = max(longest, length)
        if held + cost > budget or width * (len(batches[-1]) + 1) > _SPREAD * budget:
            batches.append([place])
            held = longest = length
        else:
            batches[-1].append(place)
            held, longest = held + cost, width
    return batches


def _sorted(rows: Sequence[Sequence[int]], sizes: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of the rows in lexicographic order, and how many tokens each has not in common with the last.

    Only so many tokens at the beginning are looked at: what long rows share beyond is not counted.
    """
    lengths = np.array(sizes, np.int64)
    heads = np.minimum(lengths, _LOOKED_AT)
    table = np.zeros((len(rows), int(heads.max(initial=1))), ">u4")
    inside = np.arange(table.shape[1]) < heads[:, None]
    tokens = chain.from_iterable([row[:head] for row, head in zip(rows, heads.tolist(), strict=True)])
    table[inside] = np.fromiter(tokens, np.int64, int(heads.sum())) + 1
    # Big-endian numbers sort like their bytes.
    order = np.argsort(table.view(f"S{4 * table.shape[1]}").ravel(), kind="stable")
    table = table[order]
    same = np.logical_and.accumulate(table[1:] == table[:-1], axis=1) & (table[1:] > 0)
    common = np.append(0, same.sum(axis=1))
    return order, lengths[order] - common


def _packed(order: Sequence[int], fits: Callable[[list[int], int], bool]) -> list[list[int]]:
    """Return the places in batches: each goes to the last batch if it fits there, or begins a new one."""
    batches: list[list[int]] = []
    for place in order:
        if batches and fits(batches[-1], place):
            batches[-1].append(place)
        else:
            batches.append([place])
    return batches
