"""``acceptability calibrate``: whether a classifier's probabilities mean what they say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from acceptability.calibrating import BINS, Calibration, calibrate
from acceptability.cli.shown import (
    Address,
    EngineName,
    Json,
    arguments,
    chosen_engine,
    print_json,
    print_rows,
    progress_bar,
    saved,
    talk,
)
from acceptability.store.runs import save_run


def command(
    model: Annotated[str, typer.Option("--model", "-m", help="A classifier: classifier:DIR.")],
    on: Annotated[str, typer.Option("--on", help="The suite or table of labelled sentences to measure on.")],
    fit: Annotated[
        str | None, typer.Option("--fit", help="The suite or table to fit on; without it, ten folds of --on.")
    ] = None,
    method: Annotated[
        str, typer.Option("--method", help="How probabilities are mended: temperature, or isotonic.")
    ] = "temperature",
    bins: Annotated[int, typer.Option("--bins", help="How many bins there are.")] = BINS,
    engine: EngineName = "local",
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Measure a classifier's calibration, before and after its probabilities are mended."""
    runner = chosen_engine(engine, address)
    with progress_bar() as progress:
        found = calibrate(on, model, fit=fit, method=method, bins=bins, engine=runner, progress=progress)
    if as_json:
        print_json(found.told())
    else:
        print_rows(["", "before", "after"], list(_errors(found)))
        print_rows(["when", "probability", "n", "expected", "observed", "95% interval"], list(_bins(found)))
    for line in _about(found):
        talk(line)
    saved(save_run("calibrate", arguments(), list(found.rows()), [], [found.signature]))


def _errors(found: Calibration) -> Iterator[dict[str, object]]:
    names = {
        "ece_width": "ECE, bins of equal width",
        "ece_mass": "ECE, bins of equally many",
        "brier": "Brier score",
    }
    for name, shown in names.items():
        yield {
            "": shown,
            "before": f"{getattr(found.before, name):.4f}",
            "after": f"{getattr(found.after, name):.4f}",
        }


def _bins(found: Calibration) -> Iterator[dict[str, object]]:
    """Yield the reliability table: bins of equal width, before and after."""
    for when, table in (("before", found.before.width), ("after", found.after.width)):
        for each in table:
            yield {
                "when": when,
                "probability": f"{each.low:.2f} to {each.high:.2f}",
                "n": each.n,
                "expected": f"{each.expected:.3f}",
                "observed": f"{each.observed:.3f}",
                "95% interval": f"{each.observed_low:.3f} to {each.observed_high:.3f}",
            }


def _about(found: Calibration) -> Iterator[str]:
    if found.temperature is not None:
        folds = ""
        if found.temperatures:
            folds = f" (folds: {min(found.temperatures):.4g} to {max(found.temperatures):.4g})"
        yield f"temperature, fitted on all of {found.fit}: {found.temperature:.4g}{folds}"
        spelled = f"p_acceptable(temperature={float(f'{found.temperature:.4g}')!r})"
        yield f"use it as --reduce '{spelled}', or in signed_confidence"
    yield from found.notes
    yield found.signature
