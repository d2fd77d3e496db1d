"""Checks that all statistics share: finite numbers, columns of equal length, levels of factors, mean ranks.

Also `import_statsmodels`, for the tests and regressions that need the extra ``stats``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acceptability.errors import MeasureError, MissingExtra, Undefined
from acceptability.types import Floats

ALTERNATIVES = ("two-sided", "greater", "less")

LevelCodes = NDArray[np.int64]
"""The level of each row, as its index among the sorted levels of a factor."""


def as_sample(name: str, values: ArrayLike, least: int = 1) -> Floats:
    """Return numbers as a one-dimensional array of finite float64.

    Args:
        name: The sample's name in error messages.
        least: The smallest number of values that the caller can use.

    Raises:
        MeasureError: The numbers are not one-dimensional, or not finite.
        Undefined: There are fewer than ``least``.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise MeasureError(f"{name} has {array.ndim} dimensions; expected one row of numbers")
    # A nan would pass through most formulas into the result without an error, and look like a computed value there.
    if wrong := np.flatnonzero(~np.isfinite(array)).tolist():
        raise MeasureError(
            f"{name} has {array[wrong[0]]} at index {wrong[0]}; expected finite numbers. Leave such rows out"
        )
    if len(array) < least:
        raise Undefined(f"{name} has {len(array)} numbers; {least} are needed")
    return array


def as_paired_samples(first: ArrayLike, second: ArrayLike, least: int = 1) -> tuple[Floats, Floats]:
    """Return two columns over the same rows as arrays of equal length; see `as_sample`."""
    x, y = as_sample("the first column", first), as_sample("the second column", second)
    if len(x) != len(y):
        raise MeasureError(f"the columns have {len(x)} and {len(y)} numbers; expected the same rows in both")
    if len(x) < least:
        raise Undefined(f"there are {len(x)} rows; {least} are needed")
    return x, y


def as_columns(columns: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    """Return named columns as arrays of equal length; see `as_sample`."""
    arrays = {name: as_sample(f"column {name!r}", values) for name, values in columns.items()}
    if len({len(array) for array in arrays.values()}) > 1:
        lengths = ", ".join(f"{name} {len(array)}" for name, array in arrays.items())
        raise MeasureError(f"the columns have different lengths: {lengths}")
    return arrays


def encode_levels(name: str, labels: Sequence[object], n: int) -> tuple[list[str], LevelCodes]:
    """Return the sorted levels of a factor, and the index of each row's level among them.

    Args:
        n: The number of rows, of which each needs a label.
    """
    if len(labels) != n:
        raise MeasureError(f"{name} has {len(labels)} labels; expected one for each of the {n} rows")
    # As text, since NumPy cannot sort labels of mixed types, such as numbers and None.
    levels, codes = np.unique(np.array([str(label) for label in labels]), return_inverse=True)
    return levels.tolist(), codes.astype(np.int64)


def require_variation(name: str, values: Floats) -> Floats:
    """Return the values, or raise Undefined where all are the same."""
    if values.min() == values.max():
        raise Undefined(f"{name} has the same value in every row")
    return values


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise MeasureError for an option's value that is not among its choices."""
    if value not in choices:
        raise MeasureError(f"{name} is {value!r}; expected {', '.join(map(repr, choices))}")


def check_level(level: float) -> None:
    """Raise MeasureError for a confidence level that is not between 0 and 1."""
    if not 0 < level < 1:
        raise MeasureError(f"level is {level}; expected a share between 0 and 1")


def mean_ranks(values: Floats) -> tuple[Floats, Floats]:
    """Return ranks from 1 (tied values get their mean rank), and the number of rows of each distinct value.

    >>> mean_ranks(np.array([3.0, 1.0, 3.0]))
    (array([2.5, 1. , 2.5]), array([1., 2.]))
    """
    # The counts come for free here, and every correction for ties needs them: scipy.stats.rankdata gives ranks only.
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    highest = np.cumsum(counts)
    return np.asarray((highest - (counts - 1) / 2)[inverse]), counts.astype(np.float64)


def import_statsmodels(feature: str) -> Any:
    """Return the module ``statsmodels.api``, or raise MissingExtra naming the feature that needs it."""
    # Inside the function: the import takes half a second or more, and a plain installation has no statsmodels.
    try:
        import statsmodels.api
    except ImportError as error:
        raise MissingExtra(feature, "statsmodels", "'acceptability[stats]'") from error
    return statsmodels.api
