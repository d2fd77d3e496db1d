"""Random intercepts for crossed groups (items, types, people), as matrices: which row is in which group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.samples import labels
from acceptability.types import Floats


@dataclass(frozen=True, eq=False)
class Groups:
    """Which group of each kind a row is in: a sparse table of 0 and 1, a column each group."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    table: Any

    def spread(self, thetas: Floats) -> Floats:
        """Return each group's standard deviation, from those of the kinds."""
        return np.repeat(thetas, self.sizes)


def grouped(random: Mapping[str, Sequence[object]], n: int) -> Groups:
    """Return the groups of rows; a kind with one group only cannot vary."""
    from scipy import sparse

    if not random:
        raise MeasureError("a mixed model needs random effects, such as {'item': [...]}; without, use a regression")
    tables, sizes = [], []
    for name, given in random.items():
        levels, codes = labels(name, given, n)
        if len(levels) < 2:
            raise Undefined(f"all rows have the same {name}, {levels[0]!r}: its spread cannot be told")
        tables.append(sparse.csr_matrix((np.ones(n), (np.arange(n), codes)), shape=(n, len(levels))))
        sizes.append(len(levels))
    return Groups(tuple(random), tuple(sizes), sparse.hstack(tables, format="csr"))


def minimum(value: Callable[[Floats], float], start: Floats, spreads: int, largest: float) -> Floats:
    """Return where a smooth criterion is least; its first parameters are spreads, which are not negative.

    Raises:
        Undefined: A spread reaches the largest that is believed.
        MeasureError: The search stopped on a slope.
    """
    from scipy.optimize import minimize

    bounds = [(0.0, largest)] * spreads + [(None, None)] * (len(start) - spreads)
    options = {"maxiter": 1000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-7}
    found = minimize(value, start, method="L-BFGS-B", jac="3-point", bounds=bounds, options=options)
    at = np.asarray(found.x, dtype=np.float64)
    if (at[:spreads] > 0.99 * largest).any():
        raise Undefined("the spread of a random effect grows without end: within its groups all rows are alike")
    slope = np.asarray(found.jac)
    slope[:spreads] = np.where(at[:spreads] <= 0, np.minimum(slope[:spreads], 0), slope[:spreads])
    if np.abs(slope).max() > 0.01:
        raise MeasureError(f"the mixed model did not settle (slope {np.abs(slope).max():.3g}): use fewer predictors")
    return at


def curvature(value: Callable[[Floats], float], at: Floats, step: float = 1e-3) -> Floats:
    """Return the second derivatives of a criterion, by differences of the fourth order along the axes."""
    n = len(at)
    found = np.empty((n, n))
    unit = np.eye(n) * step
    middle = value(at)
    for i in range(n):
        near, far = (value(at + k * unit[i]) + value(at - k * unit[i]) for k in (1, 2))
        found[i, i] = (16 * near - far - 30 * middle) / (12 * step**2)
        for j in range(i):
            corners = [value(at + a * unit[i] + b * unit[j]) * a * b for a in (1, -1) for b in (1, -1)]
            found[i, j] = found[j, i] = sum(corners) / (4 * step**2)
    return found
