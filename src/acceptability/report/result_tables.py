"""The tables of a report, as data, and in LaTeX (booktabs) and Markdown.

``build_tables`` makes the tables from the rows of a report; the page renders the same tables as HTML. The best model of
each measure is in bold, and stars mark models that differ from it by a permutation test with Holm's correction; a
measure that cannot be tested so is named below the table.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from acceptability.api.comparison import list_scaled_columns
from acceptability.errors import Undefined
from acceptability.measures import load_measure
from acceptability.measures.classification import MCC, Accuracy
from acceptability.report.display_names import name_group, name_groups, name_measure
from acceptability.report.report_data import ReportData, Row, format_model_name
from acceptability.report.terminal import describe_intervals, format_p_value
from acceptability.specs import parse_signature
from acceptability.stats.permutation import holm, permutation_test
from acceptability.types import SINGLE_ROWS, Units

MARKS_NOTE = "Marks: different from the best (bold) by a permutation test, Holm: * p < .05, ** p < .01, *** p < .001."
_UNTESTED_GROUPS = "Bold: the highest of a group, which is not tested here; `acceptability compare --by` tests groups."
# The smallest possible p is 1/2001, which suffices for three stars.
_RESAMPLES = 2000
# A measure that is no mean is evaluated again for each swap: with more rows in all, a page would take minutes.
_MAX_ROWS_SWAPPED = 20_000_000
_ID_COLUMNS = ("suite", "measure", "model", "reduction", "unit")

ResultKey = tuple[str, str, str]
"""Suite, measure and model."""


@dataclass(frozen=True)
class BestModelTests:
    """Which models differ from the best one, by suite and measure.

    Args:
        marks: The stars of models that differ significantly.
        untested: Why models could not be tested, by suite and measure.
    """

    marks: Mapping[ResultKey, str]
    untested: Mapping[tuple[str, str], str]


def compute_marks(report_data: ReportData) -> Mapping[ResultKey, str]:
    """Return the stars of models that differ significantly from the best; see `compare_with_best`."""
    return compare_with_best(report_data).marks


def compare_with_best(report_data: ReportData) -> BestModelTests:
    """Return permutation tests of each model against the best of its suite and measure, which is not tested itself."""
    rows_by_model: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in report_data.units:
        if row.get("measure") and "model" in row:
            rows_by_model[row["suite"], row["measure"]][format_model_name(row)].append(row)
    resampling_tags = {
        (row["suite"], row["measure"]): _find_resampling_tag(row.get("signature") or "") for row in report_data.results
    }
    marks: dict[ResultKey, str] = {}
    untested: dict[tuple[str, str], str] = {}
    for (suite, measure), models in rows_by_model.items():
        # A single model has nothing to differ from.
        if len(models) < 2:
            continue
        ps, reason = _compute_p_values(measure, models, resampling_tags.get((suite, measure), ""))
        marks |= {(suite, measure, model): format_mark(p) for model, p in ps.items()}
        if reason:
            untested[suite, measure] = reason
    return BestModelTests(marks, untested)


def format_mark(p: float | None) -> str:
    """Return the stars of a corrected p value.

    >>> format_mark(0.03), format_mark(0.0004), format_mark(0.2), format_mark(None)
    ('*', '***', '', '')
    """
    if p is None:
        return ""
    return next((sign for limit, sign in ((0.001, "***"), (0.01, "**"), (0.05, "*")) if p < limit), "")


def _find_resampling_tag(signature: str) -> str:
    """Return the tag that was resampled by for the interval of a result; empty for single rows."""
    # The permutation test must swap the same clusters: single rows of one item are not independent.
    named = re.search(r"by=([^,)/]+)[,)/]", parse_signature(signature).get("ci", "")) if signature else None
    return "" if named is None or named[1] == SINGLE_ROWS else named[1]


def _compute_p_values(
    measure: str, models: Mapping[str, Sequence[Row]], by: str
) -> tuple[Mapping[str, float | None], str]:
    """Return the corrected p value of each model against the best, None where it is not tested, and why it is not."""
    loaded_measure = load_measure(measure)
    # Decisions by a threshold that was fitted to all rows cannot be swapped row by row: `compare` fits both again, for
    # which saved rows do not suffice.
    if isinstance(loaded_measure, Accuracy | MCC) and isinstance(loaded_measure.threshold, str):
        return {}, "its thresholds are fitted to all rows; `acceptability compare` fits them again"
    column = loaded_measure.mean_of
    if column and not all(column in row for rows in models.values() for row in rows):
        return {}, f"the saved rows have no {column!r}"
    units = {name: _make_units(rows, by) for name, rows in models.items()}
    if not column and _RESAMPLES * max(map(len, units.values())) > _MAX_ROWS_SWAPPED:
        return {}, "it has too many rows to be evaluated for each swap; `acceptability compare` does that"
    try:
        best = max(units, key=lambda name: loaded_measure.value(units[name]))
    except (Undefined, KeyError):
        return {}, "it is undefined for one of the models"
    # The test is paired, so that models with other rows cannot be compared.
    others = [name for name in units if name != best and units[name].ids == units[best].ids]
    reasons = ["not all models have the same rows"] * (len(others) < len(units) - 1)
    p_values: list[float | None] = []
    columns = list_scaled_columns(loaded_measure, units[best])
    for name in others:
        try:
            pair = units[best], units[name]
            p_values.append(permutation_test(loaded_measure, *pair, by=by, draws=_RESAMPLES, standardise=columns).p)
        except Undefined as error:
            p_values.append(None)
            reasons.append(str(error))
    return dict(zip(others, holm(p_values), strict=True)), "; ".join(dict.fromkeys(reasons))


def _make_units(rows: Sequence[Row], by: str) -> Units:
    """Return rows with the only tag that a test needs, which is that of its sampling units."""
    # Only columns that all rows have can become arrays.
    shared = set(rows[0]).intersection(*rows)
    names = [name for name in rows[0] if name in shared and name not in _ID_COLUMNS and not name.startswith("tag/")]
    columns = {name: np.array([row[name] for row in rows], dtype=np.float64) for name in names}
    column = f"tag/{by}"
    tags = tuple({by: str(row[column])} if by and column in row else {} for row in rows)
    return Units(tuple(row["unit"] for row in rows), columns, tags)


@dataclass(frozen=True)
class TableCell:
    """A cell of a table.

    Args:
        interval: Its confidence interval, as text.
        is_best: Whether it is the best value of its measure.
        mark: Stars, if it differs significantly from the best.
        is_number: Whether it is right-aligned.
        code: What users type for it, where that is not the text.
    """

    text: str
    interval: str = ""
    is_best: bool = False
    mark: str = ""
    is_number: bool = False
    code: str = ""


@dataclass(frozen=True)
class ReportTable:
    """A table of a report.

    Args:
        name: The name for labels of LaTeX.
        is_long: Whether a page shows it folded.
        codes: What users type for measures, by the names that the table has for them.
    """

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    notes: tuple[str, ...] = ()
    is_long: bool = False
    codes: Mapping[str, str] = field(default_factory=dict)

    @property
    def code_notes(self) -> tuple[str, ...]:
        """What users type for the measures: for paper, where a name cannot show it when it is pointed at."""
        return (f"In code: {'; '.join(f'{name} is {code}' for name, code in self.codes.items())}.",) * bool(self.codes)


def build_tables(report_data: ReportData) -> list[ReportTable]:
    """Return all tables that there are rows for."""
    return [
        *_build_summary_tables(report_data),
        *_build_group_tables(report_data),
        *_build_comparison_table(report_data),
        *_build_correlation_table(report_data),
        *_build_contrast_table(report_data),
        *_build_paper_tables(report_data),
    ]


def _build_summary_tables(report_data: ReportData) -> Iterator[ReportTable]:
    """Yield a table of models by measures for each suite."""
    overall = [row for row in report_data.results if not row.get("group")]
    tests = compare_with_best(report_data)
    for suite in _list_names(overall, "suite"):
        rows = [row for row in overall if row["suite"] == suite]
        measures, models = _list_names(rows, "measure"), list(dict.fromkeys(map(format_model_name, rows)))
        # By name, since not every model need have every measure.
        cells = {(format_model_name(row), row["measure"]): row for row in rows}
        body = tuple(
            (
                TableCell(model),
                *(_make_value_cell(cells.get((model, measure)), rows, tests.marks) for measure in measures),
            )
            for model in models
        )
        counts = "; ".join(f"{name_measure(measure)}: n = {_format_counts(rows, measure)}" for measure in measures)
        test_notes = _describe_marks(tests, suite, measures) if len(models) > 1 else []
        reasons = [
            f"{format_model_name(row)}, {name_measure(row['measure'])}: {row['reason']}"
            for row in rows
            if row.get("reason")
        ]
        intervals = describe_intervals(
            {row["signature"]: name_measure(row["measure"]) for row in rows if row.get("signature")}
        )
        notes = (f"{counts}.", *(f"{line}." for line in intervals), *test_notes, *reasons)
        header = ("model", *map(name_measure, measures))
        yield ReportTable(f"summary-{suite}", suite, header, body, notes, codes=_list_codes(measures))


def _describe_marks(tests: BestModelTests, suite: str, measures: Sequence[str]) -> list[str]:
    """Return what the stars are, and a line for each measure whose models were not tested."""
    # Without stars a reader must be able to tell "no difference was found" from "none was looked for".
    tested = {(suite, measure) for suite, measure, _ in tests.marks}
    reasons = {
        measure: tests.untested.get((suite, measure), "the rows of its results were not saved")
        for measure in measures
        if (suite, measure) in tests.untested or (suite, measure) not in tested
    }
    untested = [f"Not tested: {name_measure(measure)}, since {reason}." for measure, reason in reasons.items()]
    return [MARKS_NOTE] * any((suite, measure) in tested for measure in measures) + untested


def _format_counts(rows: Sequence[Row], measure: str) -> str:
    return ", ".join(dict.fromkeys(f"{row['n']:,}" for row in rows if row["measure"] == measure))


def _make_value_cell(row: Row | None, rivals: Sequence[Row], mark_by_key: Mapping[ResultKey, str]) -> TableCell:
    if row is None or row["value"] is None:
        return TableCell("–", is_number=True)
    rival_values = [
        rival["value"] for rival in rivals if rival["measure"] == row["measure"] and rival["value"] is not None
    ]
    # A single model is not the best of anything.
    is_best = len(rival_values) > 1 and row["value"] == max(rival_values)
    mark = "" if is_best else mark_by_key.get((row["suite"], row["measure"], format_model_name(row)), "")
    return TableCell(f"{row['value']:.3f}", _format_interval(row), is_best, mark, is_number=True)


def _format_interval(row: Row) -> str:
    low, high = row.get("low"), row.get("high")
    return "" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"


def _build_group_tables(report_data: ReportData) -> Iterator[ReportTable]:
    """Yield a table of groups by models for each suite and measure."""
    grouped = [row for row in report_data.results if row.get("group")]
    for suite, measure in dict.fromkeys((row["suite"], row["measure"]) for row in grouped):
        rows = [row for row in grouped if (row["suite"], row["measure"]) == (suite, measure)]
        models = list(dict.fromkeys(map(format_model_name, rows)))
        cells = {(row["group"], format_model_name(row)): row for row in rows}
        groups = _list_names(rows, "group")
        body = tuple(
            (
                TableCell(name, code=group if group != name else ""),
                *(_make_group_cell(cells, group, model, models) for model in models),
            )
            for group, name in zip(groups, name_groups(groups), strict=True)
        )
        title = f"{suite}: {name_measure(measure)} by group"
        notes = (_UNTESTED_GROUPS,) if len(models) > 1 else ()
        yield ReportTable(
            f"groups-{suite}-{measure}",
            title,
            ("group", *models),
            body,
            notes,
            is_long=True,
            codes=_list_codes([measure]),
        )


def _make_group_cell(cells: Mapping[tuple[str, str], Row], group: str, model: str, models: Sequence[str]) -> TableCell:
    row = cells.get((group, model))
    if row is None or row["value"] is None:
        return TableCell("–", is_number=True)
    group_values = [cells[group, rival]["value"] for rival in models if (group, rival) in cells]
    rivals = [value for value in group_values if value is not None]
    return TableCell(
        f"{row['value']:.3f}", _format_interval(row), len(rivals) > 1 and row["value"] == max(rivals), is_number=True
    )


def _build_comparison_table(report_data: ReportData) -> Iterator[ReportTable]:
    header = ("measure", "first", "second", "group", "first value", "second value", "difference", "p", "Holm", "n")
    body = tuple(
        (
            TableCell(
                name_measure(row["measure"]), code=_list_codes([row["measure"]]).get(name_measure(row["measure"]), "")
            ),
            *(TableCell(str(row[name])) for name in ("first", "second")),
            TableCell(name_group(row.get("group") or None), code=row.get("group") or ""),
            *(_make_number_cell(row[name]) for name in ("first_value", "second_value")),
            TableCell(_format_signed(row["difference"]), _format_interval(row), mark="", is_number=True),
            *(TableCell(format_p_value(row.get(name)), is_number=True) for name in ("p", "holm")),
            TableCell(f"{row['n']:,}", is_number=True),
        )
        for row in report_data.comparisons
    )
    if body:
        codes = _list_codes(_list_names(report_data.comparisons, "measure"))
        yield ReportTable("comparisons", "Comparisons", header, body, is_long=len(body) > 15, codes=codes)


def _build_correlation_table(report_data: ReportData) -> Iterator[ReportTable]:
    body = tuple(
        (
            TableCell(row["first"]),
            TableCell(row["second"]),
            TableCell("–" if row["r"] is None else f"{row['r']:.3f}", _format_interval(row), is_number=True),
            *(TableCell(format_p_value(row.get(name)), is_number=True) for name in ("p", "holm")),
            TableCell(f"{row.get('n', 0):,}", is_number=True),
        )
        for row in report_data.correlations
    )
    if body:
        yield ReportTable("correlations", "Correlations", ("first", "second", "r", "p", "Holm", "n"), body)


def _build_contrast_table(report_data: ReportData) -> Iterator[ReportTable]:
    header = ("model", "group", "directionality", "repulsion", "class", "n")
    body = tuple(
        (
            TableCell(str(row.get("model", ""))),
            TableCell(row["group"]),
            *(_make_interval_cell(row, name) for name in ("directionality", "repulsion")),
            TableCell(str(row.get("class") or "–")),
            TableCell(f"{row['n']:,}", is_number=True),
        )
        for row in report_data.groups
    )
    if body:
        yield ReportTable("contrasts", "Contrasts on a target", header, body, is_long=len(body) > 15)


def _make_interval_cell(row: Row, name: str) -> TableCell:
    ends = {"low": row.get(f"{name}_low"), "high": row.get(f"{name}_high")}
    return TableCell("–" if row[name] is None else f"{row[name]:.3f}", _format_interval(ends), is_number=True)


def _build_paper_tables(report_data: ReportData) -> Iterator[ReportTable]:
    """Yield a table of a paper's numbers and ours for each table of the paper."""
    # None: the numbers are not comparable, which is neither agreement nor disagreement.
    signs = {True: "yes", False: "no", None: ""}
    for table in _list_names(report_data.cells, "table"):
        body = tuple(
            (
                *(TableCell(str(row[name])) for name in ("row", "column")),
                TableCell(str(row.get("paper") or "–"), is_number=True),
                _make_number_cell(row["ours"]),
                TableCell(signs[row.get("agrees")]),
                *(TableCell(str(row.get(name) or "")) for name in ("source", "note")),
            )
            for row in report_data.cells
            if row["table"] == table
        )
        header = ("row", "column", "paper", "ours", "agrees", "source", "note")
        yield ReportTable(f"cells-{table}", table, header, body, is_long=len(body) > 15)


