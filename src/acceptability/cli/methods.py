"""``acceptability methods``: the five methods on one suite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from acceptability.cli.probe import Csv, Factors, Limit
from acceptability.cli.shown import (
    By,
    Json,
    Marks,
    Models,
    ResampleBy,
    Resamples,
    Seed,
    SuiteColumns,
    arguments,
    bootstrap,
    loaded_suite,
    print_json,
    print_rows,
    progress_bar,
    saved,
    talk,
)
from acceptability.methods import Cell, five_methods, planned
from acceptability.report.rows import check_rows_file, write_sheet
from acceptability.store.runs import save_run


def command(
    suite: Annotated[str, typer.Argument(help="A suite of the catalog, or a file: labels, and items or contrasts.")],
    model: Models,
    by: By = None,
    factor: Factors = None,
    cloze: Annotated[
        str | None, typer.Option("--cloze", help="A suite of pairs that differ in one word; by default SUITE.")
    ] = None,
    probe_on: Annotated[
        str | None, typer.Option("--probe-on", help="A suite whose tags are factors; by default SUITE.")
    ] = None,
    layer: Annotated[int, typer.Option("--layer", help="The layer that is probed; -1 is the last.")] = -1,
    limit: Limit = None,
    resamples: Resamples = 1000,
    resample_by: ResampleBy = "",
    seed: Seed = 0,
    columns: SuiteColumns = None,
    marks: Marks = None,
    csv: Csv = None,
    as_json: Json = False,
) -> None:
    """Judge models by five methods: Boolean, absolute pair, gradient pair, cloze, and feature probing."""
    if csv:
        check_rows_file(csv)
    plan = planned(
        loaded_suite(suite, columns, marks),
        cloze=loaded_suite(cloze) if cloze else None,
        probed=loaded_suite(probe_on) if probe_on else None,
        factors=factor or (),
        by=by,
        layer=layer,
        limit=limit,
        seed=seed,
        bootstrap=bootstrap(resamples, resample_by, seed),
    )
    with progress_bar() as progress:
        cells = five_methods(plan, model, progress)
    rows = [each.row() for each in cells]
    if csv:
        write_sheet(csv, rows)
    if as_json:
        print_json(rows)
    else:
        _show(cells)
    saved(save_run("methods", arguments(), rows, [], [each.signature for each in cells if each.signature]))


def _show(cells: Sequence[Cell]) -> None:
    """Print one row a model and group, one column a method; why a method does not apply stands in its cell."""
    found = {(each.model, each.group, each.method): each for each in cells}
    models, groups, methods = (list(dict.fromkeys(names)) for names in zip(*found, strict=True))
    rows = [
        {"model": model, "group": group} | {method: _text(found.get((model, group, method))) for method in methods}
        for model in models
        for group in sorted(groups, key=lambda name: name.startswith("macro("))
    ]
    print_rows(["model", "group", *methods], rows)
    for line in dict.fromkeys(_notes(cells)):
        talk(line)


def _text(each: Cell | None) -> str:
    """Return a value with its interval and the number of its rows; or why there is none."""
    if each is None:
        return "–"
    if each.value is None:
        return f"– {each.reason}"
    bounds = "" if each.low is None or each.high is None else f" [{each.low:.2f}, {each.high:.2f}]"
    return "\n".join(filter(None, (f"{each.value:.3f}{bounds} n {each.n}", each.beside)))


def _notes(cells: Sequence[Cell]) -> Iterator[str]:
    for each in cells:
        yield from (f"{each.method}: {note}" for note in each.notes)
    yield from (each.signature for each in cells if each.signature and each.group == "all")
