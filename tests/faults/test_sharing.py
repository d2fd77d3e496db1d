"""Two and eight processes on one store, left alone or killed: every one ends with the right output."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from faults.harness import Tally, differing, many_pairs, stored

Rounds = Callable[[int, int], int]


@pytest.mark.parametrize("count", [2, pytest.param(8, marks=pytest.mark.faults)])
def test_processes_on_one_store(count: int, tmp_path: Path, arpa: Path, rounds: Rounds, tally: Tally) -> None:
    """All start at once on an empty home; a third of them is killed half way."""
    suite, rng = many_pairs(tmp_path / "many.tsv", 2000), random.Random(count)
    line = [sys.executable, "-m", "acceptability", "score", str(suite), f"ngram:{arpa}", "--json"]

    def started(home: Path) -> subprocess.Popen[str]:
        env = {**os.environ, "ACCEPTABILITY_HOME": str(home), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(line, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    began = time.monotonic()
    with started(tmp_path / "calm") as process:
        calm, _ = process.communicate()
    seconds, right = time.monotonic() - began, stored(tmp_path / "calm")
    row = tally.row(f"{count} processes on one store, some killed")
    for number in range(rounds(1, 16 // count)):
        home = tmp_path / f"home-{number}"
        processes = [started(home) for _ in range(count)]
        time.sleep(rng.uniform(0.7, 1.5) * seconds)
        doomed = processes[: rng.randrange(0, 1 + count // 2)]
        for each in doomed:
            each.send_signal(signal.SIGKILL)
        row.injected += count
        for each in processes:
            out, err = each.communicate()
            assert each.returncode == 0 or each in doomed, err
            row.note("killed", each.returncode == -signal.SIGKILL)
            row.wrong += each.returncode == 0 and json.loads(out) != json.loads(calm)
        held = stored(home)
        row.wrong += differing(held, right)
        row.lost += len(right.keys() - held.keys())
    assert (row.lost, row.wrong) == (0, 0)
