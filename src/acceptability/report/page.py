"""A report: one HTML file that opens offline from disk, with tables, figures, an item browser and signatures.

Nothing is loaded from elsewhere: the scripts stand in the file, and the page allows only those, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from acceptability import __version__
from acceptability.errors import ReportError
from acceptability.report.browser import MOST, Browser, browser, json_text, packed
from acceptability.report.cited import bibtex, citations
from acceptability.report.drawing import can_draw, figures_of
from acceptability.report.gather import Material
from acceptability.report.grids import grids
from acceptability.report.themes import PAGE

if TYPE_CHECKING:
    from acceptability.report.figures import Drawn

NO_PLOTS = "There are no figures in this file, since altair is not installed: pip install 'acceptability[plots]'."


@dataclass(frozen=True)
class Heading:
    """What stands at the head of a report.

    Args:
        lead: What was done, in a sentence or two.
        models: The name of each model and what it is.
    """

    title: str
    lead: str = ""
    models: Sequence[tuple[str, str]] = ()


def write_report(path: Path, heading: Heading, material: Material, *, most: int = MOST) -> Path:
    """Write a report and return its path.

    Args:
        most: How many pairs the item browser holds at most.
    """
    page = report(heading, material, figures_of(material) if can_draw() else [], browser(material, most=most))
    try:
        path.write_text(page, encoding="utf-8", errors="backslashreplace", newline="\n")
    except OSError as error:
        raise ReportError(f"cannot write the page {path}: {error.strerror}") from error
    return path.resolve()


def report(heading: Heading, material: Material, figures: Sequence[Drawn], items: Browser | None) -> str:
    """Return the page as text."""
    scripts = [*([_vega()] if figures else []), _text("report.js")]
    # A file of the package, and JSON in which nothing can end its element.
    style, data = _text("report.css"), json_text(_data(figures, items))
    safe_style = Markup(style)  # nosec B704
    safe_data = Markup(data)  # nosec B704
    found = (
        _environment()
        .get_template("report.html")
        .render(
            heading=heading,
            runs=material.runs,
            notes=[*material.notes, *([] if can_draw() else [NO_PLOTS]), *_row_notes(material)],
            grids=grids(material),
            figures=figures,
            items=items,
            signatures=material.signatures,
            citations=citations(material),
            bibtex=bibtex(material),
            version=__version__,
            style=safe_style,
            scripts=list(map(Markup, scripts)),
            policy=_policy(scripts),
            data=safe_data,
        )
    )
    return str(found)


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("acceptability.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _data(figures: Sequence[Drawn], items: Browser | None) -> Mapping[str, Any]:
    """Return what the scripts draw: each figure's chart and rows, and the pairs."""
    return {
        "themes": PAGE,
        "figures": [{"name": each.name, "spec": each.spec, **_columns(each)} for each in figures],
        "items": packed(items) if items else None,
    }


def _columns(figure: Drawn) -> dict[str, object]:
    """Return rows without repeating the names of their columns."""
    names = list(dict.fromkeys(name for row in figure.rows for name in row))
    return {"columns": names, "rows": [[_short(row.get(name)) for name in names] for row in figure.rows]}


def _short(cell: object) -> object:
    """Return a number with the digits that a chart or a reader needs."""
    return float(f"{cell:.6g}") if isinstance(cell, float) else cell


def _row_notes(material: Material) -> list[str]:
    told = [
        f"{row['measure']}: {each}" for row in material.results for each in (row.get("notes") or "").split("; ") if each
    ]
    return list(dict.fromkeys(told))


def _text(name: str) -> str:
    return files("acceptability.report").joinpath("templates").joinpath(name).read_text(encoding="utf-8")


@cache
def _vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that may stand inside a page."""
    import altair
    import vl_convert

    version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    bundle: str = vl_convert.javascript_bundle(vl_version=version)  # type: ignore[call-arg]
    return bundle.replace("</script", r"<\/script").replace("\r", "")


def _policy(scripts: Sequence[str]) -> str:
    """Return the policy of the page: these scripts run and no other, and nothing is loaded."""
    hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts]
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    rest = "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {allowed}; {rest}"
