"""What is resampled: rows, clusters of rows that share a tag, or clusters and inside them parts (two levels).

The bootstrap draws these sampling units with replacement, permutation tests swap them whole, and the jackknife leaves
them out one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import MeasureError
from acceptability.types import Floats, Units

UnitIndices = NDArray[np.int64]
"""Indices of rows, or of clusters of rows."""

LEAST_AT_ONCE = 4
"""So many resamples, or more, are evaluated at a time: each alone would be a product with a vector, not a matrix."""

# So many weights are kept: 16 MB.
_MAX_KEPT_WEIGHTS = 2_000_000
# So many indices are drawn at a time, and counted before they leave the cache: half a megabyte. A thousand resamples of
# a million rows would be 8 GB.
_DRAWN_AT_ONCE = 1 << 16


def cluster_rows(units: Units, by: str | None) -> list[UnitIndices]:
    """Return the row indices of each sampling unit: of each cluster that shares a value of the tag, or of each row."""
    if not by:
        return list(np.arange(len(units))[:, None])
    return _split_by_code(encode_clusters(units, by))


def encode_clusters(units: Units, by: str) -> UnitIndices:
    """Return the index of each row's sampling unit, in the alphabetical order of the tag's values."""
    _, codes = units.encode_tag(by)
    if lacking := int(np.count_nonzero(codes < 0)):
        raise MeasureError(f"cannot resample by {by!r}: {lacking} of {len(units)} rows lack that tag")
    return codes


def get_cluster_keys(units: Units, by: str) -> list[str]:
    """Return the value of a tag in each row; a row without the tag is an error."""
    encode_clusters(units, by)
    return [tags[by] for tags in units.tags]


def count_sampling_units(units: Units, by: str | None) -> int:
    """Return the number of sampling units: of rows, or of values of a tag."""
    if not by:
        return len(units)
    encode_clusters(units, by)
    return len(units.encode_tag(by)[0])


def have_common_units(groups: Sequence[Units], by: str | None) -> bool:
    """Tell whether a sampling unit has rows in several groups, as items have that appear in every condition."""
    values = [set(get_cluster_keys(units, by)) for units in groups] if by else []
    return sum(map(len, values)) > len(set().union(*values))


def count_units_of_groups(groups: Sequence[Units], by: str | None) -> int:
    """Return the number of sampling units of groups; one that has rows in several of them counts once."""
    return len({key for units in groups for key in get_cluster_keys(units, by)}) if by else sum(map(len, groups))


def sum_by_cluster(column: Floats, units: Units, by: str | None) -> tuple[Floats, Floats]:
    """Return the sum of a column and the number of rows, for each sampling unit."""
    if not by:
        return column, np.ones(len(column))
    cluster = encode_clusters(units, by)
    return np.asarray(np.bincount(cluster, weights=column), dtype=np.float64), np.bincount(cluster).astype(np.float64)


def make_generator(seed: int, stream: int) -> np.random.Generator:
    """Return the random numbers of a stratum, of which each has a stream of its own."""
    # With one and the same seed two groups of equal size would draw the same row numbers, and their errors would be
    # correlated. The first keeps the plain seed, as a measure without groups has it.
    return np.random.default_rng([seed, stream] if stream else seed)


def draw_weights(n: int, times: int, seed: int, stream: int = 0) -> Iterator[Floats]:
    """Yield how often each of n units is in each resample, in batches of (resamples, n).

    Each resample has n units, drawn with replacement.

    Args:
        times: The number of resamples in all batches together.
        seed, stream: What the random numbers depend on; see ``make_generator``.
    """
    # The streams of further strata are drawn from once only.
    if n * times <= _MAX_KEPT_WEIGHTS and stream == 0:
        yield _draw_few_weights(n, times, seed)
    else:
        yield from _draw_batches(n, times, make_generator(seed, stream))


# All groups of a suite have the same weights if they are equally large, as the paradigms of BLiMP are; then most of the
# time would go into drawing them again.
@lru_cache(maxsize=1)
def _draw_few_weights(n: int, times: int, seed: int) -> Floats:
    weights = np.concatenate([*_draw_batches(n, times, make_generator(seed, 0))])
    weights.flags.writeable = False
    return weights


def _draw_batches(n: int, times: int, generator: np.random.Generator) -> Iterator[Floats]:
    at_once = max(LEAST_AT_ONCE, _DRAWN_AT_ONCE // max(n, 1))
    drawn_at_once = max(1, _DRAWN_AT_ONCE // max(n, 1))
    for start in range(0, times, at_once):
        size = min(at_once, times - start)
        # The numbers are the same as if all were drawn at once.
        parts = (
            generator.integers(0, n, size=(min(drawn_at_once, size - done), n))
            for done in range(0, size, drawn_at_once)
        )
        yield _count_draws(chain.from_iterable(parts), size, n)


def _count_draws(drawn: Iterable[UnitIndices], times: int, n: int) -> Floats:
    """Return how often each of n units is in each resample."""
    weights = np.empty((times, n))
    for row, indices in zip(weights, drawn, strict=True):
        row[:] = np.bincount(indices, minlength=n)
    return weights


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

    def draw_weights(self, times: int, generator: np.random.Generator) -> Iterator[Floats]:
        """Yield how often each part is in each resample, in batches of (resamples, parts)."""
        n = int(self.sizes.sum())
        at_once = max(1, _DRAWN_AT_ONCE // n)
        draws = self.draw(times, generator)
        while drawn := list(islice(draws, at_once)):
            yield _count_draws(drawn, len(drawn), n)


def nest_rows(units: Units, by: str, within: str) -> NestedUnits:
    """Return the sampling units of two levels.

    Args:
        by: The tag of the larger units.
        within: The tag of the parts inside them; "row" for single rows.
    """
    values = encode_clusters(units, by)
    inner = np.arange(len(units)) if within == "row" else encode_clusters(units, within)
    # The same item number may stand in several paradigms, where it is a different item: both codes name a part.
    parts, part_of_row = np.unique(values * (int(inner.max()) + 1) + inner, return_inverse=True)
    return NestedUnits(part_of_row, np.bincount(parts // (int(inner.max()) + 1)))


def _split_by_code(codes: NDArray[np.generic]) -> list[UnitIndices]:
    """Return the row indices of each distinct code, in the order of the codes."""
    # Stable, so that the rows of a cluster keep their order, on which floating-point sums depend.
    order = np.argsort(codes, kind="stable")
    _, starts = np.unique(codes[order], return_index=True)
    return np.split(order, starts[1:])
