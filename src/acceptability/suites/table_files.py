"""A user's tables as rows: text, spreadsheets, JSON, Parquet, data sets of the Hugging Face Hub.

``read_rows`` opens a file by the ending of its name. Parquet and spreadsheets need the extra ``data``, and so does the
library ``datasets``, which reads ``hf:owner/name[:config][@revision]``, all splits together with the tag ``split``, and
``hf:FOLDER``, a data set on disk. Tables without a header are recognised by their cells: two columns, of sentences or
of labels and sentences.
"""

from __future__ import annotations

import io
import json
import logging
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from acceptability.errors import MissingExtra, SpecError, SuiteError, first_error_line, suggest_name
from acceptability.suites.column_names import (
    LabelValue,
    complete_labels,
    is_usual_name,
    read_label_column,
    read_label_key,
)
from acceptability.text.containers import drop_gzip_suffix, read_unpacked
from acceptability.text.dialect import (
    Cell,
    DialectOptions,
    Grid,
    name_by_number,
    read_grid,
    take_header,
)
from acceptability.text.encodings import decode_text
from acceptability.text.io import parse_number, split_lines
from acceptability.text.spreadsheets import SPREADSHEET_SUFFIXES, read_sheet

TABLE_SUFFIXES = (".csv", ".tsv", ".tab", ".jsonl", ".parquet", *SPREADSHEET_SUFFIXES)
"""The endings of names of tables; each may be followed by .gz."""

_log = logging.getLogger(__name__)

CellValue = object

TableRow = Mapping[str, CellValue]


def is_table_file(name: str) -> bool:
    """Return whether a name is that of a table of sentences, by its ending."""
    return drop_gzip_suffix(name).lower().endswith(TABLE_SUFFIXES)


@dataclass(frozen=True, kw_only=True)
class TableOptions(DialectOptions):
    """What the user says about a table.

    Args:
        columns: The names of its columns by their meaning, such as ``{"text": "Sentence"}``; "-" for none.
        labels: What words in the column of labels mean: ``{"Grammatical": 1, "Ungrammatical": 0, "unclear": None}``.
        sheet: The sheet of a spreadsheet; by default the first one that is not hidden.
        pair_by: Make contrasts of the acceptable and the unacceptable rows that have the same values of these tags:
            ``item``, or several, ``paradigm/item``.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, LabelValue] = field(default_factory=dict)
    sheet: str = ""
    pair_by: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "labels", complete_labels(self.labels))

    def describe(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, so that JSON can hold them; empty for none."""
        plain = asdict(TableOptions())
        return {name: value for name, value in asdict(self).items() if value != plain[name]}


def parse_table_options(described: Mapping[str, Any]) -> TableOptions:
    """Return options from what ``TableOptions.describe`` returned.

    >>> parse_table_options(TableOptions(sheet="Items").describe())
    TableOptions(encoding='', separator='', decimal='', quoting=True, columns={}, labels={}, sheet='Items', pair_by='')
    """
    known = {one.name for one in fields(TableOptions)}
    if unknown := sorted(described.keys() - known):
        raise SpecError(f"a table has no option {unknown[0]!r}.{suggest_name(unknown[0], known)}")
    return TableOptions(**described)


@dataclass(frozen=True)
class ParsedTable:
    """The rows of a table, and how they were recognised.

    Args:
        where: The file or data set, for errors.
        header: The column names.
        rows: The rows with the numbers of their lines.
        remarks: What was recognised and is not as usual.
        separator: What separated its columns; empty if it is no text.
        row_word: What the number of a row counts.
        has_items: Whether the tag ``item`` was told from the order of the rows, so that they are contrasted.
        is_typed: Whether people type such tables, so that a cell may hold a mark or a sign for nothing.
    """

    where: str
    header: list[str]
    rows: list[tuple[int, TableRow]]
    remarks: tuple[str, ...] = ()
    separator: str = ""
    row_word: str = "line"
    has_items: bool = False
    is_typed: bool = False

    def cells(self, column: str) -> list[CellValue]:
        """Return the cells of a column."""
        return [row.get(column) for _, row in self.rows]


