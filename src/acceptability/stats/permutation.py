"""Is one model better than another on the same rows, whatever the measure: a test that shuffles the two models.

If the models were interchangeable, swapping what they said about a row would change nothing. So rows (or clusters
of rows) are swapped at random, and p is how often the difference comes out at least as large as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from acceptability.errors import MeasureError, Undefined
from acceptability.protocols import Measure
from acceptability.stats.bootstrap import mean_of
from acceptability.stats.drawing import members, totals
from acceptability.stats.samples import ALTERNATIVES, check_choice
from acceptability.types import Floats, Units

_MOST_SUMS = 200_000
_CELLS = 2_000_000
_LEAST_DEFINED = 0.95
_ROUNDING = 1e-9
_LEAST_GAP = 1e-12
_LEAST_CHANGE = 1e-3
"""By how much a measure must change to depend on the scale: rounding may break or make a few ties."""


@dataclass(frozen=True)
class PermutationTest:
    """A difference between two models, and how surprising it is if they are interchangeable.

    Args:
        difference: The first model's value minus the second's: the effect, in the measure's own units.
        draws: How many swaps p rests on; None where all were counted, so that p is exact.
        unit: What was swapped: "row", or the tag of the clusters.
        n: How many of them there are.
    """

    difference: float
    p: float
    draws: int | None
    unit: str
    n: int
    alternative: str


def permutation_test(
    measure: Measure,
    first: Units,
    second: Units,
    *,
    by: str = "",
    draws: int = 10_000,
    seed: int = 0,
    alternative: str = "two-sided",
    standardise: Sequence[str] = (),
) -> PermutationTest:
    """Test whether two models differ on the same rows.

    Assumes that rows (with ``by``: clusters) are independent of each other and that, if the models do not differ,
    what they said about a row could be swapped. For measures that are means this flips the signs of differences;
    for others the rows are swapped and the measure is asked again. All swaps are counted where that is feasible;
    else ``draws`` are drawn, and p counts the observed one among them, so that it is never 0.

    Args:
        by: The tag whose values are swapped whole; empty for single rows.
        alternative: "two-sided", or "greater" or "less" for the first model's value.
        standardise: Columns that are on a scale of the model's own, such as ``("score",)`` for correlations: each
            model's, taken together, are brought to mean 0 and standard deviation 1 before they are swapped. A
            measure whose value changes by that has no such test.
    """
    check_choice("alternative", alternative, ALTERNATIVES)
    if first.ids != second.ids:
        raise MeasureError("the two models were measured on different rows; a paired test needs the same")
    if not len(first):
        raise Undefined("there are no rows to swap")
    if draws < 1:
        raise MeasureError(f"draws is {draws}; expected at least 1")
    column = mean_of(measure)
    if column and not standardise:
        sums = totals(first[column] - second[column], first, by)[0]
        p, drawn = _flipped(sums, draws, seed, alternative)
        return PermutationTest(float(sums.sum() / len(first)), p, drawn, by or "row", len(sums), alternative)
    parts = members(first, by)
    one, two = (_on_one_scale(measure, each, standardise) for each in (first, second))
    observed, p, drawn = _swapped(measure, (one, two), parts, (draws, seed), alternative)
    return PermutationTest(observed, p, drawn, by or "row", len(parts), alternative)


def sign_flip_test(
    differences: Floats, *, draws: int = 10_000, seed: int = 0, alternative: str = "two-sided"
) -> tuple[float, int | None]:
    """Return p for paired differences whose signs are arbitrary if nothing differs, and on how many draws it rests.

    >>> sign_flip_test(np.array([1.0, 2.0, 3.0]))
    (0.25, None)
    """
    check_choice("alternative", alternative, ALTERNATIVES)
    return _flipped(differences, draws, seed, alternative)


def _flipped(differences: Floats, draws: int, seed: int, alternative: str) -> tuple[float, int | None]:
    # Equal sizes flip alike: the sum of their signs is binomial. So a thousand pairs that differ by 1 are one number.
    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)
    observed = float(differences.sum())
    slack = _ROUNDING * max(float(np.abs(differences).sum()), 1e-300)
    if np.prod((counts + 1).astype(np.float64)) <= _MOST_SUMS:
        sums, chances = _every_sum(sizes, counts)
        return min(1.0, float(chances[_as_far(sums, observed, slack, alternative)].sum())), None
    generator = np.random.default_rng(seed)
    hits = sum(
        int(_as_far(sums, observed, slack, alternative).sum()) for sums in _some(sizes, counts, draws, generator)
    )
    return (hits + 1) / (draws + 1), draws


def _every_sum(sizes: Floats, counts: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return every sum that flips of signs can give, and the chance of each."""
    sums, chances = np.zeros(1), np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        positive = np.arange(count + 1)
        logs = (
            scipy.special.gammaln(count + 1)
            - scipy.special.gammaln(positive + 1)
            - scipy.special.gammaln(count - positive + 1)
            - count * np.log(2)
        )
        sums = (sums[:, None] + size * (2 * positive - count)).ravel()
        chances = (chances[:, None] * np.exp(logs)).ravel()
    return sums, chances


