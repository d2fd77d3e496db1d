"""Time the EM passes of an aggregate Markov model over a corpus, and the reading of the corpus.

    python -m bench.markov CORPUS --classes 32 --passes 5

CORPUS is a file or folder of plain text, one sentence per line. Wall time is what a user waits; CPU time is comparable
also on a machine that others use. The peak memory is that of the whole process, including the reading of the text.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from acceptability.train import kneser_ney
from acceptability.train.aggregate_markov_em import (
    BigramCounts,
    Factors,
    build_bigram_counts,
    draw_factors,
    run_em_step,
)
from acceptability.train.corpus import encode_corpus, open_corpus
from bench.tables import aligned, megabytes


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the corpus, count bigrams, time some passes, and print a table."""
    given = _reader().parse_args(arguments)
    began = time.perf_counter()
    pairs = _pairs(given.corpus, given.vocabulary, lower=given.lower)
    print(
        f"{pairs.total:,.0f} tokens, {pairs.size:,} words, {len(pairs.counts):,} different pairs: "
        f"read in {time.perf_counter() - began:.1f} s; peak {megabytes(_peak())}"
    )
    timed = _passes(pairs, draw_factors(pairs.size, given.classes, given.seed), given.passes)
    rows = [(str(number), f"{wall:.2f}", f"{cpu:.2f}") for number, (wall, cpu) in enumerate(timed, start=1)]
    print(aligned([("pass", "wall s", "CPU s"), *rows]))
    wall, cpu = (statistics.median(column) for column in zip(*timed, strict=True))
    print(
        f"{given.classes} classes: {wall:.2f} s a pass (CPU {cpu:.2f} s), {pairs.total / wall:,.0f} tokens/s; "
        f"peak {megabytes(_peak())}"
    )


def _pairs(corpus: Sequence[Path], size: int, *, lower: bool) -> BigramCounts:
    encoded = encode_corpus(open_corpus(corpus), size, "split", lower=lower)
    before, words = kneser_ney.find_previous_words(encoded.ids), len(encoded.vocabulary)
    return build_bigram_counts(kneser_ney.count_ngrams(encoded.ids, before, words, on_progress=lambda _: None), words)


def _passes(pairs: BigramCounts, factors: Factors, number: int) -> list[tuple[float, float]]:
    """Return the seconds of each pass: wall time and CPU time."""
    probs = pairs.compute_probs(factors)
    seconds = []
    for _ in range(number):
        wall, cpu = time.perf_counter(), time.process_time()
        factors = run_em_step(pairs, factors, probs)
        probs = pairs.compute_probs(factors)
        pairs.compute_loss(probs)
        seconds.append((time.perf_counter() - wall, time.process_time() - cpu))
    return seconds


def _peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _reader() -> argparse.ArgumentParser:
    reader = argparse.ArgumentParser(prog="python -m bench.markov", description="Time an aggregate Markov model.")
    reader.add_argument("corpus", nargs="+", type=Path, help="files and folders of text")
    reader.add_argument("--classes", type=int, default=32)
    reader.add_argument("--passes", type=int, default=5)
    reader.add_argument("--vocabulary", type=int, default=60_000)
    reader.add_argument("--lower", action="store_true")
    reader.add_argument("--seed", type=int, default=1)
    return reader


if __name__ == "__main__":
    main()
