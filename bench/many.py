"""Time, memory and size of a hundred suites and ten models in one store, and of a report on all of them.

    python -m bench.many [--suites 100] [--sentences 1000]

The suites are paradigms of ``generate npi``. The models are n-gram models of five orders, cased and lower-case, trained
on other such sentences. The commands run as a user types them: ``evaluate`` with an empty store, the same with the full
store, and ``report``. The output has seconds, peak memory, and the sizes of the store and of the report.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path

from acceptability.generate import generate_paradigms
from acceptability.generate.generator import write_sentences
from acceptability.train import train
from acceptability.train.ngram_recipes import NGramRecipe
from bench.tables import aligned, megabytes

_ORDERS = (1, 2, 3, 4, 5)
_TRAINING_SENTENCES = 20_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Make suites and models, run the commands, and print their time and memory."""
    given = _reader().parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        suites, models = _suites(root, given.suites, given.sentences), _models(root)
        model_options = [part for name in models for part in ("--model", name)]
        evaluate = ["evaluate", *suites, *model_options, "--json"]
        report = ["report", "latest", "--out", str(root / "report.html")]
        rows = [
            (name, *_run(line, root / "home"))
            for name, line in (
                ("evaluate, empty store", evaluate),
                ("evaluate, full store", evaluate),
                ("report", report),
            )
        ]
        store = sum(path.stat().st_size for path in (root / "home").glob("scores.sqlite*"))
        page = (root / "report.html").stat().st_size
    print(f"{len(suites)} suites of {given.sentences:,} sentences × {len(models)} models")
    print(aligned([("", "seconds", "peak"), *((name, f"{took:.1f}", megabytes(peak)) for name, took, peak in rows)]))
    print(f"store {megabytes(store)}, report {megabytes(page)}")


def _suites(folder: Path, count: int, size: int) -> list[str]:
    """Write the suites, one file each, and return their paths."""
    paths = [folder / f"suite-{number:03}.jsonl" for number in range(count)]
    generated_sentences = generate_paradigms("npi", seed=1)
    for path in paths:
        write_sentences(islice(generated_sentences, size), path)
    return [str(path) for path in paths]


def _models(folder: Path) -> list[str]:
    """Train the models, and return their specs."""
    corpus = folder / "corpus.txt"
    corpus.write_text("".join(_lines()), encoding="utf-8")
    names = []
    for order, lower in product(_ORDERS, (False, True)):
        out = folder / f"order-{order}{'-lower' if lower else ''}"
        train(NGramRecipe(order=order, lower=lower), [corpus], out)
        names.append(f"ngram:{out}")
    return names


def _lines() -> Iterator[str]:
    generated_sentences = (generated.sentence for generated in generate_paradigms("npi", seed=2))
    return (
        f"{sentence.text}\n"
        for sentence in islice((sentence for sentence in generated_sentences if sentence.label), _TRAINING_SENTENCES)
    )


def _run(line: Sequence[str], home: Path) -> tuple[float, int]:
    """Run a command; return its seconds and its peak memory."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "acceptability", *line]
    with subprocess.Popen(
        command, env={**os.environ, "ACCEPTABILITY_HOME": str(home)}, stdout=subprocess.DEVNULL
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"bench: {' '.join(line[:2])} … ended with status {process.returncode}")
    return time.perf_counter() - began, used.ru_maxrss * 1024


def _reader() -> argparse.ArgumentParser:
    reader = argparse.ArgumentParser(prog="python -m bench.many", description="Many suites and models in one store.")
    reader.add_argument("--suites", type=int, default=100)
    reader.add_argument("--sentences", type=int, default=1000, help="of each suite")
    return reader


if __name__ == "__main__":
    main()
