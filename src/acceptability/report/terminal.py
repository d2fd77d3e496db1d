"""Tables for the terminal: results, groups, comparisons, correlations, and a paper's numbers beside ours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from acceptability.errors import AcceptabilityError
from acceptability.measures import load_measure
from acceptability.report.display_names import (
    DEFAULT_STYLE,
    NumberFormat,
    name_group,
    name_groups,
    name_measure,
    name_reduction,
    name_scores,
    name_tag,
)
from acceptability.report.text_table import TextTable, make_table
from acceptability.specs import parse_signature
from acceptability.stats.sampling_units import name_sampling_units
from acceptability.types import SINGLE_ROWS, Result

# What tables show, and the modules below the tables need not import: most commands print one kind of them.
if TYPE_CHECKING:
    from acceptability.api.comparison import Comparison, ScoreCorrelation
    from acceptability.api.significance.equivalence import ModelEquivalence
    from acceptability.papers.cells import Cell


def build_result_tables(results: Sequence[Result], style: NumberFormat = DEFAULT_STYLE) -> list[TextTable]:
    """Return results as tables: with groups, one for each suite and measure; else one with a row for each result."""
    if not any(result.group for result in results):
        return [build_result_table(results, style=style)]
    with_suites = len({result.suite for result in results}) > 1
    tables = []
    for suite, measure in dict.fromkeys((result.suite, result.measure) for result in results):
        rows = [result for result in results if (result.suite, result.measure) == (suite, measure)]
        reductions = dict.fromkeys(name_reduction(row.reduction) for row in rows)
        shared = [name_measure(measure), *reductions] if len(reductions) == 1 else [name_measure(measure)]
        title = f"{suite}: {', '.join(filter(None, shared))}" if with_suites or suite else ", ".join(shared)
        tables.append(build_group_table(rows, title, style))
    return tables


def build_result_table(
    results: Sequence[Result], title: str | None = None, style: NumberFormat = DEFAULT_STYLE
) -> TextTable:
    """Return results as a table with a row each; columns in which all rows are equal are in the title instead.

    Args:
        results: The results, of which groups are named in a column.
        title: The title; by default the values that all rows share.
        style: How numbers are printed.
    """
    fields = {
        "suite": [result.suite for result in results],
        "measure": [name_measure(result.measure) for result in results],
        "reduction": [name_reduction(result.reduction) for result in results],
    }
    # A terminal of 80 columns has no room for columns that say nothing.
    shown = {name: cells for name, cells in fields.items() if len(set(cells)) > 1}
    if any(result.group for result in results):
        shown["group"] = name_groups([result.group for result in results])
    styles = [style.of_measure(result.measure) for result in results]
    columns = [
        [result.model for result in results],
        *shown.values(),
        [row_style.number(result.value) for row_style, result in zip(styles, results, strict=True)],
        [row_style.interval(result.low, result.high) for row_style, result in zip(styles, results, strict=True)],
        [f"{result.n:,}" for result in results],
    ]
    header = ["model", *shown, "value", "95 % interval", "n"]
    rows = list(zip(*columns, strict=True))
    return make_table(header, rows, title or _join_shared(fields), keys=len(shown) + 1, kept=["value"])


def _join_shared(fields: Mapping[str, Sequence[str]]) -> str:
    """Return a title of what all rows share: "starter: Pair accuracy, log-probability"."""
    shared = {name: cells[0] for name, cells in fields.items() if len(set(cells)) == 1}
    suite = shared.pop("suite", "")
    rest = ", ".join(filter(None, shared.values()))
    return ": ".join(filter(None, (suite, rest)))


def build_group_table(
    results: Sequence[Result], title: str | None = None, style: NumberFormat = DEFAULT_STYLE
) -> TextTable:
    """Return the results of one measure as a table with a row per group and a column per model.

    Args:
        results: The results of the groups, and perhaps those of all rows and the mean over the groups.
        title: The title.
        style: How numbers are printed.
    """
    with_reductions = len({result.reduction for result in results}) > 1

    def name_model(result: Result) -> str:
        return f"{result.model} {name_reduction(result.reduction)}" if with_reductions else result.model

    models = list(dict.fromkeys(map(name_model, results)))
    groups = list(dict.fromkeys(result.group for result in results))
    cells = {(result.group, name_model(result)): result for result in results}
    # A count is the same for every model, but for scores from files that lack some sentences.
    counts = {group: {f"{result.n:,}" for result in results if result.group == group} for group in groups}
    with_counts = all(len(found) == 1 for found in counts.values())
    rows = []
    for group, name in zip(groups, name_groups(groups), strict=True):
        row = [_format_result(cells.get((group, model)), style) for model in models]
        rows.append([name, *(counts[group] if with_counts else ()), *row])
    header = [name_tag(groups), *(["n"] if with_counts else []), *models]
    return make_table(header, rows, title or "", keys=2 if with_counts else 1, is_pivot=True, kept=models)


def _format_result(result: Result | None, style: NumberFormat) -> str:
    if result is None:
        return "–"
    return style.of_measure(result.measure).with_interval(result.value, result.low, result.high)


Compared = TypeVar("Compared", "Comparison", "ScoreCorrelation", "ModelEquivalence")


def _name_compared_scores(rows: Sequence[Compared]) -> tuple[list[Compared], str]:
    """Return rows with the names of their scores as people read them, and the reduction that all have, or nothing."""
    names, reduction = name_scores([name for row in rows for name in (row.first, row.second)])
    renamed = [replace(row, first=names[2 * n], second=names[2 * n + 1]) for n, row in enumerate(rows)]
    return renamed, reduction


def build_comparison_table(comparisons: Sequence[Comparison], style: NumberFormat = DEFAULT_STYLE) -> TextTable:
    """Return comparisons with one model as a table with a row each; the title has what all rows share."""
    comparisons, reduction = _name_compared_scores(comparisons)
    fields = {
        "measure": [name_measure(row.measure) for row in comparisons],
        "second": [row.second for row in comparisons],
    }
    shown = {name: cells for name, cells in fields.items() if len(set(cells)) > 1}
    groups = [row.group for row in comparisons]
    with_groups = any(groups)
    if with_groups:
        shown[name_tag(groups)] = name_groups(groups)
    first, second = comparisons[0].first, "others" if "second" in shown else comparisons[0].second
    about = ", ".join(filter(None, ("" if "measure" in shown else fields["measure"][0], reduction)))
    title = ": ".join(filter(None, (about, f"{first} against {second}")))
    # The counts, and the correction by Benjamini and Hochberg, are in the rows of --json.
    counts = [] if with_groups else ["only first", "only second", "n"]
    header = [*shown, "first", "second", "difference", "95 % interval", "p", *["Holm"] * with_groups, *counts]
    rows = []
    for names, row in zip(
        zip(*shown.values(), strict=True) if shown else [()] * len(comparisons), comparisons, strict=True
    ):
        row_style = style.of_measure(row.measure)
        cells = [*names, row_style.number(row.first_value), row_style.number(row.second_value)]
        cells += [row_style.signed(row.difference), row_style.interval(row.low, row.high), format_p_value(row.p)]
        cells += [format_p_value(row.holm)] * with_groups
        if not with_groups:
            cells += [_format_count(row.only_first), _format_count(row.only_second), f"{row.n:,}"]
        rows.append(cells)
    return make_table(header, rows, title, keys=len(shown), kept=["difference"])


def build_pairs_table(comparisons: Sequence[Comparison], style: NumberFormat = DEFAULT_STYLE) -> TextTable:
    """Return the comparisons of several models in pairs as a table with a row each.

    The values of the models are in `build_compared_values_table`: with them a row would not fit into 80 columns.
    """
    comparisons, reduction = _name_compared_scores(comparisons)
    with_measures = len({row.measure for row in comparisons}) > 1
    groups = [row.group for row in comparisons]
    with_groups = any(groups)
    header = [*["measure"] * with_measures, "model", "against", *[name_tag(groups)] * with_groups]
    keys = len(header)
    header += ["difference", "95 % interval", "p", "Holm"]
    rows = []
    for row, group in zip(comparisons, name_groups(groups), strict=True):
        row_style = style.of_measure(row.measure)
        cells = [name_measure(row.measure)] * with_measures + [row.first, row.second] + [group] * with_groups
        cells += [row_style.signed(row.difference), row_style.interval(row.low, row.high)]
        rows.append([*cells, format_p_value(row.p), format_p_value(row.holm)])
    title = ", ".join(filter(None, ("" if with_measures else name_measure(comparisons[0].measure), reduction)))
    return make_table(header, rows, title, keys=keys, kept=["difference"])


def build_compared_values_table(comparisons: Sequence[Comparison], style: NumberFormat = DEFAULT_STYLE) -> TextTable:
    """Return the value of each model of several comparisons, over all rows, as a table with a row per model."""
    comparisons, _ = _name_compared_scores(comparisons)
    overall = [row for row in comparisons if row.group is None]
    measures = list(dict.fromkeys(row.measure for row in overall))
    # Rows that one of the models lacks are left out of a pair, so that a model's value may differ between pairs.
    values: dict[tuple[str, str], dict[str, None]] = {}
    for row in overall:
        for model, value in ((row.first, row.first_value), (row.second, row.second_value)):
            values.setdefault((model, row.measure), {})[style.of_measure(row.measure).number(value)] = None
    rows = [
        [model, *("\n".join(values.get((model, measure), {"–": None})) for measure in measures)]
        for model in dict.fromkeys(model for model, _ in values)
    ]
    return make_table(["model", *map(name_measure, measures)], rows, is_pivot=True)


def build_correlation_table(
    correlations: Sequence[ScoreCorrelation], title: str, style: NumberFormat = DEFAULT_STYLE
) -> TextTable:
    """Return correlations as a table with a row each."""
    correlations, reduction = _name_compared_scores(correlations)
    rows = [
        [
            correlation.first,
            correlation.second,
            style.number(correlation.r),
            style.interval(correlation.low, correlation.high),
            *map(format_p_value, (correlation.p, correlation.holm, correlation.benjamini_hochberg)),
            f"{correlation.n:,}",
        ]
        for correlation in correlations
    ]
    header = ["first", "second", "r", "95 % interval", "p", "Holm", "BH", "n"]
    return make_table(header, rows, ", ".join(filter(None, (title, reduction))), keys=2, kept=["r"])


def build_equivalence_table(tests: Sequence[ModelEquivalence], style: NumberFormat = DEFAULT_STYLE) -> TextTable:
    """Return equivalence tests as a table with a row each; its title has the margin."""
    tests, reduction = _name_compared_scores(tests)
    fields = {
        "measure": [name_measure(test.measure) for test in tests],
        "first": [test.first for test in tests],
    }
    shown = {name: cells for name, cells in fields.items() if len(set(cells)) > 1}
    # The second model is what tells the rows apart; the title has what they share.
    shown["against"] = [test.second for test in tests]
    shared = ", ".join([*(cells[0] for name, cells in fields.items() if name not in shown), *filter(None, [reduction])])
    interval = f"{100 - 200 * tests[0].alpha:g} % interval"
    rows = []
    for names, test in zip(zip(*shown.values(), strict=True), tests, strict=True):
        row_style = style.of_measure(test.measure)
        numbers = [row_style.signed(test.difference), row_style.interval(test.low, test.high), format_p_value(test.p)]
        rows.append([*names, *numbers, test.verdict or "–"])
    title = ": ".join(filter(None, (shared, f"equivalence within ±{tests[0].margin:g}")))
    return make_table([*shown, "difference", interval, "p", "verdict"], rows, title, keys=len(shown))


def describe_test(test: ModelEquivalence) -> str:
    """Return the method behind the p value and the interval of an equivalence test, and what it samples."""
    tag = "" if test.unit == SINGLE_ROWS else test.unit
    over = name_sampling_units(tag, test.n, of_contrasts=_counts_contrasts(test.measure))
    return f"p and interval by two one-sided tests: {test.method}, over {over}"


def _format_count(value: int | None) -> str:
    return "–" if value is None else str(value)


def format_p_value(p: float | None) -> str:
    """Return a p value for a table.

    >>> format_p_value(0.0312), format_p_value(0.000004), format_p_value(None)
    ('.031', '<.001', '–')
    """
    if p is None:
        return "–"
    # Without the leading zero, as journals print it: a p value cannot exceed 1.
    return "<.001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def collect_footnotes(results: Sequence[Result]) -> list[str]:
    """Return the lines below a table: what the intervals are, reasons of undefined values, and notes."""
    reasons = [f"{name_measure(row.measure)}, {name_group(row.group)}: {row.reason}" for row in results if row.reason]
    # Groups repeat what holds for the whole.
    signatures = {result.signature: name_measure(result.measure) for result in results if not result.group}
    return list(dict.fromkeys([*describe_intervals(signatures), *reasons, *_collect_notes(results)]))


def _collect_notes(results: Sequence[Result]) -> list[str]:
    """Return each note once, with the results that it is about unless these are all."""
    overall = [result for result in results if not result.group] or list(results)
    lines = []
    for note in dict.fromkeys(note for result in results for note in result.notes):
        about = [result for result in results if note in result.notes]
        models = {result.model for result in about}
        if all(note in result.notes for result in overall):
            lines.append(note)
        elif all((note in result.notes) == (result.model in models) for result in overall):
            lines.append(f"{', '.join(dict.fromkeys(result.model for result in about))}: {note}")
        else:
            lines += [f"{_name_row(result, results, note)}: {note}" for result in about]
    return lines


# What the methods of intervals in signatures are called; see ``stats.intervals``.
_INTERVAL_METHODS = {
    "percentile": "percentile bootstrap",
    "bca": "BCa bootstrap",
    "wilson": "Wilson's score",
    "tango": "Tango's score",
    "t": "t, corrected for skewness,",
    "jackknife": "jackknife",
    "hanley-mcneil": "Hanley and McNeil's",
    "dirichlet": "Dirichlet posterior",
}


def describe_intervals(signatures: Mapping[str, str]) -> list[str]:
    """Return a line for each kind of interval behind some results, with the results if they differ in it.

    Args:
        signatures: From the signatures of results to what each is of, such as its measure.

    >>> describe_intervals({"MCC()|n:527|ci:percentile(0.95,resamples=1000,by=row,seed=0)": "MCC()"})
    ['95 % intervals: percentile bootstrap over 527 single rows']
    """
    about: dict[str, list[str]] = {}
    for signature, name in signatures.items():
        if line := _describe_interval(parse_signature(signature)):
            about.setdefault(line, []).append(name)
    if len(about) < 2:
        return list(about)
    return [f"{line} ({', '.join(dict.fromkeys(names))})" for line, names in about.items()]


def _describe_interval(fields: Mapping[str, str]) -> str:
    """Return what an interval is, from the fields of a result's signature; empty if there is none."""
    method, bracket, options = fields.get("ci", "").removeprefix("paired ").partition("(")
    if not bracket:
        return ""
    level, _, rest = options.removesuffix(")").partition(",")
    settings = dict(part.partition("=")[::2] for part in rest.split(","))
    unit, _, within = settings.get("by", SINGLE_ROWS).partition("/")
    tag = "" if unit == SINGLE_ROWS else unit
    # A result of the version before has no number of units.
    count = fields.get("units" if tag else "n", "")
    if count.isdecimal():
        over = name_sampling_units(tag, int(count), of_contrasts=_counts_contrasts(fields["measure"]))
    else:
        over = f"the values of {tag!r}"
    if within:
        over += ", and within each over " + ("single rows" if within == SINGLE_ROWS else f"the values of {within!r}")
    if method == "fisher-z":
        kind = f"Fisher's z, {'jackknife' if tag else 'assuming independence of'}"
        return f"{float(level) * 100:g} % intervals: {kind} {'over ' * bool(tag)}{over}"
    return f"{float(level) * 100:g} % intervals: {_INTERVAL_METHODS.get(method, method)} over {over}"


