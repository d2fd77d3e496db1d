"""Contrasts on a target (Park, Park and Song 2021): repulsion as boxes, its interaction with correctness, classes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt

import altair as alt
import numpy as np

from acceptability.measures.interaction import Cutoffs
from acceptability.report.figures.panel import Chart, Panel, box, chart, faceted, listed, quartiles
from acceptability.report.gather import Material, Row, model_name

REPULSION = (
    "Repulsion of contrasts that the model gets right and wrong: boxes are quartiles, whiskers reach the furthest "
    "value within 1.5 times the box, what lies beyond is not drawn."
)
INTERACTION = "The mean repulsion of contrasts that the model gets right and wrong, with standard errors."
CLASSES = (
    "Each point is a group of contrasts: how often the worse target is the more surprising one, and how far apart the "
    "two are. Dashed lines are the cut-offs between high, intermediate and low."
)

Key = tuple[str, str, str]
"""Model, part and whether the contrast is right."""


def _repulsions(material: Material) -> Mapping[Key, list[float]]:
    """Return the repulsions of contrasts; the parts are suites, or kinds of edits where there is one suite."""
    rows = [*_of_targets(material.targets), *_of_units(material.units)]
    by_edit = len({suite for _, suite, *_ in rows}) == 1
    found: dict[Key, list[float]] = defaultdict(list)
    for model, suite, edit, is_right, value in rows:
        found[model, edit if by_edit and edit else suite, "right" if is_right else "wrong"].append(value)
    return found


def _of_targets(rows: Sequence[Row]) -> Iterator[tuple[str, str, str, bool, float]]:
    for row in rows:
        better, worse = row["better_surprisal_bits"], row["worse_surprisal_bits"]
        if better + worse > 0:
            repulsion = abs(better - worse) / (better + worse)
            yield (
                str(row.get("model", "")),
                str(row.get("suite", "")),
                str(row.get("edit", "")),
                worse > better,
                repulsion,
            )


def _of_units(rows: Sequence[Row]) -> Iterator[tuple[str, str, str, bool, float]]:
    for row in rows:
        if "repulsion" in row and "better" in row and "worse" in row:
            edit = str(row.get("tag/edit", ""))
            yield model_name(row), row["suite"], edit, row["worse"] > row["better"], row["repulsion"]


def boxes(material: Material) -> Iterator[Panel]:
    """Yield the quartiles of repulsion, right and wrong."""
    found = _repulsions(material)
    rows = [
        {"model": model, "part": part, "contrasts": right} | quartiles(values)
        for (model, part, right), values in found.items()
    ]
    if rows:
        said = "; ".join(f"{row['part']} {row['contrasts']} {row['median']:.2f}" for row in rows[:12])
        yield Panel("Repulsion", rows, f"Box plots of {listed([row['model'] for row in rows])}. Medians: {said}.")


def repulsion(rows: Sequence[Row]) -> Chart:
    """Return boxes side by side: parts, and right and wrong within them."""
    boxes = box(
        alt.X("part:N", title=None, axis=alt.Axis(labelAngle=-25)),
        "repulsion",
        alt.Color("contrasts:N", title="contrasts", sort=["right", "wrong"]),
        alt.XOffset("contrasts:N", sort=["right", "wrong"]),
    )
    return faceted(boxes.properties(width={"step": 28, "for": "offset"}, height=240), "model", columns=2)


def means(material: Material) -> Iterator[Panel]:
    """Yield mean repulsions, where there are contrasts right and wrong in two parts or more."""
    found = _repulsions(material)
    rows = [
        {"model": model, "part": part, "contrasts": right, "n": len(values), "mean": float(np.mean(values))}
        | _ends(values)
        for (model, part, right), values in found.items()
    ]
    if len({row["part"] for row in rows}) > 1 and len({row["contrasts"] for row in rows}) > 1:
        said = "; ".join(f"{row['part']} {row['contrasts']} {row['mean']:.2f}" for row in rows[:12])
        yield Panel("Repulsion and correctness", rows, f"Interaction plot. Means: {said}.")


def _ends(values: Sequence[float]) -> dict[str, float | None]:
    """Return the mean minus and plus one standard error; none for a single contrast."""
    if len(values) < 2:
        return {"low": None, "high": None}
    middle, error = float(np.mean(values)), float(np.std(values, ddof=1)) / sqrt(len(values))
    return {"low": middle - error, "high": middle + error}


def interaction(rows: Sequence[Row]) -> Chart:
    """Return a line for right and one for wrong contrasts, over the parts."""
    base = chart().encode(
        x=alt.X("part:N", title=None, axis=alt.Axis(labelAngle=-25)),
        color=alt.Color("contrasts:N", title="contrasts", sort=["right", "wrong"]),
    )
    y = alt.Y("mean:Q", title="mean repulsion", scale=alt.Scale(zero=False))
    lines = base.mark_line(point=True).encode(
        y=y, strokeDash=alt.StrokeDash("contrasts:N", legend=None, sort=["right", "wrong"])
    )
    errors = base.mark_rule().encode(y=alt.Y("low:Q", title="mean repulsion"), y2="high:Q")
    layers = alt.layer(errors, lines).properties(width=260, height=220)
    return faceted(layers, "model", columns=2)


def classes(material: Material) -> Iterator[Panel]:
    """Yield directionality and repulsion of groups."""
    rows = [
        {"model": row.get("model", ""), "group": row["group"], "n": row["n"], "class": row.get("class")}
        | {name: row[name] for name in ("directionality", "repulsion")}
        for row in material.groups
        if row["directionality"] is not None and row["repulsion"] is not None
    ]
    if rows:
        said = "; ".join(f"{row['group']}: {row['class']}" for row in rows[:12])
        yield Panel("Directionality and repulsion", rows, f"Scatter of {len(rows)} groups. {said}.")


def classified(rows: Sequence[Row]) -> Chart:
    """Return groups as points, with the cut-offs."""
    at = Cutoffs()
    dots = (
        chart()
        .mark_point(filled=True, size=60)
        .encode(
            x=alt.X("directionality:Q", scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("repulsion:Q", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("class:N", title=None),
            shape=alt.Shape("model:N", title=None),
            tooltip=["group:N", "model:N", "directionality:Q", "repulsion:Q", "class:N", "n:Q"],
        )
    )
    across = [
        chart().mark_rule(strokeDash=[3, 3]).encode(x=alt.datum(each)) for each in (at.accuracy_low, at.accuracy_high)
    ]
    along = [
        chart().mark_rule(strokeDash=[3, 3]).encode(y=alt.datum(each)) for each in (at.repulsion_low, at.repulsion_high)
    ]
    return alt.layer(*across, *along, dots).properties(width="container", height=300)
