"""The rows of a saved run, or of a user's table, as columns for a regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from acceptability.errors import StoreError
from acceptability.models.files import hash_file
from acceptability.store.runs import find_run
from acceptability.store.unit_rows import find_units_file, read_unit_rows
from acceptability.suites.table_files import is_table_file, read_rows
from acceptability.text.io import parse_number

# The columns that say which of a run's results a row belongs to: rows of two measures, say, are no single table.
_RESULT_COLUMNS = ("suite", "measure", "reduction")
_TAG = "tag/"

Columns = dict[str, list[Any]]


def read_run_table(source: str, where: Mapping[str, str] | None = None) -> Columns:
    """Return the columns of a table (.csv, .tsv, .jsonl, .parquet), or of the rows that a saved run's results are from.

    A run has a row for each contrast, sentence or other unit and each model: ``model``, ``unit``, the columns of its
    measure (``correct`` and ``gap`` for ``PairAccuracy``), and its tags, such as ``item`` and ``phenomenon``. A column
    whose cells are all numbers is numeric.

    Args:
        source: The path of a table, or a run: its id, "latest" or the path of its folder.
        where: Keep only the rows with these values, by column.

    Raises:
        StoreError: There is no such run or table, no row is left, or rows of several measures are mixed.
    """
    if is_table_file(source):
        rows: Sequence[Mapping[str, Any]] = [row for _, row in read_rows(Path(source))[1]]
    else:
        rows = _read_unit_rows(source)
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name, value in (where or {}).items():
        if name not in names:
            raise StoreError(f"{source} has no column {name!r} for --where; its columns: {', '.join(names)}")
        rows = [row for row in rows if str(row.get(name)) == value]
    if not rows:
        raise StoreError(f"{source} has no rows" + (" with these values of --where" if where else ""))
    if not is_table_file(source):
        _check_one_measure(source, rows)
        names = [name for name in names if any(name in row for row in rows)]
    return {name: _convert([row.get(name) for row in rows]) for name in names}


def sign_run_table(source: str) -> str:
    """Return the name of a table or a run with a hash of its content, for signatures.

    Args:
        source: The path of a table, or a run.
    """
    if is_table_file(source):
        return f"{Path(source).name}@{hash_file(Path(source))}"
    run, folder = find_run(source) or (None, Path(source))
    return f"run {run.id if run else source}@{hash_file(find_units_file(folder))}"


def rename_columns(table: Columns, names: Mapping[str, str]) -> Columns:
    """Return a table whose columns also have other names.

    Args:
        table: The columns.
        names: The names of columns in the table, by the names that a formula or a design gives them.

    Raises:
        StoreError: The table has no such column.

    >>> rename_columns({"RT": [310, 295]}, {"rt": "RT"})
    {'RT': [310, 295], 'rt': [310, 295]}
    """
    if missing := [own for own in names.values() if own not in table]:
        raise StoreError(f"the table has no column {missing[0]!r}; its columns: {', '.join(table)}")
    return table | {name: table[own] for name, own in names.items()}


def _read_unit_rows(source: str) -> list[dict[str, Any]]:
    """Return the rows that a run's results are computed from, with tags under their own names."""
    found = find_run(source)
    if not found:
        raise StoreError(
            f"no run and no table named {source!r}: give a .csv, .tsv, .jsonl or .parquet file, or a run of "
            "`acceptability runs`"
        )
    rows: list[Mapping[str, Any]] = list(read_unit_rows(found[1]))
    # A tag that is named like a column of the run keeps its prefix.
    taken = {name for row in rows for name in row if not name.startswith(_TAG)}
    return [{_strip_tag(name, taken): cell for name, cell in row.items()} for row in rows]


def _strip_tag(name: str, taken: set[str]) -> str:
    short = name.removeprefix(_TAG)
    return name if short in taken else short


def _check_one_measure(source: str, rows: Sequence[Mapping[str, Any]]) -> None:
    for name in _RESULT_COLUMNS:
        values = sorted({str(row.get(name)) for row in rows})
        if len(values) > 1:
            raise StoreError(
                f"{source} has rows of {len(values)} values of {name} ({', '.join(values)}): choose one, such as "
                f"--where {name}={values[0]!r}"
            )


def _convert(cells: list[Any]) -> list[Any]:
    """Return numbers for a column of numbers, otherwise the cells; an empty cell is None."""
    cells = [None if cell == "" else cell for cell in cells]
    numbers = [None if cell is None else parse_number(cell) for cell in cells]
    is_numeric = all((number is None) == (cell is None) for number, cell in zip(numbers, cells, strict=True))
    return numbers if is_numeric else cells
