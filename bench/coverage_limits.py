"""How rarely any interval of a paired difference can cover: the least possible coverage where few rows are discordant.

Whether an interval contains a difference is a yes or no for every number of gains and losses. Of all such choices, a
mixed-integer program finds the one that covers least often in a cell of the grid, if the interval

- covers in .92 of samples at least, whatever the number of discordant rows (which nobody knows),
- contains the difference the sooner, the nearer the observed one is to it,
- does not change if the two models are swapped.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy
from scipy.optimize import Bounds, LinearConstraint, milp

from acceptability.types import Floats
from bench.coverage_counts import compute_pair_chances, compute_paired_shares
from bench.coverage_work import SIMULATED_OFFSETS, shift_share

_LEAST = 0.92
_SECONDS = 60
Pair = tuple[int, int]


def find_least_coverage(n: int, shares: tuple[float, float], phi: float) -> float:
    """Return the least possible coverage of the difference of two proportions of n rows, averaged over the window."""
    first, second = shares
    pairs = [(gains, losses) for gains in range(n + 1) for losses in range(n + 1 - gains)]
    gains, losses = np.array(pairs, dtype=np.float64).T
    window = shift_share(max(shares), SIMULATED_OFFSETS) - max(shares)
    chances = [
        compute_pair_chances(gains, losses, n, compute_paired_shares(first + offset, second + offset, phi))
        for offset in window
    ]
    constraints = [
        LinearConstraint(np.array(list(_iter_samples(gains, losses, n, first - second))), lb=_LEAST),
        LinearConstraint(_order_pairs(pairs, round((first - second) * n, 9)), lb=0),
    ]
    if first == second:
        constraints.append(LinearConstraint(_mirror_pairs(pairs), lb=0, ub=0))
    found = milp(
        np.mean(chances, axis=0),
        integrality=np.ones(len(pairs)),
        bounds=Bounds(0, 1),
        constraints=constraints,
        options={"time_limit": _SECONDS},
    )
    # The bound that is proved, whether or not the search ended in time.
    return float(found.mip_dual_bound)


def _iter_samples(gains: Floats, losses: Floats, n: int, difference: float) -> Iterator[Floats]:
    """Yield the chances of all outcomes for many rates of losses, under one difference."""
    for loss in np.concatenate([np.geomspace(0.0005, 0.05, 25), np.linspace(0.06, (1 - difference) / 2, 30)]):
        yield compute_pair_chances(gains, losses, n, (loss + difference, loss))


def _order_pairs(pairs: list[Pair], net: float) -> scipy.sparse.csr_matrix:
    """Return rows that say: an outcome further from a net gain is accepted only if the one before it is."""
    index = {pair: i for i, pair in enumerate(pairs)}
    steps = []
    for (gains, losses), i in index.items():
        further = [(gains + 1, losses), (gains, losses - 1)] if gains - losses >= net else []
        further += [(gains - 1, losses), (gains, losses + 1)] if gains - losses <= net else []
        steps += [(i, index[pair]) for pair in further if pair in index]
    return _build_differences(steps, len(pairs))


def _mirror_pairs(pairs: list[Pair]) -> scipy.sparse.csr_matrix:
    index = {pair: i for i, pair in enumerate(pairs)}
    return _build_differences([(i, index[losses, gains]) for (gains, losses), i in index.items()], len(pairs))


def _build_differences(steps: list[Pair], width: int) -> scipy.sparse.csr_matrix:
    """Return a row for each two outcomes: the first minus the second."""
    rows = np.repeat(np.arange(len(steps)), 2)
    values = np.tile([1.0, -1.0], len(steps))
    return scipy.sparse.csr_matrix((values, (rows, np.array(steps).ravel())), shape=(len(steps), width))
