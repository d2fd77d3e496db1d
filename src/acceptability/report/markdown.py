"""The tables of a report in Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from acceptability.report.grids import Entry, Grid

_SIGNS = re.compile(r"([\\`*_\[\]|#~$!])")


def escaped(text: str) -> str:
    r"""Return text that Markdown shows as it is.

    >>> escaped("a|b <i> *c*")
    'a\\|b &lt;i&gt; \\*c\\*'
    """
    return _SIGNS.sub(r"\\\1", html.escape(re.sub(r"\s+", " ", text), quote=False))


def markdown(grids: Sequence[Grid]) -> str:
    """Return every table with its title above it."""
    return "\n".join(map(_table, grids))


def _table(grid: Grid) -> str:
    numbers = [bool(grid.rows) and all(row[place].is_number for row in grid.rows) for place in range(len(grid.header))]
    lines = [
        f"## {escaped(grid.title)}",
        "",
        f"| {' | '.join(map(escaped, grid.header))} |",
        f"| {' | '.join('---:' if each else '---' for each in numbers)} |",
        *(f"| {' | '.join(map(_cell, row))} |" for row in grid.rows),
        "",
        *(f"{escaped(note)}\n" for note in grid.notes),
    ]
    return "\n".join(lines) + "\n"


def _cell(entry: Entry) -> str:
    text = f"**{escaped(entry.text)}**" if entry.is_best else escaped(entry.text)
    text += escaped(entry.mark)
    return f"{text} {escaped(entry.interval)}" if entry.interval else text
