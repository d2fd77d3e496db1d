"""Files for a paper: figures as PDF, SVG and PNG at the widths of one and two columns, and rows as CSV.

The charts are those of the page. ``PAGE_THEMES`` and ``PAPER_THEME`` are their colours and fonts, on a light and a dark
page and on paper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acceptability.errors import MissingExtra, ReportError, escape_control_chars, shorten
from acceptability.report.report_data import ROW_KINDS, ReportData, Row
from acceptability.text.io import format_csv

if TYPE_CHECKING:
    from acceptability.report.figures import VegaFigure

# The colours of Okabe and Ito (2008), which people with any kind of colour vision can distinguish: without black, the
# colour of text, and with a darker yellow, which would vanish on white. On a dark page, brighter ones of the same hues.

_LIGHT = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#A67800", "#3B9BD6", "#6B6B6B", "#7A4FBF")
_DARK = ("#56B4E9", "#F08A3C", "#35C99B", "#E39AC4", "#E8C547", "#9CCBFF", "#BDBDBD", "#B99CF0")


def make_theme(ink: str, line: str, colours: tuple[str, ...], font: str, size: int) -> dict[str, Any]:
    """Return a configuration of Vega-Lite.

    Args:
        ink: The colour of text and marks.
        line: The colour of grids and axes.
        colours: The colours of categories.
        font: The font family.
        size: The font size, in pixels on a page and in points on paper.
    """
    words = {"labelColor": ink, "titleColor": ink, "labelFontSize": size, "titleFontSize": size}
    return {
        "background": "transparent",
        "font": font,
        # The page describes the whole chart for screen readers, instead of each of its hundreds of marks.
        "aria": False,
        "view": {"stroke": line},
        "axis": {
            **words,
            "gridColor": line,
            "domainColor": line,
            "tickColor": line,
            "titleFontWeight": "normal",
            "labelLimit": 260,
        },
        # Few ticks: a chart for one column of a paper is narrow.
        "axisQuantitative": {"tickCount": 6, "labelOverlap": True},
        "legend": {**words, "orient": "top", "labelLimit": 300, "columns": 3},
        "header": {"labelColor": ink, "titleColor": ink, "labelFontSize": size},
        "rule": {"color": ink},
        "tick": {"color": ink},
        "range": {"category": list(colours)},
    }


PAGE_THEMES = {
    "light": make_theme("#1b1f24", "#d5d9de", _LIGHT, "system-ui, sans-serif", 12),
    "dark": make_theme("#e8eaed", "#4a4f57", _DARK, "system-ui, sans-serif", 12),
}
PAPER_THEME = make_theme("#000000", "#cccccc", _LIGHT, "Helvetica, Arial, sans-serif", 8) | {"background": "white"}


def write_csv_files(folder: Path, report_data: ReportData, figures: Sequence[VegaFigure]) -> list[Path]:
    """Write a CSV file for each kind of rows and for each figure into a folder, and return the paths."""
    tables: dict[str, Sequence[Row]] = {kind: getattr(report_data, kind) for kind in ROW_KINDS}
    tables |= {f"figure-{figure.name}": figure.rows for figure in figures}
    paths: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in tables.items():
            if rows:
                path = folder / f"{name}.csv"
                # Newlines stay as format_csv has written them, on every system.
                path.write_text(format_csv(rows), encoding="utf-8", errors="backslashreplace", newline="")
                paths.append(path.resolve())
    except OSError as error:
        raise ReportError(f"cannot write CSV files in {folder}: {error.strerror}") from error
    return paths


# In points of 1/72 inch: one column of a two-column paper, and both with the gap between them.
_COLUMN_WIDTHS = {1: 235, 2: 490}
# What publishers require for pictures in print.
_PPI = 300
# The longest text in a chart. Vega cuts a label to the room that it has, but first measures all of it.
_LONGEST_LABEL = 200


def can_draw() -> bool:
    """Return whether the packages for figures are installed."""
    return all(find_spec(name) is not None for name in ("altair", "vl_convert"))


def make_figures(report_data: ReportData) -> list[VegaFigure]:
    """Return all figures that there are rows for; raise an error if the packages for figures are not installed."""
    if not can_draw():
        raise MissingExtra("figures", "altair and vl-convert-python", "'acceptability[plots]'")
    from acceptability.report.figures import draw_figures

    return draw_figures(report_data)


def write_figures(folder: Path, figures: Sequence[VegaFigure]) -> list[Path]:
    """Write each figure as PDF, SVG and PNG into a folder, and return the paths."""
    # Imported here, since it is optional.
    import vl_convert

    paths: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for figure in figures:
            spec = make_paper_spec(figure)
            path = folder / figure.name
            path.with_suffix(".svg").write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
            path.with_suffix(".pdf").write_bytes(vl_convert.vegalite_to_pdf(spec))
            path.with_suffix(".png").write_bytes(vl_convert.vegalite_to_png(spec, ppi=_PPI))
            paths += [path.with_suffix(suffix) for suffix in (".pdf", ".svg", ".png")]
    except OSError as error:
        raise ReportError(f"cannot write figures in {folder}: {error.strerror}") from error
    return paths


def make_paper_spec(figure: VegaFigure) -> dict[str, Any]:
    """Return the Vega-Lite spec of a figure with its rows, in black on white, at the width of its columns."""
    width = _COLUMN_WIDTHS[figure.columns]
    spec: dict[str, Any] = _relabel_texts({**figure.spec, "datasets": {"rows": figure.rows}}, _UniqueLabels())
    # The page sets its theme at runtime; a file has it inside.
    spec["config"] = dict(PAPER_THEME)
    if spec.get("width") == "container":
        spec |= {"width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
    elif "facet" in spec:
        _fit_facets(spec, width)
    return spec


class _UniqueLabels:
    """Maps the texts of a chart to labels that are short, unique, and without characters that SVG cannot contain."""

    # Unique, since Vega merges categories of the same label: two long names with a shared prefix would become one row.

    def __init__(self) -> None:
        self._labels: dict[str, str] = {}
        self._used: Counter[str] = Counter()

    def __call__(self, text: str) -> str:
        if text not in self._labels:
            label = shorten(escape_control_chars(text), _LONGEST_LABEL)
            self._used[label] += 1
            self._labels[text] = label if self._used[label] == 1 else f"{label} ({self._used[label]})"
        return self._labels[text]


def _relabel_texts(part: Any, label: Callable[[str], str]) -> Any:
    """Return a copy of a part of a chart, with every text replaced by its label."""
    if isinstance(part, str):
        return label(part)
    if isinstance(part, Mapping):
        return {name: _relabel_texts(value, label) for name, value in part.items()}
    return [_relabel_texts(element, label) for element in part] if isinstance(part, list | tuple) else part


def _fit_facets(spec: dict[str, Any], width: int) -> None:
    """Set the widths of the panels of a faceted chart, so that a row of them fills the width."""
    inner = spec["spec"]
    # A panel takes at least 110 points, of which its axis and margins take 50.
    columns = max(1, min(int(spec.get("columns", 1)), len(set(_list_facet_values(spec))), width // 110))
    spec["columns"] = columns
    # Vega-Lite writes a width that grows with the number of categories as {"step": n}; that one has to stay.
    if isinstance(inner.get("width"), int):
        inner["width"] = max(60, width // columns - 50)
        inner["height"] = min(int(inner.get("height", 140)), 150) if isinstance(inner.get("height"), int) else 60


def _list_facet_values(spec: Mapping[str, Any]) -> list[str]:
    field = spec["facet"]["field"]
    return [str(row[field]) for row in spec["datasets"]["rows"]]
