"""The environment of the other tools, which are not dependencies of this package."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from bench.contenders import BenchError

PINNED = ("minicons==0.3.39", "lm-eval[hf]==0.4.13")
VARIABLE = "BENCH_PEERS"


def python_of_peers(given: str | None, scratch: Path) -> Path:
    """Return the Python that has the other tools.

    A new environment gets the releases of torch and transformers of this one, so that only the tools differ.

    Args:
        given: The folder of an environment, or "here"; without one, an environment is made in the scratch folder.
        scratch: The folder for files that are made once.
    """
    given = given or os.environ.get(VARIABLE)
    if given == "here":
        return Path(sys.executable)
    folder = Path(given) if given else scratch / "peers"
    python = folder / "bin" / "python"
    if not given and not (folder / "ready").is_file():
        ours = [f"{name}=={version(name).partition('+')[0]}" for name in ("torch", "transformers")]
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *ours, *PINNED], check=True)
        (folder / "ready").touch()
    if not python.is_file():
        raise BenchError(
            f"{folder} is no environment: it has no bin/python. Give another folder, 'here', or nothing to create one."
        )
    return python
