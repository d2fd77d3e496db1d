"""The time that each stage of a command takes, as ``evaluate --timings`` shows it.

Code marks its stages with ``time_stage``, which does next to nothing unless ``collect_timings`` is collecting. Stages
nest: the time of an inner stage counts for it alone, so that all stages together are the whole.

>>> with collect_timings() as timings:
...     with time_stage("read"):
...         with time_stage("fingerprint"):
...             pass
>>> [row["stage"] for row in timings.rows()]
['read', 'fingerprint', 'other']
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

STAGES = (
    *("start", "read", "fingerprint", "open model", "tokenise", "forward"),
    *("store", "reduce", "measure", "resample", "print", "write", "other"),
)
"""The stages in the order in which tables show them; "other" is what belongs to none."""


class Timings:
    """The wall-clock and CPU seconds of each stage, collected from its creation on."""

    def __init__(self) -> None:
        self._seconds: dict[str, tuple[float, float]] = {}
        self._stages: list[str] = []
        self._thread = threading.get_ident()
        self._last = time.perf_counter(), time.process_time()

    @contextmanager
    def time(self, stage: str) -> Iterator[None]:
        """Count the time of a ``with`` block for a stage, one of ``STAGES``."""
        if stage not in STAGES:
            raise ValueError(f"no stage {stage!r}")
        # Other threads work at the same time as this one; counted too, the stages would add up to more than the whole.
        # Their CPU time is in that of the stage during which they run.
        if threading.get_ident() != self._thread:
            yield
            return
        self._count()
        self._stages.append(stage)
        try:
            yield
        finally:
            self._count()
            self._stages.pop()

    def add(self, stage: str, wall: float, cpu: float) -> None:
        """Add seconds to a stage."""
        before = self._seconds.get(stage, (0.0, 0.0))
        self._seconds[stage] = before[0] + wall, before[1] + cpu

    def _count(self) -> None:
        """Count the time since the last call for the innermost stage."""
        now = time.perf_counter(), time.process_time()
        stage = self._stages[-1] if self._stages else "other"
        self.add(stage, now[0] - self._last[0], now[1] - self._last[1])
        self._last = now

    def seconds(self) -> dict[str, tuple[float, float]]:
        """Return the wall-clock and CPU seconds of the stages that took place, in the order of ``STAGES``."""
        self._count()
        return {stage: self._seconds[stage] for stage in STAGES if stage in self._seconds}

    def rows(self) -> list[dict[str, object]]:
        """Return the stages as rows, for JSON."""
        return [
            {"stage": stage, "wall_seconds": round(wall, 4), "cpu_seconds": round(cpu, 4)}
            for stage, (wall, cpu) in self.seconds().items()
        ]


_collecting: Timings | None = None
_NOT_TIMED: AbstractContextManager[None] = nullcontext()


def time_stage(stage: str) -> AbstractContextManager[None]:
    """Return a context that counts its time for a stage, if timings are collected.

    Args:
        stage: One of ``STAGES``.
    """
    return _NOT_TIMED if _collecting is None else _collecting.time(stage)


@contextmanager
def collect_timings(*, since_start: bool = False) -> Iterator[Timings]:
    """Collect the timings of all stages in a ``with`` block, and yield them.

    Args:
        since_start: Add the time since the process started, as the stage "start".
    """
    global _collecting
    timings, before = Timings(), _collecting
    if since_start:
        timings.add("start", _seconds_since_start(), time.process_time())
    _collecting = timings
    try:
        yield timings
    finally:
        _collecting = before


def _seconds_since_start() -> float:
    """Return the wall-clock seconds since the process started, or its CPU seconds where the system does not say."""
    try:
        # The fields after the name of the program, which may itself contain spaces and brackets.
        fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return time.process_time()
