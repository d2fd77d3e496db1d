"""A paper's numbers and ours, side by side, in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from acceptability.report.table import add_row
from acceptability.studies.cells import Cell

_SIGNS = {True: "yes", False: "no", None: ""}


def cell_table(title: str, cells: Sequence[Cell]) -> Table:
    """Return the cells of one table of a paper, a row each."""
    table = Table(title=title, title_justify="left", header_style="bold", pad_edge=False)
    for name in ("row", "column"):
        table.add_column(name, overflow="fold")
    for name in ("paper", "ours", "agrees"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("source", "note"):
        table.add_column(name, overflow="fold")
    for cell in cells:
        shown = f"{cell.ours:.4f}" if isinstance(cell.ours, float) else str("–" if cell.ours is None else cell.ours)
        signs = cell.paper or "–", shown, _SIGNS[cell.agrees]
        add_row(table, cell.row, cell.column, *signs, cell.source, cell.note)
    return table


def agreement(cells: Sequence[Cell]) -> str:
    """Return in a sentence how many of a paper's numbers came out again.

    >>> agreement([Cell("Table 1", "a", "b", ".5", 0.5, "published scores", True)])
    '1 of 1 printed numbers came out again.'
    """
    compared = [cell for cell in cells if cell.agrees is not None]
    return f"{sum(cell.agrees is True for cell in compared)} of {len(compared)} printed numbers came out again."
