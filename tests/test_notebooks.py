"""The notebooks run from the first cell to the last, show tables and figures, and hold what running them gives."""

from __future__ import annotations

import importlib.util
import shlex
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pages import ROOT
from shell import problem

pytest.importorskip("torch", reason="the notebooks use mini-causal")
pytest.importorskip("pandas", reason="the notebooks use pandas")
pytest.importorskip("vl_convert", reason="the notebooks show figures")

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def load_runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebook_pages", ROOT / "docs" / "notebook_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RUNNER = load_runner()


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def outputs(notebook: dict[str, Any], kind: str) -> list[str]:
    """What the cells show in one media type, in order."""
    shown = [output.get("data", {}) for cell in code_cells(notebook) for output in cell["outputs"]]
    return ["".join(data[kind]) for data in shown if kind in data]


def test_there_are_two() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["compare-models", "judge-pairs"]
    assert RUNNER.list_notebooks() == NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_holds_what_running_it_gives(path: Path) -> None:
    """Tables and texts are the same to the last digit that is shown; figures are compared by what they are called."""
    stored = RUNNER.read_notebook(path)
    assert (stored["nbformat"], stored["metadata"]["kernelspec"]["language"]) == (4, "python")
    done = RUNNER.run_notebook(stored)
    for kind in ("text/html", "text/plain"):
        assert outputs(done, kind) == outputs(stored, kind)
    for notebook in (stored, done):
        assert sum("<table" in table for table in outputs(notebook, "text/html")) >= 5
        figures = outputs(notebook, "image/svg+xml")
        assert len(figures) >= 1
        assert all(figure.startswith("<svg") and figure.count("<path") > 10 for figure in figures)
    assert len(outputs(done, "image/svg+xml")) == len(outputs(stored, "image/svg+xml"))
    assert [cell["execution_count"] for cell in code_cells(stored)] == list(range(1, len(code_cells(stored)) + 1))
    # All cells but the one that installs show something.
    assert all(cell["outputs"] for cell in code_cells(stored)[1:])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_installs_what_it_needs(path: Path) -> None:
    assert path.stat().st_size < 150_000
    (line,) = code_cells(RUNNER.read_notebook(path))[0]["source"]
    assert line.startswith("%pip install")
    assert not problem(shlex.split(line.removeprefix("%")))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_a_page_with_its_tables_and_figures(path: Path) -> None:
    notebook = RUNNER.read_notebook(path)
    page = RUNNER.write_page(notebook)
    assert page.startswith("# ")
    assert page.count("```python\n") == len(code_cells(notebook))
    assert page.count('<div class="output"><') == len(outputs(notebook, "text/html"))
    assert page.count('src="data:image/svg+xml;base64,') == len(outputs(notebook, "image/svg+xml"))
    assert "<style" not in page


def test_cells_run_in_order_and_keep_what_they_show() -> None:
    def cell(source: str) -> dict[str, Any]:
        return {"cell_type": "code", "source": [source], "execution_count": None, "outputs": []}

    notebook = {"cells": [cell("%pip install x\na = 1"), cell("print(a)\na + 1"), cell("a = 3\nNone")]}
    first, second, third = RUNNER.run_notebook(notebook)["cells"]
    assert first["outputs"] == third["outputs"] == []
    assert [each.get("text") or each["data"]["text/plain"] for each in second["outputs"]] == [["1\n"], ["2"]]
    assert notebook["cells"][0]["execution_count"] is None
