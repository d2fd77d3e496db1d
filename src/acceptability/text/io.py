"""Text files: lines, rows and numbers from bytes, and rows as CSV, TSV or JSONL files, also safe for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from acceptability.errors import ReportError, SuiteError

_DELIMITERS = {".csv": ",", ".tsv": "\t"}

# A spreadsheet runs a cell that begins with one of these as a formula (CSV injection); some read full-width signs like
# ASCII.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# Some spreadsheets skip these before they look for a formula.
_SKIPPED_CHARACTERS = " \u00a0\u200b\u2060\ufeff\0"
# A formula would begin here if a spreadsheet split the cell: where numbers have a decimal comma, spreadsheets split at
# semicolons.
_INNER_FORMULA = re.compile(f"([;\\t\\r\\n][{_SKIPPED_CHARACTERS}]*)(?=[=+@＝＋－＠-])")

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def escape_formulas(cell: object) -> object:
    """Return a cell that no spreadsheet runs as a formula: an apostrophe is put before a text that begins like one.

    So it is within a text, where a spreadsheet that splits the cell would find a formula.

    >>> escape_formulas("=cmd()"), escape_formulas("a;=cmd()"), escape_formulas("Cats sleep.")
    ("'=cmd()", "a;'=cmd()", 'Cats sleep.')
    >>> escape_formulas(-1.5), escape_formulas("-1.5")
    (-1.5, '-1.5')
    """
    if not isinstance(cell, str) or _NUMBER.fullmatch(cell):
        return cell
    inside = _INNER_FORMULA.sub(r"\1'", cell)
    return f"'{inside}" if cell.lstrip(_SKIPPED_CHARACTERS).startswith(_FORMULA_STARTS) else inside


def escape_rows(rows: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return rows that are safe to open in a spreadsheet, with their column names escaped too."""
    return [{str(escape_formulas(name)): escape_formulas(cell) for name, cell in row.items()} for row in rows]


def format_csv(rows: Sequence[Mapping[str, object]]) -> str:
    r"""Return rows as CSV that is safe to open in a spreadsheet; None becomes an empty cell.

    >>> format_csv([{"text": "=cmd()", "n": 1}, {"text": None, "n": -2}])
    '"text","n"\n"\'=cmd()","1"\n"","-2"\n'
    """
    out = io.StringIO()
    write_table(out, escape_rows(rows), (), ",", quote_all=True)
    return out.getvalue()


def write_spreadsheet(path: Path, rows: Sequence[Mapping[str, object]], header: Sequence[str] = ()) -> None:
    """Write rows for people, as ``write_rows``; in CSV and TSV every cell is quoted and no cell is a formula."""
    write_rows(path, rows if path.suffix.lower() == ".jsonl" else escape_rows(rows), header, quote_all=True)


def check_rows_file(path: Path) -> None:
    """Raise an error unless the file's suffix is that of a format for rows, and the file can be written."""
    if path.suffix.lower() not in (*_DELIMITERS, ".jsonl"):
        raise ReportError(f"cannot write {path}: expected one of the suffixes .csv, .tsv, .jsonl")
    check_writable(path)


