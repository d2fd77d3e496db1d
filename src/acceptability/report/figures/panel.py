"""Building blocks of figures: panels of rows, facets, box plots of quartiles, and heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from acceptability.report.report_data import Row

Chart = Any
"""A chart of Altair: plain, layered, faceted or concatenated."""


@dataclass(frozen=True)
class Panel:
    """The rows of one figure.

    Args:
        alt: A description for readers who cannot see the figure.
        note: A note on these rows, which follows the caption.
    """

    title: str
    rows: Sequence[Row]
    alt: str
    note: str = ""


def make_chart() -> Chart:
    """Return an empty chart of the data with the name "rows"."""
    return alt.Chart(alt.NamedData(name="rows"))


def facet_chart(layers: Chart, field: str, *, columns: int) -> Chart:
    """Return a chart repeated for each value of a field, in the order of the rows."""
    return layers.facet(
        alt.Facet(f"{field}:N", title=None, sort=None), data=alt.NamedData(name="rows"), columns=columns
    )


def compute_quartiles(values: Sequence[float]) -> dict[str, float]:
    """Return the numbers of a box plot; whiskers reach the furthest value within 1.5 times the box.

    >>> compute_quartiles([1.0, 2.0, 3.0, 4.0, 100.0])
    {'n': 5, 'low': 1.0, 'q1': 2.0, 'median': 3.0, 'q3': 4.0, 'high': 4.0, 'mean': 22.0}
    """
    data = np.asarray(values, dtype=np.float64)
    first, middle, third = np.quantile(data, (0.25, 0.5, 0.75)).tolist()
    # Tukey's rule, the usual one for box plots.
    reach = 1.5 * (third - first)
    inside = data[(data >= first - reach) & (data <= third + reach)]
    ends = {"low": float(inside.min()), "q1": first, "median": middle, "q3": third, "high": float(inside.max())}
    return {"n": len(data), **ends, "mean": float(data.mean())}


def draw_box(x: Any, title: str, colour: Any, offset: Any = None) -> Chart:
    """Return a box plot of rows of quartiles.

    Vega-Lite's own box plot needs all values, of which there may be millions, in the page.

    Args:
        x: The encoding of the horizontal axis.
        title: The title of the vertical axis.
        colour: The encoding of the colour.
        offset: The encoding that separates boxes of the same x.
    """
    shared = {"x": x, "color": colour} | ({"xOffset": offset} if offset is not None else {})
    tooltip = [f"{name}:Q" for name in ("median", "q1", "q3", "low", "high", "mean", "n")]
    base = make_chart().encode(**shared, tooltip=tooltip)
    # Ratings and repulsions need not come near 0, from which an axis would start by default.
    scale = alt.Scale(zero=False)
    whiskers = base.mark_rule().encode(y=alt.Y("low:Q", title=title, scale=scale), y2="high:Q")
    boxes = base.mark_bar(size=16, opacity=0.75).encode(y=alt.Y("q1:Q", title=title, scale=scale), y2="q3:Q")
    # A tick on top of the box, since a bar has no line at the median.
    middle = base.mark_tick(thickness=2, size=16).encode(y=alt.Y("median:Q", scale=scale), color=alt.value("#000"))
    return alt.layer(whiskers, boxes, middle)


def join_names(names: Sequence[object], max_names: int = 6) -> str:
    """Return distinct names in one line, with only the number of the last ones if there are many.

    >>> join_names(["a", "b", "a"]), join_names(list("abcdefgh"))
    ('a, b', 'a, b, c, d, e, f and 2 more')
    """
    unique = list(dict.fromkeys(map(str, names)))
    rest = f" and {len(unique) - max_names} more" if len(unique) > max_names else ""
    return ", ".join(unique[:max_names]) + rest
