"""``acceptability methods``: five ways to elicit acceptability from a model, on one suite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from acceptability.cli.console import (
    DEFAULT_READING,
    ByOption,
    Display,
    JsonOption,
    ModelsOption,
    ResampleByOption,
    ResamplesOption,
    SeedOption,
    SuiteReading,
    complete_model_specs,
    load_cli_suite,
    make_bootstrap,
    make_suite_input,
    print_json,
    print_notes,
    print_signatures,
    print_table,
    record_run,
    show_progress,
    with_display,
    with_reading,
)
from acceptability.cli.probe import CsvOption, FactorsOption, LimitOption
from acceptability.papers.npi.five_methods import MethodCell, plan_methods, run_five_methods
from acceptability.report.display_names import NumberFormat, name_groups
from acceptability.report.text_table import make_table
from acceptability.store.runs import RunInputs
from acceptability.text.io import check_rows_file, write_spreadsheet


@with_display
@with_reading
def command(
    suite: Annotated[
        str, typer.Argument(help="A suite of the catalog, or a file, with labels and with items or contrasts.")
    ],
    model: ModelsOption,
    by: ByOption = None,
    factor: FactorsOption = None,
    cloze: Annotated[
        str | None,
        typer.Option("--cloze", help="A suite of pairs that differ in one word, for the cloze method. Default: SUITE."),
    ] = None,
    probe_on: Annotated[
        str | None, typer.Option("--probe-on", help="A suite whose tags are the factors, for probing. Default: SUITE.")
    ] = None,
    layer: Annotated[int, typer.Option("--layer", help="The layer to probe; -1 is the last.")] = -1,
    limit: LimitOption = None,
    resamples: ResamplesOption = 1000,
    resample_by: ResampleByOption = None,
    seed: SeedOption = 0,
    reading: SuiteReading = DEFAULT_READING,
    csv: CsvOption = None,
    as_json: JsonOption = False,
    *,
    display: Display,
) -> None:
    """Evaluate models by five methods: Boolean, absolute pair, gradient pair, cloze, and feature probing."""
    # A file that cannot be written must be reported before the models run.
    if csv:
        check_rows_file(csv)
    model = complete_model_specs(model)
    loaded = load_cli_suite(suite, reading)
    others = {name: load_cli_suite(name) for name in (cloze, probe_on) if name}
    plan = plan_methods(
        loaded,
        cloze_suite=others[cloze] if cloze else None,
        probing_suite=others[probe_on] if probe_on else None,
        factors=factor or (),
        by=by,
        layer=layer,
        limit=limit,
        seed=seed,
        bootstrap=make_bootstrap(resamples, resample_by, seed),
    )
    with show_progress() as progress:
        cells = run_five_methods(plan, model, progress)
    rows = [cell.row() for cell in cells]
    if csv:
        write_spreadsheet(csv, rows)
    if as_json:
        print_json(rows)
    else:
        _print_cells(cells, display)
    given = [make_suite_input(loaded, suite, reading)]
    given += [make_suite_input(other, name) for name, other in others.items()]
    signatures = [cell.signature for cell in cells if cell.signature]
    record_run("methods", rows, signatures, inputs=RunInputs(given, model))


def _print_cells(cells: Sequence[MethodCell], display: Display) -> None:
    """Print a table with a row per model and group and a column per method, and the notes below it."""
    cell_of = {(cell.model, cell.group, cell.method): cell for cell in cells}
    models, groups, methods = (list(dict.fromkeys(names)) for names in zip(*cell_of, strict=True))
    # Stable: the mean over groups comes last, the groups stay in their order.
    groups = sorted(groups, key=lambda name: name.startswith("macro("))
    names = name_groups([None if group == "all" else group for group in groups])
    rows = [
        [model, name, *(_format_cell(cell_of.get((model, group, method)), display.style) for method in methods)]
        for model in models
        for group, name in zip(groups, names, strict=True)
    ]
    print_table(make_table(["model", "group", *methods], rows, keys=2, is_pivot=True))
    print_notes(_iter_notes(cells))
    print_signatures((cell.signature for cell in cells if cell.signature and cell.group == "all"), display)


def _format_cell(cell: MethodCell | None, style: NumberFormat) -> str:
    """Return a value with its interval and number of rows; a dash if the method does not apply, for which see below."""
    if cell is None or cell.value is None:
        return "–"
    decimals = NumberFormat(style.digits)
    interval = decimals.interval(cell.low, cell.high)
    lines = decimals.number(cell.value), "" if interval == "–" else interval, f"n {cell.n:,}", cell.beside
    return "\n".join(filter(None, lines))


def _iter_notes(cells: Sequence[MethodCell]) -> Iterator[str]:
    for cell in cells:
        if cell.value is None and cell.reason:
            yield f"{cell.method}, {cell.model}: {cell.reason}"
        yield from (f"{cell.method}: {note}" for note in cell.notes)
