"""The cells of the coverage grid: simulated samples, and how often the intervals of each method cover the truth.

Proportions and their paired differences need no simulation: all outcomes of a sample of n rows are enumerated, with
their probabilities. For everything else samples are drawn, many at a time. A cell is one design with one true value;
its *window* are true values up to .02 around it, since the coverage of counts jumps from one value to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy
from scipy import stats

from acceptability.stats.intervals.closed_forms import (
    Bounds,
    ClusterSums,
    auc_interval,
    clopper_pearson,
    correlation_interval,
    difference_interval_of_strata,
    draw_matthews,
    jackknife_variance,
    proportion_interval_of_strata,
    summarise_strata,
    t_interval,
    tango_interval,
    wilson_interval,
)
from acceptability.types import Floats

LEVEL = 0.95
RESAMPLES = 1000
SHARES = (0.5, 0.8, 0.9, 0.95, 0.99)
_ENUMERATED_OFFSETS = np.linspace(-0.02, 0.02, 41)
_SIMULATED_OFFSETS = np.linspace(-0.02, 0.02, 5)
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


def list_cells() -> list[Cell]:
    """Return the whole grid."""
    return [
        *_list_proportions(),
        *_list_clusters(),
        *_list_macro_means(),
        *_list_sampled_groups(),
        *_list_differences(),
        *_list_macro_differences(),
        *_list_areas(),
        *_list_matthews(),
        *_list_correlations(),
        *_list_means(),
    ]


def _covers(bounds: Bounds, truth: Floats | float) -> Floats:
    # Rounding must not decide whether an end that is the truth covers it.
    return np.asarray((bounds[0] <= truth + 1e-12) & (truth - 1e-12 <= bounds[1]), dtype=np.float64)


def _offset(share: float, offsets: Floats) -> Floats:
    """Return the window around a proportion; a proportion of 1 is left out, as all intervals cover it."""
    return np.asarray(share + offsets[share + offsets < 0.9999])


def _iter_chunks(total: int, row_size: int) -> Iterator[int]:
    """Yield numbers of samples that fit into memory together."""
    most = max(1, _MAX_NUMBERS // row_size)
    for start in range(0, total, most):
        yield min(most, total - start)


def _average_chunks(total: int, row_size: int, simulate: Callable[[int], Mapping[str, Floats]]) -> dict[str, float]:
    """Return the mean over all samples of what a function returns for some of them."""
    sums: dict[str, float] = {}
    for count in _iter_chunks(total, row_size):
        for name, covered in simulate(count).items():
            sums[name] = sums.get(name, 0.0) + float(covered.sum())
    return {name: value / total for name, value in sums.items()}


def _gather(points: Sequence[Mapping[str, float]]) -> Coverages:
    return {name: [point[name] for point in points] for name in points[0]}


# Proportions: all outcomes.


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
        name: [float(stats.binom.pmf(hits, n, p) @ _covers(ends, p)) for p in _offset(share, _ENUMERATED_OFFSETS)]
        for name, ends in bounds.items()
    }


def _list_proportions() -> list[Cell]:
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
    closed = _average_chunks(
        work.closed,
        width,
        lambda count: {"wilson": _covers(proportion_interval_of_strata(draw(count, generator), LEVEL), truth)},
    )
    if not work.resampled:
        return closed
    strata = draw(work.resampled, generator)
    covered = [_covers(_resample_strata(strata, row, generator), truth) for row in range(work.resampled)]
    return closed | {"percentile": float(np.mean(covered))}


def _resample_strata(strata: Sequence[ClusterSums], row: int, generator: np.random.Generator) -> Bounds:
    """Return the percentile interval of one sample, whose clusters are resampled within strata."""
    values = np.zeros(RESAMPLES)
    for sums, counts in strata:
        drawn = generator.integers(0, len(counts), size=(RESAMPLES, len(counts)))
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
    return _gather([_cover_strata(partial(draw, p), p, work, (*key, p)) for p in _offset(share, _SIMULATED_OFFSETS)])


def _list_clusters() -> list[Cell]:
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
    for p in _offset(share, _SIMULATED_OFFSETS):
        truth = float(np.clip(p + spread, 0, 1).mean())
        points.append(_cover_strata(partial(draw, p), truth, work, (*sizes, p)))
    return _gather(points)


MACRO_DESIGNS: Mapping[str, Sequence[int]] = {
    "3 groups of 20": (20,) * 3,
    "12 groups of 50": (50,) * 12,
    "67 groups of 20": (20,) * 67,
    "34 groups of 20, 33 of 1000": (20, 1000) * 33 + (20,),
}


def _list_macro_means() -> list[Cell]:
    return [
        Cell("macro mean", design, sum(sizes), f"{share}", True, partial(cover_macro_mean, sizes, share))
        for design, sizes in MACRO_DESIGNS.items()
        for share in SHARES
    ]


def cover_sampled_groups(groups: int, rows: int, icc: float, share: float, work: Work) -> Coverages:
    """Return the coverage of a macro mean whose groups are a sample of groups, with the two-level bootstrap."""
    points = []
    for p in _offset(share, _SIMULATED_OFFSETS):
        generator = work.make_generator("groups", groups, rows, icc, p)

        def draw(count: int, p: float = p, generator: np.random.Generator = generator) -> Floats:
            shares = draw_cluster_shares(p, icc, (count, groups), generator)
            return generator.binomial(rows, shares) / rows

        ones = np.ones(groups)
        bounds = proportion_interval_of_strata([(draw(work.closed), ones)], LEVEL)
        point = {"wilson": float(_covers(bounds, p).mean())}
        if work.resampled:
            covered = [_covers(_resample_two_levels(sample, rows, generator), p) for sample in draw(work.resampled)]
            one, two = np.mean(covered, axis=0)
            point |= {"percentile": float(one), "percentile, two levels": float(two)}
        points.append(point)
    return _gather(points)


def _resample_two_levels(values: Floats, rows: int, generator: np.random.Generator) -> Bounds:
    """Return the ends of two percentile intervals: with groups resampled, and with the rows inside them as well."""
    drawn = values[generator.integers(0, len(values), size=(RESAMPLES, len(values)))]
    inner = generator.binomial(rows, drawn) / rows
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    ends = np.quantile(np.stack([drawn.mean(axis=1), inner.mean(axis=1)]), tails, axis=1)
    return ends[0], ends[1]


def _list_sampled_groups() -> list[Cell]:
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


def cover_difference(n: int, shares: tuple[float, float], phi: float, work: Work) -> Coverages:
    """Return the exact coverage of the difference of two proportions of n rows; that of percentiles by resampling."""
    first, second = shares
    points = []
    for offset in _offset(max(shares), _SIMULATED_OFFSETS) - max(shares):
        gain, loss = compute_paired_shares(first + offset, second + offset, phi)
        gains, losses, chances = _enumerate_pairs(n, gain, loss)
        point = {"tango": float(chances @ _covers(tango_interval(gains, losses, n, LEVEL), first - second))}
        if work.resampled:
            generator = work.make_generator("difference", n, gain, loss)
            drawn = generator.multinomial(n, [gain, loss, 1 - gain - loss], size=work.resampled)
            resampled = np.stack([generator.multinomial(n, sample / n, size=RESAMPLES) for sample in drawn])
            values = (resampled[..., 0] - resampled[..., 1]) / n
            low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
            point["percentile"] = float(_covers((low, high), first - second).mean())
        points.append(point)
    return _gather(points)


def _enumerate_pairs(n: int, gain: float, loss: float) -> tuple[Floats, Floats, Floats]:
    """Return all likely numbers of gains and losses of n rows, with their probabilities."""
    most = [int(min(n, n * share + 9 * np.sqrt(n * share) + 9)) for share in (gain, loss)]
    gains, losses = np.meshgrid(*(np.arange(top + 1.0) for top in most), indexing="ij")
    possible = gains + losses <= n
    gains, losses = gains[possible], losses[possible]
    rest = n - gains - losses
    logs = scipy.special.gammaln(n + 1) - sum(scipy.special.gammaln(count + 1) for count in (gains, losses, rest))
    logs = logs + scipy.special.xlogy(gains, gain) + scipy.special.xlogy(losses, loss)
    return gains, losses, np.exp(logs + scipy.special.xlogy(rest, 1 - gain - loss))


PAIRED_SHARES = ((0.8, 0.8), (0.9, 0.8), (0.9, 0.9), (0.95, 0.9), (0.95, 0.95), (0.99, 0.95))


def _list_differences() -> list[Cell]:
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
    for offset in _offset(max(shares), _SIMULATED_OFFSETS) - max(shares):
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
            return {"tango": _covers(difference_interval_of_strata(strata, squares, LEVEL), truth)}

        point = _average_chunks(work.closed, sum(sizes), simulate)
        if work.resampled:
            strata = [(group, np.ones(group.shape[1])) for group in draw(work.resampled)]
            covered = [_covers(_resample_strata(strata, row, generator), truth) for row in range(work.resampled)]
            point["percentile"] = float(np.mean(covered))
        points.append(point)
    return _gather(points)


def _list_macro_differences() -> list[Cell]:
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


# Areas under the ROC curve.

_AREA_SHAPES = ("normal", "unequal normal", "exponential")


def draw_classes(
    shape: str, area: float, sizes: tuple[int, int, int], generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return the scores of good and bad rows with a true area under the ROC curve.

    Args:
        shape: How scores are distributed.
        area: The true area.
        sizes: The number of samples, of good rows and of bad rows.
        generator: The source of random numbers.
    """
    count, good, bad = sizes
    if shape == "exponential":
        return generator.exponential(area / (1 - area), (count, good)), generator.exponential(1.0, (count, bad))
    sd = 2.0 if shape == "unequal normal" else 1.0
    shift = np.sqrt(1 + sd**2) * scipy.special.ndtri(area)
    return generator.normal(shift, sd, (count, good)), generator.normal(0.0, 1.0, (count, bad))