def describe_tests(signatures: Mapping[str, str]) -> list[str]:
    """Return a line for each kind of test and correction behind some p values, with the results if they differ in it.

    Args:
        signatures: From the signatures of results to what each is of, such as its measure.

    >>> describe_tests({"MCC()|n:9|test:permutation(swap,standardised,two-sided,draws=2000,by=row,seed=0)": "MCC()"})
    ['p: permutation test that swaps standardised rows, two-sided, exact or 2,000 draws']
    """
    about: dict[str, list[str]] = {}
    for signature, name in signatures.items():
        fields = parse_signature(signature)
        lines = [_describe_permutation(fields.get("test", "none")), _describe_correction(fields.get("correction", ""))]
        for line in filter(None, lines):
            about.setdefault(line, []).append(name)
    if len(set(map(tuple, about.values()))) < 2:
        return list(about)
    return [f"{line} ({', '.join(dict.fromkeys(names))})" for line, names in about.items()]


# What permutation tests do, by their names in signatures.
_PERMUTATIONS = {
    "sign-flip": "by sign flips of differences",
    "swap,standardised": "that swaps standardised rows",
    "swap,standardised,refit": "that swaps standardised scores and fits both thresholds again",
}


def _describe_permutation(test: str) -> str:
    """Return what a p value is, from the field of a signature; empty if nothing is tested."""
    if test == "none":
        return "p: not tested"
    name, _, options = test.removesuffix(")").partition("(")
    if name != "permutation":
        return f"p: {test}"
    scheme, _, settings = options.removeprefix("macro,").partition(",two-sided,")
    drawn = dict(part.partition("=")[::2] for part in settings.split(","))
    draws = int(drawn["draws"]) if drawn.get("draws", "").isdecimal() else 0
    over = "" if drawn.get("by", SINGLE_ROWS) == SINGLE_ROWS else f", rows of the same {drawn['by']} together"
    return f"p: permutation test {_PERMUTATIONS.get(scheme, scheme)}{over}, two-sided, exact or {draws:,} draws"


