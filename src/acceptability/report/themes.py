"""How charts look: on a light page, on a dark one, and on paper. The colours are told apart by every eye.

The colours are those of Okabe and Ito (2008), without black; brighter ones of the same hues on a dark page.
"""

from __future__ import annotations

from typing import Any

_LIGHT = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#A67800", "#3B9BD6", "#6B6B6B", "#7A4FBF")
_DARK = ("#56B4E9", "#F08A3C", "#35C99B", "#E39AC4", "#E8C547", "#9CCBFF", "#BDBDBD", "#B99CF0")


def theme(ink: str, line: str, colours: tuple[str, ...], font: str, size: int) -> dict[str, Any]:
    """Return Vega-Lite's settings: the colours of text, lines and categories, and the size of text."""
    words = {"labelColor": ink, "titleColor": ink, "labelFontSize": size, "titleFontSize": size}
    return {
        "background": "transparent",
        "font": font,
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
        "axisQuantitative": {"tickCount": 6, "labelOverlap": True},
        "legend": {**words, "orient": "top", "labelLimit": 300, "columns": 3},
        "header": {"labelColor": ink, "titleColor": ink, "labelFontSize": size},
        "rule": {"color": ink},
        "tick": {"color": ink},
        "range": {"category": list(colours)},
    }


PAGE = {
    "light": theme("#1b1f24", "#d5d9de", _LIGHT, "system-ui, sans-serif", 12),
    "dark": theme("#e8eaed", "#4a4f57", _DARK, "system-ui, sans-serif", 12),
}
PAPER = theme("#000000", "#cccccc", _LIGHT, "Helvetica, Arial, sans-serif", 8) | {"background": "white"}