def cover_area(shape: str, good: int, bad: int, area: float, work: Work) -> Coverages:
    """Return the coverage of an area under the ROC curve."""

    def simulate(truth: float, generator: np.random.Generator, count: int) -> Mapping[str, Floats]:
        placements = _compare_classes(*draw_classes(shape, truth, (count, good, bad), generator))
        value = placements.mean(axis=(1, 2))
        # The area without each good row, and without each bad one.
        left_out = np.concatenate(
            [
                (good * value[:, None] - placements.mean(axis=2)) / (good - 1),
                (bad * value[:, None] - placements.mean(axis=1)) / (bad - 1),
            ],
            axis=1,
        )
        return {"hanley-mcneil": _covers(auc_interval(value, jackknife_variance(left_out), good, bad, LEVEL), truth)}

    points = []
    for truth in _offset(area, _SIMULATED_OFFSETS):
        generator = work.make_generator("area", shape, good, bad, truth)
        point = _average_chunks(work.closed, good * bad, partial(simulate, truth, generator))
        if work.resampled:
            scores = draw_classes(shape, truth, (work.resampled, good, bad), generator)
            covered = [
                _covers(_resample_area(first, second, generator), truth) for first, second in zip(*scores, strict=True)
            ]
            point["percentile"] = float(np.mean(covered))
        points.append(point)
    return _gather(points)