def _make_number_cell(value: object) -> TableCell:
    if value is None:
        return TableCell("–", is_number=True)
    return TableCell(f"{value:.4g}" if isinstance(value, float) else str(value), is_number=True)


def _format_signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"


def _list_codes(measures: Sequence[str]) -> dict[str, str]:
    """Return the specs of measures by what they are called, of those whose name is another."""
    names = {name_measure(measure): measure for measure in measures}
    return {name: measure for name, measure in names.items() if measure.removesuffix("()") != name}


def _list_names(rows: Sequence[Row], name: str) -> list[str]:
    return list(dict.fromkeys(row[name] for row in rows))


# The special characters of LaTeX, those that its default font encoding lacks, and the Greek and signs of our tables.
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "–": "--",
    "…": r"\ldots{}",
    "−": "$-$",
    "×": r"$\times$",
    "δ": r"$\delta$",
}

PREAMBLE = "% Needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}.\n"


def escape_latex(text: str) -> str:
    r"""Return text with the special characters of LaTeX escaped, in one line.

    >>> escape_latex("50% of \\input{x}_1")
    '50\\% of \\textbackslash{}input\\{x\\}\\_1'
    """
    return "".join(_ESCAPES.get(character, character) for character in re.sub(r"\s+", " ", text))


def _find_number_columns(table: ReportTable) -> list[bool]:
    """Return for each column whether all its cells are numbers."""
    return [bool(table.rows) and all(row[index].is_number for row in table.rows) for index in range(len(table.header))]


