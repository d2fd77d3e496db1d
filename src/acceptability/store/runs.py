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
        (draft / "run.json").write_text(json.dumps(about, indent=1, ensure_ascii=False), encoding="utf-8")
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
            about = json.loads(path.read_text(encoding="utf-8"))
            runs.append(Run(**about | {"signatures": tuple(about["signatures"])}))
        except (OSError, ValueError, TypeError, KeyError) as error:
            problems.append(f"the run {path.parent} cannot be read ({error}); delete its folder if it is damaged")
    return runs, problems


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
    path.with_suffix(".json").write_text(
        json.dumps(rows, ensure_ascii=False, allow_nan=False), encoding="utf-8", errors="surrogatepass"
    )
    header = list(dict.fromkeys(name for row in rows for name in row))
    with path.with_suffix(".csv").open("w", encoding="utf-8", errors="surrogatepass", newline="") as out:
        writer = csv.DictWriter(out, header, restval="")
        writer.writeheader()
        writer.writerows(rows)
