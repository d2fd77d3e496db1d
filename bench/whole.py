"""Time all of BLiMP on one GPU: the engine alone, with the store, the forward passes alone, and minicons.

    python -m bench.whole --scratch SCRATCH --output FOLDER

Every time includes tokenisation and excludes the loading of the model. Our package scores all 134,000 sentences in
every round; minicons scores a part of them, with the best of some batch sizes, and its time is extrapolated. *added* is
the overhead of the store: ``score()`` with it, compared with ``score()`` with a store that keeps nothing. *share* is
the arithmetic of our forward passes (weights times rows, twice) divided by the time of the passes alone, as a share of
the rate of large bfloat16 or float32 matrix products measured in the same run.
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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from acceptability import load_model, load_suite, score
from acceptability.api import scoring
from acceptability.engine import local
from acceptability.outputs import EncodedColumns, IndexedOutputs, TokenColumns, index_outputs
from acceptability.types import ModelOutput, Query, Suite, TokenScores
from bench import rates
from bench.contenders import ROOT
from bench.sentences import pairs
from bench.serving import Order
from bench.shapes import Shape, make_shape
from bench.tables import aligned

CASES = (("gpt2", "bfloat16"), ("gpt2", "float32"), ("bert", "bfloat16"), ("bert", "float32"))
_PART = {"causal": 20_000, "masked": 2_000}
_BATCHES = (64, 256)
_WARM = 8_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Time every case, print a table, and write the results to a file."""
    given = _reader().parse_args(arguments)
    suite = load_suite("blimp")
    given.output.mkdir(parents=True, exist_ok=True)
    results: list[dict[str, Any]] = []
    for name, dtype in given.cases or CASES:
        subprocess.run([sys.executable, "-m", "bench.shapes", str(given.scratch), name], check=True)
        results.append(_case(given, make_shape(given.scratch, name), dtype, suite))
        (given.output / "whole.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
        print(aligned([_HEADINGS, *map(_cells, results)]), flush=True)


def _case(given: argparse.Namespace, shape: Shape, dtype: str, suite: Suite) -> dict[str, Any]:
    import torch

    texts = [sentence.text for sentence in suite.sentences]
    queries = [Query(text) for text in texts]
    model: Any = load_model(f"{shape.kind}:{shape.folder}(dtype={dtype!r}, device={given.device!r})")
    part = pairs(suite, _PART[shape.kind], 0)
    peer = _minicons(shape, dtype, given.device, part) if given.minicons else None
    _scored(model, [Query(text) for text in pairs(suite, _WARM, 1)])
    rounds: dict[str, list[float]] = {"engine": [], "unstored": [], "store": [], "minicons": []}
    first = _timed(lambda: _scored(model, queries))
    for _ in range(given.rounds):
        rounds["engine"].append(_timed(lambda: _scored(model, queries)))
        with mock.patch.object(scoring, "ScoreStore", NullStore):
            rounds["unstored"].append(_timed(lambda: score(suite, model)))
        with tempfile.TemporaryDirectory() as home:
            os.environ["ACCEPTABILITY_HOME"] = home
            rounds["store"].append(_timed(lambda: score(suite, model)))
        if peer:
            rounds["minicons"].append(_timed(peer) * len(texts) / len(part))
    work, seconds = _passes(model, queries, shape)
    rate = max(rates.measure_rates(given.device, given.threads)[dtype].values())
    return {
        "shape": shape.name,
        "dtype": dtype,
        "sentences": len(texts),
        "device": torch.cuda.get_device_name() if given.device == "cuda" else given.device,
        "torch": torch.__version__,
        "first": first,
        "rounds": rounds,
        "passes": seconds,
        "share": work / seconds / rate,
        "rate": rate,
    }


class NullStore:
    """A store that keeps nothing, to measure the overhead of the real one."""

    def __enter__(self) -> NullStore:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def iter_known_blocks(self, *_: object, **__: object) -> Iterator[IndexedOutputs]:
        """Yield nothing: no output is stored."""
        return iter(())

    def add_block(self, *_: object, **__: object) -> None:
        """Discard the outputs."""


def _scored(model: Any, queries: Sequence[Query]) -> float:
    """Return the sum of all scores, so that each one is computed."""
    batches = map(index_outputs, local.run_queries(model, queries, lambda _: False))
    return sum(_sum_outputs(batch.outputs) for batch in batches)


def _sum_outputs(outputs: Sequence[ModelOutput]) -> float:
    # Without an object for each sentence, which scoring does not make either.
    if isinstance(outputs, TokenColumns):
        return float(outputs.logprobs.sum())
    return sum(float(output.logprobs.sum()) for output in outputs if isinstance(output, TokenScores))


def _passes(model: Any, queries: Sequence[Query], shape: Shape) -> tuple[float, float]:
    """Return the arithmetic of the forward passes over one window, and the seconds of the passes alone."""
    import torch

    from acceptability.models.kernels import head

    window = local._prepare_window(model, queries, 0)
    encoded: Any = window.encoded_queries
    batches = [
        encoded.take(batch) if isinstance(encoded, EncodedColumns) else [encoded[index] for index in batch]
        for batch in window.batches
    ]
    rows = {"body": 0, "head": 0}
    embedding, apply_head = model.net.get_input_embeddings(), head.apply_head

    def count(_: Any, given: tuple[Any, ...]) -> None:
        rows["body"] += given[0].numel()

    def apply_and_count(net: Any, states: Any) -> Any:
        rows["head"] += len(states)
        return apply_head(net, states)

    hook = embedding.register_forward_pre_hook(count)
    head.apply_head = apply_and_count
    for batch in batches:
        model.begin(batch)
    hook.remove()
    head.apply_head = apply_head
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    start = time.perf_counter()
    for batch in batches:
        model.begin(batch)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return 2.0 * (rows["body"] * shape.body + rows["head"] * shape.head), time.perf_counter() - start


def _minicons(shape: Shape, dtype: str, device: str, part: Sequence[str]) -> Callable[[], object]:
    """Return a function that scores the part with minicons, with the batch size that was fastest on some of it."""
    from bench.worker_minicons import Minicons

    options = {} if shape.kind == "causal" else {"metric": "original"}
    scorer = Minicons(Order(shape.folder, dtype, device, 1, options))
    scorer.scores(part[:64], 64)
    seconds_by_batch = {batch: _timed(lambda batch=batch: scorer.scores(part[:512], batch)) for batch in _BATCHES}  # type: ignore[misc]
    best = min(seconds_by_batch, key=lambda batch: seconds_by_batch[batch])
    return lambda: scorer.scores(part, best)


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


_TIMES = ("first run", "engine", "score()", "with store", "added", "minicons", "ratio")
_HEADINGS = ("model", *_TIMES, "passes", "share", "rate")


def _cells(result: dict[str, Any]) -> tuple[str, ...]:
    times = {name: statistics.median(seconds) for name, seconds in result["rounds"].items() if seconds}
    engine, unstored, store, minicons = times["engine"], times["unstored"], times["store"], times.get("minicons")
    return (
        f"{result['shape']} {result['dtype']}",
        f"{result['first']:.2f} s",
        f"{engine:.2f} s",
        f"{unstored:.2f} s",
        f"{store:.2f} s",
        f"{store / unstored - 1:.0%}",
        "" if minicons is None else f"{minicons:.0f} s",
        "" if minicons is None else f"{minicons / engine:.1f}",
        f"{result['passes']:.2f} s",
        f"{result['share']:.0%}",
        f"{result['rate'] / 1e12:.0f} TFLOP/s",
    )


def _reader() -> argparse.ArgumentParser:
    reader = argparse.ArgumentParser(prog="python -m bench.whole", description="Time all of BLiMP on one GPU.")
    reader.add_argument("--cases", nargs="+", type=lambda text: tuple(text.split(":")), help="such as gpt2:bfloat16")
    reader.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    reader.add_argument("--threads", type=int, default=os.cpu_count())
    reader.add_argument("--rounds", type=int, default=3)
    reader.add_argument("--minicons", action="store_true", help="time minicons too, which must be importable")
    reader.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "acceptability-bench")
    reader.add_argument("--output", type=Path, default=ROOT / "bench" / "out")
    return reader


if __name__ == "__main__":
    main()
