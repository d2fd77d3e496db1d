"""Measure how often 95 % intervals cover the truth, over a grid of designs: exactly for counts, else by simulation.

    python -m bench.coverage --write                                   # the whole grid, to docs/results/coverage.*
    python -m bench.coverage --closed 500 --resampled 0 --only AUC     # a part of it, to the terminal
    python -m bench.coverage --resampled 0 --only AUC --write          # what is not measured stays as it is written

NumPy and SciPy suffice. The whole grid takes some core hours, nearly all of it for the bootstrap.
"""

from __future__ import annotations

import argparse
import csv
import io
import multiprocessing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.coverage_counts import (
    list_clusters,
    list_differences,
    list_macro_differences,
    list_macro_means,
    list_proportions,
    list_sampled_groups,
)
from bench.coverage_limits import find_least_coverage
from bench.coverage_values import list_areas, list_correlations, list_matthews, list_means
from bench.coverage_work import Cell, Work
from bench.tables import aligned

_RESULTS = Path(__file__).parent.parent / "docs" / "results"
_RESAMPLING = ("percentile", "bca")
# The targets: of coverage averaged over the window of a cell, and of the least in it for small samples of counts.
_LARGE = 100
# Bootstrap intervals of samples beyond this size take a second each: a tenth of the replications has to do for them.
_MANY = 10_000
_ENUMERATED = {("paired difference", "tango"), ("paired difference", "bonett-price")}
_STRICT_TARGET = (0.93, 0.97)
_SMALL_TARGET = (0.93, 0.98)
_LEAST = 0.92
_HEADINGS = ("statistic", "sample", "truth", "method", "replications", "coverage", "least", "target")

# Why a target is missed, below the table of a statistic.
_REASONS = {
    "proportion by cluster": "If every row of 20 clusters is right, nothing tells how alike the rows of a cluster are. "
    "Then each cluster counts as one row, which is the worst case, and too careful where rows differ.",
    "paired difference": "*Few discordant rows.* Of 20 rows, models above .95 differ in one or two; then no outcome "
    "that is at all likely excludes the truth. *Least possible* is the coverage, by integer programming, of the "
    "interval that covers least often here, of all that cover in .92 of samples whatever the number of discordant "
    "rows, contain what is nearer to the observed difference the sooner, and treat both models alike "
    "(`bench/coverage_limits.py`). Where it is above .98 the target is out of reach. Where not, the interval would "
    "have to exclude a difference of .04 to .1 after four or five gains without a loss, which are no significant "
    "difference at all (McNemar's exact p = .125 and .06).",
    "macro difference": "Few rows are discordant, as in the table of paired differences.",
    "AUC": "With five rows of one class, its variance is hardly known. Welch's degrees of freedom and DeLong's "
    "variance would bring that cell to .94, but four others above .98.",
    "kendall": "The jackknife overestimates the variance of few rows near 1, so that intervals are wider than needed.",
}


