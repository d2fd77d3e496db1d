"""Cells of the coverage grid: shares of right rows, by cluster and by group, and their paired differences.

Shares and differences of single rows need no simulation: all outcomes of n rows are enumerated, with their
probabilities. For clusters and groups, samples are drawn, many at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import scipy
from scipy import stats

from acceptability.stats.intervals.closed_forms import (
    Bounds,
    ClusterSums,
    clopper_pearson,
    difference_interval_of_strata,
    proportion_interval_of_groups,
    proportion_interval_of_strata,
    tango_interval,
    wilson_interval,
)
from acceptability.types import Floats
from bench.coverage_work import (
    ENUMERATED_OFFSETS,
    LEVEL,
    RESAMPLES,
    SHARES,
    SIMULATED_OFFSETS,
    Cell,
    Coverages,
    Work,
    average_chunks,
    covers,
    gather_points,
    shift_share,
)


def percentile_interval_of_hits(hits: Floats, n: int) -> Bounds:
    """Return the percentile interval of a proportion, of infinitely many resamples; exact if all rows are equal."""
    ends = [stats.binom.ppf(tail, n, hits / n) / n for tail in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)]
    nothing, everything = clopper_pearson(0, n, LEVEL), clopper_pearson(n, n, LEVEL)
    low = np.where(hits == 0, nothing[0], np.where(hits == n, everything[0], ends[0]))
    return low, np.where(hits == 0, nothing[1], np.where(hits == n, everything[1], ends[1]))


def cover_proportion(n: int, share: float, work: Work) -> Coverages:
    """Return the exact coverage of a proportion of n rows."""
    hits = np.arange(n + 1.0)
    bounds = {"wilson": wilson_interval(hits / n, n, LEVEL), "percentile": percentile_interval_of_hits(hits, n)}
    return {
        name: [float(stats.binom.pmf(hits, n, p) @ covers(ends, p)) for p in shift_share(share, ENUMERATED_OFFSETS)]
        for name, ends in bounds.items()
    }


def list_proportions() -> list[Cell]:
    return [
        Cell("proportion", f"{n} rows", n, f"{share}", True, partial(cover_proportion, n, share))
        for n in (20, 50, 100, 1000)
        for share in SHARES
    ]


# Proportions over clusters, macro means, groups that are a sample.


def _cover_strata(
    draw: Callable[[int, np.random.Generator], Sequence[ClusterSums]], truth: float, work: Work, key: tuple[object, ...]
) -> dict[str, float]:
    """Return the coverage of a mean over strata of clusters.

    Args:
        draw: From a number of samples to the strata, with the sums of the samples in the rows of arrays.
        truth: The true mean.
        work: How much is simulated.
        key: What the random numbers depend on.
    """
    generator = work.make_generator("strata", *key)
    width = sum(len(counts) for _, counts in draw(1, generator))
    closed = average_chunks(
        work.closed,
        width,
        lambda count: {"wilson": covers(proportion_interval_of_strata(draw(count, generator), LEVEL), truth)},
    )
    if not work.resampled:
        return closed
    strata = draw(work.resampled, generator)
    covered = [covers(resample_strata(strata, row, generator), truth) for row in range(work.resampled)]
    return closed | {"percentile": float(np.mean(covered))}


def resample_strata(strata: Sequence[ClusterSums], row: int, generator: np.random.Generator) -> Bounds:
    """Return the percentile interval of one sample, whose clusters are resampled within strata."""
    values = np.zeros(RESAMPLES)
    for sums, counts in strata:
        n = len(counts)
        if (counts == 1).all():
            # Single rows are counted: how many of each kind a resample has is one multinomial draw.
            kinds, tallies = np.unique(sums[row], return_counts=True)
            values += generator.multinomial(n, tallies / n, size=RESAMPLES) @ kinds / n / len(strata)
            continue
        drawn = generator.integers(0, n, size=(RESAMPLES, n))
        values += sums[row][drawn].sum(axis=1) / counts[drawn].sum(axis=1) / len(strata)
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return np.asarray(low), np.asarray(high)


def draw_cluster_shares(share: float, icc: float, size: tuple[int, int], generator: np.random.Generator) -> Floats:
    """Return the proportions of clusters, which have an intraclass correlation: beta-distributed, or all alike."""
    if icc == 0:
        return np.full(size, share)
    if icc == 1:
        return np.asarray(generator.random(size) < share, dtype=np.float64)
    concentration = 1 / icc - 1
    return generator.beta(share * concentration, (1 - share) * concentration, size)


def cover_clusters(clusters: int, rows: int, icc: float, share: float, work: Work) -> Coverages:
    """Return the coverage of a proportion over clusters of rows."""

    def draw(p: float, count: int, generator: np.random.Generator) -> Sequence[ClusterSums]:
        shares = draw_cluster_shares(p, icc, (count, clusters), generator)
        return [(generator.binomial(rows, shares).astype(np.float64), np.full(clusters, float(rows)))]

    key = (clusters, rows, icc)
    shares = shift_share(share, SIMULATED_OFFSETS)
    return gather_points([_cover_strata(partial(draw, p), p, work, (*key, p)) for p in shares])


def list_clusters() -> list[Cell]:
    return [
        Cell(
            "proportion by cluster",
            f"{clusters} clusters of {rows}, ICC {icc:g}",
            clusters,
            f"{share}",
            True,
            partial(cover_clusters, clusters, rows, icc, share),
        )
        for clusters, rows in ((20, 5), (50, 5), (100, 5), (300, 8))
        for icc in (0.0, 0.3, 1.0)
        for share in SHARES
    ]


def cover_macro_mean(sizes: Sequence[int], share: float, work: Work) -> Coverages:
    """Return the coverage of the mean over groups of rows; the true proportions of the groups differ."""
    numbers = np.array(sizes)
    # As far apart as .2 where there is room above.
    spread = np.linspace(-1, 1, len(sizes)) * min(0.1, 0.9 * (1 - share))

    def draw(p: float, count: int, generator: np.random.Generator) -> Sequence[ClusterSums]:
        return [
            (np.asarray(generator.random((count, n)) < q, dtype=np.float64), np.ones(n))
            for n, q in zip(numbers, np.clip(p + spread, 0, 1), strict=True)
        ]

    points = []
    for p in shift_share(share, SIMULATED_OFFSETS):
        truth = float(np.clip(p + spread, 0, 1).mean())
        points.append(_cover_strata(partial(draw, p), truth, work, (*sizes, p)))
    return gather_points(points)


MACRO_DESIGNS: Mapping[str, Sequence[int]] = {
    "3 groups of 20": (20,) * 3,
    "12 groups of 50": (50,) * 12,
    "67 groups of 20": (20,) * 67,
    "34 groups of 20, 33 of 1000": (20, 1000) * 33 + (20,),
}


def list_macro_means() -> list[Cell]:
    return [
        Cell("macro mean", design, sum(sizes), f"{share}", True, partial(cover_macro_mean, sizes, share))
        for design, sizes in MACRO_DESIGNS.items()
        for share in SHARES
    ]


def cover_sampled_groups(groups: int, rows: int, icc: float, share: float, work: Work) -> Coverages:
    """Return the coverage of a macro mean whose groups are a sample of groups, with the two-level bootstrap."""
    points = []
    for p in shift_share(share, SIMULATED_OFFSETS):
        generator = work.make_generator("groups", groups, rows, icc, p)

        def draw(count: int, p: float = p, generator: np.random.Generator = generator) -> Floats:
            shares = draw_cluster_shares(p, icc, (count, groups), generator)
            return generator.binomial(rows, shares) / rows

        bounds = proportion_interval_of_groups(draw(work.closed), LEVEL)
        point = {"wilson": float(covers(bounds, p).mean())}
        if work.resampled:
            covered = [covers(_resample_two_levels(sample, rows, generator), p) for sample in draw(work.resampled)]
            one, two = np.mean(covered, axis=0)
            point |= {"percentile": float(one), "percentile, two levels": float(two)}
        points.append(point)
    return gather_points(points)


def _resample_two_levels(values: Floats, rows: int, generator: np.random.Generator) -> Bounds:
    """Return the ends of two percentile intervals: with groups resampled, and with the rows inside them as well."""
    drawn = values[generator.integers(0, len(values), size=(RESAMPLES, len(values)))]
    inner = generator.binomial(rows, drawn) / rows
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    ends = np.quantile(np.stack([drawn.mean(axis=1), inner.mean(axis=1)]), tails, axis=1)
    return ends[0], ends[1]


def list_sampled_groups() -> list[Cell]:
    return [
        Cell(
            "macro mean, groups sampled",
            f"{groups} groups of {rows}, ICC {icc:g}",
            groups,
            f"{share}",
            True,
            partial(cover_sampled_groups, groups, rows, icc, share),
        )
        for groups, rows in ((12, 50), (67, 20), (67, 1000))
        for icc in (0.0, 0.1, 0.3)
        for share in (0.8, 0.9, 0.95)
    ]


# Differences of two models over the same rows.


def compute_paired_shares(first: float, second: float, phi: float) -> tuple[float, float]:
    """Return the shares of rows that only the first gets right, and only the second, from their correlation."""
    both = first * second + phi * np.sqrt(first * (1 - first) * second * (1 - second))
    # No more rows can be right for both than for either.
    both = min(both, first, second)
    return first - both, second - both


def bonett_price_interval(gains: Floats, losses: Floats, n: int) -> Bounds:
    """Return the interval of Bonett and Price (2012): Wald's, with one gain, one loss and two rows added."""
    gain, loss = (gains + 1) / (n + 2), (losses + 1) / (n + 2)
    half_width = scipy.special.ndtri((1 + LEVEL) / 2) * np.sqrt((gain + loss - (gain - loss) ** 2) / (n + 2))
    return gain - loss - half_width, gain - loss + half_width


