"""The numbers of two versions of this package, side by side: every cell that a command prints with ``--json``.

    python -m bench.compare_versions BEFORE/src AFTER/src [--command "study adc"]

The commands run as a user types them, each version with an empty store of its own. Rows are matched by what names them
(table, row and column; or measure, model, suite and group), so that neither their order nor a new column counts.
A line for each command has the cells compared, those that are equal, and those that differ by more than a millionth;
the differing ones follow, one to a line. A cell is a number or an empty place in a row of the version before; one that
the other version lacks differs. The exit status is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.tables import aligned

COMMANDS = (
    "study adc",
    "study adc --model trigram",
    "study niu-penn",
    "study niu-penn --model trigram --model mini-lstm",
    "study park",
    "study park --model trigram",
    "study humans",
    "study cola",
    "study cola --model trigram",
    "study syntaxgym",
    "study syntaxgym --model trigram",
    "demo",
)
"""No trained classifiers: new trainings give other weights, as the changelog says under Numbers."""

# What names a row, of the columns that it has; not what is prose, such as the source of a number.
_NAMES = ("table", "row", "column", "measure", "model", "reduction", "suite", "group", "first", "second")
# Libraries that replace our own optimisers agree to about nine digits.
_TOLERANCE = 1e-6

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """A cell that differs: where it stands, and its two values."""

    name: str
    before: object
    after: object


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the commands with both versions and print what differs."""
    given = _make_parser().parse_args(arguments)
    table, details = [("command", "cells", "equal", "differing")], []
    for command in given.command or COMMANDS:
        before, after = (_run(source, command) for source in (given.before, given.after))
        count, differences = compare_rows(before, after)
        table.append((command, f"{count:,}", f"{count - len(differences):,}", f"{len(differences):,}"))
        details += [f"{command}: {found.name}: {found.before!r}, now {found.after!r}" for found in differences]
    print("\n".join([aligned(table), *details]))
    return int(bool(details))


def compare_rows(before: Sequence[Row], after: Sequence[Row]) -> tuple[int, list[Difference]]:
    """Return the number of cells of some rows, and those that other rows lack or have with another value.

    >>> was = [{"table": "1", "row": "a", "ours": 0.5}, {"table": "1", "row": "b", "ours": None}]
    >>> now = [{"table": "1", "row": "b", "ours": 2.0}, {"table": "1", "row": "a", "ours": 0.5 + 1e-9, "unit": "%"}]
    >>> compare_rows(was, now)
    (2, [Difference(name='1, b: ours', before=None, after=2.0)])
    """
    count, differences = 0, []
    rows_after = dict(_name_rows(after))
    for key, row in _name_rows(before):
        for column, value in _iterate_cells(row):
            count += 1
            other = rows_after.get(key, {}).get(column, "no such cell")
            if not _is_same(value, other):
                differences.append(Difference(f"{', '.join(filter(None, key[:-1]))}: {column}", value, other))
    return count, differences


def _name_rows(rows: Sequence[Row]) -> Iterator[tuple[tuple[str, ...], Row]]:
    """Yield rows with their names; of several with the same name, each has its number too."""
    counts: Counter[tuple[str, ...]] = Counter()
    for row in rows:
        names = tuple(str(row.get(name) or "") for name in _NAMES)
        counts[names] += 1
        yield (*names, str(counts[names])), row


def _iterate_cells(row: Row) -> Iterator[tuple[str, float | None]]:
    # True and False are numbers to Python; here they are cells too: whether we agree with the paper.
    yield from ((name, cell) for name, cell in row.items() if cell is None or isinstance(cell, int | float))


def _is_same(before: float | None, after: object) -> bool:
    if before is None or after is None or not isinstance(after, int | float):
        return before is after
    return math.isclose(before, after, rel_tol=_TOLERANCE, abs_tol=1e-12)


def _run(source: Path, command: str) -> list[Row]:
    """Return the rows that a command prints with the version in a folder."""
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "PYTHONPATH": str(source.resolve()), "ACCEPTABILITY_HOME": home}
        line = [sys.executable, "-m", "acceptability", *shlex.split(command), "--json"]
        # In a folder of its own, since the demo writes a page.
        done = subprocess.run(line, cwd=home, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command} fails with {source}: {done.stderr.strip()[-500:]}")
    rows = json.loads(done.stdout)
    assert isinstance(rows, list)
    return rows


def _make_parser() -> argparse.ArgumentParser:
    reader = argparse.ArgumentParser(prog="python -m bench.compare_versions", description="Compare two versions.")
    reader.add_argument("before", type=Path, help="The folder with the package of one version.")
    reader.add_argument("after", type=Path, help="The folder with the package of the other one.")
    reader.add_argument("--command", action="append", help="Only this command; repeatable.")
    return reader


if __name__ == "__main__":
    sys.exit(main())
