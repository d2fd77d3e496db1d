"""Rows of a table as a file: CSV, TSV or JSONL."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from acceptability.errors import ReportError

_DELIMITERS = {".csv": ",", ".tsv": "\t"}


def check_rows_file(path: Path) -> None:
    """Refuse a file whose ending says none of the forms that rows are written in, or whose folder is not there."""
    if path.suffix.lower() not in (*_DELIMITERS, ".jsonl"):
        raise ReportError(f"cannot write {path}: expected one of the endings .csv, .tsv, .jsonl")
    if not path.parent.is_dir():
        raise ReportError(f"cannot write {path}: there is no folder {path.parent}")


def write_rows(path: Path, rows: Sequence[Mapping[str, object]], header: Sequence[str] = ()) -> None:
    """Write rows in the form that the file's ending says; what is None stays empty.

    Args:
        header: The columns, which a table without rows needs too; by default those that the rows have.
    """
    check_rows_file(path)
    names = header or list(dict.fromkeys(name for row in rows for name in row))
    ending = path.suffix.lower()
    try:
        with path.open("w", encoding="utf-8", newline="") as out:
            if ending == ".jsonl":
                out.writelines(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
                return
            writer = csv.DictWriter(out, names, restval="", delimiter=_DELIMITERS[ending], lineterminator="\n")
            writer.writeheader()
            writer.writerows({name: "" if cell is None else cell for name, cell in row.items()} for row in rows)
    except OSError as error:
        raise ReportError(f"cannot write {path}: {error.strerror}") from error