def _some(sizes: Floats, counts: NDArray[np.int64], draws: int, generator: np.random.Generator) -> Iterator[Floats]:
    """Yield sums of randomly flipped differences, some at a time."""
    at_once = max(1, _CELLS // len(sizes))
    for start in range(0, draws, at_once):
        positive = generator.binomial(counts, 0.5, size=(min(at_once, draws - start), len(sizes)))
        yield np.asarray((2 * positive - counts) @ sizes)


def _as_far(values: Floats, observed: float, slack: float, alternative: str) -> NDArray[np.bool_]:
    """Tell which values are at least as far out as the observed one, but for rounding."""
    if alternative == "two-sided":
        return np.abs(values) >= abs(observed) - slack
    return values >= observed - slack if alternative == "greater" else values <= observed + slack


def _swapped(
    measure: Measure,
    models: tuple[Units, Units],
    parts: list[NDArray[np.int64]],
    how: tuple[int, int],
    alternative: str,
) -> tuple[float, float, int | None]:
    """Return the difference, p, and on how many draws it rests, by swapping rows and asking the measure again."""
    draws, seed = how
    gap = _gap_after(measure, models, parts)
    observed = gap(np.zeros(len(parts), dtype=bool))
    if np.isnan(observed):
        raise Undefined("the measure is undefined for one of the models")
    is_exact = 2 ** len(parts) <= draws
    found = np.array(
        [gap(flips) for flips in (_all_flips(len(parts)) if is_exact else _flips(len(parts), draws, seed))]
    )
    defined = found[~np.isnan(found)]
    if len(defined) < _LEAST_DEFINED * len(found):
        raise Undefined(f"{len(found) - len(defined)} of {len(found)} swaps leave the measure undefined")
    slack = max(_ROUNDING * max(float(np.abs(defined).max(initial=0.0)), abs(observed)), _LEAST_GAP)
    hits = int(_as_far(defined, observed, slack, alternative).sum())
    if is_exact:
        return observed, hits / len(defined), None
    return observed, (hits + 1) / (len(defined) + 1), len(defined)


def _gap_after(
    measure: Measure, models: tuple[Units, Units], parts: list[NDArray[np.int64]]
) -> Callable[[NDArray[np.bool_]], float]:
    """Return the function that swaps some parts between models and returns the difference then, nan if undefined."""
    first, second = models
    owner = np.empty(len(first), dtype=np.int64)
    for place, rows in enumerate(parts):
        owner[rows] = place

    def gap(flips: NDArray[np.bool_]) -> float:
        swap = flips[owner]
        try:
            return measure.value(_mixed(first, second, swap)) - measure.value(_mixed(second, first, swap))
        except Undefined:
            return float("nan")

    return gap


def _mixed(mine: Units, other: Units, swap: NDArray[np.bool_]) -> Units:
    return Units((), {name: np.where(swap, other[name], column) for name, column in mine.columns.items()}, ())


def _all_flips(n: int) -> Iterator[NDArray[np.bool_]]:
    for number in range(2**n):
        yield (number >> np.arange(n)) % 2 == 1


def _flips(n: int, draws: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    generator = np.random.default_rng(seed)
    for _ in range(draws):
        yield generator.integers(0, 2, size=n) == 1


def _on_one_scale(measure: Measure, units: Units, columns: Sequence[str]) -> Units:
    """Return rows whose columns have, all together, mean 0 and standard deviation 1; a constant becomes 0."""
    if not columns:
        return units
    if lacking := [name for name in columns if name not in units.columns]:
        raise MeasureError(f"there is no column {lacking[0]!r} to standardise; there are {', '.join(units.columns)}")
    # One scale for all of them: what is measured may be how far one column lies above another.
    everything = np.concatenate([units[name] for name in columns])
    spread = float(everything.std()) or 1.0
    scaled = {name: (units[name] - everything.mean()) / spread for name in columns}
    found = Units(units.ids, {**units.columns, **scaled}, units.tags)
    if abs(measure.value(found) - measure.value(units)) > _LEAST_CHANGE:
        raise Undefined("the value depends on the scale of the scores, and two models' scores have none in common")
    return found
