"""The machine's own rate of matrix products, in operations per second: what scoring can come near to, not exceed.

    python -m bench.rates --device cpu --threads 2

Products of large square matrices, the best of many. On a CPU two ways are tried in float32, since they differ much on
some machines: PyTorch's own product and a oneDNN product with weights packed beforehand; the faster one is the rate.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

DTYPES = ("float32", "bfloat16")
_SIDE = {"cpu": 2048, "cuda": 8192}
_SECONDS = 1.5


def measured(device: str, threads: int) -> dict[str, dict[str, float]]:
    """Return the rate of each way by dtype, measured in a process of its own."""
    command = [sys.executable, "-m", "bench.rates", "--device", device, "--threads", str(threads)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, dict[str, float]] = json.loads(done.stdout)
    return found


def _ways(dtype: str, device: str) -> dict[str, Callable[[], Any]]:
    import torch

    side = _SIDE[device]
    torch.manual_seed(0)
    first, second = (torch.randn(side, side, dtype=getattr(torch, dtype), device=device) for _ in range(2))
    ways: dict[str, Callable[[], Any]] = {"torch": lambda: first @ second}
    if device == "cpu" and hasattr(torch.ops.mkldnn, "_reorder_linear_weight"):
        packed = torch.ops.mkldnn._reorder_linear_weight(second, side)
        ways["packed"] = lambda: torch.ops.mkldnn._linear_pointwise(first, packed, None, "none", [], "")
    return ways


def _rate(product: Callable[[], Any], device: str) -> float:
    import torch

    def done() -> float:
        start = time.perf_counter()
        product()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        return time.perf_counter() - start

    done()
    best, end = done(), time.perf_counter() + _SECONDS
    while time.perf_counter() < end:
        best = min(best, done())
    side = _SIDE[device]
    return float(2 * side**3 / best)


def main() -> None:
    """Print the rates as JSON."""
    import torch

    reader = argparse.ArgumentParser(prog="python -m bench.rates", description="Measure the rate of matrix products.")
    reader.add_argument("--device", choices=tuple(_SIDE), default="cpu")
    reader.add_argument("--threads", type=int, default=1)
    given = reader.parse_args()
    torch.set_num_threads(given.threads)
    with torch.inference_mode():
        found = {
            dtype: {name: _rate(way, given.device) for name, way in _ways(dtype, given.device).items()}
            for dtype in DTYPES
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
