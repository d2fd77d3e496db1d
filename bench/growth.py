"""Time and memory of scoring as the number of sentences grows, and the overhead of the store.

    python -m bench.growth --shape tiny --minutes 10
    python -m bench.growth --shape gpt2 --sizes 1000 10000

First, time and memory for 1,000, 10,000, 100,000, 1,000,000 sentences, without the store. A size is skipped if it is
not expected to finish within the remaining minutes. A straight line fitted to the times gives the cost per sentence.
Then, in interleaved rounds: the engine alone, ``score()`` with an empty store, and ``score()`` of sentences whose
scores are stored already.

The shape *minimal* (one layer of width 16, 4,096 tokens) has next to no arithmetic, so it shows the package's own
overhead per sentence; of *tiny*, the head over 50,257 tokens takes most of the time; *gpt2* shows the time that a user
waits. The sentences are those of BLiMP, and then the same inside frames such as "We heard that …".
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from bench import rates
from bench.contenders import ROOT, BenchError, Contender, Worker
from bench.sentences import many, suite
from bench.shapes import NAMES, Shape, make_shape
from bench.tables import aligned, megabytes

_SIZES = (1_000, 10_000, 100_000, 1_000_000)
_MODES = {"answers": "the engine alone", "store": "into the store", "known": "from the store"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure both, print tables, and write the results to a file."""
    given = _reader().parse_args(arguments)
    subprocess.run([sys.executable, "-m", "bench.shapes", str(given.scratch), given.shape], check=True)
    shape = make_shape(given.scratch, given.shape)
    try:
        texts = many(suite(), max(*given.sizes, given.stored), given.seed)
        grown = _measure_growth(given, shape, texts)
        kept = _measure_store(given, shape, texts[: given.stored])
    except BenchError as error:
        raise SystemExit(f"bench: {error}") from error
    results = {"shape": shape.name, "dtype": given.dtype, "device": given.device, "threads": given.threads}
    _show(results | {"growth": grown, "store": kept})
    given.output.mkdir(parents=True, exist_ok=True)
    path = given.output / f"growth-{shape.name}-{given.dtype}.json"
    path.write_text(json.dumps(results | {"growth": grown, "store": kept}, indent=1), encoding="utf-8")
    print(f"written: {path}", file=sys.stderr)


def _worker(given: argparse.Namespace, shape: Shape, mode: str, stack: ExitStack) -> Worker:
    spec = shape.kind + ":{folder}(dtype='{dtype}', device='{device}')"
    contender = Contender(f"ours-{mode}", "ours", {"spec": spec, "mode": mode})
    worker = stack.enter_context(Worker(contender, Path(sys.executable), given.scratch / "logs"))
    worker.load(shape.folder, dtype=given.dtype, device=given.device, threads=given.threads)
    worker.score(["The cat sleeps.", "The cats sleep."], 1)
    return worker


def _measure_growth(given: argparse.Namespace, shape: Shape, texts: list[str]) -> dict[str, Any]:
    """Return time and memory by size, the sizes that were skipped, and the fitted line."""
    rows: list[dict[str, Any]] = []
    end = time.monotonic() + 60 * given.minutes
    with ExitStack() as stack:
        worker = _worker(given, shape, "answers", stack)
        for size in sorted(given.sizes):
            if rows and rows[-1]["seconds"] * size / rows[-1]["sentences"] > end - time.monotonic():
                break
            measured = worker.score(texts[:size], 1)
            rows.append({"sentences": size, **{name: measured[name] for name in ("seconds", "before", "peak")}})
    growth: dict[str, Any] = {"rows": rows, "left_out": sorted(given.sizes)[len(rows) :]}
    return growth | (_fit_line(rows) if len(rows) > 1 else {})


def _fit_line(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the line fitted to the times by least relative squares, and the largest relative deviation from it.

    >>> _fit_line([{"sentences": 10, "seconds": 3.0}, {"sentences": 100, "seconds": 21.0}])["milliseconds_each"]
    200.0
    """
    sizes = np.array([row["sentences"] for row in rows], dtype=float)
    seconds = np.array([row["seconds"] for row in rows])
    slope, start = np.polyfit(sizes, seconds, 1, w=1 / seconds)
    worst = np.abs((start + slope * sizes) / seconds - 1).max()
    return {
        "seconds_at_start": float(start),
        "milliseconds_each": round(float(slope) * 1000, 6),
        "worst_deviation": float(worst),
    }


def _measure_store(given: argparse.Namespace, shape: Shape, texts: list[str]) -> dict[str, list[float]]:
    """Return the seconds of each mode of scoring the same texts, by round."""
    with ExitStack() as stack:
        workers = {mode: _worker(given, shape, mode, stack) for mode in _MODES}
        workers["known"].score(texts, 1)
        rounds = [
            {mode: worker.score(texts, 1)["seconds"] for mode, worker in workers.items()} for _ in range(given.rounds)
        ]
    return {mode: [seconds[mode] for seconds in rounds] for mode in _MODES}


def _show(results: dict[str, Any]) -> None:
    grown, kept = results["growth"], results["store"]
    print(f"\n{results['shape']} {results['dtype']}")
    print(aligned([("sentences", "seconds", "per second", "extra", "peak"), *map(_cells, grown["rows"])]))
    if grown["left_out"]:
        print("skipped for lack of time: " + ", ".join(f"{size:,}" for size in grown["left_out"]))
    if "milliseconds_each" in grown:
        print(
            f"{grown['seconds_at_start']:.2f} s and {grown['milliseconds_each']:.3f} ms per sentence; "
            f"the largest deviation from that line is {grown['worst_deviation']:.0%}"
        )
    alone = statistics.median(kept["answers"])
    for mode, seconds in kept.items():
        median = statistics.median(seconds)
        print(f"{_MODES[mode]}: {median:.2f} s, {median / alone:.2f} of the engine alone")


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    size, seconds, peak, before = (row[name] for name in ("sentences", "seconds", "peak", "before"))
    extra = None if peak is None else peak - before
    return f"{size:,}", f"{seconds:.2f}", f"{size / seconds:,.0f}", megabytes(extra), megabytes(peak)


def _reader() -> argparse.ArgumentParser:
    scratch = Path(tempfile.gettempdir()) / "acceptability-bench"
    reader = argparse.ArgumentParser(
        prog="python -m bench.growth", description="Time the scoring of more and more sentences."
    )
    reader.add_argument("--shape", choices=NAMES, default="tiny")
    reader.add_argument("--dtype", choices=rates.DTYPES, default="float32")
    reader.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    reader.add_argument("--threads", type=int, default=os.cpu_count())
    reader.add_argument("--sizes", nargs="+", type=int, default=list(_SIZES))
    reader.add_argument("--minutes", type=float, default=10.0)
    reader.add_argument("--stored", type=int, default=1_000, help="number of sentences with which the store is timed")
    reader.add_argument("--rounds", type=int, default=3)
    reader.add_argument("--seed", type=int, default=0)
    reader.add_argument("--scratch", type=Path, default=scratch, help=f"default: {scratch}")
    reader.add_argument("--output", type=Path, default=ROOT / "bench" / "out", help="where the results are written")
    return reader


if __name__ == "__main__":
    main()
