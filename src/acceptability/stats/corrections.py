"""p values of many tests, adjusted: of twenty tests of nothing one is below .05.

Both take p values in any order and give them back in that order. One that is undefined (None or nan) stays
undefined, as None, and is not counted among the tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from acceptability.errors import MeasureError
from acceptability.types import Floats

_Step: TypeAlias = Callable[[Floats, int], Floats]


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Return p values adjusted by Holm (1979): the chance of even one false alarm stays below the level.

    Assumes nothing about how the tests depend on each other.

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    return _adjusted(ps, lambda ordered, n: np.maximum.accumulate(ordered * np.arange(n, 0, -1)))


def benjamini_hochberg(ps: Sequence[float | None]) -> list[float | None]:
    """Return p values adjusted by Benjamini and Hochberg (1995): the share of false alarms among the findings.

    Assumes that the tests are independent or depend on each other positively.

    >>> benjamini_hochberg([0.01, 0.04, None, 0.02])
    [0.03, 0.04, None, 0.03]
    """
    return _adjusted(ps, lambda ordered, n: np.minimum.accumulate((ordered * n / np.arange(1, n + 1))[::-1])[::-1])


def _adjusted(ps: Sequence[float | None], step: _Step) -> list[float | None]:
    places = [place for place, p in enumerate(ps) if p is not None and not math.isnan(p)]
    defined = np.array([ps[place] for place in places], dtype=np.float64)
    if wrong := [p for p in defined.tolist() if not 0 <= p <= 1]:
        raise MeasureError(f"{wrong[0]} is no p value; expected a number from 0 to 1")
    order = np.argsort(defined, kind="stable")
    adjusted = np.minimum(step(defined[order], len(defined)), 1.0)
    found: list[float | None] = [None] * len(ps)
    for place, value in zip(order.tolist(), adjusted.tolist(), strict=True):
        found[places[place]] = value
    return found
