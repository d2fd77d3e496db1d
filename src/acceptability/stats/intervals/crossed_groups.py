"""Means over groups whose sampling units have rows in several of them, as items have that appear in every condition.

Such groups are no independent strata: an item that a model finds hard is hard in all conditions. A unit is therefore
resampled with all its rows, in whichever group they are. Treated as strata, eight copies of the same rows would give
an interval a third as wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acceptability.errors import Undefined
from acceptability.protocols import Moments, Statistic
from acceptability.types import Floats, Units

# No column of a measure is called so.
_GROUP = "index of the group"


@dataclass(frozen=True)
class MeanOverGroups(Statistic):
    """The mean over groups of a statistic, as a statistic of the rows of all groups together, see `join_groups`.

    Args:
        of_group: The statistic of each group.
        count: The number of groups.
    """

    of_group: Statistic
    count: int

    def value(self, units: Units) -> float:
        """Return the mean over groups; undefined if a group has no row."""
        rows_of_groups = [np.flatnonzero(units[_GROUP] == group) for group in range(self.count)]
        if not all(map(len, rows_of_groups)):
            raise Undefined("a group has no rows")
        return float(np.mean([self.of_group.value(units.take_columns(rows)) for rows in rows_of_groups]))

    def weigh(self, units: Units) -> Moments | None:
        """Return how the mean over groups follows from weights of rows, if that of a group is a mean itself."""
        if self.of_group.mean_of is None:
            return None
        is_member = (units[_GROUP] == np.arange(self.count)[:, None]).astype(np.float64)
        return Moments(np.concatenate([is_member * units[self.of_group.mean_of], is_member]), self._average)

    def _average(self, sums: Floats) -> Floats:
        totals, rows = sums[: self.count], sums[self.count :]
        # A resample in which a group has no row is undefined, as its value is.
        means = np.divide(totals, rows, out=np.full_like(totals, np.nan), where=rows > 0)
        return np.asarray(means.mean(axis=0))


def join_groups(groups: Sequence[Units]) -> Units:
    """Return the rows of all groups, with the index of each row's group."""
    columns = {name: np.concatenate([units[name] for units in groups]) for name in groups[0].columns}
    columns[_GROUP] = np.repeat(np.arange(float(len(groups))), [len(units) for units in groups])
    return Units(
        tuple(row for units in groups for row in units.ids),
        columns,
        tuple(tags for units in groups for tags in units.tags),
    )


def weigh_rows(groups: Sequence[Units]) -> Floats:
    """Return what each row weighs in the mean over groups, times the number of rows.

    >>> weigh_rows([Units(("a",), {}, ({},)), Units(("b", "c", "d"), {}, ({}, {}, {}))]).round(3).tolist()
    [2.0, 0.667, 0.667, 0.667]
    """
    sizes = np.array([len(units) for units in groups])
    return np.repeat(sizes.sum() / (len(groups) * sizes), sizes)
