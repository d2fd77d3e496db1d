"""Scores in a file: a user's own, or published ones. CSV, TSV or JSONL.

The columns ``sentence_id`` and ``score``, and perhaps ``model``; other names are given as
``{"id": "gramm_id", "score": "slor_zscores_gramm"}``. A file with one row a pair is read
twice, once for each member; then a sentence may come again, with the same score. An
empty field is a missing score: a note says how many there are, and a measure that needs
one of them is an error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from acceptability.errors import ScoreError, SuiteError, suggestion
from acceptability.models.files import file_hash
from acceptability.suites.tables import rows_of
from acceptability.text import as_number
from acceptability.types import Scores, Suite

_MEANINGS = ("id", "score", "model")


def read_scores(path: Path, suite: Suite, columns: Sequence[Mapping[str, str]] = ({},)) -> list[Scores]:
    """Return the scores in a file, one ``Scores`` for each model it names.

    Args:
        columns: One reading of the file each: which column holds the id, the score, the model.
    """
    found: dict[str, dict[str, tuple[float, int]]] = {}
    empty = sum(_read(path, suite, named, found, may_repeat=len(columns) > 1) for named in columns or ({},))
    if not found:
        raise ScoreError(f"{path} has no scores")
    notes = (f"{empty} rows of {path.name} have no score",) if empty else ()
    content = file_hash(path)
    return [
        Scores(
            {key: score for key, (score, _) in rows.items()},
            model,
            signature=f"file:{path.name}@{content}{_shown(columns)}:{model}",
            notes=notes,
        )
        for model, rows in found.items()
    ]


def _shown(columns: Sequence[Mapping[str, str]]) -> str:
    named = "+".join(",".join(f"{meaning}={column}" for meaning, column in each.items()) for each in columns)
    return f"({named})" if named else ""


def _read(
    path: Path,
    suite: Suite,
    named: Mapping[str, str],
    found: dict[str, dict[str, tuple[float, int]]],
    *,
    may_repeat: bool,
) -> int:
    """Add what one reading of the file gives; return how many rows have no score."""
    try:
        header, rows = rows_of(path)
    except SuiteError as error:
        raise ScoreError(str(error)) from error
    place = _columns(path, header, named)
    named_by = path.stem if may_repeat else named.get("score", path.stem)
    empty = 0
    for line, row in rows:
        where = f"{path}, line {line}"
        key, cell = _string(row.get(place["id"])), row.get(place["score"])
        _check_known(key, suite, where)
        if cell is None or cell == "":
            empty += 1
            continue
        score = _score(cell, where)
        model = _string(row.get(place["model"])) if "model" in place else named_by
        given = found.setdefault(model, {})
        if key in given and not (may_repeat and given[key][0] == score):
            raise ScoreError(
                f"{where}: sentence {key!r} has a score already in line {given[key][1]}"
                + (f", and another one: {given[key][0]} against {score}" if may_repeat else "")
            )
        given[key] = score, line
    return empty


def _columns(path: Path, header: Sequence[str], named: Mapping[str, str]) -> dict[str, str]:
    for meaning in named:
        if meaning not in _MEANINGS:
            raise ScoreError(f"no column has the meaning {meaning!r}; the meanings are {', '.join(_MEANINGS)}")
    place = {"id": "sentence_id", "score": "score"} | ({"model": "model"} if "model" in header else {}) | dict(named)
    for meaning, column in place.items():
        if column not in header:
            raise ScoreError(
                f"{path} has no column {column!r} for the {meaning}; it has {', '.join(header) or 'no header'}."
                f"{suggestion(column, header)} Say which it is: --columns {meaning}=NAME"
            )
    return place


def _string(cell: object) -> str:
    return cell if isinstance(cell, str) else "" if cell is None else str(cell)


def _score(cell: object, where: str) -> float:
    score = as_number(cell)
    if score is None:
        raise ScoreError(f"{where}: score is {cell!r}; expected a number, or nothing if there is none")
    if not math.isfinite(score):
        raise ScoreError(f"{where}: score is {cell!r}; expected a finite number")
    return score


def _check_known(key: str, suite: Suite, where: str) -> None:
    if key in suite.by_id:
        return
    sentence, _, region = key.rpartition("#")
    if sentence in suite.by_id and region in suite.by_id[sentence].regions:
        return
    raise ScoreError(f"{where}: suite {suite.name!r} has no sentence with the id {key!r}")
