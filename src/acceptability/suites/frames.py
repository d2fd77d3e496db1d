"""Tables that need a library: Parquet files, and data sets of the Hugging Face Hub.

``hf:owner/name[:config][@revision]`` is read through the library ``datasets``, all of its
splits together, with the tag ``split``; a folder on disk stands in the name's place.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from acceptability.errors import MissingExtra, SuiteError, reason

_MOST_CELLS = 50_000_000
_MOST_BYTES = 1 << 30

Rows = Iterable[tuple[int, Mapping[str, object]]]


def parquet_rows(content: bytes, where: str) -> tuple[list[str], Rows]:
    """Return the names of a Parquet file's columns, and its numbered rows."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise MissingExtra(where, "pyarrow", "'acceptability[data]'") from error
    try:
        about = parquet.ParquetFile(io.BytesIO(content)).metadata
        cells = about.num_rows * about.num_columns
        if cells > _MOST_CELLS:
            raise ValueError(f"it says that it has {cells:,} cells; at most {_MOST_CELLS:,} are read")
        # A text that is repeated is held once, so that its size can be told before it is written out.
        texts = [each.name for each in about.schema if each.physical_type == "BYTE_ARRAY" and "." not in each.path]
        table = parquet.ParquetFile(io.BytesIO(content), read_dictionary=texts).read()
        _check_bytes(table)
        rows = table.to_pylist()
    except (ArrowException, OSError, ValueError, OverflowError) as error:
        raise SuiteError(f"{where} cannot be read as a Parquet file: {reason(error)}") from error
    return list(table.column_names), enumerate((_row(row, "") for row in rows), start=1)


def _check_bytes(table: Any) -> None:
    """Refuse a table whose texts would fill the memory."""
    from pyarrow import compute, types

    size = 0
    for column in table.columns:
        for part in column.chunks if types.is_dictionary(column.type) else ():
            lengths = compute.take(compute.binary_length(part.dictionary), part.indices)
            size += compute.sum(lengths.cast("int64")).as_py() or 0
    if size > _MOST_BYTES:
        raise ValueError(f"its texts have {size:,} bytes; at most {_MOST_BYTES:,} are read")


def hub_rows(name: str) -> tuple[str, list[str], Rows]:
    """Return the last part of a data set's name, the names of its columns, and its numbered rows."""
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra(f"hf:{name}", "the library datasets", "'acceptability[data]'") from error
    place, config, revision = _parts(name)
    if not place:
        raise SuiteError("hf: which data set? Write hf:owner/name, or hf:FOLDER")
    if Path(place).is_dir() and revision:
        raise SuiteError(f"hf:{name}: a folder on disk has no revision")
    try:
        if (Path(place) / "dataset_dict.json").is_file() or (Path(place) / "state.json").is_file():
            found = datasets.load_from_disk(place)
        else:
            found = datasets.load_dataset(place, config, revision=revision)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        raise SuiteError(f"hf:{name} cannot be loaded: {reason(error)}") from error
    splits = dict(found) if isinstance(found, dict) else {"": found}
    rows = [_row(row, str(split) if len(splits) > 1 else "") for split, part in splits.items() for row in part]
    header = list(dict.fromkeys(column for row in rows[:1] for column in row))
    return Path(place).name, header, enumerate(rows, start=1)


def _row(row: Mapping[str, object], split: str) -> Mapping[str, object]:
    """Return a row as a file would have it: NaN is nothing, -1 no label, and ids bear their split."""
    cells = {name: None if isinstance(cell, float) and math.isnan(cell) else cell for name, cell in row.items()}
    if cells.get("label") == -1:
        cells["label"] = None
    if split:
        cells |= {"split": split} | ({"id": f"{split}/{cells['id']}"} if "id" in cells else {})
    return cells


def _parts(name: str) -> tuple[str, str | None, str | None]:
    """Return name, configuration and revision.

    >>> _parts("nyu-mll/blimp:adjunct_island@main")
    ('nyu-mll/blimp', 'adjunct_island', 'main')
    """
    place, _, revision = name.partition("@")
    place, _, config = place.partition(":")
    return place, config or None, revision or None
