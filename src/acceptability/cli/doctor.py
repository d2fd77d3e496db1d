"""``acceptability doctor``: what is installed, found and cached, and which device is used."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from acceptability import __version__
from acceptability.cli.shown import Json, print_json, say
from acceptability.errors import StoreError, SuiteError
from acceptability.home import home, local_data
from acceptability.models import default_model, delivered
from acceptability.store.runs import saved_runs
from acceptability.store.said import Store
from acceptability.suites import Entry, catalog
from acceptability.suites.fetch import is_here, verify

_PACKAGES = (
    "numpy",
    "torch",
    "transformers",
    "kenlm",
    "pocketsphinx",
    "wordfreq",
    "datasets",
    "altair",
    "ray",
)


def command(as_json: Json = False) -> None:
    """Say what this machine has: packages, models, data, stored scores, device and threads."""
    found: dict[str, object] = {"acceptability": __version__, "python": platform.python_version()}
    found |= {name: _version(name) for name in _PACKAGES}
    found |= {"device": _device(), "cores": os.cpu_count()}
    found["models"] = {name: "installed" if each.is_installed() else "absent" for name, each in delivered().items()}
    found["default model"] = default_model()
    found |= {"home": str(home()), "local data": str(local_data() or "none (ACCEPTABILITY_DATA is not set)")}
    found |= {"suites": _suites(), "store": _store(), "runs": len(saved_runs()[0])}
    if problems := saved_runs()[1]:
        found["damaged runs"] = dict(enumerate(problems, start=1))
    if as_json:
        print_json(found)
        return
    for key, value in found.items():
        if isinstance(value, dict):
            say(f"{key}:")
            for name, each in value.items():
                say(f"  {name!s:<28} {each}")
        else:
            say(f"{key + ':':<16} {value}")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _device() -> str:
    try:
        import torch
    except ImportError:
        return "none: torch is absent; models that need it cannot run"
    if torch.cuda.is_available():
        return f"cuda: {torch.cuda.get_device_name()}"
    return f"cpu, {torch.get_num_threads()} threads (OMP_NUM_THREADS=1 is often faster beside other work)"


def _suites() -> dict[str, str]:
    return {entry.id: _state(entry) for entry in catalog()}


def _state(entry: Entry) -> str:
    if not is_here(entry):
        return f"not here; acceptability suites fetch {entry.id}"
    try:
        verify(entry)
    except SuiteError as error:
        return f"DAMAGED: {error}"
    return "found and whole"


def _store() -> dict[str, int] | str:
    try:
        with Store() as store:
            return store.counts() or "empty"
    except StoreError as error:
        return f"DAMAGED: {error}"