def _describe_correction(correction: str) -> str:
    match = re.fullmatch(r"holm,benjamini-hochberg\(tests=(\d+)\)", correction)
    return f"Holm: p corrected for {match[1]} tests" if match else ""


def describe_areas(comparisons: Sequence[Comparison]) -> list[str]:
    """Return a line for each comparison over all rows that has DeLong's test of areas under the ROC curve."""
    return [
        f"{name_measure(row.measure)}: {row.first} against {row.second} by DeLong's test: 95 % interval "
        f"{format_interval(row.delong_low, row.delong_high)}, p {format_p_value(row.delong_p)}"
        for row in comparisons
        if row.delong_p is not None and row.group is None
    ]


def _counts_contrasts(measure: str) -> bool:
    """Return whether the rows of a result are contrasts."""
    if measure.startswith(("correlate(", "fit_morcela(", "fit_slln_lp(")):
        return "gaps" in measure
    try:
        return "contrasts" in load_measure(measure).needs
    # A measure of a plug-in that is no longer installed.
    except AcceptabilityError:
        return False


def _name_row(result: Result, results: Sequence[Result], note: str) -> str:
    """Return what tells the row of a note apart: measure and group; suite and model where the others lack the note."""
    same_rows = [
        other
        for other in results
        if (other.measure, other.group, other.suite) == (result.measure, result.group, result.suite)
    ]
    names = [result.suite] if len({other.suite for other in results}) > 1 else []
    # How many words are unknown, or which threshold was fitted, differs between the models of a table.
    if any(note not in other.notes for other in same_rows):
        names.append(result.model)
        names += [name_reduction(result.reduction)] if len({other.reduction for other in same_rows}) > 1 else []
    return ", ".join([*names, name_measure(result.measure), *([name_group(result.group)] if result.group else [])])


