"""Processes that share a store: some of them are killed, or all of them create it at the same moment."""

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
        for process in doomed:
            process.send_signal(signal.SIGKILL)
        row.injected += count
        for process in processes:
            out, err = process.communicate()
            assert process.returncode == 0 or process in doomed, err
            row.note("killed", process.returncode == -signal.SIGKILL)
            row.wrong += process.returncode == 0 and json.loads(out) != json.loads(calm)
        held = stored(home)
        row.wrong += differing(held, right)
        row.lost += len(right.keys() - held.keys())
    assert (row.lost, row.wrong) == (0, 0)


# The processes of a round are forks that wait for each other just before they open the store. Prints how many failed,
# and with which errors, by round.
RACE = """
import json, multiprocessing, sys
from pathlib import Path
import numpy as np
from acceptability.errors import StoreError
from acceptability.store.scores import ScoreStore
from acceptability.types import Query, TokenScores

def race(home, index):
    output = TokenScores("a b", ("a", "b"), ((0, 1), (2, 3)), np.array([-1.25, -index], dtype=np.float32))
    start.wait()
    try:
        with ScoreStore(home / "scores.sqlite") as store:
            for model in (f"m{index}", "shared"):
                store.add(model, [(Query(f"{index} {number}").key, output) for number in range(3)])
        errors.put("")
    except StoreError as error:
        errors.put(str(error))

folder, rounds, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
context = multiprocessing.get_context("fork")
for number in range(rounds):
    start, errors = context.Barrier(count), context.SimpleQueue()
    racers = [context.Process(target=race, args=(folder / f"home-{number}", index)) for index in range(count)]
    for racer in racers:
        racer.start()
    print(json.dumps([errors.get() for _ in racers]))
    for racer in racers:
        racer.join()
"""


def test_processes_that_create_a_store(tmp_path: Path, rounds: Rounds, tally: Tally) -> None:
    """Eight open a store that is not there yet, and add outputs: none fails, and nothing is moved aside."""
    count, times = 8, rounds(3, 60)
    line = [sys.executable, "-c", RACE, str(tmp_path), str(times), str(count)]
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=600)
    row = tally.row("eight processes that create a store at once")
    for number, errors in enumerate(map(json.loads, done.stdout.splitlines())):
        home = tmp_path / f"home-{number}"
        row.injected += count
        row.note("failed", sum(map(bool, errors)))
        row.note("moved aside", len(list(home.glob("*.broken-*[0-9]"))))
        # Each adds three outputs to a model of its own, and three to one of all.
        row.lost += 6 * count - len(stored(home))
    assert row.injected == times * count
    assert row.notes == {"failed": 0, "moved aside": 0}, done.stdout
    assert row.lost == 0