@dataclass(frozen=True)
class Row:
    """The coverage of a method in a cell: the mean over the window of true values, and the least in it."""

    statistic: str
    sample: str
    truth: str
    method: str
    replications: str
    coverage: float
    least: float
    target: str


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the grid, or write it to the documentation."""
    reader = argparse.ArgumentParser(description="Measure how often intervals cover the truth.")
    reader.add_argument("--closed", type=int, default=10_000, help="samples a cell for intervals in closed form")
    reader.add_argument("--resampled", type=int, default=2_000, help="samples a cell for bootstrap intervals")
    reader.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    reader.add_argument("--only", nargs="+", default=[], help="only these statistics, such as AUC")
    reader.add_argument("--seed", type=int, default=0)
    reader.add_argument("--write", action="store_true", help="write docs/results/coverage.csv and coverage.md")
    given = reader.parse_args(arguments)
    work = Work(given.closed, given.resampled, given.seed)
    cells = [cell for cell in list_cells() if not given.only or cell.statistic in given.only]
    with multiprocessing.Pool(given.processes) as pool:
        # One cell at a time for each process: some take a thousand times as long as others.
        rows = [row for part in pool.imap(partial(measure_cell, work=work), cells, chunksize=1) for row in part]
    if given.write:
        rows = keep_others(rows, (_RESULTS / "coverage.csv").read_text(encoding="utf-8"))
        (_RESULTS / "coverage.csv").write_text(format_csv(rows), encoding="utf-8")
        (_RESULTS / "coverage.md").write_text(format_page(rows, work), encoding="utf-8")
    else:
        print(aligned([_HEADINGS, *map(_format_row, rows)]))
        print(f"{sum(row.target == 'met' for row in rows)} of {len(rows)} meet the target")


def list_cells() -> list[Cell]:
    """Return the whole grid."""
    return [
        *list_proportions(),
        *list_clusters(),
        *list_macro_means(),
        *list_sampled_groups(),
        *list_differences(),
        *list_macro_differences(),
        *list_areas(),
        *list_matthews(),
        *list_correlations(),
        *list_means(),
    ]


def measure_cell(cell: Cell, work: Work) -> list[Row]:
    """Return the coverage of each method in a cell."""
    if cell.size > _MANY:
        work = replace(work, resampled=work.resampled // 10)
    rows = []
    for method, coverages in cell.compute(work).items():
        mean, least = sum(coverages) / len(coverages), min(coverages)
        is_exact = cell.statistic == "proportion" or (cell.statistic, method) in _ENUMERATED
        count = work.resampled if method.startswith(_RESAMPLING) else work.closed
        count = work.drawn if method == "dirichlet" else count
        target = judge(cell, mean, least)
        replications = "exact" if is_exact else str(count)
        rows.append(Row(cell.statistic, cell.design, cell.truth, method, replications, mean, least, target))
    return rows


def judge(cell: Cell, mean: float, least: float) -> str:
    """Return whether the coverage of a cell meets its target, is too low, or is too high."""
    is_small_count = cell.is_discrete and cell.size < _LARGE
    low, high = _SMALL_TARGET if is_small_count else _STRICT_TARGET
    if mean < low or (is_small_count and least < _LEAST):
        return "low"
    return "met" if mean <= high else "high"


def keep_others(rows: Sequence[Row], written: str) -> list[Row]:
    """Return all rows of the grid: those measured, and those written before of cells and methods not measured now.

    Args:
        rows: What was measured.
        written: The CSV file of before; what it has of cells that are no longer in the grid is left out.
    """
    found: dict[tuple[str, str, str], dict[str, Row]] = {
        (cell.statistic, cell.design, cell.truth): {} for cell in list_cells()
    }
    measured = {(row.statistic, row.method) for row in rows}
    # Methods that were replaced are not kept beside those that replace them.
    closed = {row.statistic for row in rows if not row.method.startswith(_RESAMPLING)}
    for line in csv.DictReader(io.StringIO(written)):
        names = line["statistic"], line["sample"], line["truth"], line["method"], line["replications"]
        row = Row(*names, float(line["coverage"]), float(line["least"]), line["target"])
        is_replaced = row.statistic in closed and not row.method.startswith(_RESAMPLING)
        if not is_replaced and (row.statistic, row.method) not in measured:
            found.get((row.statistic, row.sample, row.truth), {})[row.method] = row
    for row in reversed(rows):
        key = row.statistic, row.sample, row.truth
        found[key] = {row.method: row, **found[key]}
    return [row for cell in found.values() for row in cell.values()]


def _format_row(row: Row) -> tuple[str, ...]:
    numbers = f"{row.coverage:.3f}", f"{row.least:.3f}"
    return row.statistic, row.sample, row.truth, row.method, row.replications, *numbers, row.target


def format_csv(rows: Iterable[Row]) -> str:
    """Return all rows as CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_HEADINGS)
    writer.writerows(map(_format_row, rows))
    return stream.getvalue()


