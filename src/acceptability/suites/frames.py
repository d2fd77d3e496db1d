"""Suites from pandas: a data frame or a series of sentences, read by the rules for tables.

pandas is not imported: frames are recognised by where their class comes from, so that this costs nothing without them.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from acceptability.errors import SuiteError
from acceptability.suites.table_files import ParsedTable, TableOptions
from acceptability.suites.tables import build_suite
from acceptability.types import Suite


def is_pandas(value: object, kind: str) -> bool:
    """Tell whether a value is a pandas object of a class, ``DataFrame`` or ``Series``, or of one derived from it.

    >>> is_pandas("text", "Series")
    False
    """
    return any(base.__name__ == kind and base.__module__.partition(".")[0] == "pandas" for base in type(value).__mro__)


def read_frame(frame: Any, name: str, columns: Mapping[str, str]) -> Suite:
    """Return the suite in a data frame.

    Args:
        frame: A pandas data frame.
        name: The name of the suite.
        columns: The frame's column names by their meaning, such as ``{"good": "g"}``.
    """
    if not is_pandas(frame, "DataFrame"):
        raise SuiteError(f"from_frame: expected a pandas DataFrame, and this is {type(frame).__name__}")
    header, rows = list_frame_rows(frame)
    table = ParsedTable("the data frame", header, list(rows), row_word="row")
    return build_suite(name, table, TableOptions(columns=columns))


def list_frame_rows(frame: Any) -> tuple[list[str], list[tuple[int, dict[str, Any]]]]:
    """Return the column names of a data frame, and its rows with their numbers from 1, as those of a file."""
    header = [str(column) for column in frame.columns]
    if len(set(header)) < len(header):
        raise SuiteError(f"the data frame has two columns of the same name: {', '.join(header)}")
    # Positions rather than labels: the index of a filtered frame has gaps, and that of a merged one repeats.
    rows = [
        (number, dict(zip(header, map(_convert, cells), strict=True)))
        for number, cells in enumerate(frame.itertuples(index=False, name=None), start=1)
    ]
    return header, rows


def hash_frame(frame: Any) -> str:
    """Return a hash of the names and cells of a data frame, by which signatures tell it from others."""
    header, rows = list_frame_rows(frame)
    content = json.dumps([header, [[str(cell) for cell in row.values()] for _, row in rows]])
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _convert(cell: Any) -> object:
    """Return a cell as a table has it: missing values as None, numbers of NumPy as Python's."""
    # An array has no single value; a list of ids is one already.
    if hasattr(cell, "tolist"):
        cell = cell.tolist()
    if isinstance(cell, float) and math.isnan(cell):
        return None
    # A column of whole numbers with gaps is one of floats in pandas: 3.0 would be a tag "3.0".
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    # pandas.NA and NaT, which equal nothing, not even themselves; NA refuses to be a truth value.
    return None if type(cell).__name__ in ("NAType", "NaTType") else cell
