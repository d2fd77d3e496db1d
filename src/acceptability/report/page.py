"""Results as one self-contained HTML page that opens offline from disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from acceptability import __version__
from acceptability.errors import ReportError
from acceptability.report.table import footnotes, interval_text, number
from acceptability.types import Result


@dataclass(frozen=True)
class Section:
    """A heading and the results below it; what all of them share is said once."""

    title: str
    results: Sequence[Result]

    @property
    def shared(self) -> str:
        """The measure and the reduction, where there is only one of each."""
        return ", ".join(getattr(self.results[0], name) for name in ("measure", "reduction") if not self.varies(name))

    def varies(self, name: str) -> bool:
        """Tell whether the results differ in something, so that it needs a column."""
        return len({getattr(result, name) for result in self.results}) > 1

    @property
    def start(self) -> int:
        """Where the axis begins: at 0 for shares, at -1 once anything lies below it."""
        numbers = [number for result in self.results for number in (result.value, result.low) if number is not None]
        return -1 if min(numbers, default=0) < 0 else 0

    def place(self, value: float) -> str:
        """Return where a value lies on the axis, in per cent."""
        return f"{100 * (min(max(value, self.start), 1) - self.start) / (1 - self.start):.2f}%"


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
    environment.filters["number"] = number
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
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise ReportError(f"cannot write the page {path}: {error.strerror}") from error
    return path.resolve()