def _compare_classes(good: Floats, bad: Floats) -> Floats:
    difference = good[:, :, None] - bad[:, None, :]
    return np.asarray((difference > 0) + 0.5 * (difference == 0), dtype=np.float64)


def _resample_area(good: Floats, bad: Floats, generator: np.random.Generator) -> Bounds:
    """Return the percentile interval of one sample, all of whose rows are resampled together."""
    placements = _compare_classes(good[None], bad[None])[0]
    n = len(good) + len(bad)
    weights = generator.multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(np.float64)
    first, second = weights[:, : len(good)], weights[:, len(good) :]
    pairs = first.sum(axis=1) * second.sum(axis=1)
    values = np.einsum("ri,ij,rj->r", first, placements, second, optimize=True)[pairs > 0] / pairs[pairs > 0]
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return np.asarray(low), np.asarray(high)


def _list_areas() -> list[Cell]:
    return [
        Cell(
            "AUC",
            f"{good} good, {bad} bad, {shape}",
            good + bad,
            f"{area}",
            True,
            partial(cover_area, shape, good, bad, area),
        )
        for good, bad in ((10, 10), (5, 15), (25, 25), (50, 50))
        for shape in _AREA_SHAPES
        for area in (0.5, 0.7, 0.8, 0.9, 0.95)
    ]


