"""Permutation tests of two models over the same rows, for any measure; p values adjusted for multiple tests.

If two models were interchangeable (the null hypothesis), swapping their scores of a row would change nothing. So rows,
or clusters of rows, are swapped at random, and p is the share of swaps with a difference at least as large as the
observed one (`permutation_test`). For means that is a sign-flip test of the row-wise differences (`sign_flip_test`),
which is exact wherever its sums can be enumerated.

`exact_correlation_p` enumerates all orders of a few rows, for the p of a rank correlation.

`holm` and `benjamini_hochberg` adjust the p values of many tests: of twenty tests where nothing differs, one is below
.05 by chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from acceptability.errors import MeasureError, Undefined
from acceptability.protocols import Statistic
from acceptability.stats.resampling import cluster_rows, get_cluster_keys, sum_by_cluster
from acceptability.stats.samples import ALTERNATIVES, check_choice
from acceptability.types import Floats, Units

# The number of distinct sums up to which all sign flips are enumerated rather than sampled, so that p is exact.
_MAX_SUMS = 200_000
# How many random signs are in memory at once: 16 MB.
_MAX_SIGNS = 2_000_000
# With a few undefined swaps left out p is still about the same; with many it would rest on a selection.
_MIN_DEFINED_SHARE = 0.95
# Two swaps with the same difference on paper differ in the last digits, depending on the order of summation. What is
# this close to the observed difference (relative to the largest possible one) counts as equal, else p of tied data is
# random.
_ROUNDING = 1e-9
# The same for differences that are all 0 but for rounding, where a relative bound would be 0 too.
_MIN_SLACK = 1e-12
# A measure depends on the scale if standardising the scores changes it by more: rounding may break or make a few ties.
_MIN_CHANGE = 1e-3


@dataclass(frozen=True)
class PermutationTest:
    """A difference between two models, with its p under the hypothesis that they are interchangeable.

    Args:
        difference: The effect size: the first model's value minus the second's, in the measure's own units.
        draws: The number of random swaps; None where all were enumerated, so that p is exact.
        unit: What was swapped: "row", or the tag of the clusters.
        n: The number of rows or clusters.
    """

    difference: float
    p: float
    draws: int | None
    unit: str
    n: int
    alternative: str


def permutation_test(
    measure: Statistic,
    first: Units,
    second: Units,
    *,
    by: str = "",
    draws: int = 10_000,
    seed: int = 0,
    alternative: str = "two-sided",
    standardise: Sequence[str] = (),
) -> PermutationTest:
    """Test whether two models differ on the same rows (paired permutation test).

    Assumes that rows (with ``by``: clusters) are independent of each other and that, if the models do not differ,
    their scores of a row could be swapped. For measures that are means this flips the signs of differences; for others
    rows are swapped and the measure is evaluated again. All swaps are enumerated where that is feasible; else
    ``draws`` are sampled, and p counts the observed one among them, so that it is never 0. Thresholds that were fitted
    to the scores of each model are fitted again to the swapped ones.

    Args:
        by: The tag whose values are swapped whole; empty for single rows.
        draws: The number of random swaps where not all are enumerated.
        alternative: "two-sided", or "greater" or "less" for the first model's value.
        standardise: Columns on a scale of the model's own, such as ``("score",)`` for correlations: those of each model
            together are brought to mean 0 and standard deviation 1 before they are swapped.

    Raises:
        Undefined: There are no rows, the measure is undefined, it depends on the scale of ``standardise``, or the
            threshold of only one model is fitted.
    """
    check_choice("alternative", alternative, ALTERNATIVES)
    if first.ids != second.ids:
        raise MeasureError("the two models were measured on different rows; a paired test needs the same")
    if not len(first):
        raise Undefined("there are no rows to swap")
    if draws < 1:
        raise MeasureError(f"draws is {draws}; expected at least 1")
    if first.refit or second.refit:
        return _test_refitted(measure, (first, second), by, (draws, seed), alternative)
    column = measure.mean_of
    # Standardised columns no longer have the mean that the measure reports, so that those go the general way.
    if column and not standardise:
        sums = sum_by_cluster(first[column] - second[column], first, by)[0]
        p, draws_used = _sign_flip_p(sums, draws, seed, alternative)
        return PermutationTest(float(sums.sum() / len(first)), p, draws_used, by or "row", len(sums), alternative)
    clusters = cluster_rows(first, by)
    models = tuple(_standardise_columns(measure, units, standardise) for units in (first, second))
    compute_difference = _make_difference_function(measure, (models[0], models[1]), clusters)
    observed, p, draws_used = _swap_test(compute_difference, len(clusters), (draws, seed), alternative)
    return PermutationTest(observed, p, draws_used, by or "row", len(clusters), alternative)


def macro_permutation_test(
    measure: Statistic,
    groups: Sequence[tuple[Units, Units]],
    *,
    by: str = "",
    draws: int = 10_000,
    seed: int = 0,
    alternative: str = "two-sided",
    standardise: Sequence[str] = (),
) -> PermutationTest:
    """Test whether two models differ in the mean over groups of a measure, such as over paradigms.

    Rows, or clusters, are swapped as in `permutation_test`, and the measure is evaluated within each group. A cluster
    that has rows in several groups is swapped in all of them; where each group is one cluster, groups are swapped.

    Args:
        groups: The rows of both models in each group.
        by, draws, seed, alternative, standardise: As in `permutation_test`.

    Raises:
        Undefined: The measure is undefined in a group, or depends on the scale of ``standardise``.
    """
    check_choice("alternative", alternative, ALTERNATIVES)
    if not groups or not all(len(first) for first, _ in groups):
        raise Undefined("there are groups without rows to swap")
    keys = [
        np.array(get_cluster_keys(first, by)) if by else np.array([f"{index}/{row}" for row in range(len(first))])
        for index, (first, _) in enumerate(groups)
    ]
    names, codes = np.unique(np.concatenate(keys), return_inverse=True)
    code_of_row = np.split(codes, np.cumsum([len(part) for part in keys])[:-1])
    column, n = measure.mean_of, len(names)
    if column and not standardise:
        # Each row weighs as much as it does in the mean over groups.
        weighted = [(first[column] - second[column]) / (len(first) * len(groups)) for first, second in groups]
        sums = np.bincount(codes, weights=np.concatenate(weighted), minlength=n).astype(np.float64)
        p, draws_used = _sign_flip_p(sums, draws, seed, alternative)
        return PermutationTest(float(sums.sum()), p, draws_used, by or "row", n, alternative)
    scaled = [
        (_standardise_columns(measure, first, standardise), _standardise_columns(measure, second, standardise))
        for first, second in groups
    ]

    def compute_difference(is_swapped: NDArray[np.bool_]) -> float:
        values = []
        for (first, second), cluster in zip(scaled, code_of_row, strict=True):
            swap = is_swapped[cluster]
            try:
                values.append(
                    measure.value(_swap_rows(first, second, swap)) - measure.value(_swap_rows(second, first, swap))
                )
            except Undefined:
                return float("nan")
        return float(np.mean(values))

    observed, p, draws_used = _swap_test(compute_difference, n, (draws, seed), alternative)
    return PermutationTest(observed, p, draws_used, by or "row", n, alternative)


MAX_EXACT_CORRELATION_ROWS = 9
"""Up to so many rows a rank correlation has an exact p: they have 362,880 orders, and ten rows ten times as many."""


def exact_correlation_p(first: Floats, second: Floats, kind: str) -> float:
    """Return the exact two-sided p of a rank correlation: how many orders of the rows correlate at least as much.

    Ties are as in the columns themselves. For at most `MAX_EXACT_CORRELATION_ROWS` rows.

    Args:
        first, second: The ranks of the rows.
        kind: "spearman" or "kendall".

    >>> exact_correlation_p(np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 3, 4]), "spearman")
    0.08333333333333333
    """
    orders = _list_orders(len(first))
    if kind == "spearman":
        sums = (second - second.mean())[orders] @ (first - first.mean())
    else:
        earlier, later = np.triu_indices(len(first), 1)
        signs, other_signs = np.sign(first[later] - first[earlier]), np.sign(second[:, None] - second)
        sums = np.zeros(len(orders))
        for sign, i, j in zip(signs, earlier, later, strict=True):
            sums += sign * other_signs[orders[:, j], orders[:, i]]
    # The first of all orders is that of the rows themselves.
    observed = abs(float(sums[0]))
    return float((np.abs(sums) >= observed - max(_ROUNDING * observed, _MIN_SLACK)).mean())


def _list_orders(n: int) -> NDArray[np.int8]:
    """Return all orders of n rows, one in each row of an array, first that in which they are."""
    orders = np.zeros((1, 1), dtype=np.int8)
    for size in range(2, n + 1):
        orders = np.concatenate([np.insert(orders, place, size - 1, axis=1) for place in reversed(range(size))])
    return orders


def sign_flip_test(
    differences: Floats, *, draws: int = 10_000, seed: int = 0, alternative: str = "two-sided"
) -> tuple[float, int | None]:
    """Return p of a mean of paired differences whose signs are arbitrary under the null hypothesis.

    Returns:
        The p value, and the number of random draws; None where all flips were enumerated.

    >>> sign_flip_test(np.array([1.0, 2.0, 3.0]))
    (0.25, None)
    """
    check_choice("alternative", alternative, ALTERNATIVES)
    return _sign_flip_p(differences, draws, seed, alternative)


def _sign_flip_p(differences: Floats, draws: int, seed: int, alternative: str) -> tuple[float, int | None]:
    # Differences of equal size are grouped, since the sum of their signs is binomial: a thousand rows that differ by 1
    # or −1 have 1,001 sums rather than 2^1000 flips. So right and wrong answers nearly always get an exact p,
    # McNemar's.
    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)
    observed = float(differences.sum())
    slack = _ROUNDING * max(float(np.abs(differences).sum()), 1e-300)
    # In floating point, as the product of many counts overflows an integer and may come out small.
    if np.prod((counts + 1).astype(np.float64)) <= _MAX_SUMS:
        sums, probabilities = _enumerate_sums(sizes, counts)
        return min(1.0, float(probabilities[_is_as_extreme(sums, observed, slack, alternative)].sum())), None
    generator = np.random.default_rng(seed)
    hits = sum(
        int(_is_as_extreme(sums, observed, slack, alternative).sum())
        for sums in _sample_sums(sizes, counts, draws, generator)
    )
    return (hits + 1) / (draws + 1), draws


def _enumerate_sums(sizes: Floats, counts: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return every sum that sign flips can give, and its probability.

    Args:
        sizes: The distinct absolute differences.
        counts: How many differences have each size.
    """
    sums, probabilities = np.zeros(1), np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        positive = np.arange(count + 1)
        # Binomial probabilities from logarithms, since the coefficients overflow from about 1,030 rows on.
        log_probabilities = (
            scipy.special.gammaln(count + 1)
            - scipy.special.gammaln(positive + 1)
            - scipy.special.gammaln(count - positive + 1)
            - count * np.log(2)
        )
        sums = (sums[:, None] + size * (2 * positive - count)).ravel()
        probabilities = (probabilities[:, None] * np.exp(log_probabilities)).ravel()
    return sums, probabilities