def format_latex(tables: Sequence[ReportTable]) -> str:
    """Return all tables as ``table`` environments."""
    return PREAMBLE + "\n".join(map(_format_latex_table, tables))


def _format_latex_table(table: ReportTable) -> str:
    is_number_column = _find_number_columns(table)
    caption = (table.title, *table.notes, *table.code_notes)
    lines = [
        r"\begin{table}[t]",
        r"\centering\small",
        rf"\begin{{tabular}}{{@{{}}{''.join('r' if is_number else 'l' for is_number in is_number_column)}@{{}}}}",
        r"\toprule",
        " & ".join(map(escape_latex, table.header)) + r" \\",
        r"\midrule",
        *(" & ".join(map(_format_latex_cell, row)) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{escape_latex(' '.join(part.rstrip('.') + '.' for part in caption))}}}",
        rf"\label{{tab:{re.sub(r'[^a-z0-9]+', '-', table.name.lower()).strip('-')}}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _format_latex_cell(cell: TableCell) -> str:
    text = _format_number(cell.text) if cell.is_number else escape_latex(cell.text)
    text = rf"\textbf{{{text}}}" if cell.is_best else text
    text += rf"\textsuperscript{{{cell.mark}}}" if cell.mark else ""
    return text + (rf" {{\scriptsize {_format_number(cell.interval)}}}" if cell.interval else "")