def cover_difference(n: int, shares: tuple[float, float], phi: float, work: Work) -> Coverages:
    """Return the exact coverage of the difference of two proportions of n rows; that of percentiles by resampling."""
    first, second = shares
    points = []
    for offset in shift_share(max(shares), SIMULATED_OFFSETS) - max(shares):
        gain, loss = compute_paired_shares(first + offset, second + offset, phi)
        gains, losses, chances = _enumerate_pairs(n, gain, loss)
        bounds = {
            "tango": tango_interval(gains, losses, n, LEVEL),
            "bonett-price": bonett_price_interval(gains, losses, n),
        }
        point = {name: float(chances @ covers(ends, first - second)) for name, ends in bounds.items()}
        if work.resampled:
            generator = work.make_generator("difference", n, gain, loss)
            drawn = generator.multinomial(n, [gain, loss, 1 - gain - loss], size=work.resampled)
            resampled = np.stack([generator.multinomial(n, sample / n, size=RESAMPLES) for sample in drawn])
            values = (resampled[..., 0] - resampled[..., 1]) / n
            low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
            point["percentile"] = float(covers((low, high), first - second).mean())
        points.append(point)
    return gather_points(points)


def _enumerate_pairs(n: int, gain: float, loss: float) -> tuple[Floats, Floats, Floats]:
    """Return all likely numbers of gains and losses of n rows, with their probabilities."""
    most = [int(min(n, n * share + 9 * np.sqrt(n * share) + 9)) for share in (gain, loss)]
    gains, losses = np.meshgrid(*(np.arange(top + 1.0) for top in most), indexing="ij")
    possible = gains + losses <= n
    gains, losses = gains[possible], losses[possible]
    return gains, losses, compute_pair_chances(gains, losses, n, (gain, loss))


