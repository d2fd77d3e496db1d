"""The report of a run: a page of its own, which opens without the server too."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from acceptability.errors import StoreError
from acceptability.report.again import with_suites
from acceptability.report.gather import gather
from acceptability.report.page import Heading, write_report
from acceptability.serve.working import SENTENCES
from acceptability.store.runs import Run
from acceptability.suites import load_suite

_NAMES = ("measure", "model", "reduction", "suite", "group", "value", "low", "high", "n", "signature")


def report_of(run: Run) -> Path:
    """Return the page of a run's results, which is written when it is first asked for."""
    path = run.folder / "report.html"
    if path.exists():
        return path
    rows = rows_of(run, "results")
    if not has_report(rows):
        raise StoreError(f"the run {run.id} ({run.command}) has no results of measures to report")
    names = list(dict.fromkeys(str(row["suite"]) for row in rows))
    kept = run.folder / SENTENCES
    given = [replace(load_suite(str(kept)), name=name) for name in names] if kept.is_file() else []
    return write_report(path, Heading(", ".join(names), run.arguments), with_suites(gather([str(run.folder)]), given))


def rows_of(run: Run, what: str) -> list[dict[str, Any]]:
    """Return the rows that a run saved: its "results", or the "units" they rest on."""
    path = run.folder / f"{what}.json"
    try:
        rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"the run {run.id} is damaged: {path.name} cannot be read ({error}). Run it again.") from error
    return rows


def has_report(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether rows are results of measures, which a report can show."""
    return bool(rows) and all(set(_NAMES) <= row.keys() for row in rows)
