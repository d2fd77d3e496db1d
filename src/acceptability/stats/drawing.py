"""Which rows a resample is made of: single rows, or all rows that share the value of a tag."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import MeasureError
from acceptability.types import Floats, Units

Rows = NDArray[np.int64]

_CELLS = 2_000_000
"""How many drawn places are held in memory at once."""


def members(units: Units, by: str) -> list[Rows]:
    """Return the rows of each thing that is drawn: one row each, or with a tag, one cluster each."""
    if not by:
        return list(np.arange(len(units))[:, None])
    keys = np.array(cluster_keys(units, by))
    order = np.argsort(keys, kind="stable")
    _, starts = np.unique(keys[order], return_index=True)
    return np.split(order, starts[1:])


def cluster_keys(units: Units, by: str) -> list[str]:
    """Return the cluster of each row; a row without one is an error."""
    keys = [tags[by] for tags in units.tags if by in tags]
    if len(keys) < len(units):
        raise MeasureError(f"cannot draw by {by!r}: {len(units) - len(keys)} of {len(units)} rows lack that tag")
    return keys


def drawable(units: Units, by: str) -> int:
    """Return how many rows, or clusters of rows, there are to draw."""
    return len(set(cluster_keys(units, by))) if by else len(units)


def totals(column: Floats, units: Units, by: str) -> tuple[Floats, Floats]:
    """Return the sum of a column and the number of rows, for each thing that is drawn."""
    if not by:
        return column, np.ones(len(column))
    _, cluster = np.unique(np.array(cluster_keys(units, by)), return_inverse=True)
    return np.asarray(np.bincount(cluster, weights=column), dtype=np.float64), np.bincount(cluster).astype(np.float64)


def chosen(n: int, times: int, generator: np.random.Generator) -> Iterator[Rows]:
    """Yield n places drawn with replacement, ``times`` times, some times together in a table."""
    at_once = max(1, _CELLS // max(n, 1))
    for start in range(0, times, at_once):
        yield generator.integers(0, n, size=(min(at_once, times - start), n))


def blocks(n: int, most: int, seed: int) -> list[Rows]:
    """Return what is left out in turn: each of n things or, where they are more than ``most``, that many groups.

    Things are dealt to the groups at random, so that neighbours in the file do not fall into one.
    """
    if n <= most:
        return list(np.arange(n)[:, None])
    return np.array_split(np.random.default_rng(seed).permutation(n), most)
