"""``acceptability demo``: the starter suite on every model that is installed, and a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from acceptability.cli.report import report_run
from acceptability.cli.shown import Json, arguments, print_json, print_table, progress_bar, saved, talk
from acceptability.measuring import evaluate
from acceptability.models import delivered
from acceptability.report.rows import check_writable
from acceptability.report.table import footnotes, group_table, result_table
from acceptability.store.runs import save_run, unit_rows
from acceptability.suites import load_suite
from acceptability.types import Result

_MEASURES = ("PairAccuracy(ties=0.5)", "PBC()")
_LEAD = (
    "Pair accuracy: how often the better sentence of a minimal pair gets the higher log-probability (a tie counts one "
    "half). PBC: the correlation of log-probabilities with labels."
)


def command(
    page: Annotated[Path, typer.Option("--page", help="Where to write the page.")] = Path("acceptability-demo.html"),
    as_json: Json = False,
) -> None:
    """Show the main job, offline: minimal pairs, models, numbers with intervals, and a page."""
    check_writable(page)
    suite = load_suite("starter")
    talk(f"suite: starter, {len(suite.contrasts)} minimal pairs and {len(suite.sentences)} sentences of English")
    present = [each for each in delivered().values() if each.is_installed()]
    for each in delivered().values():
        if each in present:
            talk(f"model: {each.name}, {each.about} ({each.licence})")
        else:
            talk(f"model: {each.name} is not installed; to add it: pip install {each.install}")
    results: list[Result] = []
    with progress_bar() as progress:
        for each in reversed(present):
            results += evaluate(suite, [each.name], measures=_MEASURES, by="phenomenon", progress=progress)
    overall = [result for result in results if result.group is None]
    pairs = [result for result in results if result.measure == _MEASURES[0] and result.group]
    by_phenomenon = sorted(pairs, key=lambda result: _order(pairs).index(result.group))
    if as_json:
        print_json([result.row() for result in results])
    else:
        print_table(group_table(by_phenomenon, title="Pair accuracy by phenomenon, with 95 % intervals"))
        print_table(result_table(overall, title="All sentences"))
        for note in footnotes(overall):
            talk(note)
    signatures = [result.signature for result in results]
    run = save_run("demo", arguments(), [each.row() for each in results], unit_rows(results), signatures)
    saved(run)
    report_run(page, run, [suite], title="How well do these models know English?", lead=_LEAD)


def _order(results: list[Result]) -> list[str | None]:
    """Return the groups in the order in which they first come."""
    return list(dict.fromkeys(result.group for result in results))
