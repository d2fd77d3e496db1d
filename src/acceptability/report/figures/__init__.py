"""The figures of a report, in the order of the page.

A kind of figure has two functions: one makes panels of tidy rows from the data of a report, the other makes a Vega-Lite
chart of the rows of a panel. The same rows are used on the page, in the files for a paper, and in the CSV files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from acceptability.report.figures import item_plots, result_plots
from acceptability.report.figures.panel import Chart, Panel
from acceptability.report.report_data import ReportData, Row


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure.

    Args:
        name: The name of the files of its figures.
        make_panels: From the data of a report to the rows of each figure; nothing if there are no rows for one.
        draw: From the rows of a panel to a chart.
        caption: A description of what the figure shows.
        columns: Its width in a paper, in columns.
    """

    name: str
    make_panels: Callable[[ReportData], Iterator[Panel]]
    draw: Callable[[Sequence[Row]], Chart]
    caption: str
    columns: int = 1


FIGURE_KINDS = (
    FigureKind(
        "summary", result_plots.make_summary_panels, result_plots.draw_summary, result_plots.SUMMARY_CAPTION, columns=2
    ),
    FigureKind(
        "by-group", result_plots.make_group_panels, result_plots.draw_by_group, result_plots.BY_GROUP_CAPTION, columns=2
    ),
    FigureKind(
        "differences",
        result_plots.make_difference_panels,
        result_plots.draw_differences,
        result_plots.DIFFERENCES_CAPTION,
    ),
    FigureKind(
        "delta-scatter", item_plots.make_scatter_panels, item_plots.draw_scatter, item_plots.SCATTER_CAPTION, columns=2
    ),
    FigureKind("adc-curve", item_plots.make_curve_panels, item_plots.draw_curve, item_plots.CURVE_CAPTION),
    FigureKind("correlations", result_plots.make_matrix_panels, result_plots.draw_matrix, result_plots.CAPTION),
    FigureKind(
        "repulsion",
        item_plots.make_repulsion_panels,
        item_plots.draw_repulsion,
        item_plots.REPULSION_CAPTION,
        columns=2,
    ),
    FigureKind(
        "repulsion-interaction",
        item_plots.make_interaction_panels,
        item_plots.draw_interaction,
        item_plots.INTERACTION_CAPTION,
        columns=2,
    ),
    FigureKind(
        "directionality-repulsion", item_plots.make_class_panels, item_plots.draw_classes, item_plots.CLASSES_CAPTION
    ),
    FigureKind("strips", item_plots.make_strip_panels, item_plots.draw_strips, item_plots.STRIPS_CAPTION, columns=2),
    FigureKind(
        "ratings", item_plots.make_rating_panels, item_plots.draw_ratings, item_plots.RATINGS_CAPTION, columns=2
    ),
    FigureKind(
        "features",
        result_plots.make_feature_panels,
        result_plots.draw_features,
        result_plots.FEATURES_CAPTION,
        columns=2,
    ),
    FigureKind("learning-curve", result_plots.make_curve_panels, result_plots.draw_curve, result_plots.CURVE_CAPTION),
    FigureKind("layers", result_plots.make_layer_panels, result_plots.draw_layers, result_plots.LAYERS_CAPTION),
    FigureKind(
        "heat-map", result_plots.make_grid_panels, result_plots.draw_grid, result_plots.GRIDS_CAPTION, columns=2
    ),
)


@dataclass(frozen=True)
class VegaFigure:
    """A figure with its rows.

    Args:
        name: The name of its files.
        alt: A description for readers who cannot see it.
        spec: The Vega-Lite spec, in which the data has the name "rows".
        columns: Its width in a paper, in columns.
    """

    name: str
    title: str
    caption: str
    alt: str
    rows: tuple[Row, ...]
    spec: dict[str, Any]
    columns: int


def draw_figures(report_data: ReportData) -> list[VegaFigure]:
    """Return all figures that there are rows for."""
    figures: list[VegaFigure] = []
    for figure in FIGURE_KINDS:
        panels = list(figure.make_panels(report_data))
        for number, panel in enumerate(panels, start=1):
            # Names of files must differ, and a single figure needs no number.
            name = figure.name if len(panels) == 1 else f"{figure.name}-{number}"
            # Altair puts the data into every layer; it is named once, and the page supplies it.
            spec = {**_drop_nested_data(figure.draw(panel.rows).to_dict(validate=False)), "data": {"name": "rows"}}
            caption = f"{figure.caption} {panel.note}".strip()
            figures.append(VegaFigure(name, panel.title, caption, panel.alt, tuple(panel.rows), spec, figure.columns))
    return figures


def _drop_nested_data(spec: Any) -> Any:
    """Return a chart in which only the whole has data."""
    # A layer with data of its own, even of the same name, is drawn with all rows in every facet.
    if isinstance(spec, dict):
        return {name: _drop_nested_data(part) for name, part in spec.items() if name != "data"}
    return [_drop_nested_data(part) for part in spec] if isinstance(spec, list) else spec
