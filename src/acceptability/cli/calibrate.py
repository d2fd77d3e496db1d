"""``acceptability calibrate``: how well a classifier's probabilities match the shares of acceptable sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from acceptability.api.recalibration import BINS, Calibration, calibrate
from acceptability.cli.console import (
    DEFAULT_READING,
    AddressOption,
    Display,
    EngineOption,
    JsonOption,
    SuiteReading,
    load_cli_engine,
    load_cli_suite,
    make_suite_input,
    print_json,
    print_notes,
    print_signatures,
    print_table,
    record_run,
    show_progress,
    with_display,
    with_reading_options,
)
from acceptability.errors import SpecError
from acceptability.models.kinds import complete_model_spec
from acceptability.report.display_names import NumberFormat
from acceptability.report.text_table import make_table
from acceptability.store.runs import RunInputs


@with_display
@with_reading_options(without=("unit",))
def command(
    model: Annotated[str, typer.Option("--model", "-m", metavar="MODEL", help="A classifier: its folder.")],
    suite: Annotated[
        str | None, typer.Argument(help="The suite or table of labelled sentences to measure the calibration on.")
    ] = None,
    former_suite: Annotated[str | None, typer.Option("--on", hidden=True)] = None,
    fit: Annotated[
        str | None,
        typer.Option("--fit", help="The suite or table to fit the recalibration on. Default: ten folds of SUITE."),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method", help="The recalibration: temperature (temperature scaling) or isotonic (isotonic regression)."
        ),
    ] = "temperature",
    bins: Annotated[int, typer.Option("--bins", help="The number of bins of predicted probabilities.")] = BINS,
    engine: EngineOption = "local",
    address: AddressOption = None,
    reading: SuiteReading = DEFAULT_READING,
    as_json: JsonOption = False,
    *,
    display: Display,
) -> None:
    """Measure the calibration of a classifier, before and after its probabilities are recalibrated."""
    model, on = complete_model_spec(model), _take_former_suite(suite, former_suite)
    runner = load_cli_engine(engine, address)
    measured, fitted_on = load_cli_suite(on, reading), load_cli_suite(fit, reading) if fit else None
    with show_progress() as progress:
        calibration = calibrate(
            measured, model, fit=fitted_on, method=method, bins=bins, engine=runner, progress=progress
        )
    if as_json:
        print_json(calibration.to_dict())
    else:
        header = ["when", "probability", "n", "expected", "observed", "95 % interval"]
        print_table(
            make_table(["error", "before", "after"], list(_iter_error_rows(calibration, display.style))),
            make_table(header, list(_iter_bin_rows(calibration, display.style)), keys=2),
        )
    print_notes(_describe(calibration))
    print_signatures([calibration.signature], display)
    pairs = ((measured, on), (fitted_on, fit))
    given = [make_suite_input(suite, name, reading) for suite, name in pairs if suite and name]
    record_run("calibrate", list(calibration.rows()), [calibration.signature], inputs=RunInputs(given, [model]))


def _take_former_suite(suite: str | None, former: str | None) -> str:
    """Return the suite; one of ``--on``, which the version before had, is reported."""
    if suite and former:
        raise SpecError(f"a suite is given twice, as {suite!r} and as --on {former}: remove one")
    if former:
        print_notes([f"write `acceptability calibrate {former} …`; --on will be refused from the next release"])
    if not (suite or former):
        raise SpecError("which suite? Name it: acceptability calibrate SUITE --model classifier:FOLDER")
    return str(suite or former)


def _iter_error_rows(calibration: Calibration, style: NumberFormat) -> Iterator[list[str]]:
    decimals = NumberFormat(style.digits)
    names = {
        "ece_width": "ECE, bins of equal width",
        "ece_mass": "ECE, bins of equal mass",
        "brier": "Brier score",
    }
    both = calibration.before, calibration.after
    for name, title in names.items():
        yield [title, *(decimals.number(getattr(errors, name)) for errors in both)]
    yield ["RMS calibration error, debiased", *(decimals.number(errors.debiased.value) for errors in both)]
    intervals = (decimals.interval(errors.debiased.low, errors.debiased.high) for errors in both)
    yield ["  its 95 % interval", *intervals]


def _iter_bin_rows(calibration: Calibration, style: NumberFormat) -> Iterator[list[object]]:
    """Yield the rows of the reliability table: bins of equal width, before and after."""
    # Both tables have the same bins, but other sentences in them: recalibration moves probabilities.
    for when, table in (("before", calibration.before.width), ("after", calibration.after.width)):
        for reliability_bin in table:
            yield [
                when,
                f"{reliability_bin.low:.2f} to {reliability_bin.high:.2f}",
                reliability_bin.n,
                style.number(reliability_bin.expected),
                style.number(reliability_bin.observed),
                style.interval(reliability_bin.observed_low, reliability_bin.observed_high),
            ]


def _describe(calibration: Calibration) -> Iterator[str]:
    if calibration.temperature is not None:
        folds = ""
        if calibration.temperatures:
            folds = f" (folds: {min(calibration.temperatures):.4g} to {max(calibration.temperatures):.4g})"
        yield f"temperature, fitted on all of {calibration.fit}: {calibration.temperature:.4g}{folds}"
        # Four digits, as they are printed: the spec that is copied from here has to be the one that is in signatures.
        reduction = f"p_acceptable(temperature={float(f'{calibration.temperature:.4g}')!r})"
        yield f"use it as --reduce '{reduction}', or in signed_confidence"
    error = calibration.before.debiased
    yield f"RMS calibration error: {error.method}, {error.resamples:,} resamples; intervals of shares: Wilson"
    yield from calibration.notes
