"""Count false alarms and failed fits of mixed models over data simulated without an effect, in six designs.

    python -m bench.false_alarms --design all --replications 1000 --processes 16
    python -m bench.false_alarms --design linear_slopes --replications 200 --random intercepts

In each design the effect that is tested is 0, and the random effects are real. A test at .05 should be significant in
.05 of the data sets, and no fit should fail. ``--random intercepts`` leaves out the random slopes, as a warning. NumPy
and SciPy are enough; every process uses one thread.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit
from scipy.stats import chi2

from acceptability.errors import AcceptabilityError
from acceptability.stats.mixed.fitting import build_fixed_effects, fit_linear, fit_logistic
from acceptability.stats.mixed.model_comparison import compute_bootstrap_p
from acceptability.stats.mixed.random_effects import RandomEffects, build_random_effects, build_random_term
from acceptability.stats.mixed.satterthwaite import build_satterthwaite, two_sided_t
from acceptability.types import Floats

LEVEL = 0.05
# With 99 draws a bootstrap p of .05 is exact: the five most extreme of a hundred.
BOOTSTRAP_DRAWS = 99
# With five simulated statistics above the observed one p is above .05, whatever the other draws give.
ENOUGH = 5


@dataclass(frozen=True, eq=False)
class Design:
    """A simulated data set.

    Args:
        outcome: The outcome.
        effect: The predictor that is tested; its true effect is 0.
        groups: The group of each row, for each kind of group.
        slopes: The kinds of groups over which the effect varies.
        test: "satterthwaite", "likelihood ratio" or "bootstrap".
    """

    outcome: Floats
    effect: Floats
    groups: Mapping[str, Sequence[int]]
    slopes: tuple[str, ...]
    test: str


def draw_effects(generator: np.random.Generator, groups: int, sds: tuple[float, float], correlation: float) -> Floats:
    """Return correlated random intercepts and slopes."""
    covariance = np.outer(sds, sds) * np.array([[1, correlation], [correlation, 1]])
    return np.asarray(generator.multivariate_normal([0, 0], covariance, size=groups))


def draw_linear_intercepts(generator: np.random.Generator) -> Design:
    """30 subjects × 20 items, two conditions within each; random intercepts."""
    subject, item = np.repeat(np.arange(30), 20), np.tile(np.arange(20), 30)
    effect = np.where((subject + item) % 2, 0.5, -0.5)
    outcome = generator.normal(0, 0.8, 30)[subject] + generator.normal(0, 0.5, 20)[item] + generator.normal(size=600)
    return Design(
        np.asarray(outcome), effect, {"subject": subject.tolist(), "item": item.tolist()}, (), "satterthwaite"
    )


def draw_linear_slopes(generator: np.random.Generator) -> Design:
    """30 subjects × 20 items, two conditions within each; random slopes of both."""
    design = draw_linear_intercepts(generator)
    subject, item = (np.array(design.groups[name]) for name in ("subject", "item"))
    by_subject = draw_effects(generator, 30, (0.3, 0.5), 0.4)[subject]
    by_item = draw_effects(generator, 20, (0.3, 0.4), -0.3)[item]
    slopes = by_subject[:, 0] + by_item[:, 0] + design.effect * (by_subject[:, 1] + by_item[:, 1])
    return replace(design, outcome=design.outcome + slopes, slopes=("subject", "item"))


def draw_pairs_of_types(generator: np.random.Generator) -> Design:
    """Two models over 100 pairs of types with 1 to 16 lexicalisations each, as unbalanced as LI-Adger."""
    sizes = generator.choice([1, 2, 4, 8, 8, 8, 16], size=100)
    pair = np.repeat(np.arange(100), sizes)
    contrast, n = np.arange(len(pair)), len(pair)
    effect = np.repeat([-0.5, 0.5], n)
    by_pair = draw_effects(generator, 100, (1.0, 0.4), 0.2)[np.tile(pair, 2)]
    outcome = by_pair[:, 0] + effect * by_pair[:, 1] + generator.normal(0, 0.5, n)[np.tile(contrast, 2)]
    outcome = outcome + generator.normal(0, 0.7, 2 * n)
    groups = {"contrast": np.tile(contrast, 2).tolist(), "pair": np.tile(pair, 2).tolist()}
    return Design(outcome, effect, groups, ("pair",), "satterthwaite")


def draw_logistic_paradigms(generator: np.random.Generator) -> Design:
    """Two models over 40 paradigms of 8 items, three tries each, right or wrong; the difference varies by paradigm."""
    return _draw_logistic(generator, (40, 8, 3), "likelihood ratio")


def draw_logistic_few_paradigms(generator: np.random.Generator) -> Design:
    """Two models over 12 paradigms of 16 items, right or wrong."""
    return _draw_logistic(generator, (12, 16, 1), "bootstrap")


def _draw_logistic(generator: np.random.Generator, sizes: tuple[int, int, int], test: str) -> Design:
    """Return a logistic design with a number of paradigms, items in each, and tries of each model at each item."""
    paradigms, items, tries = sizes
    n = paradigms * items
    item, effect = np.tile(np.arange(n), 2 * tries), np.repeat([-0.5, 0.5], n * tries)
    paradigm = item // items
    by_paradigm = draw_effects(generator, paradigms, (0.8, 0.8), 0.2)[paradigm]
    logits = 1.0 + by_paradigm[:, 0] + effect * by_paradigm[:, 1] + generator.normal(0, 0.8, n)[item]
    outcome = (generator.random(len(logits)) < expit(logits)).astype(float)
    return Design(outcome, effect, {"item": item.tolist(), "paradigm": paradigm.tolist()}, ("paradigm",), test)


def draw_seeds(generator: np.random.Generator) -> Design:
    """Two recipes of 8 seeds each over 30 items; seeds are a random factor, and the difference varies by item."""
    seed, item = np.repeat(np.arange(16), 30), np.tile(np.arange(30), 16)
    effect = np.where(seed < 8, -0.5, 0.5)
    by_item = draw_effects(generator, 30, (0.8, 0.4), 0.0)[item]
    outcome = by_item[:, 0] + effect * by_item[:, 1] + generator.normal(0, 0.4, 16)[seed]
    outcome = outcome + generator.normal(0, 0.7, len(seed))
    return Design(outcome, effect, {"item": item.tolist(), "seed": seed.tolist()}, ("item",), "satterthwaite")


DESIGNS: dict[str, Callable[[np.random.Generator], Design]] = {
    "linear_intercepts": draw_linear_intercepts,
    "linear_slopes": draw_linear_slopes,
    "pairs_of_types": draw_pairs_of_types,
    "seeds": draw_seeds,
    "logistic_paradigms": draw_logistic_paradigms,
    "logistic_few_paradigms": draw_logistic_few_paradigms,
}


def compute_effect_p(design: Design, seed: int) -> tuple[float, bool]:
    """Return the p value of the effect, and whether the fit is singular."""
    random = build_design_effects(design)
    names, constant = ["Intercept", "effect"], np.ones(len(design.outcome))
    full = build_fixed_effects(names, np.column_stack([constant, design.effect]))
    if design.test == "satterthwaite":
        fit = fit_linear(design.outcome, full, random)
        contrast = np.array([0.0, 1.0])
        statistic = float(fit.estimates[1] / math.sqrt(fit.covariance[1, 1]))
        return two_sided_t(statistic, build_satterthwaite(fit).compute_df(contrast)), fit.is_singular
    larger = fit_logistic(design.outcome, full, random)
    smaller = fit_logistic(design.outcome, build_fixed_effects(names[:1], constant[:, None]), random)
    if design.test == "likelihood ratio":
        return float(chi2.sf(max(smaller.deviance - larger.deviance, 0.0), 1)), larger.is_singular
    p, _ = compute_bootstrap_p(smaller, larger, draws=BOOTSTRAP_DRAWS, seed=seed, enough=ENOUGH)
    return p, larger.is_singular


def build_design_effects(design: Design) -> RandomEffects:
    """Return the random effects of a design."""
    return build_random_effects(
        [
            build_random_term(name, labels, {"effect": design.effect} if name in design.slopes else None)
            for name, labels in design.groups.items()
        ]
    )


@dataclass(frozen=True)
class Trial:
    """One replication: its p value (None where a fit failed), whether the fit is singular, and why it failed."""

    p: float | None
    is_singular: bool
    failure: str


def run_trial(arguments: tuple[str, int, str]) -> Trial:
    """Return one replication of a design: its name, the seed, and which random effects are fitted."""
    name, seed, random = arguments
    design = DESIGNS[name](np.random.default_rng([seed, sorted(DESIGNS).index(name)]))
    if random == "intercepts":
        design = replace(design, slopes=())
    try:
        return Trial(*compute_effect_p(design, seed), "")
    except AcceptabilityError as error:
        return Trial(None, False, f"seed {seed}: {error}")


def _use_one_thread() -> None:
    # The processes are spawned and import NumPy anew, with these variables: several processes with several threads each
    # would wait for one another.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each design: false alarms, failures, singular fits."""
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    reader.add_argument("--design", choices=["all", *DESIGNS], default="all")
    reader.add_argument("--replications", type=int, default=100)
    reader.add_argument("--processes", type=int, default=1)
    reader.add_argument("--random", choices=["all", "intercepts"], default="all")
    reader.add_argument("--first-seed", type=int, default=1)
    given = reader.parse_args(arguments)
    _use_one_thread()
    print(f"{'design':24}{'test':18}{'sets':>6}{'failed':>8}{'singular':>10}{'false alarms':>14}{'seconds':>9}")
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        for name in DESIGNS if given.design == "all" else [given.design]:
            start = time.perf_counter()
            seeds = range(given.first_seed, given.first_seed + given.replications)
            trials = pool.map(run_trial, [(name, seed, given.random) for seed in seeds], chunksize=1)
            p_values = [trial.p for trial in trials if trial.p is not None]
            rate = sum(p <= LEVEL for p in p_values) / max(len(p_values), 1)
            failures = [trial.failure for trial in trials if trial.failure]
            singular = sum(trial.is_singular for trial in trials)
            test = DESIGNS[name](np.random.default_rng(0)).test
            seconds = time.perf_counter() - start
            print(
                f"{name:24}{test:18}{len(trials):6}{len(failures):8}{singular:10}{rate:14.3f}{seconds:9.1f}", flush=True
            )
            for failure in failures[:5]:
                print("   ", failure)


if __name__ == "__main__":
    main()
