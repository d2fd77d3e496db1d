"""What is resampled: rows, clusters of rows that share a tag, or clusters and inside them parts (two levels).

The bootstrap draws these sampling units with replacement, permutation tests swap them whole, and the jackknife leaves
them out one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import MeasureError
from acceptability.types import Floats, Units

UnitIndices = NDArray[np.int64]
"""Indices of rows, or of clusters of rows."""

# How many indices of resampled rows are in memory at once: 16 MB. A thousand resamples of a million rows would be 8 GB.
_MAX_INDICES = 2_000_000


def cluster_rows(units: Units, by: str | None) -> list[UnitIndices]:
    """Return the row indices of each sampling unit: of each cluster that shares a value of the tag, or of each row."""
    if not by:
        return list(np.arange(len(units))[:, None])
    return _split_by_code(np.array(get_cluster_keys(units, by)))


def get_cluster_keys(units: Units, by: str) -> list[str]:
    """Return the value of a tag in each row; a row without the tag is an error."""
    keys = [tags[by] for tags in units.tags if by in tags]
    if len(keys) < len(units):
        raise MeasureError(f"cannot resample by {by!r}: {len(units) - len(keys)} of {len(units)} rows lack that tag")
    return keys


def count_sampling_units(units: Units, by: str | None) -> int:
    """Return the number of sampling units: of rows, or of values of a tag."""
    return len(set(get_cluster_keys(units, by))) if by else len(units)


def sum_by_cluster(column: Floats, units: Units, by: str | None) -> tuple[Floats, Floats]:
    """Return the sum of a column and the number of rows, for each sampling unit."""
    if not by:
        return column, np.ones(len(column))
    _, cluster = np.unique(np.array(get_cluster_keys(units, by)), return_inverse=True)
    return np.asarray(np.bincount(cluster, weights=column), dtype=np.float64), np.bincount(cluster).astype(np.float64)


def draw_resamples(n: int, times: int, generator: np.random.Generator) -> Iterator[UnitIndices]:
    """Yield resamples in batches, (resamples, n): n indices below n, drawn with replacement, ``times`` times in all."""
    batch_size = max(1, _MAX_INDICES // max(n, 1))
    for start in range(0, times, batch_size):
        yield generator.integers(0, n, size=(min(batch_size, times - start), n))


def make_jackknife_groups(n: int, most: int, seed: int) -> list[UnitIndices]:
    """Return what the jackknife leaves out in turn: each of n units, or ``most`` random groups of them if n is more."""
    if n <= most:
        return list(np.arange(n)[:, None])
    # At random, since neighbours in a file tend to be alike, and groups of them would vary more than independent rows.
    return np.array_split(np.random.default_rng(seed).permutation(n), most)


@dataclass(frozen=True, eq=False)
class NestedUnits:
    """Sampling units of two levels: the values of a tag, and inside each of them parts, such as the items of paradigms.

    Args:
        part_of_row: The index of each row's part. The parts of a value of the tag have consecutive indices.
        sizes: The number of parts of each value of the tag.
    """

    part_of_row: UnitIndices
    sizes: UnitIndices

    def list_parts(self) -> list[UnitIndices]:
        """Return the row indices of each part."""
        return _split_by_code(self.part_of_row)

    def draw(self, times: int, generator: np.random.Generator) -> Iterator[UnitIndices]:
        """Yield resamples as indices of parts: values of the tag with replacement, then as many parts of each."""
        starts = np.cumsum(self.sizes) - self.sizes
        for _ in range(times):
            values = generator.integers(0, len(self.sizes), size=len(self.sizes))
            sizes = self.sizes[values]
            # One random number per part of every drawn value, scaled to the number of parts of that value.
            drawn = generator.random(int(sizes.sum())) * np.repeat(sizes, sizes)
            yield np.repeat(starts[values], sizes) + drawn.astype(np.int64)


def nest_rows(units: Units, by: str, within: str) -> NestedUnits:
    """Return the sampling units of two levels.

    Args:
        by: The tag of the larger units.
        within: The tag of the parts inside them; "row" for single rows.
    """
    values = np.unique(np.array(get_cluster_keys(units, by)), return_inverse=True)[1]
    inner = (
        np.arange(len(units))
        if within == "row"
        else np.unique(np.array(get_cluster_keys(units, within)), return_inverse=True)[1]
    )
    # The same item number may stand in several paradigms, where it is a different item: both codes name a part.
    pairs, part_of_row = np.unique(np.stack([values, inner], axis=1), axis=0, return_inverse=True)
    return NestedUnits(part_of_row.ravel(), np.bincount(pairs[:, 0]))


def _split_by_code(codes: NDArray[np.generic]) -> list[UnitIndices]:
    """Return the row indices of each distinct code, in the order of the codes."""
    # Stable, so that the rows of a cluster keep their order, on which floating-point sums depend.
    order = np.argsort(codes, kind="stable")
    _, starts = np.unique(codes[order], return_index=True)
    return np.split(order, starts[1:])