def read_table_file(path: Path, options: TableOptions | None = None) -> ParsedTable:
    """Return the table in a file, and log what was recognised."""
    options = options or TableOptions()
    table = parse_table_file(drop_gzip_suffix(path.name), read_unpacked(path), str(path), options)
    if table.remarks:
        _log.info("%s: %s", path, "; ".join(table.remarks))
    return table


def read_rows(path: Path) -> tuple[list[str], Iterable[tuple[int, TableRow]]]:
    """Return the column names and the numbered rows of a file; numbers with a decimal comma get a point."""
    table = _convert_decimals(read_table_file(path))
    return table.header, table.rows


def _convert_decimals(table: ParsedTable) -> ParsedTable:
    """Return a table whose numbers with decimal commas have points, if semicolons separate its columns."""
    # Elsewhere a comma between digits may as well be that of a list.
    columns = [name for name in table.header if table.separator == ";" and _has_decimal_commas(table.cells(name))]
    if not columns:
        return table
    _log.info("%s: decimal commas in %s", table.where, ", ".join(columns))
    rows: list[tuple[int, TableRow]] = [
        (number, {**row, **{name: str(row[name]).replace(",", ".") for name in columns}}) for number, row in table.rows
    ]
    return replace(table, rows=rows)


def _has_decimal_commas(cells: Iterable[CellValue]) -> bool:
    texts = [str(cell) for cell in cells if cell not in ("", None)]
    has_commas = any("," in text for text in texts) and not any("." in text for text in texts)
    return has_commas and all(parse_number(text.replace(",", ".")) is not None for text in texts)


def parse_table_file(name: str, content: bytes, where: str, options: TableOptions) -> ParsedTable:
    """Return the table in the content of a file.

    Args:
        name: The name of the file, whose ending says what format it has; any other ending is that of a text.
        content: What is in it.
        where: The file, for errors.
        options: What the user says about it.
    """
    suffix = Path(name).suffix.lower()
    if options.sheet and suffix not in SPREADSHEET_SUFFIXES:
        raise SuiteError(f"{where} is no spreadsheet and has no sheet {options.sheet!r}: omit --sheet")
    if suffix in (".jsonl", ".json"):
        return _read_json(content, where, options)
    if suffix == ".parquet":
        return read_parquet(content, where)
    if suffix in SPREADSHEET_SUFFIXES:
        grid = read_sheet(content, where, options.sheet)
    else:
        usual = "," if suffix == ".csv" else "\t"
        grid = read_grid(content, where, options, usual=usual, is_name=is_usual_name)
    return head_table(grid, where + grid.place, options)


def head_table(grid: Grid, where: str, options: TableOptions) -> ParsedTable:
    """Return the table whose cells are known: under the names in its first row, or without a header."""
    first = [str(cell).strip() for cell in grid.rows[0][1]] if grid.rows else []
    has_items, remarks = False, tuple[str, ...]()
    if any(column.isdecimal() and column not in first for column in options.columns.values()):
        headed = name_by_number(grid, where)
        header, rows, remarks = headed.header, headed.rows, (*grid.remarks, "no header: columns by their numbers")
    elif grid.rows and not options.columns and (headless := _find_headless_rows(grid, options.labels, where)):
        header, rows, remarks = headless.header, headless.rows, (*grid.remarks, headless.remark)
        has_items = headless.has_items
    else:
        headed = take_header(grid, where, is_usual_name)
        header, rows, remarks = headed.header, headed.rows, headed.remarks
    return ParsedTable(where, header, rows, remarks, grid.separator, grid.row_word, has_items, is_typed=True)


# A header may contain spaces too ("Good Sentence"), but has one of these words, and no sentence-final punctuation
# after it.
_HEADER_WORD = re.compile(
    r"\b(?:good|bad|sentence|acceptable|unacceptable|grammatical|ungrammatical)\b(?!.*[.?!])", re.IGNORECASE
)

