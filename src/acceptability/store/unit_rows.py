"""The rows that results are computed from, as they are saved with a run.

Up to 20,000 rows are in ``units.json`` and ``units.csv``. More are written once, as columns, in ``units.npz``, a file
of NumPy: whole arrays are written and read many times as fast as rows of text, and take a fifth of the space or less.
``write_unit_csv`` makes a CSV of either.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, repeat
from json.encoder import encode_basestring
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import StoreError, to_one_line
from acceptability.suites.columns import TextColumn, shrink_integers
from acceptability.types import Result, Tags, Units

RunRow = Mapping[str, object]

MAX_PLAIN_ROWS = 20_000
"""A run of more unit rows than these has them as columns instead of JSON and CSV."""

COLUMNS_FILE = "units.npz"

# Rows are written so many at a time: some 30 MB.
_ROWS_AT_ONCE = 1 << 16
# What reading raises if a file holds something else than columns.
_DAMAGE_ERRORS = (OSError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError, NotImplementedError)
_CSV_SPECIAL = re.compile('[",\r\n]')


@dataclass(frozen=True)
class UnitRows:
    """The rows that results are computed from, as flat records.

    Records are made during iteration and not kept, since there may be millions of them.

    Args:
        parts: The units of each result, with the columns that all of its records share.
    """

    parts: Sequence[tuple[Units, RunRow]]

    def __len__(self) -> int:
        return sum(len(units) for units, _ in self.parts)

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return list(dict.fromkeys(name for table in self.iter_tables() for name in table.names))

    def __iter__(self) -> Iterator[RunRow]:
        """Yield the record of each row."""
        for table in self.iter_tables():
            for cells in table.iter_cells():
                yield dict(zip(table.names, cells, strict=True))

    def iter_tables(self) -> Iterator[UnitTable]:
        """Yield consecutive rows that have the same columns."""
        for units, about in self.parts:
            start = 0
            for names, same in groupby(units.tags, key=tuple):
                end = start + sum(1 for _ in same)
                for first in range(start, end, _ROWS_AT_ONCE):
                    yield UnitTable(units, about, range(first, min(first + _ROWS_AT_ONCE, end)), names)
                start = end


@dataclass(frozen=True, eq=False)
class UnitTable:
    """Consecutive rows of a result that have the same tags, column by column.

    Args:
        units: The rows of the result.
        about: The columns that are the same in all rows.
        rows: The rows of the table.
        tags: The names of their tags.
    """

    units: Units
    about: RunRow
    rows: range
    tags: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [*self.about, "unit", *self.units.columns, *(f"tag/{tag}" for tag in self.tags)]

    def iter_cells(self) -> Iterator[tuple[object, ...]]:
        """Yield the cells of each row."""
        return zip(*map(repeat, self.about.values()), self._ids, *self._numbers, *self._tag_columns, strict=False)

    # Whole columns are written, and joined to rows by one template: a dictionary and a call of the JSON encoder, or of
    # the CSV writer, for each row would take several times as long.

    def iter_json(self) -> Iterator[str]:
        """Yield each row as JSON."""
        fields = [f"{to_json(name)}: {to_json(value)}".replace("%", "%%") for name, value in self.about.items()]
        fields += [f"{to_json(name)}: ".replace("%", "%%") + "%s" for name in self.names[len(fields) :]]
        if not all(np.isfinite(column).all() for column in self.units.columns.values()):
            raise ValueError("a row of a result has a number that is not finite")
        texts = (map(encode_basestring, column) for column in (self._ids, *self._tag_columns))
        return self._fill(f"{{{', '.join(fields)}}}", texts)

    def iter_csv(self) -> Iterator[str]:
        """Yield each row as a line of CSV."""
        fields = [
            cell.replace("%", "%%")
            for cell in _quote_cells(["" if value is None else str(value) for value in self.about.values()])
        ]
        fields += ["%s"] * (len(self.names) - len(fields))
        texts = (_quote_cells(list(column)) for column in (self._ids, *self._tag_columns))
        return self._fill(",".join(fields) + "\r\n", texts)

    def _fill(self, template: str, texts: Iterator[Iterable[str]]) -> Iterator[str]:
        """Yield a template with the cells of each row, given the columns of ids and tags as they are written."""
        numbers = (map(float.__repr__, column) for column in self._numbers)
        return map(template.__mod__, zip(next(texts), *numbers, *texts, strict=True))

    @property
    def _part(self) -> slice:
        return slice(self.rows.start, self.rows.stop)

    @property
    def _ids(self) -> Sequence[str]:
        return self.units.ids[self._part]

    @property
    def _numbers(self) -> list[list[float]]:
        return [column[self._part].astype(np.float64).tolist() for column in self.units.columns.values()]

    @property
    def _tag_columns(self) -> Iterator[Iterator[str]]:
        return (map(itemgetter(tag), self.units.tags[self._part]) for tag in self.tags)


def _quote_cells(cells: list[str]) -> list[str]:
    """Return the cells of a column as CSV has them, which quotes commas, quotation marks and line ends."""
    # Hardly any column has such a cell, which one search over all of them shows.
    if not _CSV_SPECIAL.search("".join(cells)):
        return cells
    return ['"' + cell.replace('"', '""') + '"' if _CSV_SPECIAL.search(cell) else cell for cell in cells]


def collect_unit_rows(results: Iterable[Result]) -> UnitRows:
    """Return the rows that ungrouped results are computed from; grouped results use parts of the same rows."""
    about = ("suite", "measure", "model", "reduction")
    return UnitRows(
        [
            (result.units, {name: getattr(result, name) for name in about})
            for result in results
            if result.units is not None and result.group is None
        ]
    )


def write_rows(path: Path, rows: Iterable[RunRow]) -> None:
    """Write rows to NAME.json and NAME.csv."""
    # Table by table, and twice over the rows: the columns of the CSV are known only after a first pass, and a list of
    # all records would fill the memory. A dict keeps the columns in order.
    names: dict[str, None] = {}
    with open_for_writing(path.with_suffix(".json")) as out:
        out.write("[")
        for number, (row_names, text) in enumerate(_iter_json(rows)):
            names.update(dict.fromkeys(row_names))
            out.write((",\n" if number else "") + text)
        out.write("]\n")
    with open_for_writing(path.with_suffix(".csv")) as out:
        csv.writer(out).writerow(names)
        _write_csv_rows(out, rows, list(names))


def write_unit_rows(folder: Path, rows: Iterable[RunRow]) -> None:
    """Write the rows that results are computed from into the folder of a run: as JSON and CSV, or many as columns."""
    if isinstance(rows, UnitRows) and len(rows) > MAX_PLAIN_ROWS:
        _write_columns(folder / COLUMNS_FILE, rows)
    else:
        write_rows(folder / "units", rows)


def find_units_file(folder: Path) -> Path:
    """Return the file with the rows of a run's results: ``units.npz`` or ``units.json``."""
    path = folder / COLUMNS_FILE
    return path if path.is_file() else folder / "units.json"


