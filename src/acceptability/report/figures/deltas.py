"""Gaps of models beside people's (Vázquez Martínez 2021): the scatter of both, and ADC over delta."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import altair as alt
import numpy as np

from acceptability.measures.delta import adc_curve
from acceptability.report.figures.panel import Chart, Panel, chart, faceted, listed
from acceptability.report.gather import Material, Row, model_name
from acceptability.types import Units

SCATTER = (
    "Each point is a contrast: the model's gap between the better and the worse sentence, and people's. Squares tell "
    "how many contrasts lie there; the line is the best fit by least squares."
)
CURVE = (
    "ADC, the share of contrasts whose gap has people's direction and lies within delta of theirs, over delta; "
    "what a curve reaches at the right is the share with people's direction alone."
)
_DELTAS = np.round(np.arange(0, 5.0001, 0.05), 2)


def _gaps(material: Material) -> Mapping[tuple[str, str], Mapping[str, list[Row]]]:
    """Return the rows with both gaps, by suite and measure, and then by model; the first measure of a suite counts."""
    found: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    chosen: dict[str, str] = {}
    order = sorted(material.units, key=lambda row: not _is_standardised(str(row.get("measure"))))
    for row in order:
        if "gap" in row and "human_gap" in row and chosen.setdefault(row["suite"], row["measure"]) == row["measure"]:
            found[row["suite"], row["measure"]][model_name(row)].append(row)
    return found


def _is_standardised(measure: str) -> bool:
    return measure.startswith("ADC") and "standardise=False" not in measure


def pairs(material: Material) -> Iterator[Panel]:
    """Yield both gaps of every contrast, a figure for each suite."""
    for (suite, measure), models in _gaps(material).items():
        unit = "z" if _is_standardised(measure) else "own unit"
        rows = [
            {
                "model": model,
                "contrast": row["unit"],
                "gap": round(row["gap"], 4),
                "human_gap": round(row["human_gap"], 4),
            }
            for model, found in models.items()
            for row in found
        ]
        said = "; ".join(f"{model}: r = {_correlation(found)}" for model, found in models.items())
        note = f"Gaps of models are in {unit}s." if unit == "own unit" else "Both gaps are in z units."
        yield Panel(f"Gaps of models and people, {suite}", rows, f"Scatter of {len(rows)} points. {said}.", note)


def _correlation(rows: Sequence[Row]) -> str:
    gaps = np.array([(row["gap"], row["human_gap"]) for row in rows]).T
    if gaps.shape[1] < 2 or np.ptp(gaps[0]) == 0 or np.ptp(gaps[1]) == 0:
        return "undefined"
    return f"{np.corrcoef(gaps)[0, 1]:.2f}"


def scatter(rows: Sequence[Row]) -> Chart:
    """Return a scatter for each model, over squares that tell how dense it is, with the best-fit line."""
    x, y = alt.X("gap:Q", title="model's gap"), alt.Y("human_gap:Q", title="people's gap")
    bins = alt.Bin(maxbins=40)
    density = (
        chart()
        .mark_rect(opacity=0.9)
        .encode(
            x=alt.X("gap:Q", bin=bins, title="model's gap"),
            y=alt.Y("human_gap:Q", bin=bins, title="people's gap"),
            color=alt.Color("count():Q", title="contrasts", scale=alt.Scale(scheme="blues", type="symlog")),
        )
    )
    points = (
        chart()
        .mark_circle(size=5, opacity=0.3, color="#555")
        .encode(x=x, y=y, tooltip=["contrast:N", "gap:Q", "human_gap:Q"])
    )
    line = chart().mark_line(color="#D55E00", strokeWidth=2.5).encode(x=x, y=y).transform_regression("gap", "human_gap")
    layers = alt.layer(density, points, line).properties(width=260, height=220)
    return faceted(layers, "model", columns=3).resolve_scale(x="independent")


def curves(material: Material) -> Iterator[Panel]:
    """Yield ADC at many deltas, a figure for each suite whose gaps are in z units on both sides."""
    for (suite, measure), models in _gaps(material).items():
        if not _is_standardised(measure):
            continue
        tie = "sign" if "tie='sign'" in measure else "positive"
        rows = [
            {"model": model, "delta": delta, "adc": share}
            for model, found in models.items()
            for delta, share in zip(_DELTAS.tolist(), adc_curve(_units(found), _DELTAS, tie=tie).tolist(), strict=True)
        ]
        halves = "; ".join(f"{row['model']} {row['adc']:.3f}" for row in rows if row["delta"] == 0.5)
        yield Panel(f"ADC over delta, {suite}", rows, f"Rising curves of {listed([*models])}. At delta 0.5: {halves}.")


def _units(rows: Sequence[Row]) -> Units:
    columns = {name: np.array([row[name] for row in rows], dtype=np.float64) for name in ("gap", "human_gap")}
    return Units(tuple(row["unit"] for row in rows), columns, ({},) * len(rows))


def curve(rows: Sequence[Row]) -> Chart:
    """Return a line for each model."""
    return (
        chart()
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("delta:Q", title="δ (z units)"),
            y=alt.Y("adc:Q", title="ADC", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("model:N", title=None, sort=None),
            strokeDash=alt.StrokeDash("model:N", title=None, sort=None),
            tooltip=["model:N", "delta:Q", "adc:Q"],
        )
        .properties(width="container", height=280)
    )
