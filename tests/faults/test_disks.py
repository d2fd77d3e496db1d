"""A full disk, a home folder that cannot be written to, and no home folder at all."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from faults.harness import Row, Tally, differing, many_pairs, stored

Rounds = Callable[[int, int], int]


def run(home: Path | None, *arguments: str, **how: object) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", **how.pop("env", {})}  # type: ignore[dict-item]
    env |= {"ACCEPTABILITY_HOME": str(home)} if home else {}
    line = [sys.executable, "-m", "acceptability", *arguments]
    return subprocess.run(line, env=env, capture_output=True, text=True, **how)


def mounted(folder: Path, options: str) -> bool:
    folder.mkdir(exist_ok=True)
    line = ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)]
    try:
        return subprocess.run(line, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 160 kilobytes."""
    folder = tmp_path / "disk"
    if not mounted(folder, "size=160k"):
        pytest.skip("no disk can be mounted here; test_a_file_that_may_not_grow does the same with a limit")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def check_resumes(line: list[str], home: Path, right: Path, output: str, row: Row) -> None:
    """Run the command again, now that there is space, and compare its output."""
    held = stored(home)
    row.wrong += differing(held, stored(right))
    again = run(home, *line)
    assert again.returncode == 0, again.stderr
    row.wrong += json.loads(again.stdout) != json.loads(output)
    row.lost += len((held.keys() | stored(right).keys()) - stored(home).keys())
    assert (row.lost, row.wrong) == (0, 0)


def is_one_line(done: subprocess.CompletedProcess[str]) -> bool:
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return done.returncode == 1 and len(errors) == 1 and "Traceback" not in done.stderr


def test_a_full_disk(tmp_path: Path, small_disk: Path, arpa: Path, tally: Tally) -> None:
    line = ["score", str(many_pairs(tmp_path / "many.tsv", 3000)), f"ngram:{arpa}", "--json"]
    row, calm = tally.row("a full disk: score"), run(tmp_path / "calm", *line)
    full = run(small_disk, *line)
    assert is_one_line(full), full.stderr
    assert "cannot use the store" in full.stderr
    assert "space" in full.stderr
    row.injected += 1
    row.note("answers kept", len(stored(small_disk)))
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    check_resumes(line, small_disk, tmp_path / "calm", calm.stdout, row)


@pytest.mark.faults
def test_a_full_disk_while_a_run_is_saved(tmp_path: Path, small_disk: Path, tally: Tally) -> None:
    row = tally.row("a full disk: saving a run")
    (small_disk / "filler").write_bytes(bytes(60_000))
    full = run(small_disk, "evaluate", "starter", "-m", "uniform", "--json")
    assert is_one_line(full), full.stderr
    row.injected += 1
    assert not list((small_disk / "runs").glob("*/*")), "a run was left half written"
    (small_disk / "filler").unlink()
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    line = ["evaluate", "starter", "-m", "uniform", "--json"]
    check_resumes(line, small_disk, tmp_path / "calm", run(tmp_path / "calm", *line).stdout, row)


@pytest.mark.faults
def test_a_full_disk_while_a_model_is_trained(tmp_path: Path, small_disk: Path, tally: Tally) -> None:
    row, corpus = tally.row("a full disk: train"), tmp_path / "corpus.txt"
    corpus.write_text("".join(f"word{i % 977} and {i % 1013} of w{i % 31} .\n" for i in range(20_000)))
    line = ["train", "ngram", "-c", str(corpus), "--json", "--out"]
    full = run(tmp_path, *line, str(small_disk / "model"))
    assert is_one_line(full), full.stderr
    assert "the disk is full" in full.stderr
    row.injected += 1
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    for out in (small_disk / "model", tmp_path / "calm"):
        assert run(tmp_path, *line, str(out)).returncode == 0
    for name in ("model.safetensors", "vocabulary.json", "unigrams.tsv"):
        row.wrong += (small_disk / "model" / name).read_bytes() != (tmp_path / "calm" / name).read_bytes()
    assert row.wrong == 0


@pytest.mark.faults
def test_a_file_that_may_not_grow(tmp_path: Path, arpa: Path, rounds: Rounds, tally: Tally) -> None:
    """A quota, as the system's limit on the size of a file."""
    line = ["score", str(many_pairs(tmp_path / "many.tsv", 3000)), f"ngram:{arpa}", "--json"]
    row, calm = tally.row("a quota that is used up"), run(tmp_path / "calm", *line)
    for size in (60_000, 10_000, 150_000)[: rounds(1, 3)]:

        def limited(size: int = size) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        full = run(tmp_path / f"home-{size}", *line, preexec_fn=limited, env={"PYTHONDONTWRITEBYTECODE": "1"})
        assert is_one_line(full), full.stderr
        row.injected += 1
        row.note("answers kept", len(stored(tmp_path / f"home-{size}")))
        check_resumes(line, tmp_path / f"home-{size}", tmp_path / "calm", calm.stdout, row)


def test_a_home_that_is_only_for_reading(tmp_path: Path, tally: Tally) -> None:
    row, folder, line = tally.row("a home that is only for reading"), tmp_path / "disk", ["score", "starter", "uniform"]
    if not mounted(folder, "size=20m"):
        pytest.skip("no disk can be mounted here")
    try:
        whole = run(folder, *line)
        before = (folder / "scores.sqlite").read_bytes()
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        refused = run(folder, *line)
        assert is_one_line(refused), refused.stderr
        assert "cannot use the store" in refused.stderr
        row.injected += 1
        row.lost += (folder / "scores.sqlite").read_bytes() != before
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
        row.wrong += run(folder, *line).stdout != whole.stdout
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    assert (row.lost, row.wrong) == (0, 0)


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("ACCEPTABILITY_HOME", "/proc/nowhere"),
        ("ACCEPTABILITY_HOME", "/dev/null/home"),
        ("ACCEPTABILITY_HOME", "~nobody-of-this-name/home"),
        ("XDG_DATA_HOME", "/proc/nowhere"),
        ("HOME", "/dev/null/home"),
    ],
)
def test_no_home(name: str, home: str, tmp_path: Path, tally: Tally) -> None:
    row = tally.row("no home")
    # Whatever is taken instead, it must not be the home of the person who runs the tests.
    safe = {"HOME": str(tmp_path / "safe"), "XDG_DATA_HOME": str(tmp_path / "safe" / "data")}
    env = {name: value for name, value in os.environ.items() if name != "ACCEPTABILITY_HOME"} | safe
    if name == "HOME":
        del env["XDG_DATA_HOME"]
    env[name] = home
    line = [sys.executable, "-m", "acceptability", "score", "starter", "uniform"]
    done = subprocess.run(line, env=env, capture_output=True, text=True, cwd=tmp_path)
    row.injected += 1
    assert is_one_line(done), (done.returncode, done.stderr)
    assert not list(tmp_path.iterdir()), "a home was made where nobody asked for one"
