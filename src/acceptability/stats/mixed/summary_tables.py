"""Plain-text and HTML tables of regression results; no number is cut, and lines have at most 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from acceptability.errors import MissingExtra

WIDTH = 80

Cell = str | float | None


def format_number(value: float | None) -> str:
    """Return a number with four significant digits; a dash for None.

    >>> format_number(10.46728596), format_number(0.00012345), format_number(None)
    ('10.47', '0.0001234', '-')
    """
    return "-" if value is None else f"{value:.4g}"


def format_table(header: Sequence[str], rows: Sequence[Sequence[Cell]], width: int = WIDTH) -> str:
    """Return a table whose first column holds names and whose others hold numbers.

    A name that leaves too little room for the numbers stands on a line of its own.

    >>> print(format_table(["effect", "sd"], [["Intercept", 24.7405], ["Days", 5.92213]]))
    effect        sd
    Intercept  24.74
    Days       5.922
    """
    texts = [[cell if isinstance(cell, str) else format_number(cell) for cell in row] for row in rows]
    sizes = [max(len(row[k]) for row in [list(header), *texts]) for k in range(1, len(header))]
    room = width - sum(size + 2 for size in sizes)
    fits = [len(row[0]) for row in [list(header), *texts] if len(row[0]) <= room]
    name_size = max(fits, default=0)
    lines = []
    for row in [list(header), *texts]:
        numbers = "".join("  " + cell.rjust(size) for cell, size in zip(row[1:], sizes, strict=True))
        if len(row[0]) <= room:
            lines.append(row[0].ljust(name_size) + numbers)
        else:
            lines += [row[0], " " * name_size + numbers]
    return "\n".join(line.rstrip() for line in lines)


def format_html_table(header: Sequence[str], rows: Sequence[Sequence[Cell]], caption: str) -> str:
    """Return the same table in HTML, with a caption."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{escape(cell if isinstance(cell, str) else format_number(cell))}</td>" for cell in row)
        + "</tr>"
        for row in rows
    )
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def build_frame(rows: Sequence[dict[str, Any]]) -> Any:
    """Return rows as a pandas data frame."""
    try:
        import pandas
    except ImportError as error:
        raise MissingExtra("to_frame", "pandas", "'acceptability[stats]'") from error
    return pandas.DataFrame(rows)
