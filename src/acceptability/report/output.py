"""What results give of themselves in Python: a figure, a report, LaTeX tables.

``Results`` and its relatives stand in a room below this one, and find these functions by the registry.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acceptability.api.interface.results import OutputRows
from acceptability.errors import ReportError, suggest_name
from acceptability.report.export import make_figures, make_paper_spec
from acceptability.report.page import ReportHeading, describe_models, write_report
from acceptability.report.report_data import ReportData, attach_suites, collect_rows
from acceptability.report.result_tables import build_tables, format_latex

if TYPE_CHECKING:
    from acceptability.report.figures import VegaFigure


@dataclass(frozen=True, repr=False)
class SavedFigure:
    """A figure that shows itself in a notebook, and is written to a file.

    Args:
        drawn: The figure.
        others: The names of the other figures of the same results.
    """

    drawn: VegaFigure
    others: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the kind of figure."""
        return self.drawn.name

    @property
    def title(self) -> str:
        """The line above it."""
        return self.drawn.title

    @property
    def spec(self) -> dict[str, Any]:
        """The figure in Vega-Lite, with its rows."""
        return make_paper_spec(self.drawn)

    def save(self, path: str | Path) -> Path:
        """Write the figure to a file, whose ending (.svg, .png, .pdf or .json) decides the format."""
        import vl_convert

        path = Path(path)
        writers: dict[str, Any] = {
            ".svg": lambda spec: vl_convert.vegalite_to_svg(spec).encode(),
            ".png": lambda spec: vl_convert.vegalite_to_png(spec, ppi=300),
            ".pdf": vl_convert.vegalite_to_pdf,
            ".json": lambda spec: json.dumps(spec, ensure_ascii=False).encode(),
        }
        if path.suffix.lower() not in writers:
            raise ReportError(f"{path}: a figure is written as {', '.join(writers)}; choose one of these endings")
        try:
            path.write_bytes(writers[path.suffix.lower()](self.spec))
        except OSError as error:
            raise ReportError(f"cannot write {path}: {error.strerror}") from error
        return path

    def __repr__(self) -> str:
        others = f"; others: {', '.join(self.others)}" if self.others else ""
        return f"Figure({self.name!r}, {self.title!r}{others})"

    def _repr_html_(self) -> str:
        import vl_convert

        return f"<figure>{vl_convert.vegalite_to_svg(self.spec)}</figure>"


def make_figure(output: OutputRows, name: str = "") -> SavedFigure:
    """Return the figure of a name, or the first one.

    Args:
        output: The rows of results.
        name: The name of the figure; empty for the first.
    """
    figures = make_figures(_make_report_data(output))
    names = [figure.name for figure in figures]
    if not names:
        raise ReportError("there is no figure of these results: they have no values")
    if name and name not in names:
        raise ReportError(
            f"there is no figure {name!r} of these results; there are {', '.join(names)}.{suggest_name(name, names)}"
        )
    chosen = name or names[0]
    others = tuple(other for other in names if other != chosen)
    return SavedFigure(next(figure for figure in figures if figure.name == chosen), others)


def write_results_report(output: OutputRows, path: Path, title: str) -> Path:
    """Write the report of results, and return its path."""
    report_data = _make_report_data(output)
    return write_report(path, ReportHeading(title, models=describe_models(report_data)), report_data)


def format_results_latex(output: OutputRows) -> str:
    """Return the tables of results in LaTeX."""
    return format_latex(build_tables(_make_report_data(output)))


def _make_report_data(output: OutputRows) -> ReportData:
    return attach_suites(collect_rows(output.rows, output.units), output.suites)
