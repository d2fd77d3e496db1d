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

_INSIDE = re.compile(f"([;\\t\\r\\n][{_SKIPPED}]*)(?=[=+@＝＋－＠-])")
"""Where a formula would begin if a cell were split: where numbers have a comma, spreadsheets split at semicolons."""

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def harmless(cell: object) -> object:
    """Return a cell that no spreadsheet runs: a text that begins like a formula gets an apostrophe before it.

    So does what would begin like one in a spreadsheet that splits the cell.

    >>> harmless("=cmd()"), harmless(-1.5), harmless("-1.5"), harmless("Cats sleep."), harmless("a;=cmd()")
    ("'=cmd()", -1.5, '-1.5', 'Cats sleep.', "a;'=cmd()")
    """
    if not isinstance(cell, str) or _NUMBER.fullmatch(cell):
        return cell
    inside = _INSIDE.sub(r"\1'", cell)
    return f"'{inside}" if cell.lstrip(_SKIPPED).startswith(_FORMULA) else inside


def sheet(rows: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return rows that are safe to open in a spreadsheet, names of columns too."""
    return [{str(harmless(name)): harmless(cell) for name, cell in row.items()} for row in rows]


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    r"""Return rows as CSV that is safe to open in a spreadsheet; what is None stays empty.

    >>> csv_text([{"text": "=cmd()", "n": 1}, {"text": None, "n": -2}])
    '"text","n"\n"\'=cmd()","1"\n"","-2"\n'
    """
    out = io.StringIO()
    write_table(out, sheet(rows), (), ",", quote_all=True)
    return out.getvalue()


def write_sheet(path: Path, rows: Sequence[Mapping[str, object]], header: Sequence[str] = ()) -> None:
    """Write rows for people: as ``write_rows``, and in CSV and TSV every cell is quoted and none a formula."""
    write_rows(path, rows if path.suffix.lower() == ".jsonl" else sheet(rows), header, quote_all=True)


def check_rows_file(path: Path) -> None:
    """Refuse a file whose ending says none of the forms that rows are written in, or that cannot be a file there."""
    if path.suffix.lower() not in (*_DELIMITERS, ".jsonl"):
        raise ReportError(f"cannot write {path}: expected one of the endings .csv, .tsv, .jsonl")
    check_writable(path)


def check_writable(path: Path) -> None:
    """Refuse a file in a folder that does not exist, or that is a folder itself, before any work is done for it."""
    if not path.parent.is_dir():
        raise ReportError(f"cannot write {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise ReportError(f"cannot write {path}: it is a folder. Name a file in it.")


def write_rows(
    path: Path, rows: Sequence[Mapping[str, object]], header: Sequence[str] = (), *, quote_all: bool = False
) -> None:
    """Write rows in the form that the file's ending says, to be read again; what is None stays empty.

    Args:
        header: The columns, which a table without rows needs too; by default those that the rows have.
        quote_all: Whether every cell of CSV and TSV has quotation marks, needed or not.
    """
    check_rows_file(path)
    ending = path.suffix.lower()
    try:
        with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out:
            if ending == ".jsonl":
                out.writelines(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
            else:
                write_table(out, rows, header, _DELIMITERS[ending], quote_all=quote_all)
    except OSError as error:
        raise ReportError(f"cannot write {path}: {error.strerror}") from error


def write_table(
    out: TextIO,
    rows: Sequence[Mapping[str, object]],
    header: Sequence[str],
    delimiter: str,
    *,
    quote_all: bool = False,
) -> None:
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
        (quoted if quote_all or has_return else plain).writerow(cells)
