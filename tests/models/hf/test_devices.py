"""The default device is known without PyTorch, and is the one that PyTorch would choose."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from acceptability.models.hf import devices
from acceptability.models.hf.devices import detect_default_device

CUDA = "cuda: Optional[str] = '12.8'\nhip: Optional[str] = None\n"
CPU = "cuda: Optional[str] = None\nhip: Optional[str] = None\n"


class Driver:
    """NVIDIA's management library with some GPUs and a version of CUDA."""

    def __init__(self, gpus: int = 1, version: int = 12080, started: int = 0) -> None:
        self.gpus, self.version, self.started, self.is_open = gpus, version, started, False

    def nvmlInit_v2(self) -> int:
        self.is_open = self.started == 0
        return self.started

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = self.gpus
        return 0

    def nvmlSystemGetCudaDriverVersion_v2(self, version: Any) -> int:
        version._obj.value = self.version
        return 0

    def nvmlShutdown(self) -> int:
        self.is_open = False
        return 0


def detect(monkeypatch: pytest.MonkeyPatch, folder: Path, build: str, driver: Driver | None) -> str | None:
    (folder / "__init__.py").touch()
    (folder / "version.py").write_text(build)
    monkeypatch.setattr(devices, "find_spec", lambda _: type("Spec", (), {"origin": str(folder / "__init__.py")}))
    for name in ("CUDA_VISIBLE_DEVICES", "PYTORCH_NVML_BASED_CUDA_CHECK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")

    def load(name: str) -> Driver:
        if driver is None:
            raise OSError(f"no {name}")
        return driver

    monkeypatch.setattr(ctypes, "CDLL", load)
    found = detect_default_device()
    assert driver is None or not driver.is_open
    return found


@pytest.mark.parametrize(
    ("build", "driver", "device"),
    [
        (CPU, Driver(), "cpu"),
        (CUDA, Driver(), "cuda"),
        (CUDA, Driver(version=13000), "cuda"),
        # In doubt, PyTorch decides.
        (CUDA, Driver(version=11080), None),
        (CUDA, Driver(gpus=0), None),
        (CUDA, Driver(started=9), None),
        (CUDA, None, None),
        (CUDA.replace("hip: Optional[str] = None", "hip: Optional[str] = '6.3'"), Driver(), None),
        (CUDA.replace("12.8", "twelve"), Driver(), None),
        ("__version__ = '2.0'\n", Driver(), None),
    ],
)
def test_the_device_follows_from_the_build_and_the_driver(
    build: str, driver: Driver | None, device: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert detect(monkeypatch, tmp_path, build, driver) == device


@pytest.mark.parametrize(
    ("visible", "device"), [("0", "cuda"), ("0,7", "cuda"), ("1", None), ("", None), ("-1", None), ("GPU-8f", None)]
)
def test_a_list_of_visible_gpus_is_read_if_it_begins_with_one_that_is_there(
    visible: str, device: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert detect(monkeypatch, tmp_path, CUDA, Driver()) == "cuda"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert detect_default_device() == device


def test_what_a_container_mounts_is_not_what_pytorch_reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "3")
    assert detect(monkeypatch, tmp_path, CUDA, Driver()) == "cuda"


def test_pytorch_agrees_and_decides_once_it_is_imported() -> None:
    code = (
        "from acceptability.models.hf.devices import detect_default_device\n"
        "detected = detect_default_device()\n"
        "import torch\n"
        "assert detected in (None, 'cuda' if torch.cuda.is_available() else 'cpu'), detected\n"
        "assert detect_default_device() is None"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
