"""Rows of a table as a file: CSV, TSV or JSONL."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from acceptability.errors import ReportError

_DELIMITERS = {".csv": ",", ".tsv": "\t"}


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""A text that begins so is a formula to a spreadsheet, which would run it; some read full-width signs alike."""

_SKIPPED = " \u00a0\u200b\u2060\ufeff\0"
"""What some spreadsheets skip before they look."""

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def harmless(cell: object) -> object:
    """Return a cell that no spreadsheet runs: a text that begins like a formula gets an apostrophe before it.

    >>> harmless("=cmd()"), harmless(-1.5), harmless("-1.5"), harmless("Cats sleep.")
    ("'=cmd()", -1.5, '-1.5', 'Cats sleep.')
    """
    if isinstance(cell, str) and cell.lstrip(_SKIPPED).startswith(_FORMULA) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def sheet(rows: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return rows that are safe to open in a spreadsheet, names of columns too."""
    return [{str(harmless(name)): harmless(cell) for name, cell in row.items()} for row in rows]


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows as CSV that is safe to open in a spreadsheet; what is None stays empty.

    >>> csv_text([{"text": "=cmd()", "n": 1}, {"text": None, "n": -2}])
    "text,n\\n'=cmd(),1\\n,-2\\n"
    """
    out = io.StringIO()
    write_table(out, sheet(rows), (), ",")
    return out.getvalue()


def write_sheet(path: Path, rows: Sequence[Mapping[str, object]], header: Sequence[str] = ()) -> None:
    """Write rows for people: as ``write_rows``, and in CSV and TSV no cell is a formula."""
    write_rows(path, rows if path.suffix.lower() == ".jsonl" else sheet(rows), header)


def check_rows_file(path: Path) -> None:
    """Refuse a file whose ending says none of the forms that rows are written in, or whose folder is not there."""
    if path.suffix.lower() not in (*_DELIMITERS, ".jsonl"):
        raise ReportError(f"cannot write {path}: expected one of the endings .csv, .tsv, .jsonl")
    if not path.parent.is_dir():
        raise ReportError(f"cannot write {path}: there is no folder {path.parent}")


def write_rows(path: Path, rows: Sequence[Mapping[str, object]], header: Sequence[str] = ()) -> None:
    """Write rows in the form that the file's ending says, to be read again; what is None stays empty.

    Args:
        header: The columns, which a table without rows needs too; by default those that the rows have.
    """
    check_rows_file(path)
    ending = path.suffix.lower()
    try:
        with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out:
            if ending == ".jsonl":
                out.writelines(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
            else:
                write_table(out, rows, header, _DELIMITERS[ending])
    except OSError as error:
        raise ReportError(f"cannot write {path}: {error.strerror}") from error


def write_table(out: TextIO, rows: Sequence[Mapping[str, object]], header: Sequence[str], delimiter: str) -> None:
    """Write rows as a delimited table that is read back as it was; what is None stays empty."""
    names = header or list(dict.fromkeys(name for row in rows for name in row))
    plain, quoted = (
        csv.DictWriter(out, names, restval="", delimiter=delimiter, lineterminator="\n", quoting=how)
        for how in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
    )
    for row in (dict(zip(names, names, strict=True)), *rows):
        cells = {name: "" if cell is None else cell for name, cell in row.items()}
        # Python leaves a lone carriage return without quotation marks, and would read it as the end of the row.
        has_return = any(isinstance(cell, str) and "\r" in cell for cell in cells.values())
        (quoted if has_return else plain).writerow(cells)
