"""What figures share: rows with a title, colours that everyone can tell apart, and boxes of quartiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from acceptability.report.gather import Row

Chart = Any
"""A chart of Altair: plain, layered, faceted or concatenated."""


@dataclass(frozen=True)
class Panel:
    """The rows of one figure.

    Args:
        alt: What is seen, in words.
        note: What to know about these rows, after the figure's own caption.
    """

    title: str
    rows: Sequence[Row]
    alt: str
    note: str = ""


def chart() -> Chart:
    """Return an empty chart over the rows of its figure."""
    return alt.Chart(alt.NamedData(name="rows"))


def faceted(of: Chart, field: str, *, columns: int) -> Chart:
    """Return a chart once for each value of a field, in the order in which they come."""
    return of.facet(alt.Facet(f"{field}:N", title=None, sort=None), data=alt.NamedData(name="rows"), columns=columns)


def quartiles(values: Sequence[float]) -> dict[str, float]:
    """Return what a box plot shows of values: whiskers reach the furthest within 1.5 times the box.

    >>> quartiles([1.0, 2.0, 3.0, 4.0, 100.0])
    {'n': 5, 'low': 1.0, 'q1': 2.0, 'median': 3.0, 'q3': 4.0, 'high': 4.0, 'mean': 22.0}
    """
    found = np.asarray(values, dtype=np.float64)
    first, middle, third = np.quantile(found, (0.25, 0.5, 0.75)).tolist()
    reach = 1.5 * (third - first)
    inside = found[(found >= first - reach) & (found <= third + reach)]
    ends = {"low": float(inside.min()), "q1": first, "median": middle, "q3": third, "high": float(inside.max())}
    return {"n": len(found), **ends, "mean": float(found.mean())}


def box(x: Any, title: str, colour: Any, offset: Any = None) -> Chart:
    """Return a box plot of rows that hold quartiles."""
    shared = {"x": x, "color": colour} | ({"xOffset": offset} if offset is not None else {})
    shown = [f"{name}:Q" for name in ("median", "q1", "q3", "low", "high", "mean", "n")]
    base = chart().encode(**shared, tooltip=shown)
    scale = alt.Scale(zero=False)
    whiskers = base.mark_rule().encode(y=alt.Y("low:Q", title=title, scale=scale), y2="high:Q")
    boxes = base.mark_bar(size=16, opacity=0.75).encode(y=alt.Y("q1:Q", title=title, scale=scale), y2="q3:Q")
    middle = base.mark_tick(thickness=2, size=16).encode(y=alt.Y("median:Q", scale=scale), color=alt.value("#000"))
    return alt.layer(whiskers, boxes, middle)


def listed(names: Sequence[object], most: int = 6) -> str:
    """Return names in one line, cut where there are many.

    >>> listed(["a", "b", "a"]), listed(list("abcdefgh"))
    ('a, b', 'a, b, c, d, e, f and 2 more')
    """
    unique = list(dict.fromkeys(map(str, names)))
    rest = f" and {len(unique) - most} more" if len(unique) > most else ""
    return ", ".join(unique[:most]) + rest
