"""Saved runs: the results of a command in a folder of their own, as JSON and CSV.

``ACCEPTABILITY_HOME/runs/ID/`` holds ``run.json`` (the command line, the time, the version and the signatures),
``results`` and ``units`` (the rows that the results are computed from).
"""

from __future__ import annotations

import csv
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from acceptability import __version__
from acceptability.errors import StoreError
from acceptability.paths import home_folder
from acceptability.types import Result, Units

RunRow = Mapping[str, object]


@dataclass(frozen=True)
class SavedRun:
    """A saved run, as ``run.json`` describes it.

    Args:
        id: Its name, which is that of its folder.
        command: The command, such as "evaluate".
        arguments: The whole command line.
        made: The time, in ISO 8601.
        version: The version of this package.
        results: The number of results.
        signatures: Their signatures.
    """

    id: str
    command: str
    arguments: str
    made: str
    version: str
    results: int
    signatures: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return runs_folder() / self.id


def runs_folder() -> Path:
    """Return the folder of all runs."""
    return home_folder() / "runs"


def save_run(
    command: str, arguments: str, rows: Sequence[RunRow], units: Iterable[RunRow], signatures: Iterable[str]
) -> SavedRun:
    """Save the results of a command, and return the run with its new id.

    Args:
        command: The name of the command.
        arguments: The whole command line.
        rows: The results.
        units: The rows that the results are computed from; they are iterated over several times.
        signatures: The signatures of the results.
    """
    now = datetime.now(UTC)
    # In the order of time, and unique: two commands may start in the same microsecond, or a clock may go back.
    name = f"{now:%Y%m%d-%H%M%S-%f}-{command}-{secrets.token_hex(2)}"
    run = SavedRun(
        name, command, arguments, now.isoformat(timespec="seconds"), __version__, len(rows), tuple(signatures)
    )
    # Written under a hidden name and then renamed, so that a killed command leaves no half run that others would list.
    draft = runs_folder() / f".{name}.{os.getpid()}"
    try:
        draft.mkdir(parents=True)
        with _open_for_writing(draft / "run.json") as out:
            out.write(_to_json(dict(vars(run).items()), indent=1))
        _write_rows(draft / "results", rows)
        _write_rows(draft / "units", units)
        draft.rename(run.folder)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise StoreError(
            f"cannot save the run in {runs_folder()}: {error.strerror}. Check that the folder can be "
            "written to and has space, or name another in ACCEPTABILITY_HOME."
        ) from error
    return run


def list_saved_runs() -> tuple[list[SavedRun], list[str]]:
    """Return all saved runs, the oldest first, and a message for each that cannot be read."""
    runs, problems = [], []
    for path in sorted(runs_folder().glob("[!.]*/run.json")):
        try:
            runs.append(_read_run(path))
        # One damaged run must not hide all others. Nested brackets by the thousand raise RecursionError.
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            problems.append(f"the run {path.parent} cannot be read ({error}); delete its folder if it is damaged")
    return runs, problems


def _read_run(path: Path) -> SavedRun:
    """Return the run that a ``run.json`` describes."""
    fields = json.loads(path.read_text(encoding="utf-8"))
    run = SavedRun(**fields | {"signatures": tuple(fields["signatures"])})
    # The id becomes a path when its files are read and its report is written. One like "../x" must not lead elsewhere.
    if run.id != path.parent.name:
        raise ValueError(f"its id is {run.id!r}")
    return run


@dataclass(frozen=True)
class UnitRows:
    """The rows that results are computed from, as flat records.

    Records are made during iteration and not kept, since there may be millions of them.

    Args:
        parts: The units of each result, with the columns that all of its records share.
    """

    parts: Sequence[tuple[Units, RunRow]]

    def __iter__(self) -> Iterator[RunRow]:
        """Yield the record of each row."""
        for units, about in self.parts:
            for row_index, name in enumerate(units.ids):
                columns = {column: float(values[row_index]) for column, values in units.columns.items()}
                yield {
                    **about,
                    "unit": name,
                    **columns,
                    **{f"tag/{tag}": value for tag, value in units.tags[row_index].items()},
                }


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


def _write_rows(path: Path, rows: Iterable[RunRow]) -> None:
    """Write rows to NAME.json and NAME.csv."""
    # Row by row, and twice over the rows: the columns of the CSV are known only after a first pass, and a list of all
    # records would fill the memory. A dict keeps the columns in order.
    names: dict[str, None] = {}
    with _open_for_writing(path.with_suffix(".json")) as out:
        out.write("[")
        for number, row in enumerate(rows):
            names.update(dict.fromkeys(row))
            out.write((",\n" if number else "") + _to_json(row))
        out.write("]\n")
    with _open_for_writing(path.with_suffix(".csv")) as out:
        writer = csv.DictWriter(out, list(names), restval="")
        writer.writeheader()
        writer.writerows(rows)


def _open_for_writing(path: Path) -> TextIO:
    """Open a text file for writing."""
    # File names that are not UTF-8 reach us with half surrogate pairs, which UTF-8 cannot encode. Escaped with a
    # backslash, they are also valid JSON.
    return path.open("w", encoding="utf-8", errors="backslashreplace", newline="")


def _to_json(content: object, indent: int | None = None) -> str:
    """Return JSON with readable Unicode; a NaN, which JSON does not have, is an error."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=indent)
