"""Which queries go through a model together: sorted by size, packed to a budget.

Pure functions. A plan depends on the sizes of the whole request alone, so that a run
that was interrupted, and skips what is stored, still forms the same batches.
"""

from __future__ import annotations

from collections.abc import Sequence


def batches(sizes: Sequence[int], *, budget: int) -> list[list[int]]:
    """Return the places of the queries, batch by batch.

    A batch is padded to its longest, and stays within the budget unless a single
    query exceeds it.

    >>> batches([5, 2, 2, 9], budget=10)
    [[1, 2], [0], [3]]
    """
    packed: list[list[int]] = []
    for place in sorted(range(len(sizes)), key=lambda place: (sizes[place], place)):
        if packed and sizes[place] * (len(packed[-1]) + 1) <= budget:
            packed[-1].append(place)
        else:
            packed.append([place])
    return packed
