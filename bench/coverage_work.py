"""What the cells of the coverage grid share: the amount of work, the window of true values, simulation in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acceptability.stats.intervals.closed_forms import Bounds
from acceptability.types import Floats

LEVEL = 0.95
RESAMPLES = 1000
SHARES = (0.5, 0.8, 0.9, 0.95, 0.99)
ENUMERATED_OFFSETS = np.linspace(-0.02, 0.02, 41)
SIMULATED_OFFSETS = np.linspace(-0.02, 0.02, 5)
_MAX_NUMBERS = 4_000_000
"""How many simulated numbers are in memory at once."""


@dataclass(frozen=True)
class Work:
    """How much is simulated.

    Args:
        closed: The number of samples for intervals in closed form.
        resampled: The number of samples for bootstrap intervals; 0 leaves these out.
        seed: The seed of all samples.
    """

    closed: int = 10_000
    resampled: int = 2_000
    seed: int = 0

    @property
    def drawn(self) -> int:
        """The number of samples for intervals whose ends are quantiles of draws, which take longer: a fifth."""
        return max(1, self.closed // 5)

    def make_generator(self, *key: object) -> np.random.Generator:
        """Return the random numbers of one cell."""
        return np.random.default_rng([self.seed, *"|".join(map(str, key)).encode()])


Coverages = Mapping[str, Sequence[float]]
"""By method: the coverage at each value of the window."""


@dataclass(frozen=True)
class Cell:
    """One design with one true value.

    Args:
        statistic: What is estimated.
        design: The sample.
        size: The number of sampling units.
        truth: The true value, or what decides it.
        is_discrete: Whether the statistic counts rows, so that coverage jumps with the true value.
        compute: From the amount of work to the coverage of each method.
    """

    statistic: str
    design: str
    size: int
    truth: str
    is_discrete: bool
    compute: Callable[[Work], Coverages]


def covers(bounds: Bounds, truth: Floats | float) -> Floats:
    # Rounding must not decide whether an end that is the truth covers it.
    return np.asarray((bounds[0] <= truth + 1e-12) & (truth - 1e-12 <= bounds[1]), dtype=np.float64)


def shift_share(share: float, offsets: Floats) -> Floats:
    """Return the window around a proportion; a proportion of 1 is left out, as all intervals cover it."""
    return np.asarray(share + offsets[share + offsets < 0.9999])


def iter_chunks(total: int, row_size: int) -> Iterator[int]:
    """Yield numbers of samples that fit into memory together."""
    most = max(1, _MAX_NUMBERS // row_size)
    for start in range(0, total, most):
        yield min(most, total - start)


def average_chunks(total: int, row_size: int, simulate: Callable[[int], Mapping[str, Floats]]) -> dict[str, float]:
    """Return the mean over all samples of what a function returns for some of them."""
    sums: dict[str, float] = {}
    for count in iter_chunks(total, row_size):
        for name, covered in simulate(count).items():
            sums[name] = sums.get(name, 0.0) + float(covered.sum())
    return {name: value / total for name, value in sums.items()}


def gather_points(points: Sequence[Mapping[str, float]]) -> Coverages:
    return {name: [point[name] for point in points] for name in points[0]}
