"""Time intervals over a suite of the size of BLiMP: 67 paradigms of 1,000 contrasts, by group, macro mean, overall.

    python -m bench.resampling
    python -m bench.resampling --resamples 10000

No model is run: the scores are simulated, from a seed. One core is enough. The output has the time of ``measure()`` for
each kind of interval, and that of a permutation test and McNemar's test between two models.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from acceptability.api.evaluation import measure
from acceptability.measures.delta import adc_curve
from acceptability.measures.pairs import PairAccuracy
from acceptability.stats.bootstrap import INTERVAL_METHODS, Bootstrap
from acceptability.stats.permutation import permutation_test
from acceptability.stats.proportions import mcnemar
from acceptability.types import Result, Scores, Sentence, Suite, make_contrast


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
    for method in INTERVAL_METHODS:
        _print_time(
            f"{method}, rows",
            partial(_measure_pairs, suite, first, "paradigm", Bootstrap(given.resamples, method=method)),
        )
        by_item = Bootstrap(given.resamples, method=method, by="item")
        _print_time(f"{method}, items", partial(_measure_pairs, suite, first, None, by_item))
    first_units, second_units = (PairAccuracy().units(suite, scores) for scores in (first, second))
    _print_time("permutation test", lambda: permutation_test(PairAccuracy(), first_units, second_units))
    _print_time("McNemar", lambda: mcnemar(first_units["correct"], second_units["correct"]))
    gaps = replace(first_units, columns={"gap": first_units["gap"], "human_gap": second_units["gap"]})
    _print_time("ADC, 1,000 deltas", lambda: adc_curve(gaps, np.linspace(0.005, 5, 1_000)))


def _measure_pairs(suite: Suite, scores: Scores, by: str | None, bootstrap: Bootstrap) -> list[Result]:
    return measure(suite, scores, ["PairAccuracy"], by=by, bootstrap=bootstrap)


def simulate_suite(paradigms: int, pairs: int) -> Suite:
    """Return a simulated suite of contrasts in paradigms; ten contrasts share an item."""
    sentences = [
        Sentence(f"{paradigm}-{pair}-{side}", f"{side} {pair} {paradigm}", tags=tags)
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
    start = time.perf_counter()
    work()
    print(f"{name:20} {time.perf_counter() - start:7.2f} s")


if __name__ == "__main__":
    main()
