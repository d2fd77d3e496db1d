"""Results as one self-contained HTML page that opens offline from disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from acceptability import __version__
from acceptability.report.table import footnotes, interval_text, number
from acceptability.types import Result


@dataclass(frozen=True)
class Section:
    """A heading and the results below it."""

    title: str
    results: Sequence[Result]


def write_page(
    path: Path,
    title: str,
    sections: Sequence[Section],
    *,
    lead: str = "",
    models: Sequence[tuple[str, str]] = (),
    citations: Sequence[str] = (),
) -> Path:
    """Write a page with a table and an interval plot for each section, and return its path.

    Args:
        lead: What was done, in a sentence or two.
        models: The name of each model and what it is.
    """
    environment = Environment(
        loader=PackageLoader("acceptability.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {"number": number, "percent": _percent}
    environment.globals["interval_text"] = interval_text
    results = [result for section in sections for result in section.results]
    page = environment.get_template("page.html").render(
        title=title,
        lead=lead,
        sections=sections,
        models=models,
        citations=citations,
        footnotes=footnotes(results),
        version=__version__,
    )
    path.write_text(page, encoding="utf-8", errors="xmlcharrefreplace")
    return path.resolve()


def _percent(value: float) -> str:
    """Return where a value between -1 or 0 and 1 lies on its axis, in per cent."""
    return f"{100 * min(max(value, 0.0), 1.0):.2f}%"
