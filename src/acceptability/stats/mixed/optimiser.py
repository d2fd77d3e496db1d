"""Minimisation of a deviance with an exact gradient: L-BFGS-B, then Newton steps, then proof that it is a minimum.

The search is without bounds. A deviance does not change when a column of a template changes its sign, so that a
variance of 0 is an ordinary minimum, with a horizontal tangent, and needs no border. For the same reason every variance
of 0 is stationary, a minimum or not: the Hessian tells which, and the search goes on where it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from acceptability.errors import MeasureError
from acceptability.types import Floats

DevianceAndGradient = Callable[[Floats], tuple[float, Floats]]

# By how much a deviance may still fall, in its own units, where the search is said to have converged. A hundredth of a
# standard error of a coefficient is 1e-4.
_MAX_DECREMENT = 1e-6
# Where Newton's steps stop: the rounding error of a deviance of some thousands.
_SMALL_DECREMENT = 1e-12
_NEWTON_STEPS = 10
_ROUNDS = 6
# Differences of the gradient over steps of this size have an error of its square, and of the gradient's rounding.
_DIFFERENCE_STEP = 1e-4
# Curvature below this share of the largest counts as none: a direction in which the deviance is flat.
_FLAT = 1e-9
# Relative to the largest curvature: what differences of gradients leave of a curvature of 0.
_ROUGH = 1e-6
# Newton steps are shortened until one leads closer to the minimum.
_STEP_LENGTHS = (1.0, 0.5, 0.2, 0.05)
# How far the bottom of a direction without curvature is looked for.
_FLAT_STEPS = (0.003, 0.01, 0.03, 0.1, 0.3)
# Negative curvature beyond this share of the largest is a saddle, not a rounding error.
_SADDLE = 1e-6


@dataclass(frozen=True, eq=False)
class Minimum:
    """A minimum of a deviance.

    Args:
        x: Where it is.
        value: The deviance there.
        hessian: Its second derivatives there.
        evaluations: How often the deviance was computed.
        optimiser: Which search found it.
    """

    x: Floats
    value: float
    hessian: Floats
    evaluations: int
    optimiser: str


def minimise(function: DevianceAndGradient, start: Floats, *, limit: float = np.inf) -> Minimum:
    """Return the minimum of a smooth deviance that is found from a starting point.

    Args:
        function: The deviance and its gradient; the parameters should have a scale of about 1.
        start: Where the search starts.
        limit: A parameter beyond it, of either sign, ends the search: the deviance has no minimum, which the caller has
            to say.

    Raises:
        MeasureError: The search did not converge.
    """
    from scipy.optimize import minimize

    counter = _Counter(function)
    x, decrement = np.asarray(start, dtype=np.float64), np.inf
    for attempt in range(_ROUNDS):
        # Every second attempt without the gradient, in case that rounding errors mislead the line search.
        method = "Powell" if attempt % 2 else "L-BFGS-B"
        options = {"maxiter": 2000, "ftol": 1e-13, "gtol": 1e-7, "maxcor": 30, "maxfun": 20_000}
        if method == "L-BFGS-B":
            x = minimize(counter.evaluate, x, method=method, jac=True, options=options).x
        else:
            x = minimize(lambda at: counter.evaluate(at)[0], x, method=method, options={"xtol": 1e-6, "ftol": 1e-12}).x
        x, hessian, decrement = _polish(counter.evaluate, x)
        if (np.abs(x) > limit).any():
            return Minimum(x, counter.evaluate(x)[0], hessian, counter.count, method)
        values, vectors = np.linalg.eigh(hessian)
        if values[0] < -_SADDLE * max(float(np.abs(values).max()), 1.0):
            x = _leave_saddle(counter.evaluate, x, vectors[:, 0])
        elif decrement <= _MAX_DECREMENT:
            return Minimum(x, counter.evaluate(x)[0], hessian, counter.count, f"{method}, Newton")
    raise MeasureError(
        f"the mixed model did not converge (its deviance could still fall by about {decrement:.2g}): standardise the "
        "predictors, leave out random slopes, or the correlations between them ('||' instead of '|')"
    )


class _Counter:
    """A deviance that counts its evaluations."""

    def __init__(self, function: DevianceAndGradient) -> None:
        self.function, self.count = function, 0

    def evaluate(self, x: Floats) -> tuple[float, Floats]:
        self.count += 1
        return self.function(x)


def _polish(function: DevianceAndGradient, x: Floats) -> tuple[Floats, Floats, float]:
    """Return the point after Newton steps, the Hessian, and by how much the deviance could still fall."""
    for _ in range(_ROUNDS):
        start, hessian = x, differentiate_gradient(lambda at: function(at)[1], x)
        x, decrement = _take_newton_steps(function, x, hessian)
        if decrement > _MAX_DECREMENT:
            x = _follow_flat_directions(function, x, hessian)
        moved = float(np.abs(x - start).max())
        # In a nearly flat direction the curvature is another one a step further on: only a new Hessian helps there.
        if decrement <= _MAX_DECREMENT or moved == 0:
            break
    # The Hessian is part of the result; where the steps were large it belongs to another point.
    if moved > 10 * _DIFFERENCE_STEP:
        hessian = differentiate_gradient(lambda at: function(at)[1], x)
    return x, hessian, decrement


def _take_newton_steps(function: DevianceAndGradient, x: Floats, hessian: Floats) -> tuple[Floats, float]:
    """Return the point after Newton steps by one Hessian, and by how much the deviance could still fall."""
    values, vectors = np.linalg.eigh(hessian)
    # Curvature below this is the rounding error of differences. A step by it would be long, and could lead anywhere.
    sizes = np.maximum(np.abs(values), _ROUGH * max(float(np.abs(values).max()), 1e-300))
    inverse = np.asarray((vectors / sizes) @ vectors.T)
    value, gradient = function(x)
    decrement = float(gradient @ inverse @ gradient) / 2
    for _ in range(_NEWTON_STEPS):
        if decrement <= _SMALL_DECREMENT:
            break
        for length in _STEP_LENGTHS:
            candidate = x - length * (inverse @ gradient)
            candidate_value, candidate_gradient = function(candidate)
            candidate_decrement = float(candidate_gradient @ inverse @ candidate_gradient) / 2
            # The deviance may rise by its rounding error; the decrement tells whether the step was one to the minimum.
            if (
                candidate_value <= value + 1e-9 * max(1.0, abs(value))
                and candidate_decrement <= (1 - length / 2) * decrement
            ):
                break
        else:
            break
        x, value, gradient, decrement = candidate, candidate_value, candidate_gradient, candidate_decrement
    return x, decrement


def _follow_flat_directions(function: DevianceAndGradient, x: Floats, hessian: Floats) -> Floats:
    """Return the point where the slope along each direction without curvature is 0, as far as one is near.

    Around a standard deviation of 0 a deviance may fall with its fourth power. A Newton step is then far too long, and
    says nothing about how far the deviance could still fall; the sign of the slope tells where the bottom is.
    """
    from scipy.optimize import brentq

    values, vectors = np.linalg.eigh(hessian)
    for i in np.flatnonzero(np.abs(values) <= _ROUGH * float(np.abs(values).max())).tolist():
        origin, direction = x, vectors[:, i]

        def compute_slope(length: float, origin: Floats = origin, direction: Floats = direction) -> float:
            return float(function(origin + length * direction)[1] @ direction)

        slope = compute_slope(0.0)
        if slope == 0:
            continue
        step = -float(np.sign(slope))
        for length in _FLAT_STEPS:
            if compute_slope(step * length) * slope < 0:
                x = origin + brentq(compute_slope, 0.0, step * length, xtol=1e-9) * direction
                break
    return x


def _leave_saddle(function: DevianceAndGradient, x: Floats, direction: Floats) -> Floats:
    """Return the lowest of some points along a direction in which the deviance bends downwards."""
    candidates = [x + step * direction for step in (-1.0, -0.3, -0.1, -0.03, 0.03, 0.1, 0.3, 1.0)]
    return min(candidates, key=lambda at: function(at)[0])


def differentiate_gradient(gradient: Callable[[Floats], Floats], x: Floats) -> Floats:
    """Return the derivative of a gradient (or of any vector) by central differences, symmetrised if it is square.

    The result has the shape (parameters, length of the vector).
    """
    steps = _DIFFERENCE_STEP * np.maximum(1.0, np.abs(x))
    rows = []
    for i, step in enumerate(steps.tolist()):
        shift = np.zeros_like(x)
        shift[i] = step
        rows.append((gradient(x + shift) - gradient(x - shift)) / (2 * step))
    table = np.array(rows)
    return (table + table.T) / 2 if table.ndim == 2 and table.shape[0] == table.shape[1] else table


def invert_hessian(hessian: Floats) -> Floats:
    """Return the inverse of a Hessian, with 0 for directions in which the deviance is flat.

    Negative curvature, at most a rounding error at a minimum, counts as positive, so that Newton's steps go downwards.
    """
    values, vectors = np.linalg.eigh(hessian)
    sizes = np.abs(values)
    is_curved = sizes > _FLAT * max(float(sizes.max()), 1e-300)
    return np.asarray((vectors[:, is_curved] / sizes[is_curved]) @ vectors[:, is_curved].T)
