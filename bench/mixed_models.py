"""Time and memory of mixed models by the number of items: some models × items in 67 paradigms with random slopes.

    python -m bench.mixed_models
    python -m bench.mixed_models --family binomial --items 67000

The data are simulated from a seed: every item is judged by every model, the paradigms differ in how good each model is
at them, ``score ~ model + (1 + model | paradigm) + (1 | item)``. Each fit runs in a process of its own; *peak* is the
memory of that process at most, Python and data included; *processor* are the seconds of all its threads together,
which do not depend on what else runs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit

PARADIGMS = 67
SIZES = {"gaussian": (10_000, 67_000), "binomial": (10_000, 67_000)}


def simulate_rows(items: int, models: int, *, is_binary: bool) -> dict[str, Any]:
    """Return the columns of a simulated table."""
    generator = np.random.default_rng(1)
    item, model = np.repeat(np.arange(items), models), np.tile(np.arange(models), items)
    paradigm = item % PARADIGMS
    # Intercept and differences to the first model, with correlated effects of each paradigm.
    covariance = 0.2 * np.ones((models, models)) + 0.3 * np.eye(models)
    effects = generator.multivariate_normal(np.zeros(models), covariance, size=PARADIGMS)
    column = np.where(model > 0, effects[paradigm, model], 0.0)
    predictor = 1 + 0.1 * model + effects[paradigm, 0] + column + generator.normal(size=items)[item]
    noise = generator.normal(size=len(item))
    score = (generator.random(len(item)) < expit(predictor)).astype(float) if is_binary else predictor + noise
    return {
        "score": score,
        "model": [f"m{k}" for k in model],
        "item": [f"i{k}" for k in item],
        "paradigm": [f"p{k}" for k in paradigm],
    }


def time_fit(arguments: tuple[str, int, int]) -> str:
    """Return a line of the table: family, rows, seconds, those of the processor, peak memory, evaluations, deviance."""
    from acceptability.stats import regress

    family, items, models = arguments
    rows = simulate_rows(items, models, is_binary=family == "binomial")
    start, processor_start = time.perf_counter(), time.process_time()
    result = regress("score ~ model + (1 + model | paradigm) + (1 | item)", rows, family=family)
    seconds, processor = time.perf_counter() - start, time.process_time() - processor_start
    # In kilobytes on Linux, in bytes on macOS.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**3 if sys.platform == "darwin" else 1024**2)
    evaluations = result.fit.minimum.evaluations
    times = f"{seconds:10.1f}{processor:11.1f}{peak:11.2f}"
    return f"{family:10}{items:9,}{models:8}{times}{evaluations:13}{result.deviance:16.4f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table of times."""
    reader = argparse.ArgumentParser(description="Time and memory of mixed models.")
    reader.add_argument("--family", choices=list(SIZES), nargs="+", default=list(SIZES))
    reader.add_argument("--items", type=int, nargs="+")
    reader.add_argument("--models", type=int, default=4)
    given = reader.parse_args(arguments)
    times = f"{'seconds':>10}{'processor':>11}{'peak, GiB':>11}"
    print(f"{'family':10}{'items':>9}{'models':>8}{times}{'evaluations':>13}{'deviance':>16}")
    for family in given.family:
        for items in given.items or SIZES[family]:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.apply(time_fit, ((family, items, given.models),)), flush=True)


if __name__ == "__main__":
    main()
