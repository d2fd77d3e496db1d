"""The notebooks run from the first cell to the last, and hold no outputs."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from pages import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def cells(notebook: Path, kind: str) -> list[dict[str, Any]]:
    found = json.loads(notebook.read_text(encoding="utf-8"))
    assert (found["nbformat"], found["metadata"]["kernelspec"]["language"]) == (4, "python")
    return [cell for cell in found["cells"] if cell["cell_type"] == kind]


def test_there_are_two() -> None:
    assert len(NOTEBOOKS) == 2


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_holds_no_outputs(notebook: Path) -> None:
    assert cells(notebook, "markdown")
    for cell in cells(notebook, "code"):
        assert (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All cells in order; where altair is there, its figures are whole."""
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "cells.py"
    script.write_text("\n\n".join("".join(cell["source"]) for cell in cells(notebook, "code")), encoding="utf-8")
    names = runpy.run_path(str(script))
    assert names["results"]
    assert all(result.value is not None for result in names["results"])
    for name in {"figure", "gaps"} & set(names):
        assert (names[name] is None) == (names["altair"] is None)
        assert names[name] is None or names[name].to_dict()["$schema"]
