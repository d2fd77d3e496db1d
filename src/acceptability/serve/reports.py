"""The report of a run: a page of its own, which opens without the server too."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from acceptability.errors import StoreError
from acceptability.report.page import Section, write_page
from acceptability.store.runs import Run
from acceptability.types import Result

_NAMES = ("measure", "model", "reduction", "suite", "group", "value", "low", "high", "n", "signature")


def report_of(run: Run) -> Path:
    """Return the page of a run's results, which is written when it is first asked for."""
    path = run.folder / "report.html"
    if path.exists():
        return path
    results = results_of(run)
    measures = dict.fromkeys((each.measure, bool(each.group)) for each in results)
    sections = [
        Section(
            f"{measure}{', by group' if grouped else ''}",
            [each for each in results if each.measure == measure and bool(each.group) == grouped],
        )
        for measure, grouped in measures
    ]
    return write_page(path, ", ".join(dict.fromkeys(each.suite for each in results)), sections, lead=run.arguments)


def rows_of(run: Run, what: str) -> list[dict[str, Any]]:
    """Return the rows that a run saved: its "results", or the "units" they rest on."""
    path = run.folder / f"{what}.json"
    try:
        rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
    except (OSError, ValueError) as error:
        raise StoreError(f"the run {run.id} is damaged: {path.name} cannot be read ({error}). Run it again.") from error
    return rows


def has_report(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether rows are results of measures, which a report can show."""
    return bool(rows) and all(set(_NAMES) <= row.keys() for row in rows)


def results_of(run: Run) -> list[Result]:
    """Return the results of a run, without the rows behind them."""
    rows = rows_of(run, "results")
    if not has_report(rows):
        raise StoreError(f"the run {run.id} ({run.command}) has no results of measures to report")
    return [Result(**{name: row[name] for name in _NAMES}, reason=row["reason"], notes=_notes(row)) for row in rows]


def _notes(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(filter(None, str(row.get("notes") or "").split("; ")))
