"""The tables of a report, as values: what the page, LaTeX and Markdown each write in their own way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from acceptability.report.gather import Material, Row, model_name
from acceptability.report.significance import NOTE, Key, marks
from acceptability.report.table import p_text


@dataclass(frozen=True)
class Entry:
    """One place of a table.

    Args:
        interval: The ends of its confidence interval, as text.
        mark: Stars where it surely differs from the best.
        is_number: Whether it stands to the right.
    """

    text: str
    interval: str = ""
    is_best: bool = False
    mark: str = ""
    is_number: bool = False


@dataclass(frozen=True)
class Grid:
    """A table: its rows begin with a name.

    Args:
        name: What its file is called.
        is_long: Whether a page folds it away.
    """

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    notes: tuple[str, ...] = ()
    is_long: bool = False


def grids(material: Material) -> list[Grid]:
    """Return every table that the material has rows for."""
    return [
        *_summaries(material),
        *_by_groups(material),
        *_comparisons(material),
        *_correlations(material),
        *_contrasts(material),
        *_cells(material),
    ]


def _summaries(material: Material) -> Iterator[Grid]:
    """Yield models by measures, a table for each suite."""
    overall = [row for row in material.results if not row.get("group")]
    starred = marks(material)
    for suite in _names(overall, "suite"):
        rows = [row for row in overall if row["suite"] == suite]
        measures, models = _names(rows, "measure"), list(dict.fromkeys(map(model_name, rows)))
        cells = {(model_name(row), row["measure"]): row for row in rows}
        body = tuple(
            (Entry(model), *(_value(cells.get((model, measure)), rows, starred) for measure in measures))
            for model in models
        )
        counts = "; ".join(f"{measure}: n = {_counts(rows, measure)}" for measure in measures)
        has_marks = any(entry.mark for row in body for entry in row)
        reasons = [f"{model_name(row)}, {row['measure']}: {row['reason']}" for row in rows if row.get("reason")]
        notes = (f"{counts}.", *([NOTE] if has_marks else []), *reasons)
        yield Grid(f"summary-{suite}", suite, ("model", *measures), body, notes)


def _counts(rows: Sequence[Row], measure: str) -> str:
    return ", ".join(dict.fromkeys(f"{row['n']:,}" for row in rows if row["measure"] == measure))


def _value(row: Row | None, rivals: Sequence[Row], starred: Mapping[Key, str]) -> Entry:
    if row is None or row["value"] is None:
        return Entry("–", is_number=True)
    same = [each["value"] for each in rivals if each["measure"] == row["measure"] and each["value"] is not None]
    is_best = len(same) > 1 and row["value"] == max(same)
    star = "" if is_best else starred.get((row["suite"], row["measure"], model_name(row)), "")
    return Entry(f"{row['value']:.3f}", _interval(row), is_best, star, is_number=True)


def _interval(row: Row) -> str:
    low, high = row.get("low"), row.get("high")
    return "" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"


def _by_groups(material: Material) -> Iterator[Grid]:
    """Yield groups by models, a table for each suite and measure."""
    grouped = [row for row in material.results if row.get("group")]
    for suite, measure in dict.fromkeys((row["suite"], row["measure"]) for row in grouped):
        rows = [row for row in grouped if (row["suite"], row["measure"]) == (suite, measure)]
        models = list(dict.fromkeys(map(model_name, rows)))
        cells = {(row["group"], model_name(row)): row for row in rows}
        body = tuple(
            (Entry(group.partition("=")[2] or group), *(_in_group(cells, group, model, models) for model in models))
            for group in _names(rows, "group")
        )
        title = f"{suite}: {measure} by group"
        yield Grid(f"groups-{suite}-{measure}", title, ("group", *models), body, is_long=True)


def _in_group(cells: Mapping[tuple[str, str], Row], group: str, model: str, models: Sequence[str]) -> Entry:
    row = cells.get((group, model))
    if row is None or row["value"] is None:
        return Entry("–", is_number=True)
    found = [cells[group, each]["value"] for each in models if (group, each) in cells]
    rivals = [value for value in found if value is not None]
    return Entry(f"{row['value']:.3f}", _interval(row), len(rivals) > 1 and row["value"] == max(rivals), is_number=True)


def _comparisons(material: Material) -> Iterator[Grid]:
    header = ("measure", "first", "second", "group", "first value", "second value", "difference", "p", "Holm", "n")
    body = tuple(
        (
            *(Entry(str(row[name])) for name in ("measure", "first", "second")),
            Entry((row.get("group") or "all").partition("=")[2] or row.get("group") or "all"),
            *(_number(row[name]) for name in ("first_value", "second_value")),
            Entry(_signed(row["difference"]), _interval(row), mark="", is_number=True),
            *(Entry(p_text(row.get(name)), is_number=True) for name in ("p", "holm")),
            Entry(f"{row['n']:,}", is_number=True),
        )
        for row in material.comparisons
    )
    if body:
        yield Grid("comparisons", "Comparisons", header, body, is_long=len(body) > 15)


def _correlations(material: Material) -> Iterator[Grid]:
    body = tuple(
        (
            Entry(row["first"]),
            Entry(row["second"]),
            Entry("–" if row["r"] is None else f"{row['r']:.3f}", _interval(row), is_number=True),
            *(Entry(p_text(row.get(name)), is_number=True) for name in ("p", "holm")),
            Entry(f"{row.get('n', 0):,}", is_number=True),
        )
        for row in material.correlations
    )
    if body:
        yield Grid("correlations", "Correlations", ("first", "second", "r", "p", "Holm", "n"), body)


def _contrasts(material: Material) -> Iterator[Grid]:
    header = ("model", "group", "directionality", "repulsion", "class", "n")
    body = tuple(
        (
            Entry(str(row.get("model", ""))),
            Entry(row["group"]),
            *(_with_ends(row, name) for name in ("directionality", "repulsion")),
            Entry(str(row.get("class") or "–")),
            Entry(f"{row['n']:,}", is_number=True),
        )
        for row in material.groups
    )
    if body:
        yield Grid("contrasts", "Contrasts on a target", header, body, is_long=len(body) > 15)


def _with_ends(row: Row, name: str) -> Entry:
    ends = {"low": row.get(f"{name}_low"), "high": row.get(f"{name}_high")}
    return Entry("–" if row[name] is None else f"{row[name]:.3f}", _interval(ends), is_number=True)


def _cells(material: Material) -> Iterator[Grid]:
    """Yield a paper's numbers and ours, a table for each of the paper's."""
    signs = {True: "yes", False: "no", None: ""}
    for table in _names(material.cells, "table"):
        body = tuple(
            (
                *(Entry(str(row[name])) for name in ("row", "column")),
                Entry(str(row.get("paper") or "–"), is_number=True),
                _number(row["ours"]),
                Entry(signs[row.get("agrees")]),
                *(Entry(str(row.get(name) or "")) for name in ("source", "note")),
            )
            for row in material.cells
            if row["table"] == table
        )
        header = ("row", "column", "paper", "ours", "agrees", "source", "note")
        yield Grid(f"cells-{table}", table, header, body, is_long=len(body) > 15)


def _number(value: object) -> Entry:
    if value is None:
        return Entry("–", is_number=True)
    return Entry(f"{value:.4g}" if isinstance(value, float) else str(value), is_number=True)


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"


def _names(rows: Sequence[Row], name: str) -> list[str]:
    return list(dict.fromkeys(row[name] for row in rows))
