"""From bytes to lines, rows and numbers: what every reader of a file needs."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from acceptability.errors import SuiteError


def content_of(path: Path) -> bytes:
    """Return what a file holds; its name stands in results later on, and must be a text."""
    try:
        str(path).encode()
        return path.read_bytes()
    except OSError as error:
        raise SuiteError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeEncodeError as error:
        raise SuiteError(f"the name of the file {str(path)!a} is not UTF-8. Rename it and try again.") from error
    except ValueError as error:
        # A name with a NUL in it is refused before any file is looked for.
        raise SuiteError(f"cannot read {str(path)!r}: {error}") from error


def decoded(content: bytes, where: str) -> str:
    """Return the text of a file; a byte-order mark is dropped, anything but UTF-8 refused."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SuiteError(
            f"{where}, line {line}: byte {error.start} is not UTF-8. Save the file as UTF-8 and try again."
        ) from error


def lines(content: bytes, where: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a file that have something in them.

    Only newlines of Unix, Windows and the old Mac end a line: str.splitlines would also
    cut at rarer characters.
    """
    for number, line in enumerate(re.split(r"\r\n|\r|\n", decoded(content, where)), start=1):
        if line:
            yield number, line


def tab_rows(content: bytes, where: str, *, width: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a tab-separated file without header or quoting."""
    for number, line in lines(content, where):
        row = line.split("\t")
        if len(row) != width:
            raise SuiteError(f"{where}, line {number}: {len(row)} columns; expected {width}")
        yield number, row


def delimited(
    content: bytes, where: str, *, delimiter: str = ","
) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """Return the header of a delimited file, quoted as spreadsheets do, and its numbered rows."""
    reader = csv.reader(io.StringIO(decoded(content, where), newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
    except csv.Error as error:
        raise SuiteError(f"{where}, line {reader.line_num}: {error}") from error
    if len(set(header)) < len(header):
        ((twice, _),) = Counter(header).most_common(1)
        raise SuiteError(f"{where}, line 1: two columns are named {twice!r}")
    return header, _dict_rows(reader, header, where)


def dict_rows(content: bytes, where: str, *, delimiter: str = ",") -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a delimited file with a header."""
    return delimited(content, where, delimiter=delimiter)[1]


def _dict_rows(reader: Any, header: list[str], where: str) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                raise SuiteError(f"{where}, line {reader.line_num}: {len(row)} columns; the header has {len(header)}")
            yield reader.line_num, dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise SuiteError(f"{where}, line {reader.line_num}: {error}") from error


def as_number(cell: object) -> float | None:
    """Return the number in a cell, or None if it holds something else."""
    if isinstance(cell, bool) or not isinstance(cell, (int, float, str)) or "_" in str(cell):
        return None
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return None
