"""The figures of a report: each a function from tidy rows to a chart, in the order in which a page shows them.

A figure is drawn only where there are rows for it. The same rows stand behind the chart on the page, the file for a
paper and the CSV that a reader downloads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from acceptability.report.figures import correlations, deltas, papers, results, sentences, targets
from acceptability.report.figures.panel import Chart, Panel
from acceptability.report.gather import Material, Row


@dataclass(frozen=True)
class Figure:
    """What draws one kind of figure.

    Args:
        panels: Gives the rows of each such figure that the material has.
        chart: Draws them.
        caption: What is seen, in a sentence or two.
        columns: How many columns of a paper it is wide.
    """

    name: str
    panels: Callable[[Material], Iterator[Panel]]
    chart: Callable[[Sequence[Row]], Chart]
    caption: str
    columns: int = 1


FIGURES = (
    Figure("summary", results.summaries, results.summary, results.SUMMARY, columns=2),
    Figure("by-group", results.groups, results.by_group, results.BY_GROUP, columns=2),
    Figure("differences", results.differences, results.difference, results.DIFFERENCES),
    Figure("delta-scatter", deltas.pairs, deltas.scatter, deltas.SCATTER, columns=2),
    Figure("adc-curve", deltas.curves, deltas.curve, deltas.CURVE),
    Figure("correlations", correlations.matrices, correlations.heat_map, correlations.CAPTION),
    Figure("repulsion", targets.boxes, targets.repulsion, targets.REPULSION, columns=2),
    Figure("repulsion-interaction", targets.means, targets.interaction, targets.INTERACTION, columns=2),
    Figure("directionality-repulsion", targets.classes, targets.classified, targets.CLASSES),
    Figure("strips", sentences.strips, sentences.strip, sentences.STRIPS, columns=2),
    Figure("ratings", sentences.ratings, sentences.four_way, sentences.RATINGS, columns=2),
    Figure("features", papers.features, papers.bars, papers.FEATURES, columns=2),
    Figure("learning-curve", papers.curves, papers.curve, papers.CURVE),
    Figure("layers", papers.layers, papers.by_layer, papers.LAYERS),
    Figure("heat-map", papers.grids, papers.grid, papers.GRIDS, columns=2),
)


@dataclass(frozen=True)
class Drawn:
    """A figure with its rows.

    Args:
        name: What its files are called.
        alt: What it shows, in words, for who cannot see it.
        spec: The chart in Vega-Lite; its data has the name "rows".
    """

    name: str
    title: str
    caption: str
    alt: str
    rows: tuple[Row, ...]
    spec: dict[str, Any]
    columns: int


def drawn(material: Material) -> list[Drawn]:
    """Return every figure that the material has rows for."""
    found: list[Drawn] = []
    for figure in FIGURES:
        panels = list(figure.panels(material))
        for number, panel in enumerate(panels, start=1):
            name = figure.name if len(panels) == 1 else f"{figure.name}-{number}"
            spec = {**_inherited(figure.chart(panel.rows).to_dict(validate=False)), "data": {"name": "rows"}}
            caption = f"{figure.caption} {panel.note}".strip()
            found.append(Drawn(name, panel.title, caption, panel.alt, tuple(panel.rows), spec, figure.columns))
    return found


def _inherited(spec: Any) -> Any:
    """Return a chart whose parts all take the data of the whole: a part with data of its own ignores its facet."""
    if isinstance(spec, dict):
        return {name: _inherited(each) for name, each in spec.items() if name != "data"}
    return [_inherited(each) for each in spec] if isinstance(spec, list) else spec
