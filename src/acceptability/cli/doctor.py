"""``acceptability doctor``: the state of the installation: packages, models, data, store and device."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from acceptability import __version__
from acceptability.cli.console import JsonOption, print_json, print_line
from acceptability.errors import StoreError, SuiteError
from acceptability.models import default_model, list_named_models
from acceptability.paths import home_folder, local_data_folder
from acceptability.store.runs import list_saved_runs
from acceptability.store.scores import ScoreStore
from acceptability.suites import CatalogEntry, load_catalog
from acceptability.suites.catalog import is_available, verify_files

# The packages whose versions matter for models and results; most of them are optional.
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


def command(as_json: JsonOption = False) -> None:
    """Report the state of the installation: packages, models, data, stored scores, device and threads."""
    report = _collect_report()
    if as_json:
        print_json(report)
        return
    for key, value in report.items():
        if isinstance(value, dict):
            print_line(f"{key}:")
            for name, state in value.items():
                print_line(f"  {name!s:<28} {state}")
        else:
            print_line(f"{key + ':':<16} {value}")


def _collect_report() -> dict[str, object]:
    # Nothing here may raise an error: a report on a broken installation is what the command is for.
    runs, problems = list_saved_runs()
    report: dict[str, object] = {"acceptability": __version__, "python": platform.python_version()}
    report |= {name: _package_version(name) for name in _PACKAGES}
    report |= {"device": _describe_device(), "cores": os.cpu_count()}
    report["models"] = {
        name: "installed" if model.is_installed() else "absent" for name, model in list_named_models().items()
    }
    report["default model"] = default_model()
    report |= {
        "home": str(home_folder()),
        "local data": str(local_data_folder() or "none (ACCEPTABILITY_DATA is not set)"),
    }
    report |= {"suites": _suite_states(), "store": _count_stored(), "runs": len(runs)}
    if problems:
        report["damaged runs"] = dict(enumerate(problems, start=1))
    return report


def _package_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _describe_device() -> str:
    # Imported here: torch is optional and takes seconds to import.
    try:
        import torch
    except ImportError:
        return "none: torch is absent; models that need it cannot run"
    if torch.cuda.is_available():
        return f"cuda: {torch.cuda.get_device_name()}"
    return f"cpu, {torch.get_num_threads()} threads (beside other work, try OMP_NUM_THREADS=1)"


def _suite_states() -> dict[str, str]:
    return {entry.id: _suite_state(entry) for entry in load_catalog()}


def _suite_state(entry: CatalogEntry) -> str:
    if not is_available(entry):
        return f"not here; acceptability suites fetch {entry.id}"
    try:
        verify_files(entry)
    except SuiteError as error:
        return f"DAMAGED: {error}"
    return "found and whole"


def _count_stored() -> dict[str, int] | str:
    try:
        with ScoreStore() as store:
            return store.count_answers() or "empty"
    except StoreError as error:
        return f"DAMAGED: {error}"
