"""Time and memory of ``acceptability evaluate`` by the number of sentences, up to a million.

    python -m bench.size --model trigram
    python -m bench.size --model 'mini-causal(device="cuda")' --sizes 100000 1000000

The sentences come from ``generate npi`` with increasing seeds, each with an id of its own. Every size runs in a process
of its own with an empty store, as the command that a user types. *CPU* is CPU time in seconds, which depends less on
other work on the machine. *suite* is the memory of the process after the file is read; *above* is how much more it
needs at its peak after that: for the model, the scores, the measures and the saved run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any

from acceptability.generate import generate_paradigms
from acceptability.generate.generator import GeneratedSentence, write_sentences
from bench.memory import Meter
from bench.tables import aligned, megabytes

_SIZES = (100_000, 250_000, 500_000, 1_000_000)
_MARK = "measured: "


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each size, and print a table."""
    given = _reader().parse_args(arguments)
    if given.file:
        _run_and_measure(given.file, given.model)
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        all_sentences, part = Path(folder, "all.jsonl"), Path(folder, "part.jsonl")
        _write(all_sentences, max(given.sizes))
        for size in given.sizes:
            with all_sentences.open(encoding="utf-8") as lines, part.open("w", encoding="utf-8") as out:
                out.writelines(islice(lines, size))
            rows.append(_measure_in_subprocess(part, given.model))
            print(
                aligned([("sentences", "reading s", "evaluating s", "CPU s", "suite", "above"), *map(_cells, rows)]),
                flush=True,
            )


def _write(path: Path, size: int) -> None:
    """Write sentences of the NPI paradigms; after the last one of a seed, those of the next follow."""
    generated = (
        _add_seed_to_id(sentence, seed) for seed in count(1) for sentence in generate_paradigms("npi", seed=seed)
    )
    write_sentences(islice(generated, size), path)


def _add_seed_to_id(generated: GeneratedSentence, seed: int) -> GeneratedSentence:
    # Seeds give the same ids, and the ids of a suite have to be unique.
    return GeneratedSentence(
        replace(generated.sentence, id=f"{seed}-{generated.sentence.id}"),
        [f"{seed}-{worse_id}" for worse_id in generated.better_than],
    )


def _measure_in_subprocess(path: Path, model: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "bench.size", "--file", str(path), "--model", model]
        done = subprocess.run(command, env={**os.environ, "ACCEPTABILITY_HOME": home}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    line = next(line for line in done.stderr.splitlines() if line.startswith(_MARK))
    measurements: dict[str, Any] = json.loads(line.removeprefix(_MARK))
    return measurements


def _run_and_measure(path: Path, model: str) -> None:
    """Run the command in this process, and print its time and memory."""
    from acceptability import cli
    from acceptability.cli import evaluate as evaluate_module

    measurements: dict[str, Any] = {}
    evaluate: Any = evaluate_module
    load_suite, start = evaluate.load_cli_suite, time.perf_counter()

    def load_and_measure(*arguments: Any) -> Any:
        suite = load_suite(*arguments)
        measurements.update(
            sentences=len(suite.sentences),
            reading=time.perf_counter() - start,
            meter=Meter("cpu"),
            cpu=time.process_time(),
        )
        return suite

    # The command has no hook between reading and evaluating, so the function that reads the suite is replaced.
    evaluate.load_cli_suite = load_and_measure
    sys.argv = ["acceptability", "evaluate", str(path), "--model", model, "--json"]
    try:
        cli.main()
    except SystemExit as stop:
        if stop.code:
            raise
    memory = measurements.pop("meter").measure()
    measurements.update(
        evaluating=time.perf_counter() - start - measurements["reading"], before=memory.before, peak=memory.peak
    )
    measurements["cpu"] = time.process_time() - measurements["cpu"]
    print(_MARK + json.dumps(measurements), file=sys.stderr)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{row['sentences']:,}",
        f"{row['reading']:.1f}",
        f"{row['evaluating']:.1f}",
        f"{row['cpu']:.1f}",
        megabytes(row["before"]),
        megabytes(row["peak"] - row["before"]),
    )


def _reader() -> argparse.ArgumentParser:
    reader = argparse.ArgumentParser(prog="python -m bench.size", description="Evaluate more and more sentences.")
    reader.add_argument("--model", default="trigram")
    reader.add_argument("--sizes", nargs="+", type=int, default=list(_SIZES), help="whole paradigms: multiples of 8")
    reader.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    return reader


if __name__ == "__main__":
    main()
