"""Time intervals over a suite of the size of BLiMP: 67 paradigms of 1,000 contrasts, by group, macro mean, overall.

    OMP_NUM_THREADS=1 python -m bench.resampling
    python -m bench.resampling --resamples 10000

No model is run: the scores and ratings are simulated, from a seed. One core is enough. The times are CPU seconds, which
other processes change little. The output has, for each measure, the time of the rows and that of each kind of interval:
of the paradigms, of their macro mean, and of all rows; and that of a permutation test and McNemar's test between two
models.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from acceptability.api.evaluation import group_rows
from acceptability.measures import load_measure
from acceptability.measures.delta import adc_curve
from acceptability.measures.pairs import PairAccuracy
from acceptability.stats.bootstrap import INTERVAL_METHODS, Bootstrap
from acceptability.stats.intervals import bootstrap_interval, bootstrap_macro_interval
from acceptability.stats.permutation import permutation_test
from acceptability.stats.proportions import mcnemar
from acceptability.types import Scores, Sentence, Suite, make_contrast

MEASURES = ("PairAccuracy", "PBC", "ADC", "Spearman")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table of times."""
    reader = argparse.ArgumentParser(description="Time intervals and tests over simulated scores.")
    reader.add_argument("--paradigms", type=int, default=67)
    reader.add_argument("--pairs", type=int, default=1_000)
    reader.add_argument("--resamples", type=int, default=1_000)
    given = reader.parse_args(arguments)
    suite = simulate_suite(given.paradigms, given.pairs)
    first, second = (simulate_scores(suite, seed) for seed in (1, 2))
    print(f"{len(suite.contrasts):,} contrasts, {given.paradigms} groups, {given.resamples:,} resamples")
    print(f"{'CPU seconds':32} {'rows':>7} {'groups':>7} {'macro':>7} {'all':>7}")
    for spec in MEASURES:
        for method in INTERVAL_METHODS:
            for by in ("", "item"):
                _print_intervals(suite, first, spec, Bootstrap(given.resamples, method=method, by=by))
    first_units, second_units = (PairAccuracy().units(suite, scores) for scores in (first, second))
    _print_time("permutation test", lambda: permutation_test(PairAccuracy(), first_units, second_units))
    _print_time("McNemar", lambda: mcnemar(first_units["correct"], second_units["correct"]))
    gaps = replace(first_units, columns={"gap": first_units["gap"], "human_gap": second_units["gap"]})
    _print_time("ADC, 1,000 deltas", lambda: adc_curve(gaps, np.linspace(0.005, 5, 1_000)))


def _print_intervals(suite: Suite, scores: Scores, spec: str, bootstrap: Bootstrap) -> None:
    measure = load_measure(spec)
    times = [time.process_time()]
    units = measure.units(suite, scores)
    groups = [units.take(rows) for rows in group_rows(suite, measure, units, "paradigm").values()]
    times.append(time.process_time())
    for part in groups:
        bootstrap_interval(measure, part, bootstrap)
    times.append(time.process_time())
    bootstrap_macro_interval(measure, groups, bootstrap)
    times.append(time.process_time())
    bootstrap_interval(measure, units, bootstrap)
    times.append(time.process_time())
    spent = " ".join(f"{end - start:7.2f}" for start, end in pairwise(times))
    print(f"{spec}, {bootstrap.method}, {bootstrap.by or 'row':6}".ljust(32), spent, flush=True)


def simulate_suite(paradigms: int, pairs: int) -> Suite:
    """Return a simulated suite of rated contrasts in paradigms; ten contrasts share an item."""
    noise = random.Random(0)
    sentences = [
        Sentence(
            f"{paradigm}-{pair}-{side}",
            f"{side} {pair} {paradigm}",
            label=int(side == "good"),
            rating=noise.gauss(side == "good", 1),
            tags=tags,
        )
        for paradigm in range(paradigms)
        for pair in range(pairs)
        for tags in ({"paradigm": str(paradigm), "item": f"{paradigm}-{pair // 10}"},)
        for side in ("good", "bad")
    ]
    contrasts = [make_contrast(good, bad) for good, bad in zip(sentences[::2], sentences[1::2], strict=True)]
    return Suite("made", tuple(sentences), tuple(contrasts))


def simulate_scores(suite: Suite, seed: int) -> Scores:
    """Return simulated scores; the better sentence usually has the higher one."""
    noise = np.random.default_rng(seed).normal(size=len(suite.sentences))
    values = {
        sentence.id: float(gap) + sentence.text.startswith("good")
        for sentence, gap in zip(suite.sentences, noise, strict=True)
    }
    return Scores(values, f"made-{seed}")


def _print_time(name: str, work: Callable[[], object]) -> None:
    start = time.process_time()
    work()
    print(f"{name:32} {time.process_time() - start:7.2f}")


if __name__ == "__main__":
    main()
