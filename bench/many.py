"""A hundred suites and ten models in one store, and one report over all of it.

    python -m bench.many [--suites 100] [--sentences 1000]

The suites are paradigms of ``generate npi``; the models are n-grams of five orders, with and without capitals, of other
such sentences. The commands run as a user types them: ``evaluate`` into an empty store, the same again from a full
one, and ``report``. Printed: seconds, memory at the peak, and the sizes of the store and of the report.
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

from acceptability.generate.phenomena import paradigms
from acceptability.generate.writing import write_sentences
from acceptability.train import train
from acceptability.train.ngram import NGram
from bench.tables import aligned, megabytes

_ORDERS = (1, 2, 3, 4, 5)
_LEARNT = 20_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Make suites and models, run the commands, and print what they took."""
    given = _reader().parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        suites, models = _suites(place, given.suites, given.sentences), _models(place)
        asked = [part for name in models for part in ("--model", name)]
        evaluate = ["evaluate", *suites, *asked, "--json"]
        report = ["report", "latest", "--out", str(place / "report.html")]
        rows = [
            (name, *_run(line, place / "home"))
            for name, line in (("into an empty store", evaluate), ("from the store", evaluate), ("report", report))
        ]
        store = sum(path.stat().st_size for path in (place / "home").glob("scores.sqlite*"))
        page = (place / "report.html").stat().st_size
    print(f"{len(suites)} suites of {given.sentences:,} sentences × {len(models)} models")
    print(aligned([("", "seconds", "peak"), *((name, f"{took:.1f}", megabytes(peak)) for name, took, peak in rows)]))
    print(f"store {megabytes(store)}, report {megabytes(page)}")


def _suites(folder: Path, count: int, size: int) -> list[str]:
    """Write the suites, a file each, and return their names."""
    paths = [folder / f"suite-{number:03}.jsonl" for number in range(count)]
    made = paradigms("npi", seed=1)
    for path in paths:
        write_sentences(islice(made, size), path)
    return [str(path) for path in paths]


def _models(folder: Path) -> list[str]:
    """Teach the models, and return how they are spelled."""
    corpus = folder / "corpus.txt"
    corpus.write_text("".join(_lines()), encoding="utf-8")
    names = []
    for order, lower in product(_ORDERS, (False, True)):
        out = folder / f"order-{order}{'-lower' if lower else ''}"
        train(NGram(order=order, lower=lower), [corpus], out)
        names.append(f"ngram:{out}")
    return names


def _lines() -> Iterator[str]:
    made = (each.sentence for each in paradigms("npi", seed=2))
    return (f"{each.text}\n" for each in islice((each for each in made if each.label), _LEARNT))


def _run(line: Sequence[str], home: Path) -> tuple[float, int]:
    """Run a command to its end; return its seconds, and its memory at most."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "acceptability", *line]
    with subprocess.Popen(
        command, env={**os.environ, "ACCEPTABILITY_HOME": str(home)}, stdout=subprocess.DEVNULL
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"bench: {' '.join(line[:2])} … ended with {process.returncode}")
    return time.perf_counter() - began, used.ru_maxrss * 1024


def _reader() -> argparse.ArgumentParser:
    reader = argparse.ArgumentParser(prog="python -m bench.many", description="Many suites and models in one store.")
    reader.add_argument("--suites", type=int, default=100)
    reader.add_argument("--sentences", type=int, default=1000, help="of each suite")
    return reader


if __name__ == "__main__":
    main()