def check_writable(path: Path) -> None:
    """Raise an error, before any work is done, if a file's folder does not exist or it is a folder itself."""
    if not path.parent.is_dir():
        raise ReportError(f"cannot write {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise ReportError(f"cannot write {path}: it is a folder. Name a file in it.")


def write_rows(
    path: Path, rows: Sequence[Mapping[str, object]], header: Sequence[str] = (), *, quote_all: bool = False
) -> None:
    """Write rows in the format of the file's suffix, so that they can be read again; None becomes an empty cell.

    Args:
        header: The columns, which a table without rows needs too; by default those of the rows.
        quote_all: Whether every cell of CSV and TSV is quoted, whether or not it needs to be.
    """
    check_rows_file(path)
    suffix = path.suffix.lower()
    try:
        # Lone surrogates, which a name of a file or a model's text can have, are no UTF-8: they are written as escapes.
        with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out:
            if suffix == ".jsonl":
                out.writelines(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
            else:
                write_table(out, rows, header, _DELIMITERS[suffix], quote_all=quote_all)
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
    """Write rows as a delimited table that is read back unchanged; None becomes an empty cell."""
    names = header or list(dict.fromkeys(name for row in rows for name in row))
    plain, quoted = (
        csv.DictWriter(out, names, restval="", delimiter=delimiter, lineterminator="\n", quoting=quoting)
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
    )
    for row in (dict(zip(names, names, strict=True)), *rows):
        cells = {name: "" if cell is None else cell for name, cell in row.items()}
        # Python's csv does not quote a lone carriage return, which it would read as the end of the row.
        has_return = any(isinstance(cell, str) and "\r" in cell for cell in cells.values())
        (quoted if quote_all or has_return else plain).writerow(cells)


def read_content(path: Path) -> bytes:
    """Return the content of a file."""
    try:
        # The name becomes part of results, which are UTF-8.
        str(path).encode()
        return path.read_bytes()
    except OSError as error:
        raise SuiteError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeEncodeError as error:
        raise SuiteError(f"the name of the file {str(path)!a} is not UTF-8. Rename it and try again.") from error
    except ValueError as error:
        # Python refuses a name with a NUL before it looks for a file.
        raise SuiteError(f"cannot read {str(path)!r}: {error}") from error


def decode_utf8(content: bytes, where: str) -> str:
    """Return the text of a UTF-8 file without its byte-order mark; any other encoding is an error.

    Args:
        where: The name of the file, for the error.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SuiteError(
            f"{where}, line {line}: byte {error.start} is not UTF-8. Save the file as UTF-8 and try again."
        ) from error


def split_lines(text: str) -> list[str]:
    """Return the lines of a text, whatever system it was written on."""
    # Not str.splitlines, which also splits at form feeds and Unicode separators: texts have them within a line.
    return re.split(r"\r\n|\r|\n", text)


def read_lines(content: bytes, where: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not empty, with their numbers."""
    for number, line in enumerate(split_lines(decode_utf8(content, where)), start=1):
        if line:
            yield number, line


def read_tab_rows(content: bytes, where: str, *, width: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a tab-separated file without header or quoting."""
    for number, line in read_lines(content, where):
        row = line.split("\t")
        if len(row) != width:
            raise SuiteError(f"{where}, line {number}: {len(row)} columns; expected {width}")
        yield number, row


def read_delimited(
    content: bytes, where: str, *, delimiter: str = ","
) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """Return the header and the numbered rows of a delimited file with the quoting of spreadsheets."""
    text = decode_utf8(content, where)
    # newline="" leaves line breaks within quoted cells as they are; strict=True makes an error of a misplaced quote.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
    except csv.Error as error:
        raise SuiteError(f"{where}, line {reader.line_num}: {error}") from error
    if len(set(header)) < len(header):
        ((repeated, _),) = Counter(header).most_common(1)
        raise SuiteError(f"{where}, line 1: two columns are named {repeated!r}")
    return header, _iter_dict_rows(reader, header, where)


def read_dict_rows(content: bytes, where: str, *, delimiter: str = ",") -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a delimited file with a header."""
    return read_delimited(content, where, delimiter=delimiter)[1]


def _iter_dict_rows(reader: Any, header: list[str], where: str) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                raise SuiteError(f"{where}, line {reader.line_num}: {len(row)} columns; the header has {len(header)}")
            yield reader.line_num, dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise SuiteError(f"{where}, line {reader.line_num}: {error}") from error


def normalise_text(text: str) -> str:
    r"""Return a text in a form that is the same for all texts that count as one sentence when files are joined.

    Files differ in their spaces and in how they compose accents, which makes no other sentence.

    >>> normalise_text(" Cats\tsleep. ") == normalise_text("Cats sleep.")
    True
    """
    # ASCII has no combining characters. Most texts are ASCII, and asking costs far less than normalising.
    return " ".join((text if text.isascii() else unicodedata.normalize("NFC", text)).split())


def parse_number(cell: object) -> float | None:
    """Return the number in a cell, or None if it holds something else."""
    # Python takes True for 1, and "1_000" for 1000.
    if isinstance(cell, bool) or not isinstance(cell, (int, float, str)) or "_" in str(cell):
        return None
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return None
