"""Times intervals over a suite of BLiMP's shape: 67 paradigms of 1,000 contrasts, each group, macro mean, overall.

    python -m bench.resampling
    python -m bench.resampling --resamples 10000

No model is asked: the scores are made up, from a seed. One core suffices; what is printed is the time of
``measure()`` for each kind of interval, and of a permutation test and McNemar's test between two models.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from acceptability.measures.delta import adc_curve
from acceptability.measures.pairs import PairAccuracy
from acceptability.measuring import measure
from acceptability.stats.bootstrap import METHODS, Bootstrap
from acceptability.stats.permutation import permutation_test
from acceptability.stats.shares import mcnemar
from acceptability.types import Result, Scores, Sentence, Suite, contrast


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table of times."""
    reader = argparse.ArgumentParser(description="Time intervals and tests over made-up scores.")
    reader.add_argument("--paradigms", type=int, default=67)
    reader.add_argument("--pairs", type=int, default=1_000)
    reader.add_argument("--resamples", type=int, default=1_000)
    given = reader.parse_args(arguments)
    suite = made_suite(given.paradigms, given.pairs)
    first, second = (made_scores(suite, seed) for seed in (1, 2))
    print(f"{len(suite.contrasts):,} contrasts, {given.paradigms} groups, {given.resamples:,} resamples")
    for method in METHODS:
        _timed(
            f"{method}, rows", partial(_measured, suite, first, "paradigm", Bootstrap(given.resamples, method=method))
        )
        by_item = Bootstrap(given.resamples, method=method, by="item")
        _timed(f"{method}, items", partial(_measured, suite, first, None, by_item))
    one, two = (PairAccuracy().units(suite, each) for each in (first, second))
    _timed("permutation test", lambda: permutation_test(PairAccuracy(), one, two))
    _timed("McNemar", lambda: mcnemar(one["correct"], two["correct"]))
    gaps = replace(one, columns={"gap": one["gap"], "human_gap": two["gap"]})
    _timed("ADC, 1,000 deltas", lambda: adc_curve(gaps, np.linspace(0.005, 5, 1_000)))


def _measured(suite: Suite, scores: Scores, by: str | None, how: Bootstrap) -> list[Result]:
    return measure(suite, scores, ["PairAccuracy"], by=by, bootstrap=how)


def made_suite(paradigms: int, pairs: int) -> Suite:
    """Return a suite of contrasts in paradigms; ten contrasts share an item."""
    sentences = [
        Sentence(f"{paradigm}-{pair}-{side}", f"{side} {pair} {paradigm}", tags=tags)
        for paradigm in range(paradigms)
        for pair in range(pairs)
        for tags in ({"paradigm": str(paradigm), "item": f"{paradigm}-{pair // 10}"},)
        for side in ("good", "bad")
    ]
    contrasts = [contrast(good, bad) for good, bad in zip(sentences[::2], sentences[1::2], strict=True)]
    return Suite("made", tuple(sentences), tuple(contrasts))


def made_scores(suite: Suite, seed: int) -> Scores:
    """Return scores by which the better sentence is usually the higher one."""
    noise = np.random.default_rng(seed).normal(size=len(suite.sentences))
    values = {
        each.id: float(gap) + each.text.startswith("good") for each, gap in zip(suite.sentences, noise, strict=True)
    }
    return Scores(values, f"made-{seed}")


def _timed(name: str, work: Callable[[], object]) -> None:
    start = time.perf_counter()
    work()
    print(f"{name:20} {time.perf_counter() - start:7.2f} s")


if __name__ == "__main__":
    main()
