"""Planning a comparison of models: its power, the numbers it takes, and the variation seen in a saved run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from acceptability import __version__
from acceptability.errors import MeasureError, UnknownName
from acceptability.specs import build_signature, format_spec
from acceptability.stats.effects.power import (
    ComparisonDesign,
    PowerEstimate,
    Progress,
    SamplePlan,
    VarianceComponents,
    estimate_components,
    plan_sample_size,
    simulate_comparison_power,
)
from acceptability.store.runs import LATEST, require_run
from acceptability.store.unit_rows import read_unit_rows

INTERVAL = "Clopper-Pearson, of the simulation"


@dataclass(frozen=True)
class PowerRow:
    """The power of a design as a result: for tables, JSON and `acceptability reproduce`.

    Args:
        estimate: The power with its interval.
        signature: What is needed to compute it again.
        plan: If a number was looked for: how it was found.
    """

    estimate: PowerEstimate
    signature: str
    plan: SamplePlan | None = None

    def row(self) -> dict[str, object]:
        """Return the power as one flat row, for JSON and tables."""
        design = self.estimate.design
        numbers = {name: getattr(design, name) for name in _DESIGN_NUMBERS}
        components = {f"sd_{name}": value for name, value in vars(design.components).items()}
        planned: dict[str, object] = {"planned": None, "target": None, "tried": None}
        if self.plan:
            tried = [list(pair) for pair in self.plan.tried]
            planned = {"planned": self.plan.planned, "target": self.plan.target, "tried": tried}
        return {
            "value": self.estimate.power,
            "low": self.estimate.low,
            "high": self.estimate.high,
            "interval": INTERVAL,
            "test": design.test,
            **numbers,
            **components,
            **planned,
            "simulations": self.estimate.simulations,
            "seed": self.estimate.seed,
            "signature": self.signature,
        }


_DESIGN_NUMBERS = ("items", "paradigms", "seeds", "models", "accuracy", "difference", "unit", "population", "alpha")


def power(
    design: ComparisonDesign,
    *,
    plan: str = "",
    target: float = 0.8,
    simulations: int = 2000,
    seed: int = 0,
    progress: Progress | None = None,
) -> PowerRow:
    """Return the power of a comparison of models by simulation, or the smallest number that reaches a power.

    Args:
        design: The numbers of items, paradigms, seeds and models, the difference to find, and what is tested.
        plan: "items", "paradigms" or "seeds": the number to look for; empty for the power of the design as it is.
        target: The power that this number has to reach.
        simulations: The number of studies to simulate, for each number that is tried.
        seed: The seed of the simulation.
        progress: Called with the numbers of simulated studies so far, and in all.

    >>> from acceptability.stats import ComparisonDesign
    >>> result = power(ComparisonDesign(items=300, accuracy=0.7, difference=0.1), simulations=500)
    >>> 0.7 < result.estimate.power < 0.95
    True
    """
    options = {name: getattr(design, name) for name in _DESIGN_NUMBERS} | vars(design.components)
    if plan:
        found = plan_sample_size(design, plan, target=target, simulations=simulations, seed=seed, progress=progress)
        # The number that is looked for is no option of the search.
        del options[plan]
        options |= {"plan": plan, "target": target}
        estimate = found.estimate
    else:
        found = None
        estimate = simulate_comparison_power(design, simulations=simulations, seed=seed, progress=progress)
    fields = {
        "n": str(simulations),
        "ci": "clopper-pearson(0.95)",
        "test": estimate.design.test,
        "seed": str(seed),
        "acceptability": __version__,
    }
    return PowerRow(estimate, build_signature(format_spec("power", options), fields), found)


def power_from_options(options: Mapping[str, Any], *, simulations: int, seed: int) -> PowerRow:
    """Return the power of a design that is given by the options of its signature."""
    names = set(VarianceComponents().__dict__)
    components = VarianceComponents(**{name: value for name, value in options.items() if name in names})
    numbers = {name: value for name, value in options.items() if name in _DESIGN_NUMBERS}
    search = {name: options[name] for name in ("plan", "target") if name in options}
    # A test by paradigms or seeds needs two of them, also where their number is looked for.
    start = {search["plan"]: 2} if search else {}
    design = ComparisonDesign(**{**numbers, **start}, components=components)
    return power(design, **search, simulations=simulations, seed=seed)


@dataclass(frozen=True)
class PilotStudy:
    """What a saved run of two models says about a planned comparison.

    Args:
        first, second: The models, the better one first.
        accuracies: The accuracy of either.
        items: The number of items that both models were given.
        paradigms: The number of paradigms.
        components: The standard deviations that explain their answers.
    """

    first: str
    second: str
    accuracies: tuple[float, float]
    items: int
    paradigms: int
    components: VarianceComponents


def estimate_from_run(
    run: str = LATEST, *, models: Sequence[str] = (), measure: str = "", paradigm: str = "paradigm"
) -> PilotStudy:
    """Return the variance components of two models' right answers in a saved run.

    Args:
        run: The id of a run, its folder, or "latest"; a run of ``evaluate`` or ``compare`` with two models.
        models: The two models by their names in the run, if it has more than two.
        measure: The measure, if the run has several whose rows are right or wrong.
        paradigm: The tag whose values are the paradigms.
    """
    rows = _read_answers(run, measure)
    names = list(dict.fromkeys(str(row["model"]) for row in rows))
    chosen = list(models) or names
    if unknown := [name for name in chosen if name not in names]:
        raise UnknownName("model in the run", unknown[0], names, hint=f"It has {', '.join(names)}.")
    if len(chosen) != 2:
        raise MeasureError(f"the run has {len(names)} models ({', '.join(names)}): name the two to compare")
    answers = {
        name: {str(row["unit"]): float(row["correct"]) for row in rows if row["model"] == name} for name in chosen
    }
    tags = {str(row["unit"]): row.get(f"tag/{paradigm}") for row in rows}
    shared = [unit for unit in answers[chosen[0]] if unit in answers[chosen[1]]]
    if lacking := sum(tags[unit] is None for unit in shared):
        known = sorted({name[4:] for row in rows[:1] for name in row if name.startswith("tag/")})
        raise MeasureError(
            f"{lacking} of {len(shared)} items have no tag {paradigm!r} to tell paradigms by; "
            f"they have {', '.join(known)}"
        )
    first, second = sorted(chosen, key=lambda name: -sum(answers[name][unit] for unit in shared))
    tables = [np.array([[answers[name][unit] for unit in shared]]) for name in (first, second)]
    paradigms = [str(tags[unit]) for unit in shared]
    high, low, components = estimate_components(tables[0], tables[1], paradigms)
    return PilotStudy(first, second, (high, low), len(shared), len(set(paradigms)), components)


def _read_answers(run: str, measure: str) -> list[Mapping[str, Any]]:
    """Return the rows of a saved run that are right or wrong, of one measure."""
    rows: Iterable[Mapping[str, Any]] = read_unit_rows(require_run(run))
    answers = [row for row in rows if row.get("correct") in (0, 1) and {"unit", "model", "measure"} <= row.keys()]
    measures = list(dict.fromkeys(str(row["measure"]) for row in answers))
    chosen = (
        [name for name in measures if name == measure or name.partition("(")[0] == measure] if measure else measures
    )
    if not chosen:
        raise MeasureError(
            f"the run {run} has no rows that are right or wrong"
            + (f" of {measure}; there are {', '.join(measures) or 'none'}" if measure else "")
        )
    if len(chosen) > 1:
        raise MeasureError(f"the run has several measures whose rows are right or wrong: {', '.join(chosen)}; name one")
    return [row for row in answers if row["measure"] == chosen[0]]


def describe_components(components: VarianceComponents) -> str:
    """Return the standard deviations in one line.

    >>> describe_components(VarianceComponents(seed=0.1))
    'sd on the probit scale: paradigm 0.5, model by paradigm 0.3, item 0.7, seed 0.1'
    """
    parts = (f"{name.replace('_', ' ')} {value:.3g}" for name, value in asdict(components).items())
    return f"sd on the probit scale: {', '.join(parts)}"
