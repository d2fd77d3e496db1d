"""Time whole commands from the shell, cold and stored, with the time of each stage, beside what other tools take.

    python -m bench.command --models trigram
    python -m bench.command --shapes tiny --suite starter
    python -m bench.command --gpu --peers FOLDER

A round runs ``acceptability evaluate SUITE --by phenomenon`` twice: in an empty home folder (cold), and again where
every score is stored. Wall-clock and CPU seconds are those of the whole process, from its start to its end; the stages
are those of ``--timings``, of the round with the median time. The data set is on this machine before the first round.

The other tools do the same job for a shape: ``lm_eval --tasks blimp``, which reads BLiMP from the Hugging Face Hub or
its cache, and a script with minicons (``bench/minicons_command.py``) that reads the same pairs from a file, scores
them, and bootstraps the accuracy of each phenomenon. They run where their packages are installed, and are left out
elsewhere. ``--gpu`` times the GPT-2-small and BERT-base shapes in bfloat16 on a CUDA device.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.contenders import ROOT, BenchError, environment
from bench.peers import VARIABLE, python_of_peers
from bench.shapes import NAMES, Shape, make_shape
from bench.tables import aligned

_LAST_LINES = 3


@dataclass(frozen=True)
class TimedCommand:
    """How long a command took.

    Args:
        wall: Wall-clock seconds, from the start of the process to its end.
        cpu: CPU seconds of the process and those that it started.
        stages: The wall-clock and CPU seconds of each stage, of our command.
        problem: Why it failed; empty if it did not.
    """

    wall: float
    cpu: float
    stages: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    problem: str = ""


def time_command(arguments: Sequence[str], variables: Mapping[str, str]) -> TimedCommand:
    """Run a command and return how long it took.

    Args:
        arguments: The command line.
        variables: Its environment variables.

    >>> timed = time_command([sys.executable, "-c", "print(1)"], os.environ)
    >>> timed.problem, 0 < timed.cpu, 0 < timed.wall
    ('', True, True)
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        process = subprocess.Popen(arguments, stdout=out, stderr=errors, env=dict(variables), cwd=ROOT)
        # wait4 and not the difference of getrusage: it counts this process and its children, and no other.
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        lines = errors.read().strip().splitlines()
        problem = "" if process.returncode == 0 else " ".join(lines[-_LAST_LINES:]) or f"exit {process.returncode}"
        return TimedCommand(wall, used.ru_utime + used.ru_stime, read_stages(out.read()), problem)


def read_stages(printed: str) -> dict[str, tuple[float, float]]:
    """Return the seconds of the stages in the output of ``evaluate --timings --json``; none in any other output.

    >>> read_stages('{"results": [], "timings": [{"stage": "read", "wall_seconds": 2.0, "cpu_seconds": 1.0}]}')
    {'read': (2.0, 1.0)}
    >>> read_stages("0.5")
    {}
    """
    try:
        document = json.loads(printed)
    except ValueError:
        return {}
    rows = document.get("timings", []) if isinstance(document, dict) else []
    return {row["stage"]: (row["wall_seconds"], row["cpu_seconds"]) for row in rows}


