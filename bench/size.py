"""A million sentences through ``acceptability evaluate``: time and memory, by size.

    python -m bench.size --model trigram
    python -m bench.size --model 'mini-causal(device="cuda")' --sizes 100000 1000000

The sentences are those of ``generate npi``, seed after seed, each with a name of its own. Every size is a process of
its own with an empty store, and runs the command as a user types it. *CPU* are seconds of a processor, which other work
on the machine changes less. *Suite* is what the process holds when the file is read; *above* is how much more
it holds at its peak after that: the model, the scores, the measures and the saved run.
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

from acceptability.generate.phenomena import paradigms
from acceptability.generate.writing import Made, write_sentences
from bench.memory import Meter
from bench.tables import aligned, megabytes

_SIZES = (100_000, 250_000, 500_000, 1_000_000)
_MARK = "measured: "


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each size, and print a table."""
    given = _reader().parse_args(arguments)
    if given.file:
        _measured(given.file, given.model)
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        everything, part = Path(folder, "everything.jsonl"), Path(folder, "part.jsonl")
        _write(everything, max(given.sizes))
        for size in given.sizes:
            with everything.open(encoding="utf-8") as lines, part.open("w", encoding="utf-8") as out:
                out.writelines(islice(lines, size))
            rows.append(_in_a_process(part, given.model))
            print(
                aligned([("sentences", "reading s", "evaluating s", "CPU s", "suite", "above"), *map(_cells, rows)]),
                flush=True,
            )


def _write(path: Path, size: int) -> None:
    """Write so many sentences of the NPI paradigms; where one seed has no more, the next goes on."""
    made = (_named(each, seed) for seed in count(1) for each in paradigms("npi", seed=seed))
    write_sentences(islice(made, size), path)


def _named(each: Made, seed: int) -> Made:
    return Made(
        replace(each.sentence, id=f"{seed}-{each.sentence.id}"), [f"{seed}-{other}" for other in each.better_than]
    )


def _in_a_process(path: Path, model: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as home:
        line = [sys.executable, "-m", "bench.size", "--file", str(path), "--model", model]
        done = subprocess.run(line, env={**os.environ, "ACCEPTABILITY_HOME": home}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    said = next(each for each in done.stderr.splitlines() if each.startswith(_MARK))
    found: dict[str, Any] = json.loads(said.removeprefix(_MARK))
    return found


def _measured(path: Path, model: str) -> None:
    """Be the command, and tell what it took."""
    from acceptability import cli
    from acceptability.cli import evaluate as command

    noted: dict[str, Any] = {}
    evaluate: Any = command
    plain, began = evaluate.loaded_suite, time.perf_counter()

    def watched(*asked: Any) -> Any:
        suite = plain(*asked)
        noted.update(
            sentences=len(suite.sentences),
            reading=time.perf_counter() - began,
            meter=Meter("cpu"),
            cpu=time.process_time(),
        )
        return suite

    evaluate.loaded_suite = watched
    sys.argv = ["acceptability", "evaluate", str(path), "--model", model, "--json"]
    try:
        cli.main()
    except SystemExit as stop:
        if stop.code:
            raise
    found = noted.pop("meter").found()
    noted.update(evaluating=time.perf_counter() - began - noted["reading"], before=found.before, peak=found.peak)
    noted["cpu"] = time.process_time() - noted["cpu"]
    print(_MARK + json.dumps(noted), file=sys.stderr)


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
    reader = argparse.ArgumentParser(prog="python -m bench.size", description="Evaluate ever more sentences.")
    reader.add_argument("--model", default="trigram")
    reader.add_argument("--sizes", nargs="+", type=int, default=list(_SIZES), help="whole paradigms: multiples of 8")
    reader.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    return reader


if __name__ == "__main__":
    main()