def read_unit_rows(folder: Path) -> UnitRows | list[dict[str, Any]]:
    """Return the rows that the results of a run are computed from.

    Raises:
        StoreError: They cannot be read, or are damaged.
    """
    path = find_units_file(folder)
    if path.name == COLUMNS_FILE:
        return read_unit_columns(path)
    try:
        # Sentences may hold lone surrogates, which runs are saved with.
        rows = json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
    # Nested brackets by the thousand raise RecursionError.
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"cannot read {path}: {error}") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise StoreError(f"cannot read {path}: it is no list of rows")
    return rows


def read_unit_columns(path: Path) -> UnitRows:
    """Return the rows of a file of columns, ``units.npz``.

    Raises:
        StoreError: It cannot be read, or is damaged.
    """
    try:
        return _read_columns(path)
    # Whatever it is that a damaged file, or one of a stranger, holds.
    except (*_DAMAGE_ERRORS, BadZipFile, RecursionError) as error:
        raise StoreError(f"cannot read {path}: {to_one_line(str(error))}") from error


def write_unit_csv(folder: Path, path: Path) -> int:
    """Write the rows that the results of a run are computed from as CSV, and return their number.

    Args:
        folder: The folder of the run.
        path: The file.
    """
    rows = read_unit_rows(folder)
    names = rows.names if isinstance(rows, UnitRows) else dict.fromkeys(name for row in rows for name in row)
    try:
        with open_for_writing(path) as out:
            csv.writer(out).writerow(names)
            _write_csv_rows(out, rows, list(names))
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}") from error
    return len(rows)


# The arrays of units.npz: "parts", a JSON text that describes each result, and for each of these, by its number and by
# that of the column or tag, "0/column/1", "0/unit/…" and "0/tag/2/…". (Names might hold what no file name can.)


def _write_columns(path: Path, rows: UnitRows) -> None:
    # Any, since NumPy has other arguments of this function besides the arrays.
    arrays: dict[str, Any] = {}
    parts: list[dict[str, object]] = []
    for number, (units, about) in enumerate(rows.parts):
        if not all(np.isfinite(column).all() for column in units.columns.values()):
            raise ValueError("a row of a result has a number that is not finite")
        # The results of several models are of the same rows, which are written once.
        same = next((n for n, (other, _) in enumerate(rows.parts[:number]) if _have_same_rows(other, units)), None)
        tags = list(dict.fromkeys(chain.from_iterable(units.tags))) if same is None else []
        part = {"about": dict(about), "rows": len(units), "columns": list(units.columns), "tags": tags, "same": same}
        parts.append(part)
        arrays |= {f"{number}/column/{index}": column for index, column in enumerate(units.columns.values())}
        if same is None:
            arrays |= _join_texts(f"{number}/unit", units.ids)
            for index, tag in enumerate(tags):
                values, codes = units.encode_tag(tag)
                arrays |= _join_texts(f"{number}/tag/{index}", values)
                arrays[f"{number}/tag/{index}/codes"] = shrink_integers(codes)
    arrays["parts"] = np.frombuffer(json.dumps(parts, allow_nan=False).encode(), dtype=np.uint8)
    with path.open("wb") as out:
        # Not compressed: that would take longer than everything else that a command does with stored scores.
        np.savez(out, **arrays)


