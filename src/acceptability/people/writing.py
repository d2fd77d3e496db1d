"""Ratings and choices as tables: rows for JSON, and files that load again as suites."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from acceptability.errors import ReportError
from acceptability.people.ratings import Ratings

_DELIMITERS = {".csv": ",", ".tsv": "\t"}


def rating_rows(ratings: Ratings) -> list[dict[str, object]]:
    """Return a row a sentence: id, text, label (where there is one), rating, sd, n, low, high, unit; then its tags.

    A tag that has the name of one of these columns gets ``tag_`` before it.
    """
    has_labels = any(each.sentence.label is not None for each in ratings.rows)
    rows: list[dict[str, object]] = []
    for each in ratings.rows:
        row: dict[str, object] = {"id": each.sentence.id, "text": each.sentence.text}
        row |= {"label": each.sentence.label} if has_labels else {}
        row |= {"rating": each.mean, "sd": each.sd, "n": each.n, "low": each.low, "high": each.high}
        row |= {"rating_unit": ratings.unit}
        rows.append(row | {f"tag_{name}" if name in row else name: tag for name, tag in each.sentence.tags.items()})
    return rows


def write_rows(rows: Sequence[Mapping[str, object]], path: Path) -> None:
    """Write rows as CSV, TSV or JSONL, by the file's ending."""
    ending = path.suffix.lower()
    if ending not in (*_DELIMITERS, ".jsonl"):
        raise ReportError(f"cannot write {path}: expected one of the endings .csv, .tsv, .jsonl")
    header = list(dict.fromkeys(name for row in rows for name in row))
    try:
        with path.open("w", encoding="utf-8", newline="") as out:
            if ending == ".jsonl":
                out.writelines(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
                return
            writer = csv.DictWriter(out, header, restval="", delimiter=_DELIMITERS[ending], lineterminator="\n")
            writer.writeheader()
            writer.writerows({name: "" if cell is None else cell for name, cell in row.items()} for row in rows)
    except OSError as error:
        raise ReportError(f"cannot write {path}: {error.strerror}") from error