def choose_median(runs: Sequence[TimedCommand]) -> TimedCommand:
    """Return the run with the median wall-clock time, the lower one of two.

    >>> choose_median([TimedCommand(3, 1), TimedCommand(1, 1), TimedCommand(2, 1)]).wall
    2
    """
    return sorted(runs, key=lambda run: run.wall)[(len(runs) - 1) // 2]


def main(arguments: Sequence[str] | None = None) -> None:
    """Time every case, print tables, and write the results to a file."""
    given = _reader().parse_args(arguments)
    if given.gpu:
        given.shapes, given.dtype, given.device = given.shapes or ["gpt2", "bert"], "bfloat16", "cuda"
    try:
        python = _find_peers(given)
        cases = [case for model in given.models for case in _time_ours(given, model, model)]
        for name in given.shapes:
            subprocess.run([sys.executable, "-m", "bench.shapes", str(given.scratch), name], check=True)
            shape = make_shape(given.scratch, name)
            spec = f"{shape.kind}:{shape.folder}(dtype={given.dtype!r}, device={given.device!r})"
            cases += _time_ours(given, f"{name} {given.dtype}", spec)
            cases += _time_peers(given, shape, python)
    except BenchError as error:
        raise SystemExit(f"bench: {error}") from error
    print(aligned([("command", "", "seconds", "minimum", "maximum", "CPU seconds"), *map(_cells, cases)]))
    for case in cases:
        if case["stages"]:
            print(f"\n{case['name']}, {case['state']}: seconds by stage")
            rows = [(stage, f"{wall:.2f}", f"{cpu:.2f}") for stage, (wall, cpu) in case["stages"].items()]
            print(aligned([("stage", "seconds", "CPU seconds"), *rows]))
        if case["problem"]:
            print(f"\n{case['name']}: {case['problem']}")
    given.output.mkdir(parents=True, exist_ok=True)
    path = given.output / "command.json"
    machine = {"platform": platform.platform(), "cpus": os.cpu_count(), "suite": given.suite}
    path.write_text(json.dumps(machine | {"cases": cases}, indent=1), encoding="utf-8")
    print(f"written: {path}", file=sys.stderr)


def _find_peers(given: argparse.Namespace) -> Path:
    """Return the Python that may have the other tools: this one, unless another environment is named."""
    return python_of_peers(given.peers or os.environ.get(VARIABLE) or "here", given.scratch)


def _time_ours(given: argparse.Namespace, name: str, spec: str) -> list[dict[str, Any]]:
    """Return how long our command takes, cold and stored.

    Args:
        name: What is timed, for the table.
        spec: The spec of the model.
    """
    command = [sys.executable, "-m", "acceptability", "evaluate", given.suite, "--model", spec]
    command += ["--timings", "--json", "--resamples", str(given.resamples)]
    command += [part for measure in given.measures for part in ("--measure", measure)]
    command += ["--by", given.by] if given.by else []
    runs: dict[str, list[TimedCommand]] = {"cold": [], "stored": []}
    for _ in range(given.rounds):
        with tempfile.TemporaryDirectory(prefix="bench-home-") as home:
            variables = environment(ours=True) | {"ACCEPTABILITY_HOME": home}
            for state in runs:
                timed = time_command(command, variables)
                if timed.problem:
                    raise BenchError(f"{name}, {state}: {timed.problem}")
                runs[state].append(timed)
    return [_summarize(f"acceptability, {name}", state, timed) for state, timed in runs.items()]


def _time_peers(given: argparse.Namespace, shape: Shape, python: Path) -> list[dict[str, Any]]:
    """Return how long the other tools take for the same job, of those that are installed."""
    cases = []
    if _is_installed(python, "minicons"):
        with tempfile.TemporaryDirectory(prefix="bench-pairs-") as folder:
            pairs = Path(folder) / "pairs.jsonl"
            _write_pairs(given.suite, given.by, pairs)
            script = [str(python), "-m", "bench.minicons_command", str(pairs), shape.folder, "--kind", shape.kind]
            script += ["--dtype", given.dtype, "--device", given.device, "--batch", str(given.batch)]
            script += ["--resamples", str(given.resamples)]
            cases.append(_time_peer(given, f"minicons, {shape.name} {given.dtype}", script))
    if shape.kind == "causal" and given.suite == "blimp" and _is_installed(python, "lm_eval"):
        script = [str(python), "-m", "lm_eval", "--model", "hf", "--tasks", "blimp", "--device", given.device]
        script += ["--model_args", f"pretrained={shape.folder},dtype={given.dtype}"]
        script += ["--batch_size", str(given.batch)]
        cases.append(_time_peer(given, f"lm_eval, {shape.name} {given.dtype}", script))
    return cases


def _time_peer(given: argparse.Namespace, name: str, command: Sequence[str]) -> dict[str, Any]:
    """Return how long the command of another tool takes; it ends with the first round that fails."""
    runs: list[TimedCommand] = []
    for _ in range(given.rounds):
        runs.append(time_command(command, environment(ours=False)))
        if runs[-1].problem:
            break
    return _summarize(name, "cold", runs)


def _is_installed(python: Path, module: str) -> bool:
    return subprocess.run([str(python), "-c", f"import {module}"], capture_output=True).returncode == 0


def _write_pairs(suite: str, by: str, path: Path) -> None:
    """Write the pairs of a suite as JSON lines of better, worse and group."""
    from acceptability import load_suite

    loaded = load_suite(suite)
    lines = [
        json.dumps([loaded.by_id[pair.better].text, loaded.by_id[pair.worse].text, pair.tags.get(by, "")])
        for pair in loaded.contrasts
    ]
    path.write_text("\n".join(lines), encoding="utf-8")


def _summarize(name: str, state: str, runs: Sequence[TimedCommand]) -> dict[str, Any]:
    """Return the runs of a command as one case."""
    walls, median = [run.wall for run in runs], choose_median(runs)
    return {
        "name": name,
        "state": state,
        "median": statistics.median(walls),
        "minimum": min(walls),
        "maximum": max(walls),
        "cpu": statistics.median(run.cpu for run in runs),
        "stages": dict(median.stages),
        "problem": next((run.problem for run in runs if run.problem), ""),
        "runs": [asdict(run) for run in runs],
    }


def _cells(case: Mapping[str, Any]) -> tuple[str, ...]:
    if case["problem"]:
        return case["name"], "failed", "", "", "", ""
    seconds = (f"{case[name]:.2f}" for name in ("median", "minimum", "maximum", "cpu"))
    return case["name"], case["state"], *seconds


def _reader() -> argparse.ArgumentParser:
    scratch = Path(tempfile.gettempdir()) / "acceptability-bench"
    reader = argparse.ArgumentParser(
        prog="python -m bench.command", description="Time whole commands from the shell, stage by stage."
    )
    reader.add_argument("--suite", default="blimp")
    reader.add_argument("--models", nargs="*", default=[], help="specs of models, such as trigram")
    reader.add_argument("--shapes", nargs="*", choices=NAMES, default=[], help="models with random weights")
    reader.add_argument("--gpu", action="store_true", help="the shapes gpt2 and bert in bfloat16 on a GPU")
    reader.add_argument("--dtype", default="float32")
    reader.add_argument("--device", default="cpu")
    reader.add_argument("--measures", nargs="*", default=["PairAccuracy"])
    reader.add_argument("--by", default="phenomenon")
    reader.add_argument("--resamples", type=int, default=1000)
    reader.add_argument("--rounds", type=int, default=3)
    reader.add_argument("--batch", type=int, default=64, help="the batch size of the other tools")
    reader.add_argument("--peers", help=f"the environment of the other tools; default: {VARIABLE}, or this one")
    reader.add_argument("--scratch", type=Path, default=scratch, help=f"default: {scratch}")
    reader.add_argument("--output", type=Path, default=ROOT / "bench" / "out", help="where the results are written")
    return reader


if __name__ == "__main__":
    main()