# Matthews' correlation.


def compute_matthews(counts: Floats) -> Floats:
    """Return Matthews' correlation of hits, misses, false alarms and correct rejections; 0 for constant predictions."""
    hits, misses, alarms, rejections = np.moveaxis(counts, -1, 0)
    margins = (hits + misses) * (alarms + rejections) * (hits + alarms) * (misses + rejections)
    top = hits * rejections - misses * alarms
    return np.asarray(np.divide(top, np.sqrt(margins), out=np.zeros_like(top), where=margins > 0))


def cover_matthews(n: int, good_share: float, rates: tuple[float, float], work: Work) -> Coverages:
    """Return the coverage of Matthews' correlation.

    Args:
        n: The number of rows.
        good_share: The share of good rows.
        rates: The shares of good rows and of bad rows that are accepted.
        work: How much is simulated.
    """
    points = []
    for offset in _offset(max(rates), _SIMULATED_OFFSETS) - max(rates):
        hit_rate, alarm_rate = rates[0] + offset, max(rates[1] - offset, 0.001)
        good = np.array([hit_rate, 1 - hit_rate]) * good_share
        chances = np.concatenate([good, np.array([alarm_rate, 1 - alarm_rate]) * (1 - good_share)])
        truth = float(compute_matthews(chances))
        generator = work.make_generator("matthews", n, *chances)
        tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]

        def simulate(
            count: int,
            chances: Floats = chances,
            truth: float = truth,
            generator: np.random.Generator = generator,
            tails: list[float] = tails,
        ) -> Mapping[str, Floats]:
            drawn = draw_matthews(_draw_tables(n, chances, count, generator), RESAMPLES, generator)
            return {"dirichlet": _covers(tuple(np.quantile(drawn, tails, axis=1)), truth)}

        point = _average_chunks(work.closed, 4 * RESAMPLES, simulate)
        if work.resampled:
            covered = []
            for table in _draw_tables(n, chances, work.resampled, generator):
                resampled = compute_matthews(generator.multinomial(n, table / n, size=RESAMPLES).astype(np.float64))
                covered.append(_covers(tuple(np.quantile(resampled, tails)), truth))
            point["percentile"] = float(np.mean(covered))
        points.append(point)
    return _gather(points)


def _draw_tables(n: int, chances: Floats, count: int, generator: np.random.Generator) -> Floats:
    """Return simulated counts; those with labels of one class, which have no value, are drawn again."""
    tables = generator.multinomial(n, chances, size=count)
    while len(wrong := np.flatnonzero((tables[:, :2].sum(axis=1) % n) == 0)):
        tables[wrong] = generator.multinomial(n, chances, size=len(wrong))
    return tables.astype(np.float64)


def _list_matthews() -> list[Cell]:
    return [
        Cell(
            "MCC",
            f"{n} rows, {good_share:.0%} good",
            n,
            f"hits {rates[0]}, false alarms {rates[1]}",
            True,
            partial(cover_matthews, n, good_share, rates),
        )
        for n in (20, 50, 100, 1000)
        for good_share in (0.5, 0.8)
        for rates in ((0.5, 0.5), (0.7, 0.3), (0.85, 0.15), (0.95, 0.05), (0.9, 0.4))
    ]


# Correlations.

_CORRELATED_SHAPES = ("normal", "seven-point", "heavy-tailed", "skewed")
_SEVEN_POINTS = (-1.5, -0.8, -0.3, 0.2, 0.7, 1.3)