def _sample_sums(
    sizes: Floats, counts: NDArray[np.int64], draws: int, generator: np.random.Generator
) -> Iterator[Floats]:
    """Yield the sums of randomly flipped differences, in batches."""
    batch_size = max(1, _MAX_SIGNS // len(sizes))
    for start in range(0, draws, batch_size):
        positive = generator.binomial(counts, 0.5, size=(min(batch_size, draws - start), len(sizes)))
        yield np.asarray((2 * positive - counts) @ sizes)


def _is_as_extreme(values: Floats, observed: float, slack: float, alternative: str) -> NDArray[np.bool_]:
    """Return which values are at least as extreme as the observed one, up to rounding."""
    if alternative == "two-sided":
        return np.abs(values) >= abs(observed) - slack
    return values >= observed - slack if alternative == "greater" else values <= observed + slack


def _test_refitted(
    measure: Statistic, models: tuple[Units, Units], by: str, draws_and_seed: tuple[int, int], alternative: str
) -> PermutationTest:
    """Test two models whose thresholds are fitted: their standardised scores are swapped, and both are fitted again.

    Swapping only the decisions would keep the thresholds of the sample, and find differences where there are none.
    """
    first, second = models
    refit_first, refit_second = first.refit, second.refit
    if refit_first is None or refit_second is None:
        raise Undefined(
            "the threshold of one model is fitted and that of the other is not, so that no rows can be swapped"
        )
    difference = measure.value(first) - measure.value(second)
    clusters = cluster_rows(first, by)
    cluster_of_row = _index_clusters(clusters, len(first))
    ones = np.ones(len(first))
    # Each model by itself: their scales differ, and a fitted threshold moves with its scale.
    scores_first, scores_second = (_standardise(units["score"]) for units in models)

    def compute_difference(is_swapped: NDArray[np.bool_]) -> float:
        swap = is_swapped[cluster_of_row]
        return refit_first(ones, np.where(swap, scores_second, scores_first)) - refit_second(
            ones, np.where(swap, scores_first, scores_second)
        )

    _, p, draws_used = _swap_test(compute_difference, len(clusters), draws_and_seed, alternative)
    return PermutationTest(difference, p, draws_used, by or "row", len(clusters), alternative)


def _standardise(scores: Floats) -> Floats:
    # Equal scores stay equal: their deviation is 0, or nothing but rounding.
    sd = float(scores.std()) if scores.min() < scores.max() else 1.0
    return np.asarray((scores - scores.mean()) / sd)


def _swap_test(
    compute_difference: Callable[[NDArray[np.bool_]], float],
    n: int,
    draws_and_seed: tuple[int, int],
    alternative: str,
) -> tuple[float, float, int | None]:
    """Return the difference, p and the number of draws, by swapping rows and evaluating the measure again.

    Args:
        compute_difference: From the clusters to swap to the difference between the models.
        n: The number of clusters.
    """
    draws, seed = draws_and_seed
    observed = compute_difference(np.zeros(n, dtype=bool))
    if np.isnan(observed):
        raise Undefined("the measure is undefined for one of the models")
    is_exact = 2**n <= draws
    swaps = _enumerate_swaps(n) if is_exact else _sample_swaps(n, draws, seed)
    differences = np.array([compute_difference(swap) for swap in swaps])
    defined = differences[~np.isnan(differences)]
    if len(defined) < _MIN_DEFINED_SHARE * len(differences):
        raise Undefined(f"{len(differences) - len(defined)} of {len(differences)} swaps leave the measure undefined")
    slack = max(_ROUNDING * max(float(np.abs(defined).max(initial=0.0)), abs(observed)), _MIN_SLACK)
    hits = int(_is_as_extreme(defined, observed, slack, alternative).sum())
    if is_exact:
        return observed, hits / len(defined), None
    return observed, (hits + 1) / (len(defined) + 1), len(defined)


def _make_difference_function(
    measure: Statistic, models: tuple[Units, Units], clusters: list[NDArray[np.int64]]
) -> Callable[[NDArray[np.bool_]], float]:
    """Return the function from the clusters to swap to the difference between the models, nan where undefined."""
    first, second = models
    cluster_of_row = _index_clusters(clusters, len(first))

    def compute_difference(is_swapped: NDArray[np.bool_]) -> float:
        swap = is_swapped[cluster_of_row]
        try:
            return measure.value(_swap_rows(first, second, swap)) - measure.value(_swap_rows(second, first, swap))
        except Undefined:
            return float("nan")

    return compute_difference


def _index_clusters(clusters: list[NDArray[np.int64]], n: int) -> NDArray[np.int64]:
    """Return the cluster of each row."""
    cluster_of_row = np.empty(n, dtype=np.int64)
    for cluster_index, rows in enumerate(clusters):
        cluster_of_row[rows] = cluster_index
    return cluster_of_row


def _swap_rows(mine: Units, other: Units, swap: NDArray[np.bool_]) -> Units:
    # Without ids and tags, which no measure needs for its value and which are slow to copy.
    return Units((), {name: np.where(swap, other[name], column) for name, column in mine.columns.items()}, ())


def _enumerate_swaps(n: int) -> Iterator[NDArray[np.bool_]]:
    for number in range(2**n):
        yield (number >> np.arange(n)) % 2 == 1


def _sample_swaps(n: int, draws: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    generator = np.random.default_rng(seed)
    for _ in range(draws):
        yield generator.integers(0, 2, size=n) == 1


def _standardise_columns(measure: Statistic, units: Units, columns: Sequence[str]) -> Units:
    """Return rows whose named columns have, all together, mean 0 and standard deviation 1; a constant becomes 0.

    Raises:
        Undefined: That changes the value of the measure.
    """
    if not columns:
        return units
    if missing := [name for name in columns if name not in units.columns]:
        raise MeasureError(f"there is no column {missing[0]!r} to standardise; there are {', '.join(units.columns)}")
    # One scale for all columns together: the measure may depend on how far one column lies above another.
    everything = np.concatenate([units[name] for name in columns])
    sd = float(everything.std()) or 1.0
    scaled = {name: (units[name] - everything.mean()) / sd for name in columns}
    standardised = Units(units.ids, {**units.columns, **scaled}, units.tags)
    # Otherwise the test would answer a question about other numbers than those that are reported.
    if abs(measure.value(standardised) - measure.value(units)) > _MIN_CHANGE:
        raise Undefined("the value depends on the scale of the scores, and two models' scores have no common scale")
    return standardised


_Adjustment: TypeAlias = Callable[[Floats, int], Floats]
"""From p values in ascending order and their number to the adjusted ones, before those above 1 are cut."""


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Return p values adjusted by Holm's step-down method (1979), which controls the family-wise error rate.

    The probability of even one false positive stays below the level, however the tests depend on each other.

    Args:
        ps: p values in any order, which the result keeps. Undefined ones (None or nan) stay None, and do not count as
            tests.

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    return _adjust_p_values(ps, lambda ordered, n: np.maximum.accumulate(ordered * np.arange(n, 0, -1)))


def benjamini_hochberg(ps: Sequence[float | None]) -> list[float | None]:
    """Return p values adjusted by Benjamini and Hochberg (1995), which controls the false discovery rate.

    That is the expected share of false positives among the significant tests. Assumes that the tests are independent or
    positively dependent.

    Args:
        ps: p values in any order, which the result keeps. Undefined ones (None or nan) stay None, and do not count as
            tests.

    >>> benjamini_hochberg([0.01, 0.04, None, 0.02])
    [0.03, 0.04, None, 0.03]
    """
    return _adjust_p_values(
        ps, lambda ordered, n: np.minimum.accumulate((ordered * n / np.arange(1, n + 1))[::-1])[::-1]
    )


def _adjust_p_values(ps: Sequence[float | None], adjust: _Adjustment) -> list[float | None]:
    defined_indices = [index for index, p in enumerate(ps) if p is not None and not math.isnan(p)]
    defined = np.array([ps[index] for index in defined_indices], dtype=np.float64)
    if wrong := [p for p in defined.tolist() if not 0 <= p <= 1]:
        raise MeasureError(f"{wrong[0]} is no p value; expected a number from 0 to 1")
    order = np.argsort(defined, kind="stable")
    adjusted = np.minimum(adjust(defined[order], len(defined)), 1.0)
    adjusted_ps: list[float | None] = [None] * len(ps)
    for rank, value in zip(order.tolist(), adjusted.tolist(), strict=True):
        adjusted_ps[defined_indices[rank]] = value
    return adjusted_ps
