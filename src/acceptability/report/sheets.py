"""The rows of a report as CSV files: those of the results, and those behind each figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from acceptability.errors import ReportError
from acceptability.report.gather import KINDS, Material, Row
from acceptability.report.rows import csv_text

if TYPE_CHECKING:
    from acceptability.report.figures import Drawn


def write_sheets(folder: Path, material: Material, figures: Sequence[Drawn]) -> list[Path]:
    """Write a CSV file for each kind of rows and for each figure, and return the files."""
    tables: dict[str, Sequence[Row]] = {kind: getattr(material, kind) for kind in KINDS}
    tables |= {f"figure-{each.name}": each.rows for each in figures}
    found: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in tables.items():
            if rows:
                path = folder / f"{name}.csv"
                path.write_text(csv_text(rows), encoding="utf-8", errors="backslashreplace", newline="")
                found.append(path.resolve())
    except OSError as error:
        raise ReportError(f"cannot write CSV files in {folder}: {error.strerror}") from error
    return found