def format_page(rows: Sequence[Row], work: Work) -> str:
    """Return the page of the documentation: a summary of each method, and a table for each statistic."""
    parts = [
        "# How often the intervals cover",
        "How often 95 % intervals contain the true value, over a grid of designs. `python -m bench.coverage --write` "
        "makes this page; [coverage.csv](coverage.csv) has its numbers. "
        f"Intervals in closed form: {work.closed:,} simulated samples for each true value ({work.drawn:,} for "
        "`dirichlet`, whose ends are quantiles of draws); bootstrap intervals: "
        f"{work.resampled:,} (in samples of more than {_MANY:,} rows a tenth of that), of 1,000 resamples "
        "each. Proportions, and the differences of `tango` and `bonett-price`, are not simulated: all outcomes are "
        "enumerated.",
        "*Coverage* is the mean over true values up to .02 around the one named (of proportions, areas, hit rates), "
        "since the coverage of counts jumps from one value to the next; *least* is the lowest of these. Targets: "
        "coverage from .93 to .97; for counts in samples of fewer than 100 units from .93 to .98, and nowhere below "
        ".92. In the tables, *low* and *high* mark what misses its target.",
        "## Summary",
        _format_markdown(["statistic", "method", "cells", "met", "low", "high", "lowest", "highest"], _summarise(rows)),
    ]
    for statistic in dict.fromkeys(row.statistic for row in rows):
        parts += [f"## {statistic[0].upper()}{statistic[1:]}", _format_markdown(*_tabulate(rows, statistic))]
        parts += _explain(statistic, rows)
    return "\n\n".join(parts) + "\n"


def _summarise(rows: Sequence[Row]) -> Iterator[Sequence[str]]:
    for statistic, method in dict.fromkeys((row.statistic, row.method) for row in rows):
        chosen = [row for row in rows if (row.statistic, row.method) == (statistic, method)]
        counts = [str(sum(row.target == target for row in chosen)) for target in ("met", "low", "high")]
        ends = [f"{end(row.coverage for row in chosen):.3f}" for end in (min, max)]
        yield statistic, f"`{method}`", str(len(chosen)), *counts, *ends


def _tabulate(rows: Sequence[Row], statistic: str) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return headings and rows of a table with a row for each cell, and a column for each method."""
    cells: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        if row.statistic == statistic:
            cells.setdefault((row.sample, row.truth), {})[row.method] = row
    methods = list(dict.fromkeys(method for found in cells.values() for method in found))
    lines: list[Sequence[str]] = [
        (*cell, *(_format_cell(found, method) for method in methods)) for cell, found in cells.items()
    ]
    return ("sample", "truth", *(f"`{method}`" for method in methods)), lines


def _explain(statistic: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield why the method that is chosen for a statistic misses its targets, if it does."""
    of_statistic = [row for row in rows if row.statistic == statistic]
    missed = [row for row in of_statistic if row.method == of_statistic[0].method and row.target != "met"]
    if missed and statistic in _REASONS:
        yield _REASONS[statistic]
    if missed and statistic == "paired difference":
        limits = [(row.sample, row.truth, f"{row.coverage:.3f}", f"{_find_limit(row):.3f}") for row in missed]
        yield _format_markdown(["sample", "truth", f"`{missed[0].method}`", "least possible"], limits)


def _find_limit(row: Row) -> float:
    rows, phi = row.sample.split(" rows, phi ")
    first, second = map(float, row.truth.split(" - "))
    return find_least_coverage(int(rows), (first, second), float(phi))


def _format_cell(found: Mapping[str, Row], method: str) -> str:
    if method not in found:
        return "–"
    row = found[method]
    mark = "" if row.target == "met" else f" *{row.target}*"
    return f"{row.coverage:.3f} (least {row.least:.3f}){mark}"


def _format_markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, ["---"] * len(headings), *rows))


if __name__ == "__main__":
    main()
