"""How much is tried: a little in every run of the tests, much with ``make fuzz``; and the table of what was tried."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

SECONDS_EACH = float(os.environ.get("ACCEPTABILITY_FUZZ_SECONDS", "0"))
"""How long each target is fuzzed; 0 for a few dozen inputs."""
FEW = 30


@dataclass
class Count:
    """What was tried of one target."""

    name: str
    inputs: int = 0
    failures: int = 0
    started: float = field(default_factory=time.monotonic)
    took: float = 0.0

    @property
    def seconds(self) -> float:
        """How long it has been tried so far."""
        return time.monotonic() - self.started

    @property
    def round(self) -> int:
        """How many inputs hypothesis makes before the clock is looked at again."""
        return 500 if SECONDS_EACH else FEW


COUNTS: list[Count] = []


@contextmanager
def counted(name: str) -> Iterator[Count]:
    """Count what is tried of a target."""
    count = Count(name)
    COUNTS.append(count)
    try:
        yield count
    except BaseException:
        count.failures += 1
        raise
    finally:
        count.took = count.seconds


def table() -> list[str]:
    """Return the table of what was tried, line by line."""
    rows = [(each.name, f"{each.inputs:,}", str(each.failures), f"{each.took:.1f}") for each in COUNTS]
    total = sum(each.inputs for each in COUNTS)
    took = sum(each.took for each in COUNTS)
    rows.append(("all", f"{total:,}", str(sum(each.failures for each in COUNTS)), f"{took:.1f}"))
    return [
        f"{name:<28}{inputs:>12}{failures:>12}{seconds:>10}"
        for name, inputs, failures, seconds in [("target", "inputs", "tracebacks", "seconds"), *rows]
    ]