def draw_correlated(
    shape: str, rho: float, size: tuple[int, int], generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return two correlated columns.

    Args:
        shape: "normal"; "seven-point" (the second is a rating from 0 to 6); "heavy-tailed" (Student's t of 5 degrees);
            "skewed" (gamma of shape 2).
        rho: The correlation, of a seven-point rating before it is rounded.
        size: The number of samples and of rows.
        generator: The source of random numbers.
    """
    if shape == "skewed":
        first, other = ((generator.gamma(2.0, size=size) - 2) / np.sqrt(2) for _ in range(2))
    else:
        first, other = generator.normal(size=size), generator.normal(size=size)
    second = rho * first + np.sqrt(1 - rho**2) * other
    if shape == "seven-point":
        return first, np.digitize(second, _SEVEN_POINTS).astype(np.float64)
    scale = np.sqrt(5 / generator.chisquare(5, size)) if shape == "heavy-tailed" else 1.0
    return first * scale, second * scale


def correlate_rows(first: Floats, second: Floats) -> Floats:
    """Return Pearson's r along the last axis; 0 of a constant column."""
    x, y = (column - column.mean(axis=-1, keepdims=True) for column in (first, second))
    norms = np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1))
    return np.asarray(np.divide((x * y).sum(axis=-1), norms, out=np.zeros(norms.shape), where=norms > 0))


def _leave_out_pearson(first: Floats, second: Floats) -> Floats:
    n = first.shape[-1]
    x, y = (column - column.mean(axis=-1, keepdims=True) for column in (first, second))
    xx, yy, xy = (a_b.sum(axis=-1, keepdims=True) - a_b * n / (n - 1) for a_b in (x * x, y * y, x * y))
    return np.asarray(xy / np.sqrt(xx * yy))


def _compare_rows(values: Floats) -> Floats:
    return np.asarray(np.sign(values[..., :, None] - values[..., None, :]))


def _leave_out_spearman(first: Floats, second: Floats) -> Floats:
    ranks = [stats.rankdata(column, axis=-1) for column in (first, second)]
    # Without a row, those above it lose one rank, and those tied with it half of one.
    reduced = [
        rank[:, None, :] - (_compare_rows(column).transpose(0, 2, 1) + 1) / 2
        for rank, column in zip(ranks, (first, second), strict=True)
    ]
    n = first.shape[-1]
    others = ~np.eye(n, dtype=bool)
    kept = [np.stack([part[:, i, others[i]] for i in range(n)], axis=1) for part in reduced]
    return correlate_rows(kept[0], kept[1])


