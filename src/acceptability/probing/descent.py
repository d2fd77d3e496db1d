"""L-BFGS for many convex functions at once (Nocedal and Wright 2006, algorithm 7.5): each column is one by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from acceptability.types import Floats

Slope = Callable[[Floats], tuple[Floats, Floats]]
"""From points, one a column, to what each function is there, and its gradient."""

_REMEMBERED = 10
_HALVINGS = 30
_DESCENT = 1e-4


@dataclass(frozen=True, eq=False)
class _Step:
    """A step that was taken, how the gradient changed with it, and one over their product; 0 where nothing moved."""

    moved: Floats
    changed: Floats
    inverse: Floats


def lowest(function: Slope, start: Floats, *, tolerance: float = 1e-5, steps: int = 1000) -> Floats:
    """Return where each function is lowest: where no number of its gradient is beyond the tolerance.

    Args:
        steps: After how many steps the search ends in any case.
    """
    here = start
    value, gradient = function(here)
    known: list[_Step] = []
    for _ in range(steps):
        is_open = np.abs(gradient).max(0) > tolerance
        if not is_open.any():
            break
        way = np.where(is_open, -_newton(gradient, known), 0.0)
        there, new_value, new_gradient = _searched(function, here, value, gradient, way)
        known = [*known[1 - _REMEMBERED :], _taken(there - here, new_gradient - gradient)]
        if (there == here).all():
            break
        here, value, gradient = there, new_value, new_gradient
    return here


def _searched(
    function: Slope, here: Floats, value: Floats, gradient: Floats, way: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return a point on the way at which each function is low enough, and value and gradient there."""
    share, slope = np.ones(here.shape[1]), (gradient * way).sum(0)
    for _ in range(_HALVINGS):
        there = here + share * way
        found, steepness = function(there)
        is_high = found > value + _DESCENT * share * slope
        if not is_high.any():
            return there, found, steepness
        share = np.where(is_high, share / 2, share)
    # Rounding leaves no lower point: columns that found none stay.
    there = np.where(is_high, here, there)
    return there, *function(there)


def _taken(moved: Floats, changed: Floats) -> _Step:
    product = (moved * changed).sum(0)
    return _Step(moved, changed, np.divide(1.0, product, out=np.zeros_like(product), where=product > 1e-300))


def _newton(gradient: Floats, known: list[_Step]) -> Floats:
    """Return the gradient, multiplied by what the steps tell of the inverse curvature."""
    way, shares = gradient, []
    for step in reversed(known):
        share = step.inverse * (step.moved * way).sum(0)
        shares.append(share)
        way = way - share * step.changed
    way = way * _scale(known, gradient.shape[1])
    for step, share in zip(known, reversed(shares), strict=True):
        way = way + (share - step.inverse * (step.changed * way).sum(0)) * step.moved
    return way


def _scale(known: list[_Step], count: int) -> Floats:
    """Return how long a step should be, by the last one; 1 where there was none."""
    if not known:
        return np.ones(count)
    size = known[-1].inverse * (known[-1].changed ** 2).sum(0)
    return np.asarray(np.divide(1.0, size, out=np.ones(count), where=size > 0))