# Words for labels that occur together. A word of another kind above them is the name of their column.
_WORD_FAMILIES = tuple(
    map(frozenset, (
        ("1", "0"), ("true", "false"), ("t", "f"), ("yes", "no"), ("y", "n"), ("good", "bad"), ("ok", "*", "?", "??"),
        ("grammatical", "ungrammatical"), ("acceptable", "unacceptable"), ("good", "*"), ("g", "*"),
    ))
)  # fmt: skip


@dataclass(frozen=True)
class _HeadlessRows:
    """The rows of a table without a header, under names that say what its columns are.

    Args:
        header: The names.
        rows: Each row with the number of its line.
        remark: What the table was taken for.
        has_items: Whether the order of the rows told items apart.
    """

    header: list[str]
    rows: list[tuple[int, Mapping[str, Cell]]]
    remark: str
    has_items: bool = False


def _find_headless_rows(grid: Grid, labels: Mapping[str, LabelValue], where: str) -> _HeadlessRows | None:
    """Return the rows of a table without a header whose columns are recognised by their cells; None for any other.

    Args:
        grid: The cells.
        labels: The labels of words that the user gave.
        where: The table, for errors.
    """
    columns = list(zip(*(cells for _, cells in grid.rows), strict=False))
    if len(columns) != 2 or any(len(cells) != 2 for _, cells in grid.rows):
        return None
    if (
        grid.separator == "\t"
        and all(map(_may_be_data, _read_first_row(grid)))
        and all(" " in cell for cell in _read_first_row(grid))
    ):
        rows: list[tuple[int, Mapping[str, Cell]]] = [
            (number, {"good": good, "bad": bad}) for number, (good, bad) in grid.rows
        ]
        remark = "two columns of sentences and no header: read as pairs, the better one first"
        return _HeadlessRows(["good", "bad"], rows, remark)
    for label, text in ((0, 1), (1, 0)):
        words = list(map(read_label_key, columns[label]))
        known = any(family.issuperset(words) for family in (*_WORD_FAMILIES, frozenset(labels)))
        # "Grammatical" may also be the name of a column of 1 and 0, which then has no such word again.
        is_data = not is_usual_name(words[0]) or words[0] in words[1:]
        if known and is_data and _looks_like_sentence(_read_first_row(grid)[text]):
            return _name_labelled(grid, label, labels, where)
    return None


def _read_first_row(grid: Grid) -> list[str]:
    return [str(cell).strip() for cell in grid.rows[0][1]]


def _name_labelled(grid: Grid, label: int, labels: Mapping[str, LabelValue], where: str) -> _HeadlessRows:
    """Return a table of labels and sentences, with the items that its order tells of."""
    cells = [row[label] for _, row in grid.rows]
    column = read_label_column("label", cells, labels, where)
    named = [(number, {"label": row[label], "text": row[1 - label]}) for number, row in grid.rows]
    remark = "no header: a column of labels and one of sentences"
    items = _number_items([column.read(cell) for cell in cells])
    # Numbers are how lists of labelled sentences are published; words, with the sentences of an item together, pairs.
    if not items or {"0", "1"} & set(map(read_label_key, cells)):
        return _HeadlessRows(["label", "text"], list(named), remark)
    with_items: list[tuple[int, Mapping[str, Cell]]] = [
        (number, {**row, "item": str(item)}) for (number, row), item in zip(named, items, strict=True)
    ]
    remark += ", each true line contrasted with the false ones that follow it"
    return _HeadlessRows(["label", "text", "item"], with_items, remark, has_items=True)


def _number_items(labels: Sequence[int | None]) -> list[int]:
    """Return the number of the item of each label, if every 1 is followed by one 0 or several; empty otherwise.

    >>> _number_items([1, 0, 1, 0, 0]), _number_items([1, 1, 0])
    ([1, 1, 2, 2, 2], [])
    """
    items: list[int] = []
    before: int | None = 0
    for label in labels:
        if label is None or (label == 1 and before == 1) or (not items and label == 0):
            return []
        items.append((items[-1] if items else 0) + label)
        before = label
    return items if before == 0 else []


