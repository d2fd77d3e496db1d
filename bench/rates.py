"""The rate of matrix products of a machine, in operations per second: the upper bound on the speed of scoring.

    python -m bench.rates --device cpu --threads 2

The rate is the best of many products of large square matrices. On a CPU two kinds of product are timed, since they
differ much on some machines: PyTorch's own, and oneDNN's with weights packed beforehand. The faster one counts.
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


def measure_rates(device: str, threads: int) -> dict[str, dict[str, float]]:
    """Return the rate of each kind of product by dtype, measured in a process of its own."""
    command = [sys.executable, "-m", "bench.rates", "--device", device, "--threads", str(threads)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rates: dict[str, dict[str, float]] = json.loads(done.stdout)
    return rates


def _make_products(dtype: str, device: str) -> dict[str, Callable[[], Any]]:
    import torch

    side = _SIDE[device]
    torch.manual_seed(0)
    first, second = (torch.randn(side, side, dtype=getattr(torch, dtype), device=device) for _ in range(2))
    products: dict[str, Callable[[], Any]] = {"torch": lambda: first @ second}
    if device == "cpu" and hasattr(torch.ops.mkldnn, "_reorder_linear_weight"):
        packed = torch.ops.mkldnn._reorder_linear_weight(second, side)
        products["packed"] = lambda: torch.ops.mkldnn._linear_pointwise(first, packed, None, "none", [], "")
    return products


def _measure_rate(product: Callable[[], Any], device: str) -> float:
    import torch

    def time_product() -> float:
        start = time.perf_counter()
        product()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        return time.perf_counter() - start

    time_product()
    best, end = time_product(), time.perf_counter() + _SECONDS
    while time.perf_counter() < end:
        best = min(best, time_product())
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
        rates = {
            dtype: {
                name: _measure_rate(product, given.device)
                for name, product in _make_products(dtype, given.device).items()
            }
            for dtype in DTYPES
        }
    print(json.dumps(rates))


if __name__ == "__main__":
    main()