def format_number(value: float | None, digits: int = 4) -> str:
    """Return a number for a table; a dash where it is undefined.

    Args:
        value: The number.
        digits: The number of decimals.

    >>> format_number(0.5), format_number(None)
    ('0.5000', '–')
    """
    return "–" if value is None else f"{value:.{digits}f}"


def format_interval(low: float | None, high: float | None, digits: int = 4) -> str:
    """Return both ends with four decimals or as many as given, or a dash where there is no interval."""
    return NumberFormat(digits).interval(low, high)


# A longer source or note would make its row many lines high.
_LONG_TEXT = 40
_YES_NO = {True: "yes", False: "no", None: ""}


def build_cell_table(title: str, cells: Sequence[Cell], style: NumberFormat = DEFAULT_STYLE) -> TextTable:
    """Return the cells of one table of a paper as a table with a row each; long texts are numbered and below it."""
    sources = {cell.source for cell in cells}
    notes = []
    # One source of all numbers is said once, and leaves its column to the names.
    if len(cells) > 1 and len(sources) == 1:
        notes.append(f"source of ours: {sources.pop()}")
        cells = [replace(cell, source="") for cell in cells]
    text_numbers = _number_long_texts(cells)
    rows = []
    for cell in cells:
        signs = cell.paper or "–", _format_ours(cell, style), _YES_NO[cell.agrees]
        source_and_note = (
            f"({text_numbers[text]})" if text in text_numbers else text for text in (cell.source, cell.note)
        )
        rows.append([cell.row, cell.column, *signs, *source_and_note])
    notes += [f"({number}) {text}" for text, number in text_numbers.items()]
    header = ["row", "column", "paper", "ours", "agrees", "source", "note"]
    return make_table(header, rows, title, keys=2, notes=notes, kept=["ours"])


