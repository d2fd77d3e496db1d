"""CPU time and memory of reading a suite: the first time, when it is parsed and kept, and the second time.

    python -m bench.reading
    python -m bench.reading --suites blimp mine.csv --rows 1000000

Every reading is a process of its own, which imports the package first. *read* is ``load_suite``, *hash* its
fingerprint, *sentences* and *contrasts* building all of them; seconds of CPU. *memory* is how much more the process
holds after these than before, without the pages of mapped files; *with files* counts those too.

``--write-contents`` writes what ``acceptability suites show`` says about the suites of the catalog.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.tables import aligned

_SUITES = ("blimp", "blimp/island_effects/wh_island", "npi", "cola", "syntaxgym")
_ROWS = 200_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Read each suite twice, and print a table."""
    given = _reader().parse_args(arguments)
    if given.write_contents:
        write_contents()
        return
    if given.suite:
        print(json.dumps(_measure(given.suite)))
        return
    rows: list[tuple[str, ...]] = [
        ("suite", "", "read", "hash", "sentences", "contrasts", "total", "memory", "with files")
    ]
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, f"{given.rows}-rows.csv")
        _write_table(table, given.rows)
        for number, name in enumerate((*given.suites, str(table))):
            home = Path(folder, str(number))
            for when in ("first", "second"):
                measured = _measure_in_subprocess(name, home)
                seconds = [measured[stage] for stage in ("read", "hash", "sentences", "contrasts")]
                cells = (*(f"{one:.3f}" for one in (*seconds, sum(seconds))),)
                memory = (f"{measured[kind] / 2**20:.0f} MiB" for kind in ("own", "all"))
                rows.append((Path(name).name if name == str(table) else name, when, *cells, *memory))
    print(aligned(rows))


def write_contents() -> None:
    """Write the contents of all suites of the package's catalog but the Hub's; they have to be on this machine."""
    from acceptability import suites

    # The sentences of a data set of the Hub may be under terms that forbid to print any.
    entries = [
        entry for entry in suites.load_catalog() if not entry.in_tables and not suites.catalog.is_plugin_suite(entry)
    ]
    contents = {entry.id: asdict(suites.summarise_contents(suites.load_suite(entry.id))) for entry in entries}
    lines = (f" {json.dumps(name)}: {json.dumps(row, ensure_ascii=False)}" for name, row in contents.items())
    path = Path(suites.__file__).with_name("contents.json")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8", newline="\n")


def _write_table(path: Path, rows: int) -> None:
    with path.open("w", encoding="utf-8") as out:
        out.write("id,text,label,rating,item,source\n")
        for row in range(rows):
            text = f"The {row % 977}th linguist judged sentence {row} on day {row % 31}."
            out.write(f"s{row},{text},{row % 2},{row % 7 - 3.5},{row // 4},source {row % 90}\n")
    # What was written a moment ago is hashed again, as it may change without a change of its time.
    os.utime(path, (0, 0))


def _measure_in_subprocess(name: str, home: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.reading", "--suite", name]
    done = subprocess.run(command, env={**os.environ, "ACCEPTABILITY_HOME": str(home)}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def _measure(name: str) -> dict[str, float]:
    from acceptability.suites import load_suite

    before = _read_memory()
    start = time.process_time()
    suite = load_suite(name)
    seconds = {"read": time.process_time() - start}
    stages: dict[str, Callable[[], Any]] = {
        "hash": lambda: suite.hash,
        "sentences": lambda: sum(1 for _ in suite.sentences),
        "contrasts": lambda: sum(1 for _ in suite.contrasts),
    }
    for stage, run in stages.items():
        start = time.process_time()
        run()
        seconds[stage] = time.process_time() - start
    return seconds | {kind: size - before[kind] for kind, size in _read_memory().items()}


def _read_memory() -> dict[str, int]:
    """Return the resident memory of this process in bytes: its own, and with the pages of mapped files."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines())
    return {kind: int(fields[field].split()[0]) * 1024 for kind, field in (("own", "RssAnon"), ("all", "VmRSS"))}


def _reader() -> argparse.ArgumentParser:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--suites", nargs="*", default=_SUITES, help="the suites besides a table of our own")
    reader.add_argument("--rows", type=int, default=_ROWS, help="the number of rows of that table")
    reader.add_argument("--suite", help=argparse.SUPPRESS)
    reader.add_argument("--write-contents", action="store_true", help="write suites/contents.json instead")
    return reader


if __name__ == "__main__":
    main()
