"""Commands killed at random moments and run again: the same output, with nothing lost and nothing wrong."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from faults.harness import KEY, Done, Driver, Row, Tally, differing, many_pairs, missing, stored

Rounds = Callable[[int, int], int]
KILLED = -signal.SIGKILL


def choose_moment(rng: random.Random, calm: Done) -> dict[str, object]:
    """Return a random moment of a run: any time from its start on, or just after some answers were stored."""
    if calm.noted and rng.random() < 0.6:
        return {"bytes": KEY * rng.randrange(1, len(calm.noted) // KEY), "after": rng.uniform(0, 0.003)}
    return {"after": rng.uniform(0, calm.seconds)}


def killed_and_run_again(
    driver: Driver, arguments: Sequence[str], folder: Path, kills: int, row: Row, seed: int
) -> None:
    """Kill a command that often, sometimes several times before it may end, and compare each end with a calm one."""
    rng, calm_home = random.Random(seed), folder / "calm"
    calm = driver.run(calm_home, arguments)
    assert calm.code == 0, calm.err
    right, done, tries = stored(calm_home), 0, 0
    while done < kills:
        home, noted, before = folder / f"home-{tries}", b"", done
        for _ in range(rng.randrange(1, 4)):
            ended = driver.run(home, arguments, signal=signal.SIGKILL, **choose_moment(rng, calm))
            assert ended.code in (KILLED, 0), ended.err
            noted += ended.noted
            done += ended.code == KILLED
            held = stored(home)
            row.lost += missing(noted, held)
            row.wrong += differing(held, right)
            row.note("stopped half way", bool(0 < len(held) < len(right)))
        again = driver.run(home, arguments)
        assert again.code == 0, again.err
        row.wrong += json.loads(again.out) != json.loads(calm.out)
        row.lost += len(right.keys() - stored(home).keys())
        row.injected += done - before
        tries += 1
        assert tries < 20 * kills, "the runs are too quick to be killed"
    assert (row.lost, row.wrong) == (0, 0)


@pytest.mark.parametrize("model", ["uniform", "ngram"])
def test_score(model: str, driver: Driver, tmp_path: Path, arpa: Path, rounds: Rounds, tally: Tally) -> None:
    suite, kills = many_pairs(tmp_path / "many.tsv", 900), rounds(3, 45)
    spelled = {"uniform": "uniform", "ngram": f"ngram:{arpa}"}[model]
    line = ["score", str(suite), spelled, "--json"]
    killed_and_run_again(driver, line, tmp_path, kills, tally.row("SIGKILL at a random moment: score"), seed=1)


def test_evaluate(driver: Driver, tmp_path: Path, arpa: Path, rounds: Rounds, tally: Tally) -> None:
    suite = many_pairs(tmp_path / "many.tsv", 900)
    line = ["evaluate", str(suite), "-m", f"ngram:{arpa}", "-m", "uniform", "--json", "--resamples", "50"]
    killed_and_run_again(driver, line, tmp_path, rounds(3, 50), tally.row("SIGKILL at a random moment: evaluate"), 2)


@pytest.mark.faults
def test_evaluate_a_network(
    torch_driver: Driver, tmp_path: Path, causal_dir: Path, rounds: Rounds, tally: Tally
) -> None:
    suite, row = many_pairs(tmp_path / "many.tsv", 400), tally.row("SIGKILL at a random moment: evaluate, transformer")
    line = ["evaluate", str(suite), "-m", f"causal:{causal_dir}", "--json", "--resamples", "50"]
    killed_and_run_again(torch_driver, line, tmp_path, 12, row, seed=3)


def trained(folder: Path) -> dict[str, object]:
    """Return what a training run writes, except for its running times."""
    recipe = json.loads((folder / "recipe.json").read_text(encoding="utf-8"))
    facts = {name: value for name, value in recipe.pop("facts").items() if not name.startswith("seconds")}
    recipe.pop("seconds")
    rest = [path for path in folder.iterdir() if path.name not in ("recipe.json", "README.md")]
    return {**recipe, **facts, **{path.name: path.is_file() and path.read_bytes() for path in rest}}


def killed_and_trained_again(
    driver: Driver, line: Sequence[str], folder: Path, kills: int, row: Row, seed: int
) -> None:
    rng, done, tries = random.Random(seed), 0, 0
    calm = driver.run(folder / "home", ["train", *line, "--out", str(folder / "calm")])
    assert calm.code == 0, calm.err
    while done < kills:
        out, before = folder / f"model-{tries}", done
        arguments = ["train", *line, "--out", str(out)]
        for _ in range(rng.randrange(1, 4)):
            ended = driver.run(folder / "home", arguments, signal=signal.SIGKILL, after=rng.uniform(0, calm.seconds))
            assert ended.code in (KILLED, 0), ended.err
            done += ended.code == KILLED
            row.note("began again from a checkpoint", (out / ".checkpoint" / "state.json").exists())
        again = driver.run(folder / "home", arguments)
        assert again.code == 0, again.err
        result, right = trained(out), trained(folder / "calm")
        differ = sorted(name for name in result.keys() | right.keys() if result.get(name) != right.get(name))
        row.wrong += len(differ)
        assert not differ, f"after {done} kills"
        row.injected += done - before
        tries += 1
        assert tries < 20 * kills, "the runs are too quick to be killed"
    assert row.wrong == 0


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    rows = (f"word{i % 97} and {i % 101} of w{i % 31} the {i % 7} .\n" for i in range(4000))
    path.write_text("".join(rows), encoding="utf-8")
    return path


def test_train_an_ngram(driver: Driver, corpus: Path, tmp_path: Path, rounds: Rounds, tally: Tally) -> None:
    line, row = ["ngram", "-c", str(corpus), "--set", "order=3"], tally.row("SIGKILL at a random moment: train ngram")
    killed_and_trained_again(driver, line, tmp_path, rounds(3, 40), row, seed=4)


@pytest.mark.faults
def test_train_a_network(torch_driver: Driver, corpus: Path, tmp_path: Path, rounds: Rounds, tally: Tally) -> None:
    options = ("embedding=8", "hidden=8", "layers=1", "batch_words=1000", "epochs=1", "save_every=5")
    line = ["lstm", "-c", str(corpus), *(part for option in options for part in ("--set", option))]
    row = tally.row("SIGKILL at a random moment: train lstm")
    killed_and_trained_again(torch_driver, line, tmp_path, 12, row, seed=5)


def test_the_program_itself(tmp_path: Path, arpa: Path, rounds: Rounds, tally: Tally) -> None:
    """The same with a new Python process, as users start it."""
    suite, row = many_pairs(tmp_path / "many.tsv", 900), tally.row("SIGKILL at a random moment: the program as started")
    rng, line = (
        random.Random(6),
        [sys.executable, "-m", "acceptability", "score", str(suite), f"ngram:{arpa}", "--json"],
    )

    def run(home: Path, timeout: float | None) -> str | None:
        """Return the output, or None for a run that was killed."""
        env = {**os.environ, "ACCEPTABILITY_HOME": str(home), "OMP_NUM_THREADS": "1"}
        try:
            return subprocess.run(line, env=env, capture_output=True, text=True, check=True, timeout=timeout).stdout
        except subprocess.TimeoutExpired:
            return None

    began = time.monotonic()
    calm = run(tmp_path / "calm", None)
    seconds, right = time.monotonic() - began, stored(tmp_path / "calm")
    for number in range(rounds(1, 12)):
        home = tmp_path / f"home-{number}"
        row.injected += run(home, rng.uniform(0.5, 1.0) * seconds) is None
        row.wrong += differing(stored(home), right)
        row.wrong += run(home, None) != calm
        row.lost += len(right.keys() - stored(home).keys())
    assert (row.lost, row.wrong) == (0, 0)


def test_killed_after_its_last_word(driver: Driver, corpus: Path, tmp_path: Path, tally: Tally) -> None:
    """A training run that was killed after writing everything, before it removed its checkpoint."""
    row, line = tally.row("SIGKILL at a random moment: train ngram"), ["train", "ngram", "-c", str(corpus), "--out"]
    assert driver.run(tmp_path, [*line, str(tmp_path / "m")]).code == 0
    before = trained(tmp_path / "m")
    (tmp_path / "m" / ".checkpoint").mkdir()
    (tmp_path / "m" / ".checkpoint" / "counts-1").write_bytes(b"x")
    assert driver.run(tmp_path, [*line, str(tmp_path / "m")]).code == 0
    row.wrong += trained(tmp_path / "m") != before
    assert row.wrong == 0
