"""Times the passes of an aggregate Markov model over a corpus, and what the whole of its reading takes.

    python -m bench.markov CORPUS --classes 32 --passes 5

CORPUS is a file or folder of plain text, one sentence a line. Wall time is what a user waits, processor time what
the work itself takes, also on a machine that others use. The peak is that of the whole process, the text's reading
included.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from acceptability.train import counting
from acceptability.train.class_bigrams import Factors, Pairs, begun, improved, pairs_of
from acceptability.train.corpus import open_corpus
from acceptability.train.vocabulary import encode
from bench.tables import aligned, megabytes


def main(arguments: Sequence[str] | None = None) -> None:
    """Read, count, time some passes, and print a table."""
    given = _reader().parse_args(arguments)
    began = time.perf_counter()
    pairs = _pairs(given.corpus, given.vocabulary, lower=given.lower)
    print(
        f"{pairs.total:,.0f} tokens, {pairs.size:,} words, {len(pairs.counts):,} different pairs: "
        f"read in {time.perf_counter() - began:.1f} s; peak {megabytes(_peak())}"
    )
    timed = _passes(pairs, begun(pairs.size, given.classes, given.seed), given.passes)
    rows = [(str(number), f"{wall:.2f}", f"{cpu:.2f}") for number, (wall, cpu) in enumerate(timed, start=1)]
    print(aligned([("pass", "wall s", "CPU s"), *rows]))
    wall, cpu = (statistics.median(column) for column in zip(*timed, strict=True))
    print(
        f"{given.classes} classes: {wall:.2f} s a pass (CPU {cpu:.2f} s), {pairs.total / wall:,.0f} tokens/s; "
        f"peak {megabytes(_peak())}"
    )


def _pairs(corpus: Sequence[Path], size: int, *, lower: bool) -> Pairs:
    encoded = encode(open_corpus(corpus), size, "split", lower=lower)
    before, words = counting.before_words(encoded.ids), len(encoded.vocabulary)
    return pairs_of(counting.next_order(encoded.ids, before, words, told=lambda _: None), words)


def _passes(pairs: Pairs, factors: Factors, number: int) -> list[tuple[float, float]]:
    """Return the seconds of each pass: on the clock, and of the processor."""
    probs = pairs.probs(factors)
    found = []
    for _ in range(number):
        wall, cpu = time.perf_counter(), time.process_time()
        factors = improved(pairs, factors, probs)
        probs = pairs.probs(factors)
        pairs.loss(probs)
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    return found


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
