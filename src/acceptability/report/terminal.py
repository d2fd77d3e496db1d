"""Tables for the terminal: results, groups, comparisons, correlations, and a paper's numbers beside ours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from acceptability.api.comparison import Comparison, ScoreCorrelation
from acceptability.api.significance.equivalence import ModelEquivalence
from acceptability.errors import AcceptabilityError, escape_control_chars
from acceptability.measures import load_measure
from acceptability.papers.cells import Cell
from acceptability.specs import parse_signature
from acceptability.stats.sampling_units import name_sampling_units
from acceptability.types import SINGLE_ROWS, Result


def build_result_table(results: Sequence[Result], title: str | None = None) -> Table:
    """Return results as a table with a row each; columns in which all rows are equal are in the title instead.

    Args:
        title: The title; by default the values that all rows share.
    """
    # A terminal of 80 columns has no room for columns that say nothing.
    names = [name for name in ("suite", "measure", "reduction") if len({getattr(row, name) for row in results}) > 1]
    shared = [getattr(results[0], name) for name in ("suite", "measure", "reduction") if name not in names]
    table = make_titled_table(title or ", ".join(filter(None, shared)))
    with_groups = any(result.group for result in results)
    for name in ("model", *names, *(["group"] if with_groups else [])):
        table.add_column(name, overflow="fold")
    # Names may be folded in a narrow terminal, numbers must never be cut.
    for name in ("value", "95 % interval", "n"):
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        cells = [result.model, *(getattr(result, name) for name in names)]
        cells += [result.group or "all"] if with_groups else []
        add_row(table, *cells, format_number(result.value), format_interval(result.low, result.high), str(result.n))
    return table


def build_group_table(results: Sequence[Result], title: str | None = None) -> Table:
    """Return the grouped results of one measure as a table with a row per group and a column per model."""
    models = list(dict.fromkeys(result.model for result in results))
    groups = list(dict.fromkeys(result.group or "all" for result in results))
    cells = {(result.group or "all", result.model): result for result in results}
    table = make_titled_table(title)
    table.add_column("group", overflow="fold")
    for model in models:
        table.add_column(to_plain_text(model), justify="right", overflow="fold")
    for group in groups:
        group_results = [cells.get((group, model)) for model in models]
        add_row(table, group.partition("=")[2] or group, *map(_format_result, group_results))
    return table


def _format_result(result: Result | None) -> str:
    if result is None or result.value is None:
        return "–"
    if result.low is None or result.high is None:
        return f"{result.value:.3f}"
    return f"{result.value:.3f} [{result.low:.2f}, {result.high:.2f}]"


def build_comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """Return comparisons with one model as a table with a row each; the title has what all rows share."""
    names = [name for name in ("measure", "second") if len({getattr(row, name) for row in comparisons}) > 1]
    first_comparison = comparisons[0]
    shared = [first_comparison.measure] if "measure" not in names else []
    shared += [f"{first_comparison.first} against {first_comparison.second if 'second' not in names else 'others'}"]
    table = make_titled_table(", ".join(shared))
    with_groups = any(comparison.group for comparison in comparisons)
    for name in (*names, *(["group"] if with_groups else [])):
        table.add_column(name, overflow="fold")
    # With groups there is room for three decimals in 80 columns; the counts, and the correction by Benjamini and
    # Hochberg, are in the rows of --json.
    counts = [] if with_groups else ["only first", "only second", "n"]
    for name in ("first", "second", "difference", "95 % interval", "p", *["Holm"] * with_groups, *counts):
        table.add_column(name, justify="right", no_wrap=True)
    digits = 3 if with_groups else 4
    for row in comparisons:
        cells = [getattr(row, name) for name in names]
        # The value alone, without the tag, which is the same in all rows: the column stays narrow.
        cells += [_format_group(row.group)] if with_groups else []
        cells += [format_number(row.first_value, digits), format_number(row.second_value, digits)]
        cells += [_format_signed(row.difference, digits), format_interval(row.low, row.high, digits)]
        cells += [format_p_value(row.p), *[format_p_value(row.holm)] * with_groups]
        if not with_groups:
            cells += [_format_count(row.only_first), _format_count(row.only_second), str(row.n)]
        add_row(table, *cells)
    return table


def build_pairs_table(comparisons: Sequence[Comparison]) -> Table:
    """Return the comparisons of several models in pairs as a table with a row each.

    The values of the models are in `build_compared_values_table`: with them a row would not fit into 80 columns.
    """
    with_measures = len({row.measure for row in comparisons}) > 1
    with_groups = any(row.group for row in comparisons)
    table = make_titled_table(None if with_measures else comparisons[0].measure)
    for name in (*["measure"] * with_measures, "model", "against", *["group"] * with_groups):
        table.add_column(name, overflow="fold")
    for name in ("difference", "95 % interval", "p", "Holm"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in comparisons:
        cells = [row.measure] * with_measures + [row.first, row.second]
        cells += [_format_group(row.group)] * with_groups
        cells += [_format_signed(row.difference, 3), format_interval(row.low, row.high, 3)]
        add_row(table, *cells, format_p_value(row.p), format_p_value(row.holm))
    return table


def build_compared_values_table(comparisons: Sequence[Comparison]) -> Table:
    """Return the value of each model of several comparisons, over all rows, as a table with a row per model."""
    overall = [row for row in comparisons if row.group is None]
    measures = list(dict.fromkeys(row.measure for row in overall))
    # Rows that one of the models lacks are left out of a pair, so that a model's value may differ between pairs.
    values: dict[tuple[str, str], dict[str, None]] = {}
    for row in overall:
        for model, value in ((row.first, row.first_value), (row.second, row.second_value)):
            values.setdefault((model, row.measure), {})[format_number(value)] = None
    table = make_titled_table(None)
    table.add_column("model", overflow="fold")
    for measure in measures:
        table.add_column(to_plain_text(measure), justify="right", overflow="fold")
    for model in dict.fromkeys(model for model, _ in values):
        add_row(table, model, *(" or ".join(values.get((model, measure), {"–": None})) for measure in measures))
    return table


def build_correlation_table(correlations: Sequence[ScoreCorrelation], title: str) -> Table:
    """Return correlations as a table with a row each."""
    table = make_titled_table(title)
    for name in ("first", "second"):
        table.add_column(name, overflow="fold")
    for name in ("r", "95 % interval", "p", "Holm", "BH", "n"):
        table.add_column(name, justify="right", no_wrap=True)
    for correlation in correlations:
        ps = map(format_p_value, (correlation.p, correlation.holm, correlation.benjamini_hochberg))
        add_row(
            table,
            correlation.first,
            correlation.second,
            format_number(correlation.r),
            format_interval(correlation.low, correlation.high),
            *ps,
            str(correlation.n),
        )
    return table


def build_equivalence_table(tests: Sequence[ModelEquivalence]) -> Table:
    """Return equivalence tests as a table with a row each; its title has the margin."""
    names = [name for name in ("measure", "first", "second") if len({getattr(row, name) for row in tests}) > 1]
    shared = [tests[0].measure] if "measure" not in names else []
    shared += [] if "first" in names else [tests[0].first]
    table = make_titled_table(f"{', '.join(shared)}: equivalence within ±{tests[0].margin:g}")
    # The second model is what tells the rows apart; the title has what they share.
    for name in dict.fromkeys((*names, "second")):
        table.add_column("against" if name == "second" else name, overflow="fold")
    interval = f"{100 - 200 * tests[0].alpha:g} % interval"
    for name in ("difference", interval, "p"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold")
    for row in tests:
        cells = [str(getattr(row, name)) for name in dict.fromkeys((*names, "second"))]
        numbers = [_format_signed(row.difference), format_interval(row.low, row.high), format_p_value(row.p)]
        add_row(table, *cells, *numbers, row.verdict or "–")
    return table


def describe_test(test: ModelEquivalence) -> str:
    """Return the method behind the p value and the interval of an equivalence test, and what it samples."""
    tag = "" if test.unit == SINGLE_ROWS else test.unit
    over = name_sampling_units(tag, test.n, of_contrasts=_counts_contrasts(test.measure))
    return f"p and interval by two one-sided tests: {test.method}, over {over}"


def _format_group(name: str | None) -> str:
    return (name or "all").partition("=")[2] or name or "all"


def _format_signed(value: float | None, digits: int = 4) -> str:
    return "–" if value is None else f"{value:+.{digits}f}"


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


def make_titled_table(title: str | None) -> Table:
    """Return an empty table with a title."""
    shown = to_plain_text(title, style="table.title") if title else None
    return Table(title=shown, title_justify="left", header_style="bold", pad_edge=False)


def to_plain_text(text: str, style: str = "") -> Text:
    """Return a text for Rich, without markup and without control sequences of the terminal."""
    # Rich reads brackets in a string as markup, and specs of models are full of them.
    return Text(escape_control_chars(text), style=style)


def add_row(table: Table, *cells: str) -> None:
    """Add a row of plain text."""
    table.add_row(*map(to_plain_text, cells))


def collect_footnotes(results: Sequence[Result]) -> list[str]:
    """Return the lines below a table: what the intervals are, reasons of undefined values, notes, and signatures."""
    reasons = [f"{result.measure} {result.group or 'all'}: {result.reason}" for result in results if result.reason]
    notes = [f"{_name_row(result, results, note)}: {note}" for result in results for note in result.notes]
    # The signatures of groups differ from that of the whole only in the group.
    signatures = {result.signature: result.measure for result in results if not result.group}
    return list(dict.fromkeys([*describe_intervals(signatures), *reasons, *notes, *signatures]))


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
        f"{row.measure}: {row.first} against {row.second} by DeLong's test: 95 % interval "
        f"{format_interval(row.delong_low, row.delong_high)}, p {format_p_value(row.delong_p)}"
        for row in comparisons
        if row.delong_p is not None and row.group is None
    ]


def _counts_contrasts(measure: str) -> bool:
    """Return whether the rows of a result are contrasts."""
    if measure.startswith(("correlate(", "fit_morcela(")):
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
        names += [result.reduction] if len({other.reduction for other in same_rows}) > 1 else []
    return " ".join([*names, result.measure, result.group or "all"])


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
    return "–" if low is None or high is None else f"{low:.{digits}f} … {high:.{digits}f}"


# A longer source or note would make its row many lines high.
_LONG_TEXT = 40
_YES_NO = {True: "yes", False: "no", None: ""}


def build_cell_table(title: str, cells: Sequence[Cell]) -> Table:
    """Return the cells of one table of a paper as a table with a row each; long texts are numbered and below it."""
    text_numbers = _number_long_texts(cells)
    table = make_titled_table(title)
    for name in ("row", "column"):
        table.add_column(name, overflow="fold")
    for name, shown in (("paper", [cell.paper or "–" for cell in cells]), ("ours", list(map(_format_ours, cells)))):
        # A number must stay on one line. Some cells hold a sentence, longer than any number, which may wrap.
        table.add_column(name, justify="right", overflow="fold", no_wrap=max(map(len, shown), default=0) < 20)
    table.add_column("agrees", justify="right", no_wrap=True)
    for name in ("source", "note"):
        table.add_column(name, overflow="fold")
    for cell in cells:
        signs = cell.paper or "–", _format_ours(cell), _YES_NO[cell.agrees]
        source_and_note = (
            f"({text_numbers[text]})" if text in text_numbers else text for text in (cell.source, cell.note)
        )
        add_row(table, cell.row, cell.column, *signs, *source_and_note)
    table.caption = (
        to_plain_text("\n".join(f"({number}) {text}" for text, number in text_numbers.items()))
        if text_numbers
        else None
    )
    table.caption_justify = "left"
    return table


def _number_long_texts(cells: Sequence[Cell]) -> dict[str, int]:
    """Return the numbers of the long sources and notes, in the order of the cells."""
    texts = dict.fromkeys(text for cell in cells for text in (cell.source, cell.note) if len(text) > _LONG_TEXT)
    return {text: number for number, text in enumerate(texts, start=1)}


def _format_ours(cell: Cell) -> str:
    """Return our number with as many decimals as the paper's, but at least four."""
    if cell.ours is None:
        return "–"
    if not isinstance(cell.ours, float):
        return str(cell.ours)
    digits = re.fullmatch(r"[^.]*\.(\d+)\D*", cell.paper or "")
    # Counts are computed as floats too, and are shown as the paper shows them.
    if cell.paper and not digits and cell.ours.is_integer():
        return f"{cell.ours:.0f}"
    return f"{cell.ours:.{max(4, len(digits[1]) if digits else 0)}f}"


def describe_agreement(cells: Sequence[Cell]) -> str:
    """Return a sentence on how many numbers of a paper were reproduced, with the counts of each table.

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
