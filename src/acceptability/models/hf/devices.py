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
from importlib.util import find_spec
from pathlib import Path

_BUILD_FIELD = re.compile(r"^(cuda|hip)\b[^=\n]*= *(None|'[^'\n]*')", re.MULTILINE)
# Which GPUs PyTorch sees, and how it looks for them.
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "PYTORCH_NVML_BASED_CUDA_CHECK")


def detect_default_device() -> str | None:
    """Return "cuda" or "cpu", as "auto" chooses; None if only PyTorch can tell, or was imported already."""
    if "torch" in sys.modules:
        return None
    build = _read_build()
    if build is None:
        return None
    if build == {"cuda": None, "hip": None}:
        return "cpu"
    # A list of visible devices may be empty, or name some that do not exist.
    if build["hip"] or sys.platform != "linux" or any(name in os.environ for name in _VARIABLES):
        return None
    return "cuda" if _has_gpu(int(str(build["cuda"]).partition(".")[0])) else None


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


def _has_gpu(major: int) -> bool:
    """Return whether the driver lists a GPU and runs programs of a major version of CUDA.

    Args:
        major: The major version that PyTorch was built for. Drivers run all programs of their own and of older ones.
    """
    # The library that only lists: CUDA's own would occupy the GPU, and could not be used in a forked process.
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        count, version = ctypes.c_uint(), ctypes.c_int()
        if library.nvmlInit_v2() != 0:
            return False
        try:
            listed = library.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
            known = library.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(version)) == 0
        finally:
            library.nvmlShutdown()
    except (OSError, AttributeError):
        return False
    # 12080 is version 12.8.
    return listed and known and count.value > 0 and version.value // 1000 >= major
