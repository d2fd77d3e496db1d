"""Shared helpers of the fault tests: commands that can be killed, the content of a store, and a tally."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path

from acceptability.store.database import decode_block, read_owner
from acceptability.types import TokenScores
from tiny import SENTENCES

KEY = 16
Answers = dict[tuple[str, bytes], bytes]


@dataclass
class Row:
    """What was done to us under one name, and what came of it.

    Args:
        injected: How many faults.
        lost: Answers that the store had taken and that were not there afterwards, neither stored nor moved aside.
        wrong: Answers and outputs that differ from those of an undisturbed run.
    """

    kind: str
    injected: int = 0
    lost: int = 0
    wrong: int = 0
    notes: dict[str, int] = field(default_factory=dict)

    def note(self, name: str, count: int = 1) -> None:
        self.notes[name] = self.notes.get(name, 0) + count


@dataclass
class Tally:
    """All rows, by their kinds."""

    rows: dict[str, Row] = field(default_factory=dict)

    def row(self, kind: str) -> Row:
        return self.rows.setdefault(kind, Row(kind))

    def take_over(self, other: Row) -> None:
        """Add what another process counted."""
        row = self.row(other.kind)
        row.injected, row.lost, row.wrong = (
            row.injected + other.injected,
            row.lost + other.lost,
            row.wrong + other.wrong,
        )
        for name, count in other.notes.items():
            row.note(name, count)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([asdict(row) for row in self.rows.values()], indent=1) + "\n", encoding="utf-8")

    def lines(self) -> Iterator[str]:
        """Yield the table that is printed."""
        yield f"{'fault':<58} {'injected':>8} {'lost':>5} {'wrong':>5}  notes"
        for row in self.rows.values():
            notes = ", ".join(f"{count:,} {name}" for name, count in row.notes.items())
            yield f"{row.kind:<58} {row.injected:>8,} {row.lost:>5} {row.wrong:>5}  {notes}"
        total = [sum(getattr(row, name) for row in self.rows.values()) for name in ("injected", "lost", "wrong")]
        yield f"{'all':<58} {total[0]:>8,} {total[1]:>5} {total[2]:>5}"


@dataclass(frozen=True)
class Done:
    """The outcome of a command. A negative code is the signal that ended it."""

    code: int
    seconds: float
    out: str
    err: str
    noted: bytes


class Driver:
    """A process that runs commands in forks of itself."""

    def __init__(self, folder: Path, modules: Sequence[str] = ()) -> None:
        self.folder = folder
        line = [sys.executable, str(Path(__file__).with_name("driver.py")), *modules]
        env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def run(self, home: Path, arguments: Sequence[str], **how: object) -> Done:
        """Run a command; ``signal`` ends it ``after`` some seconds, once ``bytes`` are noted and ``when`` is there."""
        out, err, notes = (self.folder / name for name in ("out", "err", "notes"))
        notes.write_bytes(b"")
        job = {"arguments": list(arguments), "env": {"ACCEPTABILITY_HOME": str(home)}, **how}
        job |= {"out": str(out), "err": str(err), "notes": str(notes)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        reply = json.loads(self._process.stdout.readline())
        texts = [path.read_text(encoding="utf-8") if path.exists() else "" for path in (out, err)]
        return Done(reply["code"], reply["seconds"], *texts, notes.read_bytes())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def many_pairs(path: Path, count: int) -> Path:
    """Write a suite of distinct pairs, so that a run has many batches."""
    words = " ".join(SENTENCES).replace(".", "").split()
    rows = [
        f"{words[i % 40]} {words[(i * 7) % 41]} {words[i % 17]} the {i}\t{words[i % 40]} {words[i % 13]} the cats {i}"
        for i in range(count)
    ]
    path.write_text("good\tbad\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def stored(home: Path) -> Answers:
    """Return all that the store of a home holds, read row by row, each block checked: model and key → numbers."""
    path = home / "scores.sqlite"
    if not path.exists():
        return {}
    with closing(sqlite3.connect(path, timeout=60)) as database:
        if not database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            return {}
        rows = database.execute("SELECT keys, answers FROM block ORDER BY number").fetchall()
    answers: Answers = {}
    for keys, block in rows:
        model = read_owner(block)
        assert model is not None
        outputs = decode_block(block, keys, dict.fromkeys(range(len(keys) // KEY), ""), model)
        assert outputs is not None, "a block that is not whole was left in the store"
        for row, output in outputs.items():
            key = model, keys[KEY * row : KEY * (row + 1)]
            answers.setdefault(
                key, output.logprobs.tobytes() if isinstance(output, TokenScores) else str(output).encode()
            )
    return answers


def missing(noted: bytes, held: Answers) -> int:
    """Return how many of the queries whose answers were taken are not among those held."""
    keys = {key for _, key in held}
    return sum(noted[start : start + KEY] not in keys for start in range(0, len(noted), KEY))


def differing(held: Answers, calm: Answers) -> int:
    """Return how many answers are not those of an undisturbed run."""
    return sum(calm.get(key) != answer for key, answer in held.items())
