"""The class of device that networks compute on by default, found without importing PyTorch, which takes seconds.

Outputs in half precision are stored under the class of device, so that it has to be known before stored outputs are
found. PyTorch takes a GPU if it was built for CUDA and the driver lists one; both can be asked of its files and of
NVIDIA's management library. Where these leave a doubt, PyTorch itself decides.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_BUILD_FIELD = re.compile(r"^(cuda|hip)\b[^=\n]*= *(None|'[^'\n]*')", re.MULTILINE)
# How PyTorch looks for GPUs. NVIDIA_VISIBLE_DEVICES, which container images set, is none of these: it decides what is
# mounted into a container, and NVIDIA's library lists no other.
_CHECK_VARIABLE = "PYTORCH_NVML_BASED_CUDA_CHECK"
_VISIBLE_VARIABLE = "CUDA_VISIBLE_DEVICES"


def detect_default_device() -> str | None:
    """Return "cuda" or "cpu", as "auto" chooses; None if only PyTorch can tell, or was imported already."""
    if "torch" in sys.modules:
        return None
    build = _read_build()
    if build is None:
        return None
    if build == {"cuda": None, "hip": None}:
        return "cpu"
    if build["hip"] or sys.platform != "linux" or _CHECK_VARIABLE in os.environ:
        return None
    # A list of visible devices may be empty, or have names in place of numbers.
    visible = os.environ.get(_VISIBLE_VARIABLE, "0").partition(",")[0]
    if not (visible.isascii() and visible.isdigit()):
        return None
    return "cuda" if _count_gpus(int(str(build["cuda"]).partition(".")[0])) > int(visible) else None


def _read_build() -> dict[str, str | None] | None:
    """Return what PyTorch was built for: the versions of CUDA and HIP; None if its files do not say."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    try:
        content = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    build = {name: None if value == "None" else value.strip("'") for name, value in _BUILD_FIELD.findall(content)}
    is_clear = build.keys() == {"cuda", "hip"} and re.match(r"\d+\.", build["cuda"] or "0.")
    return build if is_clear else None


def _count_gpus(major: int) -> int:
    """Return the number of GPUs that the driver lists; 0 if it does not run programs of a major version of CUDA.

    Args:
        major: The major version that PyTorch was built for. Drivers run all programs of their own and of older ones.
    """
    # The library that only lists: CUDA's own would occupy the GPU, and could not be used in a forked process.
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        count, version = ctypes.c_uint(), ctypes.c_int()
        if library.nvmlInit_v2() != 0:
            return 0
        try:
            listed = library.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
            known = library.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(version)) == 0
        finally:
            library.nvmlShutdown()
    except (OSError, AttributeError):
        return 0
    # 12080 is version 12.8.
    return count.value if listed and known and version.value // 1000 >= major else 0


def start_gpu(device: str) -> None:
    """Initialise CUDA in another thread if a network is going to run on a GPU, while transformers is imported here.

    Args:
        device: A device of PyTorch, or "auto".
    """
    if (detect_default_device() if device == "auto" else device.partition(":")[0]) == "cuda":
        _start_cuda(device)


@cache
def _start_cuda(device: str) -> None:
    # Imported before the thread starts: two threads that import parts of it may meet half-imported modules.
    import torch  # noqa: F401

    # Not a daemon: Python would clear PyTorch away at its end, while the thread is still in it.
    threading.Thread(target=_load_kernels, args=["cuda" if device == "auto" else device]).start()


def _load_kernels(device: str) -> None:
    """Run the kinds of kernels that a network needs once: CUDA loads each when it is first used."""
    import torch

    from acceptability.models.hf.loading import configure_runtime

    try:
        configure_runtime(device)
        with torch.inference_mode():
            states = torch.zeros(64, 64, device=device)
            for rows in (states, states.bfloat16()):
                # Results are not used, and errors are those that the network will report.
                output = torch.nn.functional.layer_norm(torch.addmm(rows[0], rows, rows), [64])
                torch.nn.functional.gelu(output[rows[:, 0].long()]).float().log_softmax(1).cpu()
    except (RuntimeError, AssertionError):
        return
