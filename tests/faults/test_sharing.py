"""Processes that share a store: some of them are killed, or all of them create it at the same moment."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from acceptability.store.recovery import find_damage
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


# All processes of a round have read the store once, and have it open, when a bit of it is flipped; then they read it
# again, several times. Prints for each round how many outputs were wrong, the errors, and what is stored in the end.
FLIP = """
import json, multiprocessing, random, sys
from pathlib import Path
import numpy as np
from acceptability.errors import StoreError
from acceptability.store.scores import ScoreStore
from acceptability.types import Query, TokenScores

TEXTS = [f"sentence {number}" for number in range(200)]
KEYS = [Query(text).key for text in TEXTS]

def output(number):
    logprobs = np.array([-1.25, -number], dtype=np.float32)
    return TokenScores(TEXTS[number], ("sentence", str(number)), ((0, 8), (9, len(TEXTS[number]))), logprobs)

def count(store):
    found = dict(store.iter_known("m", KEYS, TEXTS.__getitem__))
    return len(found), sum(parts(found[number]) != parts(output(number)) for number in found)

def parts(scores):
    return scores.text, scores.tokens, scores.offsets, scores.logprobs.tobytes()

def read(path):
    wrong, errors = 0, []
    with ScoreStore(path) as store:
        wrong += count(store)[1]
        is_read.wait()
        is_flipped.wait()
        try:
            for _ in range(3):
                wrong += count(store)[1]
        except StoreError as error:
            errors.append(str(error))
    answers.put([wrong, errors])

folder, rounds, readers, rng = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), random.Random(17)
context = multiprocessing.get_context("fork")
for round_number in range(rounds):
    path = folder / f"home-{round_number}" / "scores.sqlite"
    with ScoreStore(path) as store:
        for first in range(0, len(TEXTS), 10):
            store.add("m", [(KEYS[number], output(number)) for number in range(first, first + 10)])
    is_read, is_flipped = context.Barrier(readers + 1), context.Barrier(readers + 1)
    answers = context.SimpleQueue()
    processes = [context.Process(target=read, args=(path,)) for _ in range(readers)]
    for process in processes:
        process.start()
    is_read.wait()
    with path.open("r+b") as file:
        # Every third on the first pages, which say what stands where.
        offset = rng.randrange(path.stat().st_size if round_number % 3 else 3 * 4096)
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1 << rng.randrange(8)]))
    is_flipped.wait()
    wrong, errors = zip(*(answers.get() for _ in processes))
    for process in processes:
        process.join()
    # A later run finds what is intact, and scores the rest again.
    with ScoreStore(path) as store:
        known = {number for number, _ in store.iter_known("m", KEYS, TEXTS.__getitem__)}
        missing = sorted(set(range(len(TEXTS))) - known)
        store.add("m", [(KEYS[number], output(number)) for number in missing])
        held, wrong_at_last = count(store)
    print(json.dumps({
        "wrong": sum(wrong) + wrong_at_last, "errors": sum(errors, []), "again": len(missing),
        "lost": len(TEXTS) - held,
    }))
"""


def test_a_bit_that_flips_while_processes_read(tmp_path: Path, rounds: Rounds, tally: Tally) -> None:
    """None of them reads a wrong output, and only a file that is damaged indeed is moved aside, once."""
    readers, times = rounds(3, 8), rounds(3, 30)
    line = [sys.executable, "-c", FLIP, str(tmp_path), str(times), str(readers)]
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=600)
    row = tally.row("a bit flipped while eight processes read")
    for number, found in enumerate(map(json.loads, done.stdout.splitlines())):
        row.injected += 1
        row.wrong += found["wrong"]
        row.lost += found["lost"]
        row.note("outputs scored again", found["again"])
        row.note("told to wait", len(found["errors"]))
        # The only error that there may be: somebody else has the store open for so long that nobody can check it.
        assert all("Nothing was changed" in error for error in found["errors"]), found["errors"]
        aside = list((tmp_path / f"home-{number}").glob("*.broken-*[0-9]"))
        row.note("moved aside", len(aside))
        assert len(aside) <= 1
        for path in aside:
            copy = tmp_path / f"aside-{number}" / "scores.sqlite"
            copy.parent.mkdir()
            for ending in ("", "-wal"):
                if (file := path.with_name(path.name + ending)).exists():
                    shutil.copyfile(file, f"{copy}{ending}")
            assert find_damage(copy) is not None
    assert row.injected == times
    assert (row.lost, row.wrong) == (0, 0)