def correlate_kendall(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Return Kendall's tau-b of each sample, and without each of its rows."""
    a, b = _compare_rows(first), _compare_rows(second)
    sums = [(one * other).sum(axis=-1) for one, other in ((a, b), (a, a), (b, b))]
    totals = [part.sum(axis=-1, keepdims=True) for part in sums]
    agreement, untied_a, untied_b = (total - 2 * part for total, part in zip(totals, sums, strict=True))
    return (totals[0] / np.sqrt(totals[1] * totals[2]))[:, 0], agreement / np.sqrt(untied_a * untied_b)


def compute_correlations(kind: str, first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Return the correlation of each sample, and without each of its rows."""
    if kind == "kendall":
        return correlate_kendall(first, second)
    if kind == "pearson":
        return correlate_rows(first, second), _leave_out_pearson(first, second)
    ranks = (stats.rankdata(column, axis=-1) for column in (first, second))
    return correlate_rows(*ranks), _leave_out_spearman(first, second)


def find_true_correlation(kind: str, shape: str, rho: float) -> float:
    """Return the true correlation: by its formula, or of very many rows."""
    if kind == "pearson" and shape != "seven-point":
        return rho
    if kind == "kendall" and shape in ("normal", "heavy-tailed"):
        return float(2 / np.pi * np.arcsin(rho))
    if kind == "spearman" and shape == "normal":
        return float(6 / np.pi * np.arcsin(rho / 2))
    generator = np.random.default_rng(0)
    function = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}[kind]
    draws = (draw_correlated(shape, rho, (1, 500_000), generator) for _ in range(4))
    return float(np.mean([function(first[0], second[0])[0] for first, second in draws]))


def cover_correlation(kind: str, shape: str, n: int, rho: float, work: Work) -> Coverages:
    """Return the coverage of a correlation: by the jackknife, by 1/(n - 3) (Fisher), and by resampling."""
    truth = find_true_correlation(kind, shape, rho)
    generator = work.make_generator("correlation", kind, shape, n, rho)

    def simulate(count: int) -> Mapping[str, Floats]:
        value, left_out = compute_correlations(kind, *draw_correlated(shape, rho, (count, n), generator))
        degrees = n - 1 if kind == "pearson" else np.inf
        covered = {"jackknife": _covers(correlation_interval(value, left_out, LEVEL, degrees), truth)}
        if kind == "pearson":
            z, half_width = np.arctanh(value), scipy.special.ndtri((1 + LEVEL) / 2) / np.sqrt(n - 3)
            covered["fisher"] = _covers((np.tanh(z - half_width), np.tanh(z + half_width)), truth)
        return covered

    point = _average_chunks(work.closed, n if kind == "pearson" else n * n * 4, simulate)
    # Resampled Kendall correlations take as long as all other cells together.
    if work.resampled and kind != "kendall":
        columns = draw_correlated(shape, rho, (work.resampled, n), generator)
        covered = [
            _covers(_resample_correlation(kind, *sample, generator), truth) for sample in zip(*columns, strict=True)
        ]
        point["percentile"] = float(np.mean(covered))
    return {name: [value] for name, value in point.items()}


def _resample_correlation(kind: str, first: Floats, second: Floats, generator: np.random.Generator) -> Bounds:
    rows = generator.integers(0, len(first), size=(RESAMPLES, len(first)))
    columns = first[rows], second[rows]
    if kind == "spearman":
        columns = stats.rankdata(columns[0], axis=-1), stats.rankdata(columns[1], axis=-1)
    low, high = np.quantile(correlate_rows(*columns), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return np.asarray(low), np.asarray(high)


def _list_correlations() -> list[Cell]:
    return [
        Cell(kind, f"{n} rows, {shape}", n, f"{rho}", False, partial(cover_correlation, kind, shape, n, rho))
        for kind, sizes in (("pearson", (20, 50, 100, 1000)), ("spearman", (20, 50, 100)), ("kendall", (20, 50, 100)))
        for n in sizes
        for shape in _CORRELATED_SHAPES
        for rho in (0.0, 0.3, 0.6, 0.9)
    ]


# Means.

_MEAN_SHAPES: Mapping[str, tuple[Callable[[np.random.Generator, tuple[int, int]], Floats], float]] = {
    "normal": (lambda generator, size: generator.normal(size=size), 0.0),
    "uniform": (lambda generator, size: generator.random(size), 0.5),
    # Like the areas under ADC's curve: nothing for the wrong direction, else near 1.
    "30 % zeros": (
        lambda generator, size: np.where(generator.random(size) < 0.3, 0.0, generator.beta(5, 2, size)),
        0.7 * 5 / 7,
    ),
    "gamma of shape 4": (lambda generator, size: generator.gamma(4.0, size=size), 4.0),
    "exponential": (lambda generator, size: generator.exponential(size=size), 1.0),
}


def cover_mean(shape: str, n: int, work: Work) -> Coverages:
    """Return the coverage of a mean."""
    draw, truth = _MEAN_SHAPES[shape]
    generator = work.make_generator("mean", shape, n)

    def simulate(count: int) -> Mapping[str, Floats]:
        summary = summarise_strata([(draw(generator, (count, n)), np.ones(n))])
        return {"t": _covers(t_interval(summary.value, summary.variance, summary.degrees, LEVEL), truth)}

    point = _average_chunks(work.closed, n, simulate)
    if work.resampled:
        strata = [(draw(generator, (work.resampled, n)), np.ones(n))]
        covered = [_covers(_resample_strata(strata, row, generator), truth) for row in range(work.resampled)]
        point["percentile"] = float(np.mean(covered))
    return {name: [value] for name, value in point.items()}


def _list_means() -> list[Cell]:
    return [
        Cell("mean", f"{n} rows", n, shape, False, partial(cover_mean, shape, n))
        for n in (20, 50, 100, 1000)
        for shape in _MEAN_SHAPES
    ]
