"""Cells of the coverage grid: areas under the ROC curve, Matthews' and other correlations, means; all by simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import scipy
from scipy import stats

from acceptability.stats.bootstrap import bca_interval, percentile_interval
from acceptability.stats.intervals.closed_forms import (
    Bounds,
    auc_interval,
    correlation_interval,
    jackknife_variance,
    matthews_interval,
    summarise_strata,
    t_interval,
)
from acceptability.types import Floats
from bench.coverage_work import (
    LEVEL,
    RESAMPLES,
    SIMULATED_OFFSETS,
    Cell,
    Coverages,
    Work,
    average_chunks,
    covers,
    gather_points,
    iter_chunks,
    shift_share,
)

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
        return {"hanley-mcneil": covers(auc_interval(value, jackknife_variance(left_out), good, bad, LEVEL), truth)}

    points = []
    for truth in shift_share(area, SIMULATED_OFFSETS):
        generator = work.make_generator("area", shape, good, bad, truth)
        point = average_chunks(work.closed, good * bad, partial(simulate, truth, generator))
        if work.resampled:
            scores = draw_classes(shape, truth, (work.resampled, good, bad), generator)
            covered = [
                covers(_resample_area(first, second, generator), truth) for first, second in zip(*scores, strict=True)
            ]
            point["percentile"] = float(np.mean(covered))
        points.append(point)
    return gather_points(points)


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


def list_areas() -> list[Cell]:
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
    for offset in shift_share(max(rates), SIMULATED_OFFSETS) - max(rates):
        hit_rate, alarm_rate = rates[0] + offset, max(rates[1] - offset, 0.001)
        good = np.array([hit_rate, 1 - hit_rate]) * good_share
        chances = np.concatenate([good, np.array([alarm_rate, 1 - alarm_rate]) * (1 - good_share)])
        truth = float(compute_matthews(chances))
        generator = work.make_generator("matthews", n, *chances)
        tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]

        # Samples with the same counts have the same interval.
        tables, counts = np.unique(_draw_tables(n, chances, work.drawn, generator), axis=0, return_counts=True)
        parts = np.array_split(tables, max(1, len(list(iter_chunks(len(tables), 4 * RESAMPLES)))))
        bounds = (matthews_interval(part, RESAMPLES, generator, LEVEL) for part in parts)
        is_covered = np.concatenate([covers(ends, truth) for ends in bounds])
        point = {"dirichlet": float(counts @ is_covered / work.drawn)}
        if work.resampled:
            covered = []
            for table in _draw_tables(n, chances, work.resampled, generator):
                resampled = compute_matthews(generator.multinomial(n, table / n, size=RESAMPLES).astype(np.float64))
                covered.append(covers(tuple(np.quantile(resampled, tails)), truth))
            point["percentile"] = float(np.mean(covered))
        points.append(point)
    return gather_points(points)


def _draw_tables(n: int, chances: Floats, count: int, generator: np.random.Generator) -> Floats:
    """Return simulated counts; those with labels of one class, which have no value, are drawn again."""
    tables = generator.multinomial(n, chances, size=count)
    while len(wrong := np.flatnonzero((tables[:, :2].sum(axis=1) % n) == 0)):
        tables[wrong] = generator.multinomial(n, chances, size=len(wrong))
    return tables.astype(np.float64)


def list_matthews() -> list[Cell]:
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
        covered = {"jackknife": covers(correlation_interval(value, left_out, LEVEL, degrees), truth)}
        if kind == "pearson":
            z, half_width = np.arctanh(value), scipy.special.ndtri((1 + LEVEL) / 2) / np.sqrt(n - 3)
            covered["fisher"] = covers((np.tanh(z - half_width), np.tanh(z + half_width)), truth)
        return covered

    point = average_chunks(work.closed, n if kind == "pearson" else n * n * 4, simulate)
    # Resampled Kendall correlations take as long as all other cells together.
    if work.resampled and kind != "kendall":
        columns = draw_correlated(shape, rho, (work.resampled, n), generator)
        intervals = [_resample_correlation(kind, sample, generator) for sample in zip(*columns, strict=True)]
        point |= _average_covered(intervals, truth)
    return {name: [value] for name, value in point.items()}


def _resample_correlation(
    kind: str, sample: tuple[Floats, Floats], generator: np.random.Generator
) -> Mapping[str, Bounds]:
    """Return the percentile and the BCa interval of one sample."""
    n = len(sample[0])
    rows = generator.integers(0, n, size=(RESAMPLES, n))
    columns = sample[0][rows], sample[1][rows]
    if kind == "spearman":
        columns = stats.rankdata(columns[0], axis=-1), stats.rankdata(columns[1], axis=-1)
    value, left_out = compute_correlations(kind, sample[0][None], sample[1][None])
    return _find_ends(correlate_rows(*columns), float(value[0]), left_out[0])


def _find_ends(values: Floats, estimate: float, left_out: Floats) -> Mapping[str, Bounds]:
    """Return the percentile and the BCa interval of resampled values."""
    ends = {
        "percentile": percentile_interval(values, LEVEL),
        "bca": bca_interval(values, estimate, [left_out], LEVEL),
    }
    return {name: (np.asarray(low), np.asarray(high)) for name, (low, high) in ends.items()}


def _average_covered(intervals: Sequence[Mapping[str, Bounds]], truth: float) -> dict[str, float]:
    return {name: float(np.mean([covers(interval[name], truth) for interval in intervals])) for name in intervals[0]}


def list_correlations() -> list[Cell]:
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
        bounds = t_interval(summary.value, summary.variance, summary.degrees, LEVEL, skewness=summary.skewness)
        return {"t": covers(bounds, truth)}

    point = average_chunks(work.closed, n, simulate)
    if work.resampled:
        intervals = []
        for sample in draw(generator, (work.resampled, n)):
            resampled = sample[generator.integers(0, n, size=(RESAMPLES, n))].mean(axis=1)
            intervals.append(_find_ends(resampled, float(sample.mean()), (sample.sum() - sample) / (n - 1)))
        point |= _average_covered(intervals, truth)
    return {name: [value] for name, value in point.items()}


def list_means() -> list[Cell]:
    return [
        Cell("mean", f"{n} rows", n, shape, False, partial(cover_mean, shape, n))
        for n in (20, 50, 100, 1000)
        for shape in _MEAN_SHAPES
    ]