def compute_pair_chances(gains: Floats, losses: Floats, n: int, shares: tuple[float, float]) -> Floats:
    """Return the probabilities of numbers of gains and losses of n rows, from their true shares."""
    gain, loss = shares
    rest = n - gains - losses
    logs = scipy.special.gammaln(n + 1) - sum(scipy.special.gammaln(count + 1) for count in (gains, losses, rest))
    logs = logs + scipy.special.xlogy(gains, gain) + scipy.special.xlogy(losses, loss)
    return np.asarray(np.exp(logs + scipy.special.xlogy(rest, max(1 - gain - loss, 0.0))))


PAIRED_SHARES = ((0.8, 0.8), (0.9, 0.8), (0.9, 0.9), (0.95, 0.9), (0.95, 0.95), (0.99, 0.95))


def list_differences() -> list[Cell]:
    return [
        Cell(
            "paired difference",
            f"{n} rows, phi {phi:g}",
            n,
            f"{first} - {second}",
            True,
            partial(cover_difference, n, (first, second), phi),
        )
        for n in (20, 50, 100, 1000)
        for phi in (0.0, 0.5)
        for first, second in PAIRED_SHARES
    ]


def cover_macro_difference(sizes: Sequence[int], shares: tuple[float, float], phi: float, work: Work) -> Coverages:
    """Return the coverage of the mean over groups of the difference of two proportions."""
    points = []
    truth = shares[0] - shares[1]
    for offset in shift_share(max(shares), SIMULATED_OFFSETS) - max(shares):
        gain, loss = compute_paired_shares(shares[0] + offset, shares[1] + offset, phi)
        generator = work.make_generator("macro difference", *sizes, gain, loss)

        def draw(
            count: int, gain: float = gain, loss: float = loss, generator: np.random.Generator = generator
        ) -> list[Floats]:
            uniforms = (generator.random((count, n)) for n in sizes)
            return [(u < gain).astype(np.float64) - (u > 1 - loss) for u in uniforms]

        def simulate(count: int, draw: Callable[[int], list[Floats]] = draw) -> Mapping[str, Floats]:
            rows = draw(count)
            strata = [(group, np.ones(group.shape[1])) for group in rows]
            squares = [(group**2, np.ones(group.shape[1])) for group in rows]
            return {"tango": covers(difference_interval_of_strata(strata, squares, LEVEL), truth)}

        point = average_chunks(work.closed, sum(sizes), simulate)
        if work.resampled:
            strata = [(group, np.ones(group.shape[1])) for group in draw(work.resampled)]
            covered = [covers(resample_strata(strata, row, generator), truth) for row in range(work.resampled)]
            point["percentile"] = float(np.mean(covered))
        points.append(point)
    return gather_points(points)


def list_macro_differences() -> list[Cell]:
    return [
        Cell(
            "macro difference",
            f"{design}, phi {phi:g}",
            sum(MACRO_DESIGNS[design]),
            f"{first} - {second}",
            True,
            partial(cover_macro_difference, MACRO_DESIGNS[design], (first, second), phi),
        )
        for design in ("3 groups of 20", "12 groups of 50")
        for phi in (0.0, 0.5)
        for first, second in PAIRED_SHARES
    ]
