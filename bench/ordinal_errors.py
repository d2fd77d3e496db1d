"""Count false alarms of ordinal mixed models, and how often their intervals hold the truth, over simulated ratings.

    python -m bench.ordinal_errors --replications 1000 --processes 16

Each data set has 30 subjects × 20 items rated on five levels, with random slopes of a condition for both. The condition
has no effect; another predictor, which differs within subjects and items, has one of 0.5. A test at .05 should be
significant in .05 of the data sets, and a 95 % interval should hold the truth in .95. NumPy and SciPy are enough.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, norm

from acceptability.errors import AcceptabilityError
from acceptability.stats.mixed.fitting import build_fixed_effects
from acceptability.stats.mixed.ordinal.ordinal_fit import fit_ordinal
from acceptability.stats.mixed.random_effects import build_random_effects, build_random_term

LEVEL = 0.05
SUBJECTS, ITEMS = 30, 20
EFFECT = 0.5
THRESHOLDS = np.array([-1.5, -0.5, 0.5, 1.5])
LEVELS = ("1", "2", "3", "4", "5")


@dataclass(frozen=True)
class OrdinalTrial:
    """One replication.

    Args:
        wald: Wald's p value of the effect that is 0; None where a fit failed.
        ratio: The likelihood-ratio test's.
        holds_effect: Whether Wald's 95 % interval holds the effect of the other predictor.
        holds_threshold: Whether that of the threshold 2|3 holds it.
        failure: Why a fit failed; mostly empty.
    """

    wald: float | None = None
    ratio: float | None = None
    holds_effect: bool = False
    holds_threshold: bool = False
    failure: str = ""


def run_trial(seed: int) -> OrdinalTrial:
    """Return one replication."""
    generator = np.random.default_rng(seed)
    subject, item = np.repeat(np.arange(SUBJECTS), ITEMS), np.tile(np.arange(ITEMS), SUBJECTS)
    condition = np.where((subject + item) % 2, 0.5, -0.5)
    x = generator.normal(size=len(subject))
    predictor = EFFECT * x
    for sd, slope, groups, codes in ((0.9, 0.6, SUBJECTS, subject), (0.6, 0.4, ITEMS, item)):
        effects = generator.normal(size=(groups, 2)) * (sd, slope)
        predictor = predictor + effects[codes, 0] + effects[codes, 1] * condition
    outcome = np.digitize(predictor + generator.logistic(size=len(x)), THRESHOLDS)
    table = np.column_stack([np.ones(len(x)), x, condition])
    full = build_fixed_effects(["Intercept", "x", "condition"], table)
    smaller = build_fixed_effects(["Intercept", "x"], table[:, :2])
    slopes = {"condition": condition}
    terms = [build_random_term(name, codes.tolist(), slopes) for name, codes in (("subject", subject), ("item", item))]
    random = build_random_effects(terms)
    try:
        fit = fit_ordinal(outcome, LEVELS, full, random)
        nested = fit_ordinal(outcome, LEVELS, smaller, random)
    except AcceptabilityError as error:
        return OrdinalTrial(failure=f"seed {seed}: {error}")
    ses = np.sqrt(np.diag(fit.covariance))
    threshold_se = math.sqrt(fit.threshold_covariance[1, 1])
    reach = float(norm.ppf(1 - LEVEL / 2))
    return OrdinalTrial(
        float(2 * norm.sf(abs(fit.estimates[2] / ses[2]))),
        float(chi2.sf(max(nested.deviance - fit.deviance, 0.0), 1)),
        bool(abs(fit.estimates[1] - EFFECT) <= reach * ses[1]),
        bool(abs(fit.thresholds[1] - THRESHOLDS[1]) <= reach * threshold_se),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print false alarms of both tests, the coverage of the intervals, and failures."""
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    reader.add_argument("--replications", type=int, default=100)
    reader.add_argument("--processes", type=int, default=1)
    given = reader.parse_args(arguments)
    # The processes are spawned and import NumPy anew, with one thread each.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    start = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        trials = pool.map(run_trial, range(1, given.replications + 1), chunksize=1)
    fitted = [trial for trial in trials if trial.wald is not None and trial.ratio is not None]
    print(f"{len(trials)} data sets, {len(trials) - len(fitted)} failed, {time.perf_counter() - start:.0f} seconds")
    rows = {
        "false alarms, Wald": [(trial.wald or 0.0) <= LEVEL for trial in fitted],
        "false alarms, likelihood ratio": [(trial.ratio or 0.0) <= LEVEL for trial in fitted],
        "coverage of the effect": [trial.holds_effect for trial in fitted],
        "coverage of the threshold": [trial.holds_threshold for trial in fitted],
    }
    for name, values in rows.items():
        print(f"{name:32}{np.mean(values):8.3f}")
    for trial in trials:
        if trial.failure:
            print("   ", trial.failure)


if __name__ == "__main__":
    main()
