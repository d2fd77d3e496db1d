"""Runs commands in separate processes, and kills them on request.

Started once, it has imported everything; a run is a fork of it, with its own store connection, and
costs no start of Python. It reads a job a line from stdin, as JSON, and writes what became of it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from acceptability.store import recovery

_STEP = 0.001


def _get_ready(modules: list[str]) -> None:
    """Import what the commands need."""
    for name in ("acceptability.cli", "acceptability.models", "acceptability.suites.tables", *modules):
        __import__(name)


def _answered(job: dict[str, Any]) -> dict[str, Any]:
    """Run a job to its end, or to its kill, and tell its exit status (negative for a signal) and its seconds."""
    began = time.monotonic()
    if (child := os.fork()) == 0:
        _work(job)
    status = _until(child, job) if job.get("signal") else None
    if status is None and job.get("signal"):
        os.kill(child, job["signal"])
    if status is None:
        _, status = os.waitpid(child, 0)
    return {"code": os.waitstatus_to_exitcode(status), "seconds": time.monotonic() - began}


def _until(child: int, job: dict[str, Any]) -> int | None:
    """Wait until some seconds after so many bytes were noted, and a file is there; return the status of a run that
    ends before.
    """
    while Path(job["notes"]).stat().st_size < job.get("bytes", 0) or not Path(job.get("when", "/")).exists():
        if status := _ended(child):
            return status[1]
        time.sleep(_STEP)
    ends = time.monotonic() + job.get("after", 0.0)
    while (left := ends - time.monotonic()) > 0:
        if status := _ended(child):
            return status[1]
        time.sleep(min(left, 10 * _STEP))
    return None


def _ended(child: int) -> tuple[int, int] | None:
    status = os.waitpid(child, os.WNOHANG)
    return status if status[0] else None


def _work(job: dict[str, Any]) -> None:
    """Be the command: its environment, its output into files, and a note of every answer that the store has taken."""
    from acceptability import cli
    from acceptability.store.scores import ScoreStore

    os.environ.update(job["env"])
    for stream, path in ((sys.stdout, job["out"]), (sys.stderr, job["err"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), stream.fileno())
    notes = os.open(job["notes"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    add = ScoreStore.add

    def noted(self: ScoreStore, model: str, answers: Any, **options: Any) -> None:
        rows = list(answers)
        add(self, model, rows, **options)
        os.write(notes, b"".join(key for key, _ in rows))

    ScoreStore.add = noted  # type: ignore[method-assign]
    if job.get("clock"):
        _turn_back(job["clock"])
    sys.argv = ["acceptability", *job["arguments"]]
    code: object = 1
    try:
        cli.main()
        code = 0
    except SystemExit as stop:
        code = stop.code or 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _turn_back(seed: int) -> None:
    """Let every clock that can be set jump about, mostly back."""
    import datetime as dates

    from acceptability.store import runs

    rng, real = random.Random(seed), time.time

    def jumping() -> float:
        return real() - rng.uniform(0, 10**8)

    class Jumping(dates.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return dates.datetime.fromtimestamp(jumping(), tz)

    time.time = jumping
    for module in (recovery, runs):
        module.datetime = Jumping  # type: ignore[misc]


def main() -> None:
    """Answer jobs until there are no more."""
    _get_ready(sys.argv[1:])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(_answered(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
