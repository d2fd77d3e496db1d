"""What other tests assume, tested: equal variances (Levene), a normal distribution (Shapiro and Wilk)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.samples import sample, varies
from acceptability.types import Floats

_MOST_FOR_SHAPIRO = 5000


@dataclass(frozen=True)
class Levene:
    """Whether groups spread alike.

    Args:
        f: The F of the distances from each group's median, with its degrees of freedom.
        eta_squared: The effect: the share of the variance of those distances that lies between groups.
    """

    f: float
    p: float
    df_between: int
    df_within: int
    eta_squared: float


@dataclass(frozen=True)
class ShapiroWilk:
    """Whether values come from a normal distribution: W is 1 where they look exactly so."""

    w: float
    p: float
    n: int
    note: str | None = None


def levene(*groups: ArrayLike) -> Levene:
    """Test whether groups have the same variance, by distances from their medians (Levene; Brown and Forsythe 1974).

    Assumes independent values; the median makes it robust where they are not normal. It says nothing about
    normality: that is ``shapiro_wilk``.
    """
    from scipy.stats import levene as scipy_levene

    if len(groups) < 2:
        raise MeasureError(f"equal variances need two groups or more; there are {len(groups)}")
    found = [sample(f"group {i + 1}", each, least=2) for i, each in enumerate(groups)]
    if not any((abs(each - _median(each)) != abs(each - _median(each))[0]).any() for each in found):
        raise Undefined("within each group all values are equally far from the median")
    f, p = scipy_levene(*found, center="median")
    between, within = len(found) - 1, sum(map(len, found)) - len(found)
    return Levene(float(f), float(p), between, within, float(f * between / (f * between + within)))


def shapiro_wilk(values: ArrayLike) -> ShapiroWilk:
    """Test whether values come from a normal distribution (Shapiro and Wilk 1965).

    Assumes independent values, three or more. With many of them it finds departures that do not matter; W itself
    is the effect size. Beyond 5,000 values p is not reliable, which a note says.
    """
    from scipy.stats import shapiro

    found = varies("the column", sample("the column", values, least=3))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*p-value may not be accurate", category=UserWarning)
        w, p = shapiro(found)
    note = f"p is not reliable for more than {_MOST_FOR_SHAPIRO} values" if len(found) > _MOST_FOR_SHAPIRO else None
    return ShapiroWilk(float(w), float(p), len(found), note)


def _median(values: Floats) -> float:
    return float(np.median(values))
