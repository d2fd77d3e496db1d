"""What a regression rests on: an outcome, and named predictors beside a constant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.samples import same_length, sample
from acceptability.types import Floats

CONSTANT = "(constant)"


@dataclass(frozen=True)
class Coefficient:
    """What one predictor contributes.

    Args:
        estimate: How much the outcome (in a logistic model: its log-odds) changes with one unit of the predictor.
        statistic: The estimate in units of its standard error: z, or t where there are degrees of freedom.
        low, high: Its interval.
        effect: The effect size that the model names: an odds ratio, or a partial eta squared.
        effect_low, effect_high: The odds ratio's interval; None for other effect sizes.
    """

    name: str
    estimate: float
    se: float
    statistic: float
    p: float
    low: float
    high: float
    effect: float | None = None
    effect_low: float | None = None
    effect_high: float | None = None


def design(outcome: ArrayLike, predictors: Mapping[str, ArrayLike]) -> tuple[Floats, Floats, list[str]]:
    """Return outcome, table of a constant and the predictors, and their names; predictors must tell rows apart."""
    y = sample("the outcome", outcome)
    columns = same_length({"outcome": y, **predictors})
    if "outcome" in predictors or CONSTANT in predictors:
        raise MeasureError(f"a predictor may be called neither 'outcome' nor {CONSTANT!r}")
    names = [CONSTANT, *predictors]
    table = np.column_stack([np.ones(len(y)), *(columns[name] for name in predictors)])
    if len(y) < len(names):
        raise Undefined(f"{len(names)} coefficients cannot be told from {len(y)} rows")
    if np.linalg.matrix_rank(table) < len(names):
        raise Undefined(f"of {', '.join(names)} one is constant, or a sum of multiples of the others: leave it away")
    return y, table, names


def binary(values: Floats) -> Floats:
    """Return an outcome of 0 and 1, of both classes."""
    if wrong := sorted(set(values.tolist()) - {0.0, 1.0}):
        raise MeasureError(f"the outcome has the value {wrong[0]:g}; a logistic model needs 0 and 1")
    if values.min() == values.max():
        raise Undefined(f"the outcome is {values[0]:g} in every row")
    return values


def separating(y: Floats, table: Floats, names: list[str]) -> list[str]:
    """Return the predictors along which a line parts the outcomes, wholly or but for rows upon it (Konis 2007)."""
    from scipy.optimize import linprog

    turned = (2 * y - 1)[:, None] * (table / np.abs(table).max(axis=0))
    found = linprog(-turned.sum(axis=0), A_ub=-turned, b_ub=np.zeros(len(y)), bounds=[(-1, 1)] * len(names))
    if not found.success or -found.fun < 1e-7 * len(y):
        return []
    return [name for name, each in zip(names[1:], found.x[1:], strict=True) if abs(each) > 1e-9] or names[1:]


def dummies(name: str, labels: ArrayLike) -> dict[str, Floats]:
    """Return a predictor of 0 and 1 for each label of a factor but the first, which is what they are compared with.

    >>> dummies("suite", ["a", "b", "a"])
    {'suite=b': array([0., 1., 0.])}
    """
    found = np.asarray(labels, dtype=str)
    return {f"{name}={level}": (found == level).astype(np.float64) for level in np.unique(found)[1:].tolist()}


def named(coefficients: tuple[Coefficient, ...], name: str) -> Coefficient:
    """Return the coefficient of a name."""
    found = {each.name: each for each in coefficients}
    if name not in found:
        raise KeyError(f"no coefficient {name!r}; there are {', '.join(found)}")
    return found[name]


def wald(name: str, estimate: float, se: float, level: float, *, is_odds: bool) -> Coefficient:
    """Return a coefficient whose estimate is taken as normal."""
    z = estimate / se
    half = float(ndtri((1 + level) / 2)) * se
    ends = estimate - half, estimate + half
    odds = [float(np.exp(each)) for each in (estimate, *ends)] if is_odds else [None, None, None]
    return Coefficient(name, estimate, se, z, 2 * float(ndtr(-abs(z))), *ends, *odds)