def _number_long_texts(cells: Sequence[Cell]) -> dict[str, int]:
    """Return the numbers of the long sources and notes, in the order of the cells."""
    texts = dict.fromkeys(text for cell in cells for text in (cell.source, cell.note) if len(text) > _LONG_TEXT)
    return {text: number for number, text in enumerate(texts, start=1)}


def _format_ours(cell: Cell, style: NumberFormat) -> str:
    """Return our number with as many decimals as the paper's, but no fewer than elsewhere."""
    if cell.ours is None:
        return "–"
    if not isinstance(cell.ours, float):
        return str(cell.ours)
    digits = re.fullmatch(r"[^.]*\.(\d+)\D*", cell.paper or "")
    # Counts are computed as floats too, and are shown as the paper shows them.
    if cell.paper and not digits and cell.ours.is_integer():
        return f"{cell.ours:.0f}"
    return f"{cell.ours:.{max(style.digits, len(digits[1]) if digits else 0)}f}"


def describe_agreement(cells: Sequence[Cell]) -> str:
    """Return a sentence on how many numbers of a paper were reproduced, with the counts of each table.

    >>> from acceptability.papers.cells import Cell
    >>> describe_agreement([Cell("Table 1", "a", "b", ".5", 0.5, "published scores", True)])
    '1 of 1 printed numbers were reproduced.'
    """
    compared = [cell for cell in cells if cell.agrees is not None]
    n_second_hand = sum(cell.is_second_hand for cell in compared)
    n_open = sum(cell.paper is not None and cell.ours is None for cell in cells)
    n_not_compared = sum(cell.is_not_compared for cell in cells)
    tables = list(dict.fromkeys(cell.table for cell in compared))
    other = (
        f"{n_not_compared} of ours stand beside printed ones of other models or texts, and are not compared."
        * bool(n_not_compared)
    )
    if not compared:
        return other or "No printed number could be set beside one of ours."
    summary = f"{_format_agreement_count(compared)} printed numbers were reproduced"
    summary += f", {n_second_hand} of them second-hand: see their notes" if n_second_hand else ""
    summary += f"; {n_open} more cannot be computed from what is published." if n_open else "."
    parts = [
        f"{table} {_format_agreement_count([cell for cell in compared if cell.table == table])}" for table in tables
    ]
    by_table = f"{', '.join(parts)}." if len(parts) > 1 else ""
    return " ".join(filter(None, (summary, by_table, other)))


def _format_agreement_count(compared: Sequence[Cell]) -> str:
    return f"{sum(cell.agrees is True for cell in compared)} of {len(compared)}"
