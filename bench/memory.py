"""Peak memory of a piece of work: of this process, or of the GPU if the model is on one."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"


@dataclass(frozen=True)
class Memory:
    """Bytes in use before a piece of work, and at its peak; None if the system does not report them."""

    before: int | None
    peak: int | None


class Meter:
    """Measures memory on a device: create it before the work, and call ``measure`` afterwards.

    On the CPU this is the kernel's own high-water mark of resident memory (Linux only), so no peak between two
    samples is missed.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        if device.startswith("cuda"):
            import torch

            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            self._before: int | None = torch.cuda.memory_allocated()
        elif _CLEAR.exists():
            # Freed memory that the C library keeps would be reused by the work, and hide what it needs.
            ctypes.CDLL(None).malloc_trim(0)
            _CLEAR.write_text(_RESET_PEAK, encoding="ascii")
            self._before = _kilobytes("VmRSS") * 1024
        else:
            self._before = None

    def measure(self) -> Memory:
        """Return the bytes in use at the start, and the peak since then."""
        if self._device.startswith("cuda"):
            import torch

            torch.cuda.synchronize()
            return Memory(self._before, torch.cuda.max_memory_allocated())
        return Memory(self._before, None if self._before is None else _kilobytes("VmHWM") * 1024)


def _kilobytes(name: str) -> int:
    lines = _STATUS.read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
