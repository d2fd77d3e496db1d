"""How models and people go together: every two of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import altair as alt

from acceptability.report.figures.panel import Chart, Panel, chart
from acceptability.report.gather import Material, Row

CAPTION = "The correlation of every two columns; blue is positive, orange negative."


def matrices(material: Material) -> Iterator[Panel]:
    """Yield the matrix of correlations, both halves."""
    parts: dict[str, list[Row]] = {}
    for row in material.correlations:
        parts.setdefault(str(row.get("signature") or ""), []).append(row)
    for signature, found in parts.items():
        known = [row for row in found if row["r"] is not None]
        pairs = [(row["first"], row["second"], row) for row in known]
        both = [*pairs, *((second, first, row) for first, second, row in pairs)]
        rows = [
            {"first": first, "second": second}
            | {name: row.get(name) for name in ("r", "low", "high", "p", "holm", "n")}
            for first, second, row in both
        ]
        if rows:
            said = "; ".join(f"{row['first']} and {row['second']} {row['r']:.2f}" for row in known[:12])
            yield Panel(f"Correlations: {signature.partition('|')[0] or 'every two'}", rows, f"Heat map. {said}.")


def heat_map(rows: Sequence[Row]) -> Chart:
    """Return a square for every two, with r in it."""
    return heat(
        x=alt.X("first:N", title=None, sort=None, axis=alt.Axis(labelAngle=-35)),
        y=alt.Y("second:N", title=None, sort=None),
        value="r",
        domain=(-1.0, 1.0),
        tooltip=["first:N", "second:N", "r:Q", "p:Q", "n:Q"],
    )


def heat(x: alt.X, y: alt.Y, value: str, domain: tuple[float, float], tooltip: list[str]) -> Chart:
    """Return a heat map whose squares carry their numbers; the colours of both ends differ for every eye."""
    low, high = domain
    scheme = ["#b35806", "#f6f6f2", "#2166ac"] if low < 0 else ["#f6f6f2", "#7fb3d9", "#08457e"]
    scale = alt.Scale(domain=[low, (low + high) / 2, high], range=scheme, clamp=True)
    base = chart().encode(x=x, y=y)
    squares = base.mark_rect().encode(color=alt.Color(f"{value}:Q", title=value, scale=scale), tooltip=tooltip)
    dark = f"datum['{value}'] > {low + 0.8 * (high - low)}" + (f" || datum['{value}'] < {low * 0.8}" if low < 0 else "")
    ink = alt.condition(dark, alt.value("#ffffff"), alt.value("#111111"))
    digits = ".2f" if high <= 1 else ".0f"
    numbers = base.mark_text(fontSize=11).encode(text=alt.Text(f"{value}:Q", format=digits), color=ink)
    return alt.layer(squares, numbers).properties(width={"step": 46}, height={"step": 28})