def is_labelled_list(lines: Sequence[str]) -> bool:
    r"""Tell whether the lines of a text are a table with tabs and a header, or labels in words beside sentences.

    >>> is_labelled_list(["True\tCats sleep.", "False\tCats sleeps."]), is_labelled_list(["*\tCats sleeps."])
    (True, False)
    """
    cells = [line.split("\t") for line in lines]
    if not cells or len({len(row) for row in cells}) != 1 or len(cells[0]) < 2:
        return False
    if any(map(is_usual_name, cells[0])):
        return True
    # Marks before a sentence are linguists' notation, which has a reader of its own.
    families = [family for family in _WORD_FAMILIES if "*" not in family]
    columns = [set(map(read_label_key, column)) for column in zip(*cells, strict=True)]
    return len(columns) == 2 and any(column <= family for family in families for column in columns)


def _looks_like_sentence(text: str) -> bool:
    """Tell whether a text is a sentence rather than the name of a column."""
    has_end = text.endswith((".", "?", "!", "。", "？", "！"))
    return (" " in text or has_end or not text.isascii()) and not is_usual_name(text)


def _may_be_data(text: str) -> bool:
    return not (is_usual_name(text) or _HEADER_WORD.search(text))


def _read_json(content: bytes, where: str, options: TableOptions) -> ParsedTable:
    """Return the table in a file of JSON: one object a line, or an array of objects."""
    text, encoding = decode_text(content, where, options.encoding)
    remarks = [f"encoding {encoding}"] if encoding and not options.encoding else []
    if text.lstrip().startswith("["):
        rows, row_word = _parse_array(text, where), "object"
    else:
        rows, row_word = list(_iter_json_lines(text, where)), "line"
    header = list(dict.fromkeys(name for _, row in rows for name in row))
    return ParsedTable(where, header, rows, tuple(remarks), row_word=row_word)


def _parse_array(text: str, where: str) -> list[tuple[int, TableRow]]:
    try:
        listed = json.loads(text)
    # json raises RecursionError on deeply nested brackets.
    except (ValueError, RecursionError) as error:
        raise SuiteError(f"{where} is not a file of JSON: {error}") from error
    for number, row in enumerate(listed, start=1):
        if not isinstance(row, dict):
            raise SuiteError(f'{where}, object {number}: expected a JSON object, such as {{"text": …}}')
    return list(enumerate(listed, start=1))


