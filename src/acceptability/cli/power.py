"""``acceptability power``: the power of a comparison of models, and how many items, paradigms or seeds it takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from acceptability.api.significance.planning import (
    INTERVAL,
    PowerRow,
    describe_components,
    estimate_from_run,
    power,
)
from acceptability.cli.console import (
    Display,
    JsonOption,
    print_json,
    print_notes,
    print_signatures,
    print_table,
    record_run,
    with_display,
)
from acceptability.report.text_table import make_table
from acceptability.stats.effects.power import ComparisonDesign, VarianceComponents
from acceptability.stats.effects.power import Progress as ProgressFunction

_DEFAULT_SDS = VarianceComponents()


@with_display
def command(
    items: Annotated[int, typer.Option("--items", help="The number of items (contrasts) in each paradigm.")] = 50,
    paradigms: Annotated[int, typer.Option("--paradigms", help="The number of paradigms.")] = 1,
    seeds: Annotated[int, typer.Option("--seeds", help="The number of seeds that each model is trained from.")] = 1,
    models: Annotated[int, typer.Option("--models", help="How many models are compared, in all pairs.")] = 2,
    accuracy: Annotated[
        float | None,
        typer.Option("--accuracy", help="The true accuracy of the weaker model. Default: .8, or the run's."),
    ] = None,
    difference: Annotated[
        float, typer.Option("--difference", help="How much higher that of the other is; 0 for false alarms.")
    ] = 0.02,
    unit: Annotated[
        str, typer.Option("--unit", help="What the test samples: item, paradigm, seed or paradigm+seed.")
    ] = "item",
    population: Annotated[
        str, typer.Option("--population", help="What the claim is about, if not the unit; it varies in truth.")
    ] = "",
    run: Annotated[
        str | None,
        typer.Option("--run", help="Estimate accuracy and standard deviations from this saved run of two models."),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="A model of the run, if it has more than two. Repeatable.")
    ] = None,
    paradigm_tag: Annotated[
        str, typer.Option("--paradigm-tag", help="The tag of the run that tells paradigms apart.")
    ] = "paradigm",
    sd_paradigm: Annotated[
        float | None, typer.Option("--sd-paradigm", help=f"Between paradigms, in probits ({_DEFAULT_SDS.paradigm:g}).")
    ] = None,
    sd_model_by_paradigm: Annotated[
        float | None,
        typer.Option(
            "--sd-model-by-paradigm", help=f"Of a model in a paradigm, in probits ({_DEFAULT_SDS.model_by_paradigm:g})."
        ),
    ] = None,
    sd_item: Annotated[
        float | None, typer.Option("--sd-item", help=f"Between items, in probits ({_DEFAULT_SDS.item:g}).")
    ] = None,
    sd_seed: Annotated[
        float | None, typer.Option("--sd-seed", help=f"Between seeds, in probits ({_DEFAULT_SDS.seed:g}).")
    ] = None,
    plan: Annotated[
        str, typer.Option("--plan", help="Look for the number of items, paradigms or seeds that reaches --target.")
    ] = "",
    target: Annotated[float, typer.Option("--target", help="The power to reach with --plan.")] = 0.8,
    alpha: Annotated[float, typer.Option("--alpha", help="The significance level.")] = 0.05,
    simulations: Annotated[int, typer.Option("--simulations", help="The number of studies to simulate.")] = 2000,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the simulation.")] = 0,
    as_json: JsonOption = False,
    *,
    display: Display,
) -> None:
    """Estimate the power of a comparison of models by simulation, or the number of items that it takes."""
    notes, components = [], _DEFAULT_SDS
    if run is not None:
        pilot = estimate_from_run(run, models=model or (), paradigm=paradigm_tag)
        components, accuracy = pilot.components, pilot.accuracies[1] if accuracy is None else accuracy
        notes = [
            f"estimated from {pilot.items} items of {pilot.paradigms} paradigms: {pilot.first} "
            f"{pilot.accuracies[0]:.4f}, {pilot.second} {pilot.accuracies[1]:.4f}"
        ]
    given = {"paradigm": sd_paradigm, "model_by_paradigm": sd_model_by_paradigm, "item": sd_item, "seed": sd_seed}
    components = replace(components, **{name: value for name, value in given.items() if value is not None})
    design = ComparisonDesign(
        items, paradigms, seeds, models, 0.8 if accuracy is None else accuracy, difference, components, unit,
        population, alpha,
    )  # fmt: skip
    with _show_simulations() as progress:
        result = power(design, plan=plan, target=target, simulations=simulations, seed=seed, progress=progress)
    if as_json:
        print_json(result.row())
    else:
        _print_result(result, notes, display)
    record_run("power", [result.row()], [result.signature])


def _print_result(result: PowerRow, notes: list[str], display: Display) -> None:
    design, estimate = result.estimate.design, result.estimate
    numbers = ["items", "paradigms", "seeds"]
    header = [*numbers, "accuracy", "difference", "power", "95 % interval"]
    style = display.style
    cells = [*(getattr(design, name) for name in numbers), style.number(design.accuracy)]
    cells += [style.number(design.difference), style.number(estimate.power)]
    print_table(make_table(header, [[*cells, style.interval(estimate.low, estimate.high)]]))
    lines = []
    if result.plan:
        tried = ", ".join(f"{count:,}: {value:.3f}" for count, value in result.plan.tried)
        lines.append(f"the fewest {result.plan.planned} with a power of {result.plan.target:g}; tried: {tried}")
    if design.models > 2:
        lines.append(f"{design.models} models in all pairs; the power is that of one pair")
    kind = "power" if design.difference else "false alarms (the difference is 0)"
    lines.append(f"{kind} of a {design.test}; {estimate.simulations:,} simulated studies; interval: {INTERVAL}")
    print_notes([*lines, *notes, describe_components(design.components), _describe_fixed(design)])
    print_signatures([result.signature], display)


def _describe_fixed(design: ComparisonDesign) -> str:
    sampled = (design.population or design.unit).split("+")
    others = [name for name in ("item", "paradigm", "seed") if name not in sampled]
    if design.population and design.population != design.unit:
        return f"the claim is about other {'s and '.join(sampled)}s, and the test samples {design.unit}s"
    fixed = [f"{name}s" for name in others if name != "item"]
    return f"the claim is about other {'s and '.join(sampled)}s" + (
        f", of these {' and '.join(fixed)}" if fixed else ""
    )


@contextmanager
def _show_simulations() -> Iterator[ProgressFunction]:
    """Show a progress bar on stderr for simulations that take long; yield the function that updates it."""
    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task("simulated studies")
    with bar:
        yield lambda done, total: bar.update(task, completed=done, total=total)
