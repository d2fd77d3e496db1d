"""Spreadsheets: the cells of one sheet of an .xlsx or .ods file, read by python-calamine."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from datetime import date, time, timedelta
from typing import Any

from acceptability.errors import MissingExtra, SuiteError, first_error_line, suggest_name
from acceptability.text.dialect import Cell, Grid, GridRow, drop_empty_rows, note_empty_rows

SPREADSHEET_SUFFIXES = (".xlsx", ".ods")

# calamine holds a sheet as a rectangle, so that two cells in opposite corners of one would fill the memory; and a
# spreadsheet is a zip archive, of which a few kilobytes can expand to gigabytes.
_MAX_CELLS = 20_000_000
_MAX_BYTES = 1 << 29

_ROW_WORD = "row"


def read_sheet(content: bytes, where: str, sheet: str = "") -> Grid:
    """Return the cells of a sheet of a spreadsheet: of the first one that is not hidden, or of one by its name.

    A cell that is merged with cells below it gives its value to all of them, as people see it.

    Args:
        content: The file.
        where: Its name, for errors.
        sheet: The name of the sheet.
    """
    try:
        import python_calamine
    except ImportError as error:
        raise MissingExtra(where, "python-calamine", "'acceptability[data]'") from error
    _check_kind(content, where)
    try:
        _check_size(content)
        workbook = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        name, remarks = _choose_sheet(workbook, where, sheet, python_calamine)
        opened = workbook.get_sheet_by_name(name)
        rows = [[_convert(cell) for cell in row] for row in opened.to_python(skip_empty_area=False)]
        merged = opened.merged_cell_ranges or []
    # zipfile raises RuntimeError for a password or an unknown compression.
    except (
        python_calamine.CalamineError, zipfile.BadZipFile, zlib.error, OSError, ValueError, EOFError, RuntimeError
    ) as error:  # fmt: skip
        raise SuiteError(f"{where} cannot be read as a spreadsheet: {first_error_line(error)}") from error
    if filled := _fill_merged(rows, merged):
        remarks.append(f"{filled} cell{'s' * (filled > 1)} filled that a merged one covers")
    numbered: list[GridRow] = list(enumerate(rows, start=1))
    kept, empty = drop_empty_rows(numbered)
    # Empty rows above the table and below it are no part of it; only gaps are worth a remark.
    gaps = [number for number in empty if kept and kept[0][0] < number < kept[-1][0]]
    place = f", sheet {name!r}" if len(workbook.sheet_names) > 1 else ""
    return note_empty_rows(Grid(kept, "", tuple(remarks), _ROW_WORD, place), gaps)


# The first bytes of Excel's files before 2007, and of new ones that have a password.
_OLD_EXCEL = b"\xd0\xcf\x11\xe0"
_ZIP = b"PK"


def _check_kind(content: bytes, where: str) -> None:
    """Raise an error for a file that is only named like a spreadsheet, which says what it is instead."""
    if content.startswith(_OLD_EXCEL):
        raise SuiteError(
            f"{where} is named like a spreadsheet that can be read, and is an .xls file or has a password: open it, "
            "and save it as .xlsx without a password"
        )
    if not content.startswith(_ZIP):
        raise SuiteError(f"{where} is no spreadsheet, whatever its name says: if it is a table of text, name it .csv")


def _choose_sheet(workbook: Any, where: str, sheet: str, calamine: Any) -> tuple[str, list[str]]:
    names = [one.name for one in workbook.sheets_metadata if one.typ == calamine.SheetTypeEnum.WorkSheet]
    visible = calamine.SheetVisibleEnum.Visible
    shown = [one.name for one in workbook.sheets_metadata if one.name in names and one.visible == visible] or names
    if not names:
        raise ValueError("it has no sheet")
    if sheet and sheet not in names:
        raise SuiteError(f"{where} has no sheet {sheet!r}; it has {', '.join(names)}.{suggest_name(sheet, names)}")
    if sheet or len(names) == 1:
        return sheet or names[0], []
    others = ", ".join(repr(name) for name in names if name != shown[0])
    return shown[0], [f"sheet {shown[0]!r} (--sheet chooses another: {others})"]


def _convert(cell: Cell) -> Cell:
    """Return a cell as a table of text would have it: whole numbers without a point, days as 2026-01-31."""
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    if isinstance(cell, date | time):
        return cell.isoformat()
    return str(cell) if isinstance(cell, timedelta) else cell


def _fill_merged(rows: list[list[Cell]], merged: Sequence[tuple[tuple[int, int], tuple[int, int]]]) -> int:
    """Give the value of each merged cell to the cells that it covers below it; return how many were filled."""
    filled = 0
    # A name that is merged over several columns names none of them, so that it stays as it is, and is refused later.
    header = next((index for index, row in enumerate(rows) if sum(cell != "" for cell in row) > 1), 0)
    for (top, column), (bottom, _) in merged:
        for row in range(max(top, header) + 1, min(bottom + 1, len(rows))):
            # Empty cells to the right of the table may be merged too, where its rows have ended.
            if column < len(rows[row]) and top > header and rows[row][column] == "" != rows[top][column]:
                rows[row][column] = rows[top][column]
                filled += 1
    return filled


_XLSX_CELL = re.compile(rb'<(?:\w+:)?c\s[^>]*?\br="([A-Za-z]{1,3})(\d{1,7})"[^>]*(?<!/)>')
_ODS_TAG = re.compile(rb"<table:(table-row|table-cell|covered-table-cell)\b([^>]*)>")
_REPEATED = re.compile(rb'table:number-(?:rows|columns)-repeated="(\d{1,9})"')


def _check_size(content: bytes) -> None:
    """Raise an error for a spreadsheet that would fill the memory."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = sum(member.file_size for member in archive.infolist())
        if size > _MAX_BYTES:
            raise ValueError(f"it expands to {size:,} bytes; at most {_MAX_BYTES:,} are read")
        for name in archive.namelist():
            if name.startswith("xl/worksheets/") and name.endswith(".xml"):
                cells = _count_xlsx_cells(archive.read(name))
            elif name == "content.xml":
                cells = sum(_iter_ods_repeats(archive.read(name)))
            else:
                continue
            if cells > _MAX_CELLS:
                raise ValueError(
                    f"a sheet has {cells:,} cells, counting the empty ones; at most {_MAX_CELLS:,} are read"
                )


def _count_xlsx_cells(xml: bytes) -> int:
    """Return the size of the rectangle from A1 to the last cell that has a value."""
    rows = columns = 0
    for match in _XLSX_CELL.finditer(xml):
        number = 0
        for letter in match[1].upper():
            number = 26 * number + letter - ord("A") + 1
        rows, columns = max(rows, int(match[2])), max(columns, number)
    return rows * columns


def _iter_ods_repeats(xml: bytes) -> Iterator[int]:
    """Yield how many cells each cell with a value stands for."""
    row_repeats = 1
    for match in _ODS_TAG.finditer(xml):
        found = _REPEATED.search(match[2])
        repeats = int(found[1]) if found else 1
        if match[1] == b"table-row":
            row_repeats = repeats
        elif b"office:value" in match[2]:
            yield row_repeats * repeats
