"""What every test asks of the numbers it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from acceptability.errors import MeasureError, Undefined
from acceptability.types import Floats

ALTERNATIVES = ("two-sided", "greater", "less")


def sample(name: str, values: ArrayLike, least: int = 1) -> Floats:
    """Return numbers as an array: one row of finite numbers, of which there are enough."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1:
        raise MeasureError(f"{name} has {found.ndim} dimensions; expected one row of numbers")
    if wrong := np.flatnonzero(~np.isfinite(found)).tolist():
        raise MeasureError(
            f"{name} has {found[wrong[0]]} at place {wrong[0]}; expected finite numbers. Leave such rows out"
        )
    if len(found) < least:
        raise Undefined(f"{name} has {len(found)} numbers; {least} are needed")
    return found


def paired(first: ArrayLike, second: ArrayLike, least: int = 1) -> tuple[Floats, Floats]:
    """Return two rows of numbers that belong together, one by one."""
    one, two = sample("the first column", first), sample("the second column", second)
    if len(one) != len(two):
        raise MeasureError(f"the columns have {len(one)} and {len(two)} numbers; expected the same rows in both")
    if len(one) < least:
        raise Undefined(f"there are {len(one)} rows; {least} are needed")
    return one, two


def labels(
    name: str, values: Sequence[object], n: int
) -> tuple[list[str], np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """Return the levels of a factor, in order, and which of them each row has."""
    if len(values) != n:
        raise MeasureError(f"{name} has {len(values)} labels; expected one for each of the {n} rows")
    levels, codes = np.unique(np.array([str(each) for each in values]), return_inverse=True)
    return levels.tolist(), codes.astype(np.int64)


def same_length(columns: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    """Return named columns as arrays; unequal lengths are an error."""
    found = {name: sample(f"column {name!r}", values) for name, values in columns.items()}
    if len({len(each) for each in found.values()}) > 1:
        lengths = ", ".join(f"{name} {len(each)}" for name, each in found.items())
        raise MeasureError(f"the columns have different lengths: {lengths}")
    return found


def varies(name: str, values: Floats) -> Floats:
    """Return numbers that are not all the same; others leave a test undefined."""
    if values.min() == values.max():
        raise Undefined(f"{name} has the same value in every row")
    return values


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a word that is none of the choices."""
    if value not in choices:
        raise MeasureError(f"{name} is {value!r}; expected {', '.join(map(repr, choices))}")


def check_level(level: float) -> None:
    """Refuse a level of confidence that is none."""
    if not 0 < level < 1:
        raise MeasureError(f"level is {level}; expected a share between 0 and 1")


def mean_ranks(values: Floats) -> tuple[Floats, Floats]:
    """Return ranks from 1, ties sharing their mean rank, and how many rows each distinct value has.

    >>> mean_ranks(np.array([3.0, 1.0, 3.0]))
    (array([2.5, 1. , 2.5]), array([1., 2.]))
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    highest = np.cumsum(counts)
    return np.asarray((highest - (counts - 1) / 2)[inverse]), counts.astype(np.float64)
