"""Ctrl-C: one line, exit status 130, an unchanged terminal, and the same command resumes."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from faults.harness import Tally, differing, many_pairs, stored

Rounds = Callable[[int, int], int]
# On a busy machine a command may end before this process looks again; it is then started anew.
TRIES = 5
HIDDEN, SHOWN = b"\x1b[?25l", b"\x1b[?25h"


def stopped(line: Sequence[str], home: Path, is_time: Callable[[], bool]) -> tuple[int, bytes, bool]:
    """Run a command at a terminal and press Ctrl-C when it is time; return its status, its talk, and whether the
    terminal's settings are as they were."""
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    env = {**os.environ, "ACCEPTABILITY_HOME": str(home), "OMP_NUM_THREADS": "1", "TERM": "xterm", "COLUMNS": "200"}
    process = subprocess.Popen(
        [sys.executable, "-m", "acceptability", *line],
        env=env, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, start_new_session=True,
        # Tests that run in the background of a shell are told to overhear Ctrl-C; a command at a terminal is not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    talk, sent = b"", False
    with process:
        while process.poll() is None:
            if not sent and is_time():
                process.send_signal(signal.SIGINT)
                sent = True
            if select.select([ours], [], [], 0.002)[0]:
                talk += os.read(ours, 65536)
    while select.select([ours], [], [], 0.05)[0]:
        talk += os.read(ours, 65536)
    is_as_before = termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)
    return process.returncode, talk, is_as_before


def is_in_order(talk: bytes) -> bool:
    """Tell whether the cursor is to be seen again at the end."""
    return talk.count(HIDDEN) == talk.count(SHOWN) and b"Traceback" not in talk and b"Aborted" not in talk


def test_evaluate(tmp_path: Path, arpa: Path, rounds: Rounds, tally: Tally) -> None:
    suite, row = many_pairs(tmp_path / "many.tsv", 4000), tally.row("Ctrl-C: evaluate")
    line = ["evaluate", str(suite), "-m", f"ngram:{arpa}", "--json", "--resamples", "40"]

    def calm(home: Path) -> object:
        env = {**os.environ, "ACCEPTABILITY_HOME": str(home), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "acceptability", *line], env=env, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    right = calm(tmp_path / "calm")
    for number in range(rounds(1, 6)):
        for attempt in range(TRIES):
            home = tmp_path / f"home-{number}-{attempt}"
            code, talk, is_as_before = stopped(
                line, home, lambda home=home: (home / "scores.sqlite-wal").exists() and bool(stored(home))
            )
            if code:
                break
        assert code == 130, talk
        assert talk.count(b"stopped; the scores so far are stored, and the same command resumes from there") == 1
        assert is_in_order(talk)
        assert is_as_before
        row.injected += 1
        held = stored(home)
        assert held
        row.wrong += differing(held, stored(tmp_path / "calm")) + (calm(home) != right)
        row.lost += len(held.keys() - stored(home).keys())
    assert (row.lost, row.wrong) == (0, 0)


def test_train(tmp_path: Path, tally: Tally) -> None:
    row, corpus = tally.row("Ctrl-C: train"), tmp_path / "corpus.txt"
    corpus.write_text("".join(f"word{i % 977} and {i % 1013} of w{i % 31} .\n" for i in range(60_000)))
    line = ["train", "ngram", "-c", str(corpus), "--out"]
    for attempt in range(TRIES):
        out = tmp_path / f"model-{attempt}"
        state = out / ".checkpoint" / "state.json"
        code, talk, is_as_before = stopped([*line, str(out)], tmp_path, state.exists)
        if code:
            break
    assert code == 130, talk
    assert b"stopped; the same command resumes from the last checkpoint" in talk
    assert is_in_order(talk)
    assert is_as_before
    assert state.exists()
    row.injected += 1
    for folder in (out, tmp_path / "calm"):
        subprocess.run([sys.executable, "-m", "acceptability", *line, str(folder)], check=True, capture_output=True)
    for name in ("model.safetensors", "vocabulary.json", "unigrams.tsv"):
        row.wrong += (out / name).read_bytes() != (tmp_path / "calm" / name).read_bytes()
    assert row.wrong == 0


def test_at_any_moment(tmp_path: Path, arpa: Path, rounds: Rounds, tally: Tally) -> None:
    """Also while Python still starts, or the output is written: stopped, or done; and the terminal is in order."""
    suite, row = many_pairs(tmp_path / "many.tsv", 4000), tally.row("Ctrl-C: at any moment")
    line, count = ["score", str(suite), f"ngram:{arpa}", "--json"], rounds(1, 10)
    for number in range(count):
        ends, home = time.monotonic() + 0.3 + 0.1 * number, tmp_path / f"home-{number}"
        code, talk, is_as_before = stopped(line, home, lambda ends=ends: time.monotonic() > ends)
        row.injected += code != 0
        # On a busy machine, Python may be importing its module site; it then ends with a traceback of its own, and 1.
        is_of_python = code == 1 and talk.rstrip().endswith(b"KeyboardInterrupt") and b"acceptability/cli" not in talk
        assert code in (130, 0, -signal.SIGINT) or is_of_python, talk
        assert is_as_before
        assert talk.count(HIDDEN) == talk.count(SHOWN)
    assert row.injected
