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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

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
    """Save what a command computed, and return the run with its new id.

    Args:
        units: The rows that the results rest on; they are gone through several times.
    """
    now = datetime.now(UTC)
    name = f"{now:%Y%m%d-%H%M%S-%f}-{command}-{secrets.token_hex(2)}"
    run = Run(name, command, arguments, now.isoformat(timespec="seconds"), __version__, len(rows), tuple(signatures))
    draft = runs_folder() / f".{name}.{os.getpid()}"
    try:
        draft.mkdir(parents=True)
        with _opened(draft / "run.json") as out:
            out.write(_as_json(dict(vars(run).items()), indent=1))
        _write(draft / "results", rows)
        _write(draft / "units", units)
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


@dataclass(frozen=True)
class UnitRows:
    """The rows that results rest on, flat, each made when it is asked for: there may be millions."""

    parts: Sequence[tuple[Units, Row]]

    def __iter__(self) -> Iterator[Row]:
        """Yield each row, with what is said about all of its kind."""
        for units, about in self.parts:
            for place, name in enumerate(units.ids):
                columns = {column: float(values[place]) for column, values in units.columns.items()}
                yield {
                    **about,
                    "unit": name,
                    **columns,
                    **{f"tag/{tag}": said for tag, said in units.tags[place].items()},
                }


def unit_rows(results: Iterable[Result]) -> UnitRows:
    """Return the rows that ungrouped results rest on."""
    about = ("suite", "measure", "model", "reduction")
    return UnitRows(
        [
            (result.units, {name: getattr(result, name) for name in about})
            for result in results
            if result.units is not None and result.group is None
        ]
    )


def _write(path: Path, rows: Iterable[Row]) -> None:
    """Write rows twice, one after another: NAME.json and NAME.csv."""
    names: dict[str, None] = {}
    with _opened(path.with_suffix(".json")) as out:
        out.write("[")
        for number, row in enumerate(rows):
            names.update(dict.fromkeys(row))
            out.write((",\n" if number else "") + _as_json(row))
        out.write("]\n")
    with _opened(path.with_suffix(".csv")) as out:
        writer = csv.DictWriter(out, list(names), restval="")
        writer.writeheader()
        writer.writerows(rows)


def _opened(path: Path) -> TextIO:
    """Open a file to write; half of a surrogate pair, as in the name of a file, is written as JSON escapes it."""
    return path.open("w", encoding="utf-8", errors="backslashreplace", newline="")


def _as_json(content: object, indent: int | None = None) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=indent)
