"""Tables of text: recognising their encoding, separator, quoting, header and decimal mark.

Whatever is recognised is said in the remarks of a ``Grid``. What can be meant in two ways is an error that names the
option which decides it: a wrong reading would go into every number that is computed from the table.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Literal

from acceptability.errors import SpecError, SuiteError, shorten
from acceptability.text.encodings import decode_text
from acceptability.text.io import split_lines

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
"""What may separate columns, and what it is called."""

_SEPARATOR_NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t"}
_DECIMAL_NAMES = {"comma": ",", "point": "."}

# No separator of any table: with it, every line is one cell.
_NO_SEPARATOR = "\x1f"
# A title above the header is looked for in so many lines.
_MAX_TITLE_LINES = 10

Cell = object
GridRow = tuple[int, Sequence[Cell]]


@dataclass(frozen=True, kw_only=True)
class DialectOptions:
    """What the user says about a table of text; empty for what is to be recognised.

    Args:
        encoding: The name of the encoding.
        separator: What separates columns: ``,``, ``;`` or a tab; or ``comma``, ``semicolon``, ``tab``.
        decimal: The decimal mark of numbers: ``.`` or ``,``; or ``point``, ``comma``.
        quoting: Whether cells may be quoted; if not, quotation marks are a part of the text.
    """

    encoding: str = ""
    separator: str = ""
    decimal: str = ""
    quoting: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "separator", _SEPARATOR_NAMES.get(self.separator, self.separator))
        object.__setattr__(self, "decimal", _DECIMAL_NAMES.get(self.decimal, self.decimal))
        if self.separator not in ("", *SEPARATORS):
            raise SpecError(f"separator is {self.separator!r}; expected comma, semicolon or tab")
        if self.decimal not in ("", ".", ","):
            raise SpecError(f"decimal is {self.decimal!r}; expected point or comma")


@dataclass(frozen=True)
class Grid:
    """The cells of a table, before it is known what they mean.

    Args:
        rows: The rows that are not empty, each with the number of its line.
        separator: What separated the columns of a text; empty for a spreadsheet.
        remarks: What was recognised and is not as usual.
        row_word: What the number of a row counts: lines, or the rows of a spreadsheet.
        place: Where in the file it is: its sheet, if there are several.
    """

    rows: list[GridRow]
    separator: str = ""
    remarks: tuple[str, ...] = ()
    row_word: str = "line"
    place: str = ""


def read_grid(
    content: bytes, where: str, options: DialectOptions, *, usual: str = ",", is_name: Callable[[str], bool]
) -> Grid:
    """Return the cells of a table of text.

    Args:
        content: The file.
        where: Its name, for errors.
        options: What the user says about it.
        usual: The separator that the name of the file promises, which needs no remark.
        is_name: Tells whether a text is the usual name of a column, by which a header is recognised.
    """
    text, encoding = decode_text(content, where, options.encoding)
    remarks = [f"encoding {encoding}"] if encoding and not options.encoding else []
    separator = options.separator or _find_separator(text, where, options, usual, is_name)
    layout = _Layout(separator or _NO_SEPARATOR, options.quoting, _has_spaced_cells(text, separator))
    rows, remark = _split_quoted(text, where, layout)
    remarks += [remark] if remark else []
    if not separator and rows:
        _check_single_column(rows, where, options)
    if separator and separator != usual and not options.separator:
        remarks.append(f"separated by {SEPARATORS[separator]}")
    if separator:
        _check_swallowed_rows(rows, where, layout)
    filled, empty = drop_empty_rows(rows)
    return note_empty_rows(Grid(filled, separator or usual, tuple(remarks)), empty)


@dataclass(frozen=True)
class _Layout:
    """How the lines of a text are split into cells; ``is_spaced`` if a space follows each separator."""

    separator: str
    quoting: bool
    is_spaced: bool = False


def _list_first_lines(text: str) -> list[str]:
    return [line for line in split_lines(text[:100_000]) if line.strip()][:_MAX_TITLE_LINES]


def _has_spaced_cells(text: str, separator: str) -> bool:
    """Tell whether the names in the header have a space before them, which then is no part of any cell."""
    names = next(iter(_list_first_lines(text)), "").split(separator or _NO_SEPARATOR)[1:]
    return bool(names) and separator != "\t" and all(name.startswith(" ") for name in names)


def _split_rows(text: str, where: str, layout: _Layout) -> list[GridRow]:
    reader = csv.reader(
        # newline="" leaves line breaks within quoted cells as they are; strict=True: a misplaced quote is an error.
        io.StringIO(text, newline=""),
        delimiter=layout.separator,
        strict=True,
        quoting=csv.QUOTE_MINIMAL if layout.quoting else csv.QUOTE_NONE,
        skipinitialspace=layout.is_spaced,
    )
    rows: list[GridRow] = []
    try:
        rows.extend((reader.line_num, row) for row in reader if row)
    except csv.Error as error:
        # The last row that was whole says where the trouble began; the reader may have read on to the end of the file.
        start = rows[-1][0] + 1 if rows else 1
        hint = (
            ". A quotation mark has no partner, or stands within a cell that is quoted. If quotation marks are a part "
            "of the text, add --no-quoting"
        )
        raise SuiteError(f"{where}, line {start}: {error}{hint if layout.quoting else ''}") from error
    return rows


def _split_quoted(text: str, where: str, layout: _Layout) -> tuple[list[GridRow], str]:
    """Return the rows of a text, and a remark if it is not quoted by the rules."""
    try:
        return _split_rows(text, where, layout), ""
    except SuiteError:
        if layout.quoting and (repaired := _split_misquoted(text, where, layout)):
            return repaired
        raise


def _split_misquoted(text: str, where: str, layout: _Layout) -> tuple[list[GridRow], str] | None:
    """Return the rows of a text that is not quoted by the rules, if it can be meant in one way only, and a remark."""
    # Quoted once more by a second program: ""Well, no."" instead of "Well, no.".
    pattern = rf'(?m)(^|{layout.separator})""([^"\r\n]+)""(?={layout.separator}|\r|$)'
    single, count = re.subn(pattern, r'\1"\2"', text)
    if count:
        with suppress(SuiteError):
            rows = _split_rows(single, where, layout)
            if _have_one_width(rows):
                return rows, f"{count} cell{'s' * (count > 1)} in doubled quotation marks"
    if layout.separator != "\t":
        return None
    rows = _split_rows(text, where, replace(layout, quoting=False))
    # A cell that is quoted as a whole, beside others that cannot be, leaves it open what the marks are.
    is_any_quoted = any(_is_quoted(cell) for _, cells in rows for cell in cells)
    return (rows, "quotation marks are a part of the text") if _have_one_width(rows) and not is_any_quoted else None


def _have_one_width(rows: Sequence[GridRow]) -> bool:
    return len({len(cells) for _, cells in drop_empty_rows(rows)[0]}) == 1


def _is_quoted(cell: Cell) -> bool:
    return isinstance(cell, str) and len(cell) > 1 and cell[0] == cell[-1] == '"'


def _find_separator(text: str, where: str, options: DialectOptions, usual: str, is_name: Callable[[str], bool]) -> str:
    """Return what separates the columns of a text; empty for a single column."""
    lines = _list_first_lines(text)
    if not lines:
        return usual
    candidates = [mark for mark in SEPARATORS if mark in text and _has_cells(text, mark, options.quoting)]
    # Above the header there may be a title, which is a line without a separator.
    if not candidates:
        candidates = [mark for mark in SEPARATORS if _has_names(lines, mark, is_name)]
    if len(candidates) < 2:
        return candidates[0] if candidates else ""
    fitting = [mark for mark in candidates if _is_regular(text, mark, options.quoting)]
    # Sentences have commas and semicolons, and no tabs.
    if "\t" in fitting:
        return "\t"
    named = [mark for mark in fitting or candidates if _has_names(lines, mark, is_name)]
    for found in (fitting, named):
        if len(found) == 1:
            return found[0]
    # Nothing fits: the rows differ in width under each, which is an error that the usual separator explains best.
    if not fitting and usual in candidates:
        return usual
    names = " or ".join(SEPARATORS[mark] for mark in fitting or candidates)
    raise SuiteError(
        f"{where} may be separated by {names}: its first line is {shorten(lines[0])!r}. Say which: --separator comma, "
        "semicolon or tab"
    )


def _has_cells(text: str, mark: str, quoting: bool) -> bool:
    """Tell whether the first row, whose cells may have line breaks, has several cells."""
    with suppress(csv.Error):
        quotes: Literal[0, 3] = csv.QUOTE_MINIMAL if quoting else csv.QUOTE_NONE
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, quoting=quotes)
        return any(len(row) > 1 for row in islice(filter(None, reader), 1))
    return False


def _has_names(lines: Sequence[str], mark: str, is_name: Callable[[str], bool]) -> bool:
    """Tell whether one of the first lines is a header with a usual name of a column."""
    cells = (line.split(mark) for line in lines)
    return any(len(row) > 1 and any(is_name(cell.strip(' "')) for cell in row) for row in cells)


def _is_regular(text: str, mark: str, quoting: bool) -> bool:
    """Tell whether all rows have the same number of cells, more than one."""
    try:
        rows = _split_rows(text, "", _Layout(mark, quoting))
    except SuiteError:
        return False
    widths = {len(cells) for _, cells in drop_empty_rows(rows)[0]}
    return len(widths) == 1 and widths != {1}


def _check_single_column(rows: Sequence[GridRow], where: str, options: DialectOptions) -> None:
    """Raise an error if a file without a separator in its first line has one at the same place in all others."""
    lines = [str(cells[0]) for _, cells in rows[1:]]
    for mark, name in SEPARATORS.items():
        # A comma and a space is how text has commas, and tables have none after it.
        counts = {len(re.findall(rf"{mark}(?! )", line)) for line in lines}
        if lines and len(counts) == 1 and counts != {0}:
            raise SuiteError(
                f"{where}, line {rows[1][0]}: {shorten(lines[0])!r} has {name}, and the first line, "
                f"{shorten(str(rows[0][1][0]))!r}, has none. Name each column in the first line; if the file has one "
                f"column only, put its cells in quotation marks"
            )
    # Quoted over several lines, an unclosed quotation mark cannot be told from a cell with line breaks.
    if options.quoting and (broken := next((row for row in rows if "\n" in str(row[1][0])), None)):
        raise SuiteError(
            f"{where}, up to line {broken[0]}: a quoted cell has a line break: {shorten(str(broken[1][0]))!r}. If "
            "quotation marks are a part of the text, add --no-quoting"
        )


def _check_swallowed_rows(rows: Sequence[GridRow], where: str, layout: _Layout) -> None:
    """Raise an error if a quoted cell has parts of rows in it: its quotation mark was closed by that of another row."""
    # A comma and a space is how text has commas.
    pattern = re.compile(layout.separator + ("" if layout.is_spaced else "(?! )"))
    for number, cells in rows:
        for cell in map(str, cells):
            if "\n" in cell and pattern.search(cell):
                raise SuiteError(
                    f"{where}, up to line {number}: a quoted cell has line breaks and {SEPARATORS[layout.separator]} "
                    f"in it, as if its quotation mark were closed too late: {shorten(cell)!r}. If quotation marks are "
                    "a part of the text, add --no-quoting; if not, remove the line breaks"
                )


def drop_empty_rows(rows: Iterable[GridRow]) -> tuple[list[GridRow], list[int]]:
    """Return the rows that have something in them, and the numbers of the others."""
    filled: list[GridRow] = []
    empty: list[int] = []
    for number, cells in rows:
        if not all(map(_is_blank, cells)):
            filled.append((number, cells))
        else:
            empty.append(number)
    return filled, empty


def _describe_empty(numbers: Sequence[int], row_word: str = "line") -> list[str]:
    """Return a remark on rows that are empty."""
    if not numbers:
        return []
    shown = ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
    word = row_word if len(numbers) == 1 else f"{row_word}s"
    return [f"{len(numbers)} empty {'row' if len(numbers) == 1 else 'rows'} left out ({word} {shown})"]


def note_empty_rows(grid: Grid, numbers: Sequence[int]) -> Grid:
    """Return a grid with a remark on the rows that were empty."""
    return replace(grid, remarks=(*grid.remarks, *_describe_empty(numbers, grid.row_word)))


@dataclass(frozen=True)
class HeadedRows:
    """The rows of a table under its column names.

    Args:
        header: The names of the columns.
        rows: Each row with the number of its line, as its cells by column.
        remarks: What was recognised and is not as usual.
    """

    header: list[str]
    rows: list[tuple[int, Mapping[str, Cell]]]
    remarks: tuple[str, ...] = ()


def take_header(grid: Grid, where: str, is_name: Callable[[str], bool]) -> HeadedRows:
    """Return the rows of a table whose first row, below a title if there is one, has the names of the columns."""
    if not grid.rows:
        return HeadedRows([], [])
    rows, remarks = _drop_title(grid, is_name)
    number, first = rows[0]
    names = ["" if cell is None else str(cell).strip() for cell in first]
    names, kept = _name_columns(names, rows[1:], f"{where}, {grid.row_word} {number}")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise SuiteError(
            f"{where}, {grid.row_word} {number}: two columns are named {repeated[0]!r}. If this row is no "
            "header, columns are numbered: --columns text=2,label=1"
        )
    if unnamed := [name for name, index in zip(names, kept, strict=True) if _is_blank(first[index])]:
        remarks = (*remarks, f"without a name: {', '.join(unnamed)}")
    return HeadedRows(names, _list_rows(grid, rows[1:], names, kept, where), (*grid.remarks, *remarks))


def name_by_number(grid: Grid, where: str) -> HeadedRows:
    """Return the rows of a table without a header, whose columns are named 1, 2, …"""
    width = len(grid.rows[0][1]) if grid.rows else 0
    names = [str(number) for number in range(1, width + 1)]
    return HeadedRows(names, _list_rows(grid, grid.rows, names, range(width), where), grid.remarks)


def _drop_title(grid: Grid, is_name: Callable[[str], bool]) -> tuple[list[GridRow], tuple[str, ...]]:
    """Return the rows from the header on, and a remark if there is a title above it."""
    for index, (_, cells) in enumerate(grid.rows[:_MAX_TITLE_LINES]):
        texts = [str(cell).strip() for cell in cells if cell is not None and str(cell).strip()]
        # A title is one cell, and the header below it has several, of which one is known.
        if index and len(texts) > 1 and any(map(is_name, texts)):
            word = f"{grid.row_word} {grid.rows[0][0]}" + (f"–{grid.rows[index - 1][0]}" if index > 1 else "")
            return grid.rows[index:], (f"{word} above the header left out",)
        if len(texts) > 1 or is_name(texts[0]):
            break
    return grid.rows, ()


def _name_columns(names: list[str], rows: Sequence[GridRow], where: str) -> tuple[list[str], list[int]]:
    """Return the names of the columns that have one or have cells, and the positions of these columns."""
    named, kept = [], []
    for index, name in enumerate(names):
        column = () if name else (cells[index] for _, cells in rows if len(cells) > index)
        filled = [cell for cell in column if not _is_blank(cell)]
        # Spreadsheets save empty columns to the right of a table too.
        if not name and not filled:
            continue
        # The first column of a table saved by pandas or R has the numbers of the rows, and no name. A name that is
        # merged over several columns leaves full ones without a name; a few cells in one are stray remarks.
        is_index = index == 0 and all(str(cell).strip().isdecimal() for cell in filled)
        if not name and not is_index and 2 * len(filled) >= len(rows):
            raise SuiteError(
                f"{where}: column {index + 1} has cells and no name, as below a merged cell: give each column a name "
                "of its own, in one row"
            )
        named.append(name or f"column {index + 1}")
        kept.append(index)
    return named, kept


def _is_blank(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _list_rows(
    grid: Grid, rows: Sequence[GridRow], names: Sequence[str], kept: Sequence[int], where: str
) -> list[tuple[int, Mapping[str, Cell]]]:
    width = kept[-1] + 1 if kept else 0
    is_plain = list(kept) == list(range(width))
    listed: list[tuple[int, Mapping[str, Cell]]] = []
    for number, cells in rows:
        # Tables that were joined end to end.
        if cells[0] == names[0] and list(cells) == list(names):
            raise SuiteError(f"{where}, {grid.row_word} {number}: the header again. Remove this row")
        if len(cells) != width:
            cells = _fit_row(cells, width, f"{where}, {grid.row_word} {number}", grid)
        chosen = cells if is_plain else [cells[index] for index in kept]
        listed.append((number, dict(zip(names, chosen, strict=True))))
    return listed


def _fit_row(cells: Sequence[Cell], width: int, where: str, grid: Grid) -> Sequence[Cell]:
    """Return a row without the empty cells at its end; raise an error if it has other cells too many, or too few."""
    if len(cells) > width and all(map(_is_blank, cells[width:])):
        return cells[:width]
    problem = f"{where}: {len(cells)} columns; the header has {width}"
    if len(cells) > width and grid.separator == ",":
        texts = [str(cell) for cell in cells]
        numbers = [f"{left},{right}" for left, right in pairwise(texts) if _is_split(left, right)]
        if numbers:
            raise SuiteError(
                f"{problem}. If {numbers[-1]} is one number, the table needs semicolons or tabs between its columns: "
                "save it so"
            )
        raise SuiteError(f"{problem}. A cell with a comma in it needs quotation marks around it")
    raise SuiteError(problem)


def _is_split(left: str, right: str) -> bool:
    """Tell whether two cells may be a number with a decimal comma."""
    return bool(re.fullmatch(r"[+-]?\d+", left.strip()) and re.fullmatch(r"\d+", right.strip()))


_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_POINT_NUMBER = re.compile(r"[+-]?\d+\.\d+(?:[eE][+-]?\d+)?")
# One comma or point before exactly three digits may separate thousands.
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")


def find_decimal_mark(cells: Iterable[Cell], where: str, separator: str, options: DialectOptions) -> str:
    """Return the decimal mark of a column of numbers: a point or a comma.

    Args:
        cells: The cells.
        where: The file and the column, for errors.
        separator: What separates the columns of the table: where it is the comma, a comma is unusual in numbers.
        options: What the user says.

    >>> find_decimal_mark(["3,5", "4"], "a.csv", ";", DialectOptions())
    ','
    """
    if options.decimal:
        return options.decimal
    texts = [cell.strip() for cell in cells if isinstance(cell, str) and cell.strip()]
    commas = [text for text in texts if _COMMA_NUMBER.fullmatch(text)]
    points = [text for text in texts if _POINT_NUMBER.fullmatch(text)]
    odd = {",": separator == ",", ".": separator == ";"}
    found, mark = (commas, ",") if commas else (points, ".")
    # Semicolons are there because the comma is taken: with them a point may separate thousands, and else a comma may.
    may_be_thousands = all(map(_THOUSANDS.fullmatch, found)) and ((mark == "," and separator != ";") or odd[mark])
    is_doubtful = (commas and points) or (commas and odd[","]) or (found and may_be_thousands)
    if is_doubtful:
        example = f"{commas[0]} and {points[0]}" if commas and points else found[0]
        raise SuiteError(
            f"{where} has {example}: is the {'comma' if commas else 'point'} the decimal mark? Say so: --decimal comma "
            "or --decimal point"
        )
    return "," if commas else "."