def _have_same_rows(first: Units, second: Units) -> bool:
    return len(first) == len(second) and first.ids == second.ids and first.tags == second.tags


def _join_texts(name: str, texts: Iterable[str]) -> dict[str, NDArray[Any]]:
    column = TextColumn.build(texts)
    return {f"{name}/bytes": column.content, f"{name}/ends": column.ends}


def _read_columns(path: Path) -> UnitRows:
    with ZipFile(path) as archive:
        # A run may come from somebody else, and a few compressed bytes may expand to fill the memory.
        if any(member.compress_type != ZIP_STORED for member in archive.infolist()):
            raise ValueError("it is compressed")
    parts: list[tuple[Units, RunRow]] = []
    with np.load(path, allow_pickle=False) as arrays:
        for number, part in enumerate(json.loads(arrays["parts"].tobytes())):
            names = [f"{number}/column/{index}" for index in range(len(part["columns"]))]
            columns = dict(zip(part["columns"], (np.asarray(arrays[name], np.float64) for name in names), strict=True))
            same = part["same"]
            if not all(isinstance(name, str) for name in (*part["about"], *part["columns"], *part["tags"])):
                raise ValueError("a name is no text")
            ids, tags = _read_names(arrays, number, part) if same is None else _take_names(parts[:number][same])
            if any(column.shape != (len(ids),) or not np.isfinite(column).all() for column in columns.values()):
                raise ValueError("a column has another length, or a number that is not finite")
            parts.append((Units(ids, columns, tags), dict(part["about"])))
    return UnitRows(parts)


def _take_names(part: tuple[Units, RunRow]) -> tuple[tuple[str, ...], tuple[Tags, ...]]:
    return part[0].ids, part[0].tags


def _read_names(
    arrays: Mapping[str, NDArray[Any]], number: int, part: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[Tags, ...]]:
    """Return the ids and the tags of the rows of a result."""
    ids, names, columns = _split_texts(arrays, f"{number}/unit"), part["tags"], list[list[str | None]]()
    for index in range(len(names)):
        # The last value is that of the code -1, of a row without the tag.
        values: list[str | None] = [*_split_texts(arrays, f"{number}/tag/{index}"), None]
        codes = arrays[f"{number}/tag/{index}/codes"]
        if codes.shape != (len(ids),) or (len(codes) and int(codes.min()) < -1):
            raise ValueError("a tag has no value for each row")
        columns.append(list(map(values.__getitem__, codes.tolist())))
    if not columns:
        return tuple(ids), ({},) * len(ids)
    rows = zip(*columns, strict=True)
    if any(None in column for column in columns):
        return tuple(ids), tuple(
            {name: cell for name, cell in zip(names, cells, strict=True) if cell is not None} for cells in rows
        )
    return tuple(ids), tuple(dict(zip(names, cells, strict=True)) for cells in rows)


def _split_texts(arrays: Mapping[str, NDArray[Any]], name: str) -> list[str]:
    content, ends = arrays[f"{name}/bytes"], arrays[f"{name}/ends"]
    # The boundaries of a damaged file might lead anywhere.
    if ends[0] != 0 or ends[-1] != len(content) or (np.diff(ends.astype(np.int64)) < 1).any():
        raise ValueError(f"the texts of {name} do not end where they should")
    return list(TextColumn(content, ends))


def _iter_json(rows: Iterable[RunRow]) -> Iterator[tuple[Iterable[str], str]]:
    """Yield rows as JSON with the names of their columns; rows that have the same columns are joined by newlines."""
    if isinstance(rows, UnitRows):
        for table in rows.iter_tables():
            yield table.names, ",\n".join(table.iter_json())
    else:
        yield from ((row, to_json(row)) for row in rows)


def _write_csv_rows(out: TextIO, rows: Iterable[RunRow], names: list[str]) -> None:
    if not isinstance(rows, UnitRows):
        csv.DictWriter(out, names, restval="").writerows(rows)
        return
    for table in rows.iter_tables():
        if table.names == names:
            out.write("".join(table.iter_csv()))
            continue
        # A column that rows lack is that of an empty cell, which every row has at its end.
        index_of = {name: index for index, name in enumerate(table.names)}
        pick = itemgetter(*(index_of.get(name, -1) for name in names))
        csv.writer(out).writerows(pick((*cells, "")) for cells in table.iter_cells())


def open_for_writing(path: Path) -> TextIO:
    """Open a text file for writing."""
    # File names that are not UTF-8 reach us with half surrogate pairs, which UTF-8 cannot encode. Escaped with a
    # backslash, they are also valid JSON.
    return path.open("w", encoding="utf-8", errors="backslashreplace", newline="")


def to_json(content: object, indent: int | None = None) -> str:
    """Return JSON with readable Unicode; a NaN, which JSON does not have, is an error."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=indent)
