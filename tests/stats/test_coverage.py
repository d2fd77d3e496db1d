"""A small part of the coverage grid, with fixed seeds, and the same through the functions that users call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from bench import coverage
from bench.coverage_limits import find_least_coverage
from bench.coverage_values import draw_classes, draw_correlated
from bench.coverage_work import Cell, Work

from acceptability import AUC, MCC, PairAccuracy, Pearson
from acceptability.stats.bootstrap import Bootstrap, Interval
from acceptability.stats.intervals import bootstrap_interval, bootstrap_macro_interval
from acceptability.types import Units

CELLS = {(cell.statistic, cell.design, cell.truth): cell for cell in coverage.list_cells()}
WORK = Work(closed=400, resampled=0)
KEY_OF_FEW = ("paired difference", "20 rows, phi 0.5", "0.95 - 0.95")
KEY_OF_MANY = ("paired difference", "100 rows, phi 0.5", "0.9 - 0.8")
# Cells with a single true value need more samples than those that have a window of five.
MORE_WORK = Work(closed=3000, resampled=0)


@pytest.mark.parametrize(
    "key",
    [
        ("proportion", "20 rows", "0.8"),
        ("proportion", "100 rows", "0.99"),
        ("proportion by cluster", "50 clusters of 5, ICC 0.3", "0.9"),
        ("macro mean", "3 groups of 20", "0.95"),
        ("paired difference", "50 rows, phi 0.5", "0.95 - 0.9"),
        ("macro difference", "3 groups of 20, phi 0", "0.9 - 0.8"),
        ("AUC", "10 good, 10 bad, exponential", "0.9"),
        ("MCC", "20 rows, 80% good", "hits 0.85, false alarms 0.15"),
        ("pearson", "50 rows, heavy-tailed", "0.6"),
        ("kendall", "20 rows, seven-point", "0.6"),
        ("mean", "20 rows", "30 % zeros"),
    ],
)
def test_cells_of_the_grid_meet_their_targets(key: tuple[str, str, str]) -> None:
    closed, *others = coverage.measure_cell(CELLS[key], MORE_WORK if key[0] in ("pearson", "mean") else WORK)
    # Of so few samples a coverage is right to one hundredth; the grid itself has 10,000 of each.
    assert 0.92 <= closed.coverage <= 0.985
    for other in others:
        assert (other.method, other.target) != ("percentile", "met")


def test_the_judgement_of_a_cell() -> None:
    small = Cell("proportion", "20 rows", 20, "0.9", True, lambda work: {})
    large = Cell("mean", "20 rows", 20, "normal", False, lambda work: {})
    assert [coverage.judge(small, *pair) for pair in ((0.95, 0.93), (0.95, 0.91), (0.925, 0.925), (0.985, 0.97))] == [
        "met",
        "low",
        "low",
        "high",
    ]
    assert [coverage.judge(large, *pair) for pair in ((0.95, 0.91), (0.975, 0.975))] == ["met", "high"]


def test_the_page_has_a_table_for_each_statistic() -> None:
    rows = coverage.measure_cell(CELLS["proportion", "20 rows", "0.95"], WORK)
    page = coverage.format_page(rows, WORK)
    assert "| proportion | `percentile` | 1 | 0 | 0 | 1 | 0.993 | 0.993 |" in page
    assert "| 20 rows | 0.95 | 0.9" in page
    assert (
        coverage.format_csv(rows).splitlines()[0] == "statistic,sample,truth,method,replications,coverage,least,target"
    )


def make_rows(**columns) -> Units:
    n = len(next(iter(columns.values())))
    return Units(
        tuple(map(str, range(n))), {name: np.asarray(c, dtype=float) for name, c in columns.items()}, ({},) * n
    )


def of_macro_mean(generator: np.random.Generator, how: Bootstrap) -> Interval:
    groups = [make_rows(correct=generator.random(20) < 0.95) for _ in range(3)]
    return bootstrap_macro_interval(PairAccuracy(), groups, how)


def of_area(generator: np.random.Generator, how: Bootstrap) -> Interval:
    good, bad = (scores[0] for scores in draw_classes("normal", 0.95, (1, 10, 10), generator))
    units = make_rows(score=np.concatenate([good, bad]), label=[1.0] * 10 + [0.0] * 10)
    return bootstrap_interval(AUC(), units, how)


def of_matthews(generator: np.random.Generator, how: Bootstrap) -> Interval:
    label = np.repeat([1.0, 0.0], 10)
    predicted = np.where(generator.random(20) < 0.93, label, 1 - label)
    return bootstrap_interval(MCC(threshold=0.0), make_rows(predicted=predicted, label=label), how)


def of_heavy_tails(generator: np.random.Generator, how: Bootstrap) -> Interval:
    score, rating = (column[0] for column in draw_correlated("heavy-tailed", 0.6, (1, 20), generator))
    return bootstrap_interval(Pearson(), make_rows(score=score, rating=rating), how)


@pytest.mark.parametrize(
    ("make", "truth", "count"),
    [(of_macro_mean, 0.95, 300), (of_area, 0.95, 200), (of_matthews, 0.86, 200), (of_heavy_tails, 0.6, 150)],
)
def test_measures_cover_better_than_by_percentiles(
    make: Callable[[np.random.Generator, Bootstrap], Interval], truth: float, count: int
) -> None:
    """What a measure chooses by itself covers; the percentile bootstrap of the same samples does not."""
    covered = {}
    for method, resamples in (("auto", 200), ("percentile", 60)):
        generator = np.random.default_rng(11)
        intervals = [make(generator, Bootstrap(resamples, method=method)) for _ in range(count)]
        covered[method] = np.mean([interval.low <= truth <= interval.high for interval in intervals])
    assert covered["auto"] >= 0.92
    assert covered["percentile"] < covered["auto"] - 0.02


def test_what_is_not_measured_stays_as_it_is_written() -> None:
    cell = "proportion", "20 rows", "0.95"
    written = "statistic,sample,truth,method,replications,coverage,least,target\n" + "".join(
        f"{','.join(row)}\n"
        for row in (
            (*cell, "wald", "exact", "0.9", "0.8", "low"),
            (*cell, "percentile", "exact", "0.993", "0.985", "high"),
            ("mean", "20 rows", "exponential", "t", "10000", "0.917", "0.917", "low"),
            ("mean", "7 rows", "exponential", "t", "10000", "0.9", "0.9", "low"),
        )
    )
    measured = [row for row in coverage.measure_cell(CELLS[cell], WORK) if row.method == "wilson"]
    rows = coverage.keep_others(measured, written)
    # Without the method that was replaced, and without a cell that is not in the grid.
    assert [(row.statistic, row.method) for row in rows] == [
        ("proportion", "wilson"),
        ("proportion", "percentile"),
        ("mean", "t"),
    ]
    assert rows[1].coverage == 0.993


def test_the_least_possible_coverage_of_a_paired_difference() -> None:
    """Of one row with two equal models every outcome is needed, and no interval covers less than always."""
    assert find_least_coverage(1, (0.5, 0.5), 0.0) == pytest.approx(1)
    # Tango's interval is one of those that the program searches.
    tango = next(row for row in coverage.measure_cell(CELLS[KEY_OF_FEW], WORK) if row.method == "tango")
    assert tango.coverage > 0.98
    assert tango.coverage - 0.01 <= find_least_coverage(20, (0.95, 0.95), 0.5) <= tango.coverage + 1e-6
    # With more discordant rows the target is within reach.
    assert find_least_coverage(12, (0.8, 0.6), 0.0) < 0.95


def test_the_page_says_why_a_target_is_missed() -> None:
    missed, met = (coverage.measure_cell(CELLS[key], WORK) for key in (KEY_OF_FEW, KEY_OF_MANY))
    page = coverage.format_page([*met, *missed], WORK)
    assert "| 20 rows, phi 0.5 | 0.95 - 0.95 | 0.998 | 0.998 |" in page
    assert "least possible" not in coverage.format_page(met, WORK)
