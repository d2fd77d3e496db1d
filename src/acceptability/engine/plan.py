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
from typing import TypeVar

_SPREAD = 8
"""How many times the budget a batch may hold when shared beginnings count for every sentence."""

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


def by_prefix(rows: Sequence[Sequence[int]], *, budget: int) -> list[list[int]]:
    """Return batches whose different beginnings have as many tokens as the budget at most.

    >>> by_prefix([(1, 2, 3), (7,), (1, 2, 4)], budget=4)
    [[0, 2], [1]]
    """
    order = sorted(range(len(rows)), key=lambda place: (rows[place], place))
    held, longest = 0, 0

    def fits(batch: list[int], place: int) -> bool:
        nonlocal held, longest
        row = rows[place]
        cost = held + len(row) - shared(rows[batch[-1]], row)
        width = max(longest, len(row))
        fits = cost <= budget and width * (len(batch) + 1) <= _SPREAD * budget
        held, longest = (cost, width) if fits else (len(row), len(row))
        return fits

    if order:
        held = longest = len(rows[order[0]])
    return _packed(order, fits)


def shared(first: Sequence[int], second: Sequence[int]) -> int:
    """Return how many tokens two rows have in common at their beginning.

    >>> shared((1, 2, 3), (1, 2, 4, 5))
    2
    """
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


def _packed(order: Sequence[int], fits: Callable[[list[int], int], bool]) -> list[list[int]]:
    """Return the places in batches: each goes to the last batch if it fits there, or begins a new one."""
    batches: list[list[int]] = []
    for place in order:
        if batches and fits(batches[-1], place):
            batches[-1].append(place)
        else:
            batches.append([place])
    return batches
