"""A paper's numbers and ours, side by side, in the terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.table import Table

from acceptability.report.table import add_row, plain, titled
from acceptability.studies.cells import Cell

_LONG = 40
"""A source or note of more characters would make its row many lines high."""

_SIGNS = {True: "yes", False: "no", None: ""}


def cell_table(title: str, cells: Sequence[Cell]) -> Table:
    """Return the cells of one table of a paper, a row each; what is long stands below, once, with a number."""
    below = _below(cells)
    table = titled(title)
    for name in ("row", "column"):
        table.add_column(name, overflow="fold")
    for name, shown in (("paper", [cell.paper or "–" for cell in cells]), ("ours", list(map(_shown, cells)))):
        # A number stays in one line; a sentence may take several.
        table.add_column(name, justify="right", overflow="fold", no_wrap=max(map(len, shown), default=0) < 20)
    table.add_column("agrees", justify="right", no_wrap=True)
    for name in ("source", "note"):
        table.add_column(name, overflow="fold")
    for cell in cells:
        signs = cell.paper or "–", _shown(cell), _SIGNS[cell.agrees]
        said = (f"({below[text]})" if text in below else text for text in (cell.source, cell.note))
        add_row(table, cell.row, cell.column, *signs, *said)
    table.caption = plain("\n".join(f"({number}) {text}" for text, number in below.items())) if below else None
    table.caption_justify = "left"
    return table


def _below(cells: Sequence[Cell]) -> dict[str, int]:
    """Return the long sources and notes, each with a number, in the order in which they come."""
    texts = dict.fromkeys(text for cell in cells for text in (cell.source, cell.note) if len(text) > _LONG)
    return {text: number for number, text in enumerate(texts, start=1)}


def _shown(cell: Cell) -> str:
    """Return our number with as many digits as the paper's has, and at least four."""
    if cell.ours is None:
        return "–"
    if not isinstance(cell.ours, float):
        return str(cell.ours)
    digits = re.fullmatch(r"[^.]*\.(\d+)\D*", cell.paper or "")
    if cell.paper and not digits and cell.ours.is_integer():
        return f"{cell.ours:.0f}"
    return f"{cell.ours:.{max(4, len(digits[1]) if digits else 0)}f}"


def agreement(cells: Sequence[Cell]) -> str:
    """Return in a few words how many of a paper's numbers came out again, for each table where there are several.

    >>> agreement([Cell("Table 1", "a", "b", ".5", 0.5, "published scores", True)])
    '1 of 1 printed numbers came out again.'
    """
    compared = [cell for cell in cells if cell.agrees is not None]
    second_hand = sum(cell.is_second_hand for cell in compared)
    open_ones = sum(cell.paper is not None and cell.ours is None for cell in cells)
    others = sum(cell.is_not_compared for cell in cells)
    tables = list(dict.fromkeys(cell.table for cell in compared))
    other = f"{others} of ours stand beside printed ones of other models or texts, and are not compared." * bool(others)
    if not compared:
        return other or "No printed number could be set beside one of ours."
    said = f"{_count(compared)} printed numbers came out again"
    said += f", {second_hand} of them second-hand: see their notes" if second_hand else ""
    said += f"; {open_ones} more cannot be computed from what is published." if open_ones else "."
    parts = [f"{table} {_count([cell for cell in compared if cell.table == table])}" for table in tables]
    by_table = f"{', '.join(parts)}." if len(parts) > 1 else ""
    return " ".join(filter(None, (said, by_table, other)))


def _count(compared: Sequence[Cell]) -> str:
    return f"{sum(cell.agrees is True for cell in compared)} of {len(compared)}"
