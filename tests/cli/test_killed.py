"""A run that is killed at any moment resumes where it stopped, and ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tiny import SENTENCES


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Many distinct pairs, so that a run has many batches."""
    words = " ".join(SENTENCES).replace(".", "").split()
    path = tmp_path / "many.tsv"
    rows = [
        f"{words[i % 40]} {words[(i * 7) % 41]} {words[i % 17]} the {i}\t{words[i % 40]} {words[i % 13]} the cats {i}"
        for i in range(4000)
    ]
    path.write_text("good\tbad\n" + "\n".join(rows) + "\n")
    return path


def command(home: Path, *arguments: str) -> tuple[list[str], dict[str, str]]:
    return [sys.executable, "-m", "acceptability", *arguments], {**os.environ, "ACCEPTABILITY_HOME": str(home)}


def stored(home: Path) -> int:
    path = home / "scores.sqlite"
    if not path.exists():
        return 0
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60) as database:
        try:
            count = database.execute("SELECT COALESCE(SUM(LENGTH(keys)) / 16, 0) FROM block").fetchone()[0]
        except sqlite3.OperationalError:
            count = 0
    database.close()
    return count


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ngram", "causal"])
def test_a_killed_command_resumes(kind: str, suite: Path, tmp_path: Path, arpa: Path, causal_dir: Path) -> None:
    model = {"ngram": f"ngram:{arpa}", "causal": f"causal:{causal_dir}"}[kind]
    asked = ("evaluate", str(suite), "-m", model, "--json", "--resamples", "100")
    calm, broken = tmp_path / "calm", tmp_path / "broken"
    line, env = command(calm, *asked)
    undisturbed = subprocess.run(line, env=env, capture_output=True, text=True, check=True).stdout
    line, env = command(broken, *asked)
    kills = 0
    for target in (1, 1500, 4000):
        with subprocess.Popen(line, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            while process.poll() is None and stored(broken) < target:
                time.sleep(0.005)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                kills += 1
            process.communicate()
    assert kills >= 2, "the run was too quick to be killed"
    before = stored(broken)
    assert 0 < before < stored(calm), "the kill must leave something done and something to do"
    again = subprocess.run(line, env=env, capture_output=True, text=True, check=True).stdout
    assert json.loads(again) == json.loads(undisturbed)
    assert stored(broken) == stored(calm)
    tokens = [
        json.loads(subprocess.run(line, env=env, capture_output=True, text=True, check=True).stdout)
        for line, env in (command(home, "score", str(suite), model, "--json") for home in (calm, broken))
    ]
    for one, other in zip(*tokens, strict=True):
        assert one["score"] == pytest.approx(other["score"], abs=1e-4)
