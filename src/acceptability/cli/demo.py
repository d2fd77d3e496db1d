"""``acceptability demo``: the starter suite on every model that is installed, with a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from acceptability.api.evaluation import evaluate
from acceptability.cli.console import (
    Display,
    JsonOption,
    print_json,
    print_message,
    print_notes,
    print_signatures,
    print_table,
    record_run,
    show_progress,
    with_display,
)
from acceptability.cli.report import write_run_report
from acceptability.models import list_named_models
from acceptability.report.terminal import build_group_table, build_result_table, collect_footnotes
from acceptability.store.runs import RunInputs, SuiteInput
from acceptability.store.unit_rows import collect_unit_rows
from acceptability.suites import load_suite
from acceptability.text.io import check_writable

_MEASURES = ("PairAccuracy(ties=0.5)", "PBC()")
_LEAD = (
    "Pair accuracy: how often the better sentence of a minimal pair gets the higher log-probability (a tie counts one "
    "half). PBC: the correlation of log-probabilities with labels."
)


@with_display
def command(
    report: Annotated[Path, typer.Option("--report", help="The HTML file for the report.")] = Path(
        "acceptability-demo.html"
    ),
    as_json: JsonOption = False,
    *,
    display: Display,
) -> None:
    """Evaluate the installed models on minimal pairs, offline: tables with intervals, and a report."""
    # A page that cannot be written must be reported before the models run.
    check_writable(report)
    suite = load_suite("starter")
    print_message(
        f"suite: starter, {len(suite.contrasts)} minimal pairs and {len(suite.sentences)} sentences of English"
    )
    installed = [model for model in list_named_models().values() if model.is_installed()]
    for model in list_named_models().values():
        if model in installed:
            print_message(f"model: {model.name}, {model.about} ({model.licence})")
        else:
            print_message(f"model: {model.name} is not installed; to add it: pip install {model.install}")
    # The list of models starts with the best; the tables end with it.
    names = [model.name for model in reversed(installed)]
    with show_progress() as progress:
        results = evaluate(suite, names, measure=_MEASURES, by="phenomenon", progress=progress)
    overall = [result for result in results if result.group is None]
    pairs = [result for result in results if result.measure == _MEASURES[0] and result.group]
    # Results come model by model; in the table, the models of one phenomenon stand below each other.
    groups = list(dict.fromkeys(result.group for result in pairs))
    by_phenomenon = sorted(pairs, key=lambda result: groups.index(result.group))
    if as_json:
        print_json([result.row() for result in results])
    else:
        print_table(
            build_group_table(by_phenomenon, "Pair accuracy by phenomenon, with 95 % intervals", display.style),
            build_result_table(overall, "All sentences", display.style),
        )
        print_notes(collect_footnotes(overall))
        print_signatures((result.signature for result in overall), display)
    signatures = [result.signature for result in results]
    inputs = RunInputs([SuiteInput(suite, "starter")], names)
    run = record_run("demo", [result.row() for result in results], signatures, collect_unit_rows(results), inputs)
    write_run_report(report, run, [suite], title="How well do these models know English?", lead=_LEAD)