def _format_number(text: str) -> str:
    """Return a number for LaTeX, with a minus sign instead of a hyphen."""
    # Not the hyphens within words or ranges: only one before a digit, and after nothing that belongs to a word.
    return re.sub(r"(?<![\w.])-(?=[\d.])", "$-$", escape_latex(text))


_SPECIAL_CHARACTERS = re.compile(r"([\\`*_\[\]|#~$!])")


def escape_markdown(text: str) -> str:
    r"""Return text with the special characters of Markdown and HTML escaped, in one line.

    >>> escape_markdown("a|b <i> *c*")
    'a\\|b &lt;i&gt; \\*c\\*'
    """
    return _SPECIAL_CHARACTERS.sub(r"\\\1", html.escape(re.sub(r"\s+", " ", text), quote=False))


def format_markdown(tables: Sequence[ReportTable]) -> str:
    """Return all tables, each below its title."""
    return "\n".join(map(_format_markdown_table, tables))


def _format_markdown_table(table: ReportTable) -> str:
    is_number_column = _find_number_columns(table)
    lines = [
        f"## {escape_markdown(table.title)}",
        "",
        f"| {' | '.join(map(escape_markdown, table.header))} |",
        f"| {' | '.join('---:' if is_number else '---' for is_number in is_number_column)} |",
        *(f"| {' | '.join(map(_format_markdown_cell, row))} |" for row in table.rows),
        "",
        *(f"{escape_markdown(note)}\n" for note in (*table.notes, *table.code_notes)),
    ]
    return "\n".join(lines) + "\n"


def _format_markdown_cell(cell: TableCell) -> str:
    text = f"**{escape_markdown(cell.text)}**" if cell.is_best else escape_markdown(cell.text)
    text += escape_markdown(cell.mark)
    return f"{text} {escape_markdown(cell.interval)}" if cell.interval else text