def _iter_json_lines(text: str, where: str) -> Iterable[tuple[int, TableRow]]:
    for number, line in enumerate(split_lines(text), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        # json raises RecursionError on deeply nested brackets.
        except (ValueError, RecursionError) as error:
            raise SuiteError(f"{where}, line {number}: not a line of JSON: {error}") from error
        if not isinstance(row, dict):
            raise SuiteError(f'{where}, line {number}: expected a JSON object, such as {{"text": …}}')
        yield number, row


# Parquet compresses so well that a file of a few kilobytes can declare billions of rows or contain one long text
# millions of times. Both limits are far above any suite and below what fills the memory.
_MAX_CELLS = 50_000_000

_MAX_BYTES = 1 << 30


def read_parquet(content: bytes, where: str) -> ParsedTable:
    """Return the table in a Parquet file."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise MissingExtra(where, "pyarrow", "'acceptability[data]'") from error
    try:
        # The number of cells is in the file's footer, and can be checked before any data are decompressed.
        metadata = parquet.ParquetFile(io.BytesIO(content)).metadata
        cells = metadata.num_rows * metadata.num_columns
        if cells > _MAX_CELLS:
            raise ValueError(f"it declares {cells:,} cells; at most {_MAX_CELLS:,} are read")
        # Read as dictionaries, repeated texts are held once, so that their total size can be checked before to_pylist
        # copies each of them. Nested columns, which have a dot in their path, cannot be read so.
        texts = [
            column.name for column in metadata.schema if column.physical_type == "BYTE_ARRAY" and "." not in column.path
        ]
        table = parquet.ParquetFile(io.BytesIO(content), read_dictionary=texts).read()
        _check_bytes(table)
        rows = table.to_pylist()
    except (ArrowException, OSError, ValueError, OverflowError) as error:
        raise SuiteError(f"{where} cannot be read as a Parquet file: {first_error_line(error)}") from error
    numbered = [(number, _normalise_row(row, "")) for number, row in enumerate(rows, start=1)]
    return ParsedTable(where, list(table.column_names), numbered, row_word="row")


def _check_bytes(table: Any) -> None:
    """Raise an error for a table whose texts would fill the memory when they are copied out."""
    from pyarrow import compute, types

    size = 0
    for column in table.columns:
        for part in column.chunks if types.is_dictionary(column.type) else ():
            lengths = compute.take(compute.binary_length(part.dictionary), part.indices)
            size += compute.sum(lengths.cast("int64")).as_py() or 0
    if size > _MAX_BYTES:
        raise ValueError(f"its texts have {size:,} bytes; at most {_MAX_BYTES:,} are read")


def load_hub_table(name: str) -> tuple[str, ParsedTable]:
    """Return a title (the last part of a data set's name), and the table in all splits of a data set.

    Args:
        name: A name on the Hugging Face Hub, or a folder: ``NAME[:CONFIG][@REVISION]``. In a folder without a
            description of its configurations, a configuration is a folder in it.
    """
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra(f"hf:{name}", "the library datasets", "'acceptability[data]'") from error
    name_or_path, config, revision = _parse_dataset_name(name)
    if not name_or_path:
        raise SuiteError("hf: which data set? Write hf:owner/name, or hf:FOLDER")
    if Path(name_or_path).is_dir() and revision:
        raise SuiteError(f"hf:{name}: a folder on disk has no revision")
    try:
        # Folders written by save_to_disk have one of these files, and load_dataset cannot read them.
        if (Path(name_or_path) / "dataset_dict.json").is_file() or (Path(name_or_path) / "state.json").is_file():
            dataset = datasets.load_from_disk(name_or_path)
        elif config and (Path(name_or_path) / config).is_dir() and not (Path(name_or_path) / "README.md").is_file():
            dataset = datasets.load_dataset(name_or_path, data_dir=config)  # nosec B615 - a local folder
        else:
            dataset = datasets.load_dataset(name_or_path, config, revision=revision)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        raise SuiteError(f"hf:{name} cannot be loaded: {first_error_line(error)}") from error
    # A folder on disk may hold a single data set without splits.
    splits = dict(dataset) if isinstance(dataset, dict) else {"": dataset}
    rows = [
        _normalise_row(row, str(split) if len(splits) > 1 else "") for split, part in splits.items() for row in part
    ]
    header = list(dict.fromkeys(column for row in rows[:1] for column in row))
    title = f"{Path(name_or_path).name}_{config}" if config and Path(name_or_path).is_dir() else Path(name_or_path).name
    return title, ParsedTable(f"hf:{name}", header, list(enumerate(rows, start=1)), row_word="row")


def _parse_dataset_name(name: str) -> tuple[str, str | None, str | None]:
    """Return the name, the configuration and the revision of a data set.

    >>> _parse_dataset_name("nyu-mll/blimp:adjunct_island@main")
    ('nyu-mll/blimp', 'adjunct_island', 'main')
    """
    name_or_path, _, revision = name.partition("@")
    name_or_path, _, config = name_or_path.partition(":")
    return name_or_path, config or None, revision or None


def _normalise_row(row: Mapping[str, object], split: str) -> Mapping[str, object]:
    """Return a row in the form of a text file: no NaN, no label of -1, and ids that start with the split.

    Args:
        split: The name of the split; empty if there is only one.
    """
    # pandas writes missing numbers as NaN, and data sets on the Hub mark hidden test labels by -1.
    cells = {name: None if isinstance(cell, float) and math.isnan(cell) else cell for name, cell in row.items()}
    if cells.get("label") == -1:
        cells["label"] = None
    # Ids are often numbered anew in every split, but have to be unique in a suite.
    if split:
        cells |= {"split": split} | ({"id": f"{split}/{cells['id']}"} if "id" in cells else {})
    return cells
