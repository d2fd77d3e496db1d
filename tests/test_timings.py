"""The time of each stage: what nests in what, and what a user sees of it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from acceptability import timings
from acceptability.timings import STAGES, collect_timings, time_stage


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock for both kinds of seconds, which a test sets forward."""
    now = [100.0]
    monkeypatch.setattr(timings.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(timings.time, "process_time", lambda: now[0] / 2)
    return now


def test_the_time_of_an_inner_stage_counts_for_it_alone(clock: list[float]) -> None:
    with collect_timings() as collected:
        clock[0] += 1
        with time_stage("read"):
            clock[0] += 2
            with time_stage("fingerprint"):
                clock[0] += 4
            clock[0] += 8
        with time_stage("read"):
            clock[0] += 16
    assert collected.seconds() == {"read": (26, 13), "fingerprint": (4, 2), "other": (1, 0.5)}
    assert list(collected.seconds()) == ["read", "fingerprint", "other"]


def test_a_stage_that_fails_is_timed_and_ends(clock: list[float]) -> None:
    with collect_timings() as collected:
        with suppress(OSError), time_stage("write"):
            clock[0] += 3
            raise OSError
        clock[0] += 1
    assert collected.seconds() == {"write": (3, 1.5), "other": (1, 0.5)}


def test_another_thread_does_not_mix_its_stages_in(clock: list[float]) -> None:
    def work() -> None:
        with time_stage("forward"):
            clock[0] += 5

    with collect_timings() as collected, time_stage("store"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert collected.seconds()["store"] == (5, 2.5)
    assert "forward" not in collected.seconds()


def test_nothing_is_collected_unless_asked(clock: list[float]) -> None:
    assert time_stage("read") is time_stage("write")
    with collect_timings() as collected:
        pass
    with time_stage("read"):
        clock[0] += 1
    assert "read" not in collected.seconds()


def test_a_stage_without_a_place_in_the_table_is_refused() -> None:
    with collect_timings(), pytest.raises(ValueError, match="no stage 'tokenize'"), time_stage("tokenize"):
        pass


def test_the_start_counts_from_the_start_of_the_process() -> None:
    code = (
        "import time; time.sleep(0.3)\n"
        "from acceptability.timings import collect_timings\n"
        "with collect_timings(since_start=True) as collected: pass\n"
        "print(*collected.seconds()['start'])"
    )
    before = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    wall, cpu = map(float, done.stdout.split())
    assert cpu > 0
    # The system counts the start in hundredths of a second; without /proc, only CPU time is known.
    assert wall <= time.monotonic() - before + 0.02
    assert wall >= 0.28 or sys.platform != "linux"


def test_evaluate_shows_every_stage_within_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-m", "acceptability", "evaluate", "starter", "-m", "trigram", "--timings"]
    monkeypatch.setenv("COLUMNS", "80")
    shown = subprocess.run([*command, "--by", "phenomenon"], capture_output=True, text=True, check=True)
    lines = shown.stderr.splitlines()
    assert max(map(len, lines[lines.index(next(line for line in lines if "CPU seconds" in line)) :])) <= 80
    for stage in STAGES:
        assert f"{stage} " in shown.stderr, stage
    assert "CPU seconds" not in shown.stdout


def test_json_has_results_and_timings_in_one_document() -> None:
    command = [sys.executable, "-m", "acceptability", "evaluate", "starter", "-m", "uniform", "--json"]
    plain = subprocess.run(command, capture_output=True, text=True, check=True)
    timed = subprocess.run([*command, "--timings"], capture_output=True, text=True, check=True)
    document = json.loads(timed.stdout)
    assert document["results"] == json.loads(plain.stdout)
    stages = [row["stage"] for row in document["timings"]]
    assert stages == [stage for stage in STAGES if stage in stages]
    assert {"start", "read", "store", "reduce", "measure", "write"} <= set(stages)
    # The second run computes nothing.
    assert "forward" not in stages
    assert all(row["wall_seconds"] >= 0 and row["cpu_seconds"] >= 0 for row in document["timings"])
