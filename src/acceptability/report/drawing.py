"""Figures as files for a paper: PDF, SVG and PNG, at the widths of one and of two columns, from the page's charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acceptability.errors import MissingExtra, ReportError, shorten, visible
from acceptability.report.gather import Material
from acceptability.report.themes import PAPER

if TYPE_CHECKING:
    from acceptability.report.figures import Drawn

_WIDTHS = {1: 235, 2: 490}
"""Points, of which 72 are an inch: one column of a paper, and two with the gap between them."""

_PPI = 300
_LONGEST_LABEL = 200


def can_draw() -> bool:
    """Tell whether the packages that draw are installed."""
    return all(find_spec(name) is not None for name in ("altair", "vl_convert"))


def figures_of(material: Material) -> list[Drawn]:
    """Return every figure that there are rows for; an error without the packages that draw."""
    if not can_draw():
        raise MissingExtra("figures", "altair and vl-convert-python", "'acceptability[plots]'")
    from acceptability.report.figures import drawn

    return drawn(material)


def write_figures(folder: Path, figures: Sequence[Drawn]) -> list[Path]:
    """Write each figure three times, and return the files."""
    import vl_convert

    found: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for each in figures:
            spec = on_paper(each)
            path = folder / each.name
            path.with_suffix(".svg").write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
            path.with_suffix(".pdf").write_bytes(vl_convert.vegalite_to_pdf(spec))
            path.with_suffix(".png").write_bytes(vl_convert.vegalite_to_png(spec, ppi=_PPI))
            found += [path.with_suffix(ending) for ending in (".pdf", ".svg", ".png")]
    except OSError as error:
        raise ReportError(f"cannot write figures in {folder}: {error.strerror}") from error
    return found


def on_paper(figure: Drawn) -> dict[str, Any]:
    """Return a chart with its rows in it, in black on white, as wide as its columns of a paper."""
    width = _WIDTHS[figure.columns]
    spec: dict[str, Any] = _drawable({**figure.spec, "datasets": {"rows": figure.rows}}, _Labels())
    spec["config"] = dict(PAPER)
    if spec.get("width") == "container":
        spec |= {"width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
    elif "facet" in spec:
        _narrow(spec, width)
    return spec


class _Labels:
    """What each text of a chart is drawn as: short, with nothing that an SVG file cannot hold, and no two alike."""

    def __init__(self) -> None:
        self._labels: dict[str, str] = {}
        self._used: Counter[str] = Counter()

    def __call__(self, text: str) -> str:
        if text not in self._labels:
            label = shorten(visible(text), _LONGEST_LABEL)
            self._used[label] += 1
            self._labels[text] = label if self._used[label] == 1 else f"{label} ({self._used[label]})"
        return self._labels[text]


def _drawable(part: Any, label: Callable[[str], str]) -> Any:
    """Return a copy of a chart, or of a part of it, with every text as it is drawn."""
    if isinstance(part, str):
        return label(part)
    if isinstance(part, Mapping):
        return {name: _drawable(each, label) for name, each in part.items()}
    return [_drawable(each, label) for each in part] if isinstance(part, list | tuple) else part


def _narrow(spec: dict[str, Any], width: int) -> None:
    """Make the parts of a faceted chart so wide that a row of them fills the width."""
    inner = spec["spec"]
    columns = max(1, min(int(spec.get("columns", 1)), len(set(_facets(spec))), width // 110))
    spec["columns"] = columns
    if isinstance(inner.get("width"), int):
        inner["width"] = max(60, width // columns - 50)
        inner["height"] = min(int(inner.get("height", 140)), 150) if isinstance(inner.get("height"), int) else 60


def _facets(spec: Mapping[str, Any]) -> list[str]:
    field = spec["facet"]["field"]
    return [str(row[field]) for row in spec["datasets"]["rows"]]
