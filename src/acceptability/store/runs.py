"""Runs: what a command computed, in a folder of its own, as JSON and CSV.

``ACCEPTABILITY_HOME/runs/ID/`` holds ``run.json`` (what was asked, when, by which version,
and the signatures), ``results`` and ``units`` (the rows that the results rest on).
"""

from __future__ import annotations

import csv
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from acceptability import __version__
from acceptability.errors import StoreError
from acceptability.home import home
from acceptability.types import Result, Units

Row = Mapping[str, object]


@dataclass(frozen=True)
class Run:
    """A saved run."""

    id: str
    command: str
    arguments: str
    made: str
    version: str
    results: int
    signatures: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        return runs_folder() / self.id


def runs_folder() -> Path:
    """Return the folder of all runs."""
    return home() / "runs"


def save_run(command: str, arguments: str, rows: Sequence[Row], units: Iterable[Row], signatures: Iterable[str]) -> Run:
    """Save what a command computed, and return the run with its new id."""
    now = datetime.now(UTC)
    name = f"{now:%Y%m%d-%H%M%S-%f}-{command}-{secrets.token_hex(2)}"
    run = Run(name, command, arguments, now.isoformat(timespec="seconds"), __version__, len(rows), tuple(signatures))
    draft = runs_folder() / f".{name}.{os.getpid()}"
    try:
        draft.mkdir(parents=True)
        about = dict(vars(run).items())
        _write_json(draft / "run.json", about, indent=1)
        _write(draft / "results", rows)
        _write(draft / "units", list(units))
        draft.rename(run.folder)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise StoreError(
            f"cannot save the run in {runs_folder()}: {error.strerror}. Check that the folder can be "
            "written to and has space, or name another in ACCEPTABILITY_HOME."
        ) from error
    return run


def saved_runs() -> tuple[list[Run], list[str]]:
    """Return every saved run, the oldest first, and what is wrong with those that cannot be read."""
    runs, problems = [], []
    for path in sorted(runs_folder().glob("[!.]*/run.json")):
        try:
            runs.append(_read(path))
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            problems.append(f"the run {path.parent} cannot be read ({error}); delete its folder if it is damaged")
    return runs, problems


def _read(path: Path) -> Run:
    about = json.loads(path.read_text(encoding="utf-8"))
    run = Run(**about | {"signatures": tuple(about["signatures"])})
    # Its files are looked for, and its report is written, under the id: it must not lead elsewhere.
    if run.id != path.parent.name:
        raise ValueError(f"its id is {run.id!r}")
    return run


def unit_rows(results: Iterable[Result]) -> list[Row]:
    """Return the rows that ungrouped results rest on, flat."""
    return [
        row
        for result in results
        if result.units is not None and result.group is None
        for row in rows_of_units(
            result.units,
            {"suite": result.suite, "measure": result.measure, "model": result.model, "reduction": result.reduction},
        )
    ]


def rows_of_units(units: Units, about: Row) -> list[Row]:
    """Return units as flat rows, each with what is said about all of them."""
    return [
        {**about, "unit": name}
        | {column: float(values[place]) for column, values in units.columns.items()}
        | {f"tag/{tag}": value for tag, value in units.tags[place].items()}
        for place, name in enumerate(units.ids)
    ]


def _write(path: Path, rows: Sequence[Row]) -> None:
    """Write rows twice: NAME.json and NAME.csv."""
    _write_json(path.with_suffix(".json"), rows)
    header = list(dict.fromkeys(name for row in rows for name in row))
    with path.with_suffix(".csv").open("w", encoding="utf-8", errors="backslashreplace", newline="") as out:
        writer = csv.DictWriter(out, header, restval="")
        writer.writeheader()
        writer.writerows(rows)


def _write_json(path: Path, content: object, indent: int | None = None) -> None:
    """Write JSON; half of a surrogate pair, as in the name of a file, is written as JSON escapes it."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=indent)
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
